"""Two writers of one table: the second does all its work before one storage call of the first.

What both leave has to be what one of them after the other leaves: which rows that is, the same operations say
on copies of the table, without anybody beside them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from drawstring.base.errors import ConflictError, DrawstringError
from drawstring.engine.local import LocalEngine
from drawstring.model.result import Severity
from drawstring.storage.memory import MemoryStorage
from drawstring.storage.protocol import Storage
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.table_context import TableContext
from tests.support.rows import held
from tests.support.simulation.pauses import PausingStorage, SharedClock
from tests.support.storages import files_of, stored

CALLS_MAX = 2000
NOW_MS = 1_900_000_000_000
OPTIMISTIC = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
QUICKLY = {"hoodie.write.lock.wait_time_ms": "50"}
"""The second writer does not wait for a first one that stands still with the lock."""

Rows: TypeAlias = list[tuple[Any, ...]]
Act: TypeAlias = Callable[[Table, dict[str, str]], Any]
"""Does something to a table, with options."""


@dataclass
class Writer:
    """An act in a thread of its own, and what came of it."""

    act: Act
    storage: Storage
    clock: SharedClock
    options: dict[str, str]
    uses_metadata: bool = False
    error: Exception | None = None
    is_over: bool = False

    def run(self) -> None:
        try:
            self.act(opened(self.storage, self.clock, self.uses_metadata), self.options)
        except Exception as error:  # looked at when the thread is over
            self.error = error
        finally:
            self.is_over = True


def opened(storage: Storage, clock: SharedClock, uses_metadata: bool = False) -> Table:
    """Open a table whose processes share a clock, to list files by the metadata table or not."""
    return Table(TableContext(storage, LocalEngine(threads=1), clock, uses_metadata=uses_metadata))


def in_turn(files: dict[str, bytes], *acts: Act) -> Rows | None:
    """Return the rows after some acts, one after the other; None if one of them is refused."""
    table = opened(stored(files), SharedClock(NOW_MS))
    try:
        for act in acts:
            act(table, OPTIMISTIC)
    except ConflictError:
        return None
    return held(table)


def interleave(
    table: Table,
    first: Act,
    second: Act,
    every: int = 1,
    offset: int = 0,
    mode: dict[str, str] = OPTIMISTIC,
) -> list[str]:
    """Let a second writer come between two storage calls of a first one, at every call.

    Args:
        table: before both; left as it is. If it was opened to use the metadata table, both writers use it.
        first: the act that stands still.
        second: the act that comes in between.
        every: of so many calls one is tried.
        offset: the first of them.
        mode: options of both.

    Returns:
        What came of the second one at each call: `done` or the name of its error.
    """
    files, uses_metadata = files_of(context_of(table).storage), context_of(table).uses_metadata
    orders = [in_turn(files, first, second), in_turn(files, second, first)]
    alone = [in_turn(files, first), in_turn(files, second)]
    outcomes: list[str] = []
    for call in range(offset, CALLS_MAX, every):
        clock = SharedClock(NOW_MS)
        storage = MemoryStorage(stored(files).spec.uri, clock)  # heartbeats are as old as the clock says
        pausing = PausingStorage(storage, call)
        writer = Writer(first, pausing, clock, mode, uses_metadata)
        thread = threading.Thread(target=writer.run, daemon=True)
        thread.start()
        if not pausing.wait_for_pause(lambda writer=writer: writer.is_over):  # type: ignore[misc]
            thread.join()
            assert writer.error is None, repr(writer.error)
            return outcomes
        where = f"second before call {call}, {pausing.where}"
        other = Writer(second, storage, clock, mode | QUICKLY, uses_metadata)
        other.run()
        assert isinstance(other.error, ConflictError | None), f"{where}: {other.error!r}"
        pausing.go_on()
        thread.join(60)
        assert writer.is_over, f"{where}: it does not end"
        assert isinstance(writer.error, ConflictError | None), f"{where}: {writer.error!r}"
        expected = _expected(orders, alone, [writer.error is None, other.error is None], held_before=files)
        check(opened(storage, clock, uses_metadata), expected, f"{where}: {writer.error!r}, {other.error!r}")
        outcomes.append("done" if other.error is None else type(other.error).__name__)
    raise AssertionError("the first writer makes more calls than were tried")


def _expected(
    orders: Sequence[Rows | None],
    alone: Sequence[Rows | None],
    done: Sequence[bool],
    held_before: dict[str, bytes],
) -> list[Rows]:
    if all(done):
        return [rows for rows in orders if rows is not None]
    if not any(done):
        return [held(opened(stored(held_before), SharedClock(NOW_MS)))]
    return [rows for rows, is_done in zip(alone, done, strict=True) if is_done and rows is not None]


def check(table: Table, expected: Sequence[Rows], where: str) -> None:
    """Make sure that a table holds one of some rows, is sound, and can be written."""
    assert held(table) in expected, f"{where}: {held(table)} is none of {expected}"
    bad = [each for each in table.services.validate().findings if each.severity is Severity.ERROR]
    assert bad == [], f"{where}: {bad}"
    try:
        table.services.clean(options=OPTIMISTIC)
    except DrawstringError as error:
        raise AssertionError(f"{where}: it cannot be cleaned: {error}") from error
    assert held(table) in expected, f"{where}, after a clean"
    assert table.timeline.pending_writes() == (), where
