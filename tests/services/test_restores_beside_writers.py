"""Savepoints and restores of a table that several processes write to."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from drawstring.base.errors import ConflictError, InvalidError
from drawstring.model.instant import Action
from drawstring.model.result import Severity
from drawstring.storage.protocol import Storage
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.faulty_storage import FaultyStorage, InjectedFault
from tests.support.interleavings import NOW_MS, opened
from tests.support.interrupted import Interrupted, Standing, on, upserting
from tests.support.rows import held, rides
from tests.support.simulation.pauses import SharedClock
from tests.support.storages import by_clock
from tests.support.tables import COW, MOR, WITHOUT_SERVICES, create, listing
from tests.support.validation import errors

HOUR_SECONDS = 3600
A, B, NEW = ("a", "rome", 1, 1.0), ("b", "oslo", 1, 1.0), ("a", "rome", 2, 2.0)
kinds = pytest.mark.parametrize(("table_type", "version"), [(COW, 9), (MOR, 9), (MOR, 6)])


def begun(table_type: str = COW, version: int = 9) -> Table:
    table = create(table_type=table_type, version=version)
    table.upsert(rides(A), options=WITHOUT_SERVICES)
    return table


@kinds
def test_a_restore_is_refused_while_a_write_goes_on(table_type: str, version: int) -> None:
    table = begun(table_type, version)
    saved = table.savepoints.create()
    table.upsert(rides(B), options=WITHOUT_SERVICES)
    writer = Standing(table, upserting(NEW))
    writer.start()
    with pytest.raises(ConflictError, match=r"is writing to this table.*Stop it"):
        table.savepoints.restore(saved)
    writer.finish()
    assert writer.error is None
    assert held(table) == [NEW, B]
    assert len(table.savepoints.restore(saved).rolled_back) == 2
    assert held(table) == [A]


class TakenAway(FaultyStorage):
    """Another process goes on with the same restore, and takes completed files away before they are read.

    Args:
        inner: the storage of both.
        saved: requested time of the write that stays.
    """

    def __init__(self, inner: Storage, saved: str) -> None:
        super().__init__(inner, 1 << 60)
        self._saved = saved
        self.taken: list[str] = []

    def read(self, path: str) -> bytes:
        is_restored = any(name.endswith(".restore.inflight") for name in self._inner.list_names(_of(path)))
        if is_restored and path.endswith("commit") and self._saved not in path:
            self._inner.delete([path])
            self.taken.append(path)
        return super().read(path)


def _of(path: str) -> str:
    return path.rpartition("/")[0]


@kinds
def test_two_processes_that_carry_out_one_restore_do_not_hinder_each_other(
    table_type: str, version: int
) -> None:
    table = listing(create(table_type=table_type, version=version))
    table.upsert(rides(A), options=WITHOUT_SERVICES)
    saved = table.savepoints.create()
    for row in (B, NEW):
        table.upsert(rides(row), options=WITHOUT_SERVICES)
    storage = TakenAway(context_of(table).storage, saved)
    assert Table(replace(context_of(table), storage=storage)).savepoints.restore(saved)
    assert storage.taken
    assert held(table) == [A]
    table.upsert(rides(NEW))
    assert held(table) == [NEW]
    assert not any(each.severity is Severity.ERROR for each in table.services.validate().findings)


def overlapped() -> tuple[Table, str, str]:
    """Return a table with a write that was overlapped by a later one, and the times of both."""
    table = create(table_type=COW)
    table.upsert(rides(A, B), options=WITHOUT_SERVICES)
    outer = on(Interrupted(table, upserting(("b", "oslo", 5, 5.0), options=WITHOUT_SERVICES)))
    first: Any = outer.upsert(rides(NEW), options=WITHOUT_SERVICES)
    second = table.timeline.latest_write()
    assert second is not None
    assert second.requested > first.instant
    return table, first.instant, second.requested


def test_a_savepoint_of_a_write_whose_files_a_clean_took_early_is_refused() -> None:
    table, first, second = overlapped()
    assert table.savepoints.create() == second, "all files are there"
    table.savepoints.delete(second)
    assert table.services.clean(retain_commits=1).files
    with pytest.raises(InvalidError, match=f"because {first} began before"):
        table.savepoints.create()
    later = table.upsert(rides(("c", "bern", 6, 6.0)), options=WITHOUT_SERVICES)
    assert table.savepoints.create() == later.instant


def test_a_savepoint_keeps_what_was_requested_later_and_completed_earlier() -> None:
    table, first, _ = overlapped()
    rows = held(table)
    table.savepoints.create(first)
    for ts in (7, 8, 9):
        table.upsert(rides(("a", "rome", ts, 7.0), ("b", "oslo", ts, 7.0)), options=WITHOUT_SERVICES)
    assert table.services.clean(retain_commits=1).files
    table.savepoints.restore(first)
    assert held(table) == rows


class SlowToSave(FaultyStorage):
    """Stands still before a file of a savepoint is put, so that others take the lock meanwhile.

    Args:
        table: for the others.
        state: the end of the name of the file.
    """

    def __init__(self, table: Table, state: str, clock: SharedClock) -> None:
        super().__init__(context_of(table).storage, 1 << 60)
        self._table, self._state, self._clock = table, state, clock
        self.was_slow = False

    def before_change(self, path: str) -> None:
        if path.endswith(self._state):
            self._state = "none"
            self._clock.sleep(HOUR_SECONDS)
            for ts in (7, 8, 9):
                self._table.upsert(rides(("a", "rome", ts, 7.0)), options=WITHOUT_SERVICES)
            assert self._table.services.clean(retain_commits=1).files
            self.was_slow = True
        super().before_change(path)


@pytest.mark.parametrize("state", [".savepoint.inflight", ".savepoint.claim", ".savepoint"])
def test_a_savepoint_that_stalls_is_refused_or_kept(state: str) -> None:
    clock = SharedClock(NOW_MS)
    table = opened(context_of(begun()).storage, clock)
    by_clock(context_of(table).storage, clock)
    rows, write = held(table), table.timeline.latest_write()
    slow = SlowToSave(table, state, clock)
    assert write is not None
    try:
        opened(slow, clock).savepoints.create()
    except ConflictError:
        assert not table.timeline.completed_of(Action.SAVEPOINT)
    else:
        assert held(table, as_of=write.requested) == rows
    assert slow.was_slow
    if not table.timeline.completed_of(Action.SAVEPOINT):
        later = table.timeline.latest_write()
        assert later is not None
        assert table.savepoints.create() == later.requested


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_a_savepoint_of_version_6_waits_for_writes_that_began_before(table_type: str) -> None:
    table = begun(table_type, 6)
    writer = Standing(table, upserting(NEW))
    writer.start()
    table.upsert(rides(B), options=WITHOUT_SERVICES)
    with pytest.raises(ConflictError, match=r"began before .* and still goes on"):
        table.savepoints.create()
    writer.finish()
    assert writer.error is None
    rows, saved = held(table), table.savepoints.create()
    table.upsert(rides(("c", "bern", 9, 9.0)), options=WITHOUT_SERVICES)
    table.savepoints.restore(saved)
    assert held(table) == rows == [NEW, B]


class SlowToComplete(FaultyStorage):
    """Stands still before its completed file is put; others complete its write and undo it meanwhile.

    Args:
        table: for the others.
        until: requested time of the write that they go back to.
        clock: of all.
        dies: whether the process dies when it has put the file.
    """

    def __init__(self, table: Table, until: str, clock: SharedClock, *, dies: bool) -> None:
        super().__init__(context_of(table).storage, 1 << 60)
        self._table, self._until, self._clock, self._dies = table, until, clock, dies
        self.is_put = False

    def before_change(self, path: str) -> None:
        if self.is_put and self._dies:
            raise InjectedFault("killed")
        if path.endswith("commit") and not self.is_put and path.startswith(_of_timeline(self._table)):
            self._clock.sleep(HOUR_SECONDS)
            self._table.upsert(rides(("c", "bern", 3, 3.0)), options=WITHOUT_SERVICES)
            assert held(self._table) == [NEW, B, ("c", "bern", 3, 3.0)]
            self._table.savepoints.restore(self._until)
            self.is_put = True
        super().before_change(path)


def _of_timeline(table: Table) -> str:
    return f"{table.config.timeline_folder}/"


@kinds
@pytest.mark.parametrize("dies", [False, True], ids=["goes on", "dies"])
def test_a_write_that_was_completed_and_undone_by_others_does_not_come_back(
    table_type: str, version: int, dies: bool
) -> None:
    clock = SharedClock(NOW_MS)
    table = opened(context_of(begun(table_type, version)).storage, clock)
    by_clock(context_of(table).storage, clock)
    until = table.upsert(rides(B), options=WITHOUT_SERVICES).instant
    slow = SlowToComplete(table, until, clock, dies=dies)
    with suppress(ConflictError, InjectedFault):
        opened(slow, clock).upsert(rides(NEW), options=WITHOUT_SERVICES)
    assert slow.is_put
    assert held(table) == [A, B]
    assert [each.requested for each in table.timeline.writes()][-1] == until
    assert errors(table) == []
    later = table.upsert(rides(NEW), options=WITHOUT_SERVICES).instant
    assert [each.requested for each in table.timeline.writes()][1:] == [until, later]
    names = context_of(table).storage.list_names(table.config.timeline_folder)
    completed = [name for name in names if name.endswith("commit")]
    assert len(completed) == 3, "what came late is gone"
    assert held(table) == [NEW, B]
    assert errors(table) == []
