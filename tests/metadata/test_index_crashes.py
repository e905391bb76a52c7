"""Writers that die between the indexes and the data: no key is lost, none is in the table twice."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from drawstring.base.clock import SteppingClock
from drawstring.storage.protocol import Storage
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.table_context import TableContext
from tests.support.bloom_filters import indexed_filters, stored_filters
from tests.support.copies import copied
from tests.support.expression_indexes import built, kept
from tests.support.faults import HOUR_MS, NEWER, START_MS, STEPS_MAX, stride
from tests.support.faulty_storage import FaultyStorage, InjectedFault
from tests.support.record_indexes import indexed_places, places
from tests.support.rows import held, rides
from tests.support.secondary_indexes import indexed_values, stored_values
from tests.support.storages import files_of, stored
from tests.support.tables import COW, MOR, create

QUIET = {"hoodie.clean.automatic": "false", "hoodie.compact.inline": "false"}
INDEX = {
    **QUIET,
    "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX",
    "hoodie.record.index.update.partition.path": "true",
}
ROWS = rides(*((key, "rome", 1, 1.0) for key in "abcd"), *((key, "oslo", 1, 1.0) for key in "efgh"))
MOVING = rides(("a", "oslo", 2, 2.0), ("e", "oslo", 2, 2.0), ("new", "bern", 2, 2.0))
OPERATIONS: dict[str, Callable[[Table], Any]] = {
    "upsert": lambda table: table.upsert(MOVING, options=INDEX),
    "delete": lambda table: table.delete(rides(("a", "rome", 9, 9.0), ("f", "oslo", 9, 9.0)), options=INDEX),
    "insert_overwrite": lambda table: table.insert_overwrite(NEWER, options=QUIET),
    "cluster": lambda table: table.services.cluster(),
    "clean": lambda table: table.services.clean(options={"hoodie.clean.commits.retained": "1"}),
    "create_index": lambda table: indexed(table),
    "drop_index": lambda table: table.indexes.drop("by_fare"),
}
BY_FARE = "secondary_index_by_fare"
BY_CITY, OF_CITY = "expr_index_by_city", "expr_index_of_city"


def indexed(table: Table) -> None:
    """Create the indexes that a table lacks."""
    known = {each.name for each in table.indexes.list() if each.is_complete}
    for name, column in (("record_index", None), ("bloom_filters", None), (BY_FARE, "fare")):
        if name not in known:
            table.indexes.create(name, column)
    if BY_CITY not in known:
        settings = {"expr": "upper", "numentries": "50", "fpp": "0.01"}
        table.indexes.create("by_city", "city", using="column_stats", options={"expr": "upper"})
        table.indexes.create("of_city", "city", using="bloom_filters", options=settings)


def opened(storage: Storage, start_ms: int = START_MS) -> Table:
    return Table(TableContext(storage, clock=SteppingClock(start_ms), uses_metadata=True))


@copied
def made(table_type: str, *, with_index: bool, commits: int) -> Table:
    """Create a table with a metadata table, or also with indexes and some commits in it.

    By type of the table, the log files of its metadata table are native or not.
    """
    version = 10 if table_type == MOR else 9
    table = opened(context_of(create(table_type=table_type, version=version)).storage, START_MS - HOUR_MS)
    table.upsert(ROWS, options=QUIET)
    for number in range(commits):
        row = rides(("c", "rome", 1, float(number)), (f"more{number}", "rome", 1, 1.0))
        table.upsert(row, options=INDEX if with_index else QUIET)
        if with_index and not number:
            indexed(table)
    return table


@pytest.mark.parametrize(
    ("table_type", "operation", "with_index", "commits"),
    [
        (MOR, "upsert", True, 2),
        (COW, "upsert", False, 1),
        (MOR, "delete", True, 2),
        (MOR, "create_index", False, 1),
        (COW, "drop_index", True, 1),
        *(
            pytest.param(*case, marks=pytest.mark.long)
            for case in (
                (COW, "upsert", True, 2),
                (COW, "upsert", True, 9),
                (MOR, "upsert", False, 1),
                (COW, "delete", True, 2),
                (MOR, "cluster", True, 2),
                (COW, "insert_overwrite", True, 2),
                (COW, "clean", True, 2),
                (MOR, "create_index", False, 4),
            )
        ),
    ],
)
@pytest.mark.scaled
def test_whatever_step_a_writer_dies_at_the_indexes_know_all_records(
    table_type: str, operation: str, with_index: bool, commits: int
) -> None:
    table = made(table_type, with_index=with_index, commits=commits)
    files, before = files_of(context_of(table).storage), held(table)
    OPERATIONS[operation](table)
    after = held(table)
    for steps in range(0, STEPS_MAX, 2 if stride() == 1 else 3 * stride()):
        storage = stored(files)
        faulty = FaultyStorage(storage, steps)
        with suppress(InjectedFault):
            OPERATIONS[operation](opened(faulty))
        check_survivors(storage, before, after, f"after {steps} changes")
        if faulty.changes < steps:
            assert steps > 3
            return
    raise AssertionError(f"still failing after {STEPS_MAX} changes")


def check_survivors(storage: Storage, before: list[Any], after: list[Any], step: str) -> None:
    table = opened(storage, START_MS + HOUR_MS)
    assert held(table) in (before, after), step
    table.upsert(rides(("next", "rome", 99, 9.0), ("a", "rome", 99, 9.0)), options=INDEX)
    assert indexed_places(table) == places(table), step
    known = {each.name for each in table.indexes.list() if each.is_complete}
    if BY_FARE in known:
        assert indexed_values(table, BY_FARE) == stored_values(table, "fare"), step
    if "bloom_filters" in known:
        table.services.clean(options={"hoodie.clean.commits.retained": "50"})  # finishes one that died
        assert indexed_filters(table) == stored_filters(table), step
    for expression in {BY_CITY, OF_CITY} & known:
        assert kept(table, expression) == built(table, expression), step
    keys = [key for key, _, _ in places(table)]
    assert len(keys) == len(set(keys)), step
