"""Storages and clocks with which others act while a write is at work, or waits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from drawstring.base.clock import Clock
from drawstring.model.files import PARTITION_METADATA, FileStatus
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.faulty_storage import FaultyStorage
from tests.support.interleavings import OPTIMISTIC
from tests.support.rows import rides
from tests.support.storages import by_clock

Act = Callable[[Table], object]
WAIT_SECONDS = 30


def upserting(*rows: tuple[Any, ...], options: Mapping[str, str] = OPTIMISTIC) -> Act:
    """Return the upsert of some rides."""
    return lambda table: table.upsert(rides(*rows), options=options)


class Interrupted(FaultyStorage):
    """Lets others act when a data file is written.

    Args:
        table: for the others.
        act: what they do.
        times: how often.
        folder: the partition of the data file.
    """

    def __init__(self, table: Table, act: Act, times: int = 1, folder: str = "rome") -> None:
        super().__init__(context_of(table).storage, 1 << 60)
        self._table, self._act, self._times, self._folder = table, act, times, folder

    def let_others_act(self) -> None:
        if self._times:
            self._times -= 1
            self._act(self._table)

    def before_change(self, path: str) -> None:
        if path.startswith(f"{self._folder}/") and not path.endswith(PARTITION_METADATA):
            self.let_others_act()
        super().before_change(path)


class Preceded(Interrupted):
    """Lets others act when data files are listed."""

    def list_files(self, folder: str) -> list[FileStatus]:
        if folder == "rome":
            self.let_others_act()
        return super().list_files(folder)

    def before_change(self, path: str) -> None:
        FaultyStorage.before_change(self, path)


def on(storage: Interrupted) -> Table:
    """Return the table on a storage on which others act."""
    return Table(replace(context_of(storage._table), storage=storage))


class Standing:
    """A writer in a thread, which stands still when it has begun a file, until it is told to go on.

    Args:
        table: the table.
        act: what the writer does.
        folder: the partition of the file.
    """

    def __init__(self, table: Table, act: Act, folder: str = "rome") -> None:
        self._table, self._act, self._folder = table, act, folder
        self._begun, self._may_go_on = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.error: Exception | None = None

    def start(self) -> None:
        self._thread.start()
        assert self._begun.wait(WAIT_SECONDS)

    def finish(self) -> None:
        self._may_go_on.set()
        self._thread.join(WAIT_SECONDS)

    def _run(self) -> None:
        def stand_still(_: Table) -> None:
            self._begun.set()
            self._may_go_on.wait(WAIT_SECONDS)

        try:
            self._act(on(Interrupted(self._table, stand_still, folder=self._folder)))
        except Exception as error:  # looked at when the thread is over
            self.error = error


class ActingClock:
    """Lets others act while somebody sleeps.

    Args:
        inner: tells the time.
        act: what they do, once.
        after: seconds that are slept first.
    """

    def __init__(self, inner: Clock, act: Callable[[], object], after: float = 0.3) -> None:
        self._inner, self._act, self._after = inner, act, after
        self.slept = 0.0

    def now_ms(self) -> int:
        return self._inner.now_ms() + int(1000 * self.slept)

    def sleep(self, seconds: float) -> None:
        is_due = self.slept < self._after <= self.slept + seconds
        self.slept += seconds
        if is_due:
            self._act()


def while_it_sleeps(table: Table, act: Callable[[Table], object], after: float = 0.3) -> Table:
    """Return the table with a clock that lets others act on it, without waiting for the table lock."""
    clock = ActingClock(context_of(table).clock, lambda: act(table), after)
    by_clock(context_of(table).storage, clock)
    return Table(replace(context_of(table), clock=clock))


def in_no_time(table: Table) -> Table:
    """Return the table with a clock on which waiting takes no time, for calls that wait in vain."""
    return while_it_sleeps(table, lambda _: None)


def slept(table: Table) -> float:
    clock = context_of(table).clock
    assert isinstance(clock, ActingClock)
    return clock.slept
