"""Writers that stand still while they build the metadata table, until others have built it."""

from __future__ import annotations

from contextlib import suppress

import pytest

from drawstring.base.errors import ConflictError
from drawstring.storage.memory import MemoryStorage
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.faults import stride
from tests.support.interleavings import NOW_MS, opened
from tests.support.metadata_tables import listed
from tests.support.rows import held, rides
from tests.support.simulation.pauses import PausingStorage, SharedClock
from tests.support.storages import data_files, files_of, stored
from tests.support.tables import COW, MOR, WITHOUT_COMPACTION, create
from tests.support.validation import errors

LOST_SECONDS = 90.0
"""Longer than a lease is good."""

CALLS_MAX = 400
OLD, OWN = ("a", "rome", 1, 1.0), ("b", "oslo", 2, 2.0)
OTHER, LATER = ("c", "bern", 3, 3.0), ("d", "rome", 4, 4.0)


class Stalled(PausingStorage):
    """Stands still before one of its calls, until its lease has run out and another process has written."""

    def __init__(self, inner: MemoryStorage, clock: SharedClock, stand_before: int) -> None:
        super().__init__(inner, -1)
        self._clock, self._stand_before, self.has_stood = clock, stand_before, False

    def _pass(self, name: str, path: str) -> None:
        super()._pass(name, path)
        if self.calls > self._stand_before and not self.has_stood:
            self.has_stood, self.where = True, f"{name} {path}"
            self._clock.sleep(LOST_SECONDS)
            upsert(opened(self._inner, self._clock, uses_metadata=True), OTHER)


def upsert(table: Table, *rows: tuple[str, str, int, float]) -> None:
    table.upsert(rides(*rows), options=WITHOUT_COMPACTION)


@pytest.mark.scaled
@pytest.mark.parametrize("table_type", [COW, MOR])
def test_a_builder_that_stood_still_leaves_the_list_of_the_one_that_took_over(table_type: str) -> None:
    plain = create(table_type=table_type)
    upsert(plain, OLD)
    files = files_of(context_of(plain).storage)
    first = [COW, MOR].index(table_type) * stride() // 2
    for call in range(first, CALLS_MAX, stride()):
        clock = SharedClock(NOW_MS)
        storage = MemoryStorage(stored(files).spec.uri, clock)
        stalled = Stalled(storage, clock, call)
        done = []
        with suppress(ConflictError):
            upsert(opened(stalled, clock, uses_metadata=True), OWN)
            done = [OWN]
        if not stalled.has_stood:
            return
        where = f"before call {call}, {stalled.where}"
        table = opened(storage, clock, uses_metadata=True)
        assert held(table) == [OLD, *done, OTHER], where
        clock.sleep(3600.0)
        upsert(table, LATER)
        assert held(table) == [OLD, *done, OTHER, LATER], where
        assert listed(table) == {*data_files(storage)}, where
        assert errors(table) == [], where
    raise AssertionError("the writer makes more calls than were tried")
