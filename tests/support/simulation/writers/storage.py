"""The storage as one process of the simulation sees it: every call is a turn of somebody else, and may fail.

    before   the call fails without an effect
    after    a change takes effect, and its answer is lost: an error too, for conditional puts as for others
    crash    the process ends before the call; what it does afterwards has no effect
    pause    all threads of the process stand still before the call, for longer than its leases are good
    jump     the clock of the process goes on by minutes, or back by seconds or minutes

Listings are never stale: the storages that drawstring supports list what was written before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

import pyarrow as pa

from drawstring.base.errors import UnavailableError
from drawstring.model.files import FileStatus
from drawstring.storage.protocol import Storage
from drawstring.storage.streams import WholeFile
from tests.support.faulty_storage import FaultyStorage
from tests.support.simulation.writers.scheduler import Crash, Process, Scheduler

T = TypeVar("T")
NO_LIMIT = 1 << 60
PAUSES_MS = (70_000, 400_000)
LINGERS = 0.3
LINGERS_MS = (10_000, 110_000)
JUMPS_MS = (-5_000, -200_000, 90_000, 200_000)


class LostAnswer(UnavailableError):
    """A call of the storage failed."""


@dataclass
class Weather:
    """How likely the faults are, by storage call.

    Attributes:
        before, after, crash, pause, jump: probabilities.
        slow: probability that a call takes seconds rather than milliseconds.
        lingers_at: part of the calls ("list_files rome") before which processes often stand still; empty for
            none.
        stops_at: part of the calls before which processes are often stopped, with all their threads.
        count: how many faults there were, by name.
    """

    before: float = 0.0
    after: float = 0.0
    crash: float = 0.0
    pause: float = 0.0
    jump: float = 0.0
    slow: float = 0.03
    lingers_at: str = ""
    stops_at: str = ""
    count: dict[str, int] = field(default_factory=dict)

    def end(self) -> None:
        """Let nothing fail or take long from now on."""
        self.before = self.after = self.crash = self.pause = self.jump = self.slow = 0.0
        self.lingers_at = self.stops_at = ""

    def fault(self, chance: float) -> str | None:
        """Return the fault that a number between 0 and 1 stands for."""
        for name in ("before", "after", "crash", "pause", "jump"):
            chance -= getattr(self, name)
            if chance < 0:
                return name
        return None


@dataclass
class Trace:
    """The storage calls of all processes, in order."""

    calls: list[tuple[str, str, str]] = field(default_factory=list)


class SharedStorage(FaultyStorage):
    """A process's view of the storage of all.

    Args:
        inner: what all of them see.
        scheduler: says who is next.
        process: whose storage this is.
        weather: which faults there are.
        trace: notes the calls.
        changed: told of every file that this process put, after the fact.
        removed: told of every file that it deleted, after the fact.
    """

    def __init__(
        self,
        inner: Storage,
        scheduler: Scheduler,
        process: Process,
        weather: Weather,
        trace: Trace,
        changed: Callable[[Process, str, bytes], None],
        removed: Callable[[str], None],
    ) -> None:
        super().__init__(inner, NO_LIMIT)
        self._scheduler = scheduler
        self._process = process
        self._weather = weather
        self._trace = trace
        self._changed = changed
        self._removed = removed

    def list_files(self, folder: str) -> list[FileStatus]:
        return self._call("list_files", folder, lambda: self._inner.list_files(folder))

    def list_names(self, folder: str) -> list[str]:
        return self._call("list_names", folder, lambda: self._inner.list_names(folder))

    def list_folders(self, folder: str) -> list[str]:
        return self._call("list_folders", folder, lambda: self._inner.list_folders(folder))

    def list_tree(self, folder: str) -> list[FileStatus]:
        return self._call("list_tree", folder, lambda: self._inner.list_tree(folder))

    def exists(self, path: str) -> bool:
        return self._call("exists", path, lambda: self._inner.exists(path))

    def read(self, path: str) -> bytes:
        return self._call("read", path, lambda: self._inner.read(path))

    def open(self, path: str) -> pa.NativeFile:
        return self._call("open", path, lambda: self._inner.open(path))

    def read_versioned(self, path: str) -> tuple[bytes, str] | None:
        return self._call("read_versioned", path, lambda: self._inner.read_versioned(path))

    def create(self, path: str) -> pa.NativeFile:
        def done(data: bytes) -> None:
            # An upload that nobody completes leaves nothing, whoever clears it away.
            task = self._scheduler.current()
            if task is not None and task.process is self._process and not self._process.is_dead:
                self.put(path, data)

        return pa.PythonFile(WholeFile(done), mode="w")

    def put(self, path: str, data: bytes) -> None:
        self._put("put", path, data, lambda: self._inner.put(path, data))

    def put_if_absent(self, path: str, data: bytes) -> bool:
        return self._put("put_if_absent", path, data, lambda: self._inner.put_if_absent(path, data))

    def put_if_match(self, path: str, data: bytes, version: str) -> bool:
        return self._put("put_if_match", path, data, lambda: self._inner.put_if_match(path, data, version))

    def set_modified(self, path: str, modified_ms: int) -> None:
        self._call("set_modified", path, lambda: self._inner.set_modified(path, modified_ms), changes=True)

    def delete(self, paths: Iterable[str]) -> None:
        for path in list(paths):
            self._call("delete", path, lambda path=path: self._delete(path), changes=True)  # type: ignore[misc]

    def delete_tree(self, folder: str) -> None:
        self.delete([status.path for status in self._inner.list_tree(folder)])

    def _delete(self, path: str) -> None:
        existed = self._inner.exists(path)
        self._inner.delete([path])
        if existed:
            self._removed(path)

    def _put(self, name: str, path: str, data: bytes, put: Callable[[], T]) -> T:
        def effect() -> T:
            result = put()
            if result is not False:
                self._changed(self._process, path, data)
            return result

        return self._call(name, path, effect, changes=True)

    def _call(self, name: str, path: str, effect: Callable[[], T], *, changes: bool = False) -> T:
        if self._scheduler.current() is None:
            return effect()
        draw = self._scheduler.draw
        is_slow = draw.random() < self._weather.slow
        self._scheduler.wait(draw.randint(200, 6_000) if is_slow else draw.randint(1, 30))
        lingers_at = self._weather.lingers_at
        if lingers_at and lingers_at in f"{name} {path}" and draw.random() < LINGERS:
            self._scheduler.wait(draw.randint(*LINGERS_MS))
        stops_at = self._weather.stops_at
        if stops_at and stops_at in f"{name} {path}" and draw.random() < LINGERS:
            self._meet("pause", path)
        fault = self._weather.fault(draw.random())
        if fault is not None and (changes or fault != "after"):
            self._meet(fault, path)
        result = effect()
        self._trace.calls.append((self._process.name, name, path))
        if changes and fault == "after":
            raise LostAnswer("The answer of the storage was lost.", path=path)
        return result

    def _meet(self, fault: str, path: str) -> None:
        process, draw, count = self._process, self._scheduler.draw, self._weather.count
        process.disturbances += 1
        count[fault] = count.get(fault, 0) + 1
        self._trace.calls.append((process.name, fault, path))
        if fault == "before":
            raise LostAnswer("The storage failed.", path=path)
        if fault == "crash":
            process.is_dead = True
            raise Crash
        if fault == "pause":
            process.paused_until_ms = self._scheduler.now_ms + draw.randint(*PAUSES_MS)
            self._scheduler.wait(1)
        if fault == "jump":
            process.skew_ms += draw.choice(JUMPS_MS)
