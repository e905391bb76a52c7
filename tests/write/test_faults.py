"""A writer that dies at any step of any operation: readers never notice, and the next write cleans up."""

from __future__ import annotations

import pytest

from drawstring.base.errors import ConflictError
from drawstring.storage.protocol import Storage
from drawstring.txn.locks.storage_lock import LEASE_PATH, Lease
from tests.support.faults import (
    HOUR_MS,
    NEWER,
    OPERATIONS,
    START_MS,
    STEPS_MAX,
    Prepared,
    leftovers,
    opened,
    orphans,
    prepared,
    settled_rows,
)
from tests.support.faulty_storage import FaultyStorage, InjectedFault
from tests.support.rows import held, rides
from tests.support.tables import COW, MOR

CASES = [
    *((kind, version, verb) for kind in (COW, MOR) for version in (6, 9) for verb in ("upsert", "delete")),
    *((MOR, version, "compact") for version in (6, 9)),
    *((COW, 9, "bulk_insert"), (COW, 9, "insert_overwrite"), (MOR, 6, "insert_overwrite")),
    *((COW, 6, "insert_overwrite_table"), (MOR, 9, "insert_overwrite_table")),
]


@pytest.mark.parametrize(("table_type", "version", "operation"), CASES)
@pytest.mark.scaled
def test_a_writer_that_dies_at_any_step_is_cleaned_up_by_the_next(
    table_type: str, version: int, operation: str
) -> None:
    start = prepared(table_type, version, operation)
    for storage, step in start.deaths(OPERATIONS[operation]):
        check_after_death(storage, start, step)


@pytest.mark.parametrize(
    ("base_format", "table_type", "operation"),
    [("orc", MOR, "upsert"), ("lance", COW, "upsert"), ("lance", MOR, "compact")],
)
@pytest.mark.scaled
def test_a_writer_of_files_in_other_formats_that_dies_is_cleaned_up(
    base_format: str, table_type: str, operation: str
) -> None:
    start = prepared(table_type, 10, operation, base_format)
    for storage, step in start.deaths(OPERATIONS[operation]):
        check_after_death(storage, start, step)


@pytest.mark.parametrize(
    ("table_type", "version", "operation"),
    [(COW, 9, "upsert"), (MOR, 6, "upsert"), (MOR, 9, "insert_overwrite"), (COW, 6, "delete")],
)
def test_a_write_that_one_failure_stops_takes_itself_back(
    table_type: str, version: int, operation: str
) -> None:
    start = prepared(table_type, version, operation)
    for steps in range(STEPS_MAX):
        faulty = FaultyStorage(start.copy(), steps, failures=1)
        table, step = opened(faulty, START_MS), f"after {steps} changes"
        try:
            OPERATIONS[operation](table)
        except InjectedFault:
            assert held(table) == start.before, step
        else:
            assert held(table) == start.after, step
            if faulty.changes < steps:
                return
        assert table.timeline.pending() == (), step
        assert orphans(table) == [], step
    raise AssertionError(f"still failing after {STEPS_MAX} changes")


def check_after_death(storage: Storage, start: Prepared, step: str) -> None:
    table = opened(storage, START_MS + HOUR_MS)
    seen = held(table)
    assert seen in (start.before, start.after), step
    seen = settled_rows(storage, start, seen)
    table.upsert(rides(("next", "rome", 9, 9.0)))
    expected = sorted([*seen, ("next", "rome", 9, 9.0)])
    assert held(table) == expected, step
    if table.timeline.pending():
        table.services.compact()
    assert held(table) == expected, step
    assert orphans(table) == [], step
    assert leftovers(table) == [], step


class LosesItsLease(FaultyStorage):
    """Before one of the changes another writer takes the lease over."""

    def die(self, path: str) -> None:
        self._inner.put(LEASE_PATH, Lease(False, START_MS + HOUR_MS, "another").encode())


@pytest.mark.parametrize(("table_type", "version"), [(COW, 9), (MOR, 6)])
def test_a_writer_that_lost_its_lease_does_not_commit(table_type: str, version: int) -> None:
    start = prepared(table_type, version, "upsert")
    committed = []
    for steps in range(1, STEPS_MAX):
        faulty = LosesItsLease(start.copy(), steps, failures=1)
        table, step = opened(faulty, START_MS), f"before change {steps + 1}"
        try:
            table.upsert(NEWER)
            assert held(table) == start.after, step
            committed.append(steps)
        except ConflictError:
            assert committed == [], step
            assert held(table) == start.before, step
        if faulty.changes < steps:
            break
    # It is too late only once the lease was checked for the last time; the metadata table comes after that.
    assert len(committed) <= 16
    assert min(committed) > 8
