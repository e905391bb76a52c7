"""Writers that stand still: each storage call of a step waits on a copy of the table, while others go on.

A process is stopped (SIGSTOP, a paused virtual machine) before one of its storage calls, for longer than its
leases are good. Another one takes over, and writes until archiving has passed what the first one had begun.
Then the first one goes on, from the very call. What was acknowledged counts, in one order or the other; what
was refused does not; and both stay true when the table lives on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache

import pyarrow as pa

from drawstring.base.errors import DrawstringError
from drawstring.model.files import FileStatus
from drawstring.model.result import Severity
from drawstring.storage.protocol import Storage
from drawstring.testing import context_of
from drawstring.timeline.archive.reader import open_archive
from tests.support.faulty_storage import FaultyStorage
from tests.support.simulation.steps import CHANGES_MAX, KEYS, take
from tests.support.simulation.stores import drop, has_leases
from tests.support.simulation.world import Kind, Rows, Step, World, place

CALLS_MAX = 2000
PAUSE_MS = 3 * 3_600_000
JOIN_SECONDS = 60.0
DYING = ("die", "leave_merge")
"""Steps whose process dies by itself."""

TAKEN_OVER = ("cluster", "compact", "clean", "archive")
"""Services that another process runs first of all when one stands still."""

UNCHECKED = ("insert", "append", "leave_merge")
"""Steps that add rows and do not look their keys up: after an upsert of the same key it is there twice."""

FOLLOWERS = (1, 2, 8)
"""Writes of the others while one stands still: few, so that nothing is compacted, or so many that archiving
passes what it had begun."""


class SharedClock:
    """A clock that several processes look at; it moves on by itself, and by what is slept."""

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms
        self._mutex = threading.Lock()

    def now_ms(self) -> int:
        with self._mutex:
            self._now_ms += 1
            return self._now_ms

    def sleep(self, seconds: float) -> None:
        with self._mutex:
            self._now_ms += int(seconds * 1000)


class PausingStorage(FaultyStorage):
    """Stands still before one of its calls, in all threads, until it is told to go on.

    Args:
        inner: the storage that does the work.
        pause_before: number of the call, from 0.
    """

    def __init__(self, inner: Storage, pause_before: int) -> None:
        super().__init__(inner, CHANGES_MAX * 1000)
        self._pause_before = pause_before
        self._gate = threading.Condition()
        self._is_paused = False
        self.calls = 0
        self.where = ""

    def wait_for_pause(self, is_over: Callable[[], bool]) -> bool:
        """Wait until this storage stands still; False when its process is over before that."""
        with self._gate:
            while not self._is_paused:
                if is_over():
                    return False
                self._gate.wait(0.002)
        return True

    def go_on(self) -> None:
        """Let all calls that wait go on."""
        with self._gate:
            self._is_paused = False
            self._gate.notify_all()

    def _pass(self, name: str, path: str) -> None:
        with self._gate:
            if self.calls == self._pause_before:
                self._is_paused, self.where = True, f"{name} {path}"
                self._gate.notify_all()
            self.calls += 1
            while self._is_paused:
                self._gate.wait()

    def list_files(self, folder: str) -> list[FileStatus]:
        self._pass("list_files", folder)
        return super().list_files(folder)

    def list_names(self, folder: str) -> list[str]:
        self._pass("list_names", folder)
        return super().list_names(folder)

    def list_folders(self, folder: str) -> list[str]:
        self._pass("list_folders", folder)
        return super().list_folders(folder)

    def list_tree(self, folder: str) -> list[FileStatus]:
        self._pass("list_tree", folder)
        return super().list_tree(folder)

    def exists(self, path: str) -> bool:
        self._pass("exists", path)
        return super().exists(path)

    def read(self, path: str) -> bytes:
        self._pass("read", path)
        return super().read(path)

    def open(self, path: str) -> pa.NativeFile:
        self._pass("open", path)
        return super().open(path)

    def read_versioned(self, path: str) -> tuple[bytes, str] | None:
        self._pass("read_versioned", path)
        return super().read_versioned(path)

    def delete(self, paths: Iterable[str]) -> None:
        doomed = list(paths)
        if not doomed:
            return
        self._pass("delete", doomed[0])
        self._inner.delete(doomed)

    def before_change(self, path: str) -> None:
        self._pass("change", path)


@dataclass
class Stopped:
    """A process that takes a step and is stopped in the midst of it."""

    world: World
    step: Step
    storage: PausingStorage
    error: Exception | None = None
    is_over: bool = False

    def run(self) -> None:
        try:
            take(self.world, self.step, self.storage)
        except Exception as error:  # what it was is looked at when the process is over
            self.error = error
        finally:
            self.is_over = True


def pause_everywhere(world: World, step: Step, calls: Iterable[int]) -> int:
    """Let the process of a step stand still before some of its calls, each on a copy of its own.

    Args:
        world: before the step; left as it is.
        step: what is stopped.
        calls: numbers of calls, rising.

    Returns:
        How many times it stood still.
    """
    undisturbed = cache(lambda followers: rows_undisturbed(world, step, followers))
    for count, number in enumerate(calls):
        copy = world.copy()
        went_on = pause_at(copy, step, number, undisturbed)
        drop(copy.storage)
        if not went_on:
            return count
    raise AssertionError(f"{step} makes more calls than were tried")


def live_through_pauses(kind: Kind, steps: Sequence[Step], seed: int, every: int) -> None:
    """Take steps; each stands still before some of its calls on copies of the table before it is taken.

    Args:
        kind: of table.
        steps: what to do, in order.
        seed: says which of the calls.
        every: of so many calls one is stood still before.
    """
    world = World.create(kind)
    for number, step in enumerate(steps):
        if step.name not in DYING and has_leases():
            pause_everywhere(world, step, range((seed + number) % every, CALLS_MAX, every))
        take(world, step)


def pause_at(world: World, step: Step, number: int, undisturbed: Callable[[int], Rows]) -> bool:
    """Stop the process of a step before a call; False when it makes fewer.

    Args:
        world: before the step; it changes.
        step: what is stopped.
        number: of the call, from 0.
        undisturbed: returns the rows that are there when nobody stands still, by the number of writes after.
    """
    clock = SharedClock(world.now_ms)
    paused = PausingStorage(world.storage, number)
    first = replace(world, rows=dict(world.rows), moments=list(world.moments), clock=clock)
    stopped = Stopped(first, step, paused)
    thread = threading.Thread(target=stopped.run, daemon=True)
    thread.start()
    if not paused.wait_for_pause(lambda: stopped.is_over):
        thread.join()
        if stopped.error is not None:
            raise stopped.error
        return False
    where = f"{world.kind}: {step} stood still before call {number}, {paused.where}"
    others = replace(world, rows=dict(world.rows), moments=list(world.moments), clock=clock)
    clock.sleep(PAUSE_MS / 1000)
    take_over(others, step)
    followers = FOLLOWERS[number % len(FOLLOWERS)]
    keys = keys_of_others(step)
    follow_up(others, where, followers, keys)
    allowed = outcomes(undisturbed(followers), others, step)
    paused.go_on()
    thread.join(JOIN_SECONDS)
    assert stopped.is_over, f"{where}, and does not end"
    is_done = stopped.error is None
    held = others.held()
    expected = allowed[is_done] if step.name != "restore" else [*allowed[True], *allowed[False]]
    assert held in expected, f"{where}: {stopped.error!r}: {held} is none of {expected}"
    # The next writer drops what a restore planned before it stood still.
    check_whole(others, step, where, allowed=("restore",))
    others.rows = held
    follow_up(others, where, max(FOLLOWERS), keys)
    assert others.held() == others.rows, f"{where}, and later"
    check_whole(others, step, where)
    return True


def keys_of_others(step: Step) -> Sequence[int]:
    """Return the keys that the others write while a process stands still in a step."""
    if step.name not in UNCHECKED:
        return (1, 4, 7)
    return [key for key in range(1, KEYS) if key not in step.keys][:3]


def take_over(others: World, step: Step) -> None:
    """Run the service that stands still: another runner finds its plan."""
    if step.name in TAKEN_OVER:
        take(others, Step(step.name))


def follow_up(others: World, where: str, writes: int, keys: Sequence[int]) -> None:
    """Write on."""
    for number in range(writes):
        step = Step("delete", tuple(keys[:1])) if number == 2 else Step("upsert", tuple(keys))
        others.time += 10
        try:
            take(others, step)
        except DrawstringError as error:
            raise AssertionError(f"{where}: others cannot go on: {error}") from error


def rows_undisturbed(world: World, step: Step, followers: int) -> Rows:
    """Return the rows after a step and what others write behind it, on a copy."""
    copy = world.copy()
    copy.clock = None
    take(copy, step)
    take_over(copy, step)
    follow_up(copy, "undisturbed", followers, keys_of_others(step))
    rows = copy.held()
    drop(copy.storage)
    return rows


def outcomes(first: Rows, others: World, step: Step) -> dict[bool, list[Rows]]:
    """Return the rows that the table may hold, by whether the step was acknowledged.

    Args:
        first: what it holds when the step comes before what the others wrote.
        others: the table after what the others wrote.
        step: what one process did before them, after them, or never.
    """
    never = dict(others.rows)
    values = {at: row for at, row in never.items() if at in {place(key) for key in keys_of_others(step)}}
    done = [first | {at: values[at] for at in first.keys() & values.keys()}]
    if step.name not in UNCHECKED:  # the others write nothing that these add, so the order is the same
        last = others.copy()
        last.clock = None
        with suppress(DrawstringError):
            take(last, step)
        done.append(last.held())
    return {True: done, False: [never]}


def check_whole(world: World, step: Step, where: str, allowed: Container[str] = ()) -> None:
    """Make sure that the table is sound, and knows all that was acknowledged."""
    findings = world.table().services.validate().findings
    bad = [each for each in findings if each.severity is Severity.ERROR and each.check not in allowed]
    assert bad == [], f"{where}: {bad}"
    table = world.table()
    archived = open_archive(context_of(table).storage, table.config).completed("")
    known = {each.requested for each in (*table.timeline.writes(), *archived) if each.is_write}
    lost = [each.instant for each in world.moments if each.instant not in known]
    assert lost == [] or step.name == "restore", f"{where}: {lost} are in no timeline"
