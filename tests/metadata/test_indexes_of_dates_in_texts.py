"""Expression indexes of dates in texts: kept as they would be built, and asked by conditions."""

from __future__ import annotations

import itertools
import random

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.clock import SteppingClock
from drawstring.base.errors import UnsupportedError
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.table_context import TableContext
from tests.support.expression_indexes import built, kept
from tests.support.index_histories import QUIET
from tests.support.tables import COW, MOR, create

SCHEMA = pa.schema([("id", pa.int32()), ("day", pa.string()), ("ts", pa.int64())])
GROUPS = {**QUIET, "hoodie.parquet.small.file.limit": "0"}
INDEXES = {
    "by_date": ("column_stats", {"expr": "to_date"}),
    "by_pattern": ("column_stats", {"expr": "to_date", "format": "dd.MM.yyyy"}),
    "by_month": ("column_stats", {"expr": "month"}),
    "by_next": ("column_stats", {"expr": "date_add", "days": "1"}),
    "by_time": ("column_stats", {"expr": "to_timestamp"}),
    "by_second": ("column_stats", {"expr": "unix_timestamp", "format": "dd.MM.yyyy"}),
    "by_text": ("column_stats", {"expr": "date_format", "format": "yyyy/MM"}),
    "filter": ("bloom_filters", {"expr": "to_date", "numentries": "20", "fpp": "0.01"}),
}
CONDITIONS = [
    "to_date(day) = '2024-{month:02}-05'",
    "to_date(day) >= date '2024-{month:02}-01'",
    "to_date(day, 'dd.MM.yyyy') = '2024-{month:02}-07'",
    "to_date(day, 'dd.M.yyyy') = '2024-{month:02}-07'",
    "to_date(day, 'dd.MM.yyyy') is null",
    "month(day) = {month}",
    "date_add(day, 1) = '2024-{month:02}-06'",
    "date_add(day, 2) = '2024-{month:02}-07'",
]


def with_indexes(table_type: str) -> Table:
    """Return an empty table with all indexes."""
    made = create(SCHEMA, table_type=table_type, partition_by=None, ordering="ts")
    table = Table(TableContext(context_of(made).storage, clock=SteppingClock(), uses_metadata=True))
    table.upsert(rows([0], 1), options=GROUPS)
    for name, (using, options) in INDEXES.items():
        table.indexes.create(name, "day", using=using, options=options)
    return table


def rows(ids: list[int], month: int, *others: str | None) -> pa.Table:
    """Return rows of days of a month, written in several ways."""
    ways = (f"2024-{month:02}-05", f"07.{month:02}.2024", f"2024-{month}-5 12:30:00", f"0{month}")
    days = [*others, *itertools.islice(itertools.cycle(ways), max(len(ids) - len(others), 0))]
    return pa.table({"id": ids, "day": days[: len(ids)], "ts": [month] * len(ids)}, schema=SCHEMA)


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_indexes_of_dates_in_texts_are_kept_and_asked(table_type: str) -> None:
    table = with_indexes(table_type)
    plain = Table(TableContext(context_of(table).storage, clock=SteppingClock()))
    picked, skipped = random.Random(3), set()
    for month in (2, 3):
        table.upsert(rows(list(range(month * 10, month * 10 + 4)), month), options=GROUPS)
        table.upsert(rows([picked.randrange(month * 10)], month + 1, None), options=GROUPS)
        for name in INDEXES:
            found = kept(table, f"expr_index_{name}")
            assert found == built(table, f"expr_index_{name}"), name
            assert found
        for text in CONDITIONS:
            where = text.format(month=picked.randint(2, month))
            scan = table.scan(where=where)
            assert ids(scan) == ids(plain.scan(where=where)), where
            skipped |= {step.by for step in scan.explain().steps if step.skipped}
    assert skipped >= {f"expr_index_{name}" for name in ("by_date", "by_pattern", "by_month", "by_next")}


def ids(scan: drawstring.Scan) -> list[int]:
    return sorted(scan.to_arrow().column("id").to_pylist())


def test_texts_that_only_spark_knows_leave_a_file_out_of_the_index() -> None:
    table = with_indexes(COW)
    table.upsert(rows([1, 2], 2, "10000-01-01"), options=GROUPS)
    table.upsert(rows([3, 4], 3, "12:30"), options=GROUPS)
    files = {
        name: table.inspect.metadata(f"expr_index_{name}").column("file").to_pylist() for name in INDEXES
    }
    counts = {name: len({*found} - {None}) for name, found in files.items()}
    assert counts == {
        "by_date": 2, "by_pattern": 3, "by_month": 2, "by_next": 2, "by_time": 1, "by_second": 3,
        "by_text": 1, "filter": 2,
    }  # fmt: skip
    for name in INDEXES:
        assert kept(table, f"expr_index_{name}") == built(table, f"expr_index_{name}")
    assert ids(table.scan(where="to_date(day) = '2024-02-05'")) == [2]
    assert ids(table.scan(where="to_date(day) is null")) == [1, 3]


def test_indexes_whose_values_depend_on_the_time_zone_skip_nothing() -> None:
    table = with_indexes(COW)
    table.upsert(rows([1, 2], 2), options=GROUPS)
    for name in ("by_date", "by_pattern", "by_month", "by_next", "filter"):
        table.indexes.drop(name)
    scan = table.scan(where="to_date(day) = '2024-02-05' and month(day) = 2")
    assert ids(scan) == [1]
    assert not any(step.skipped for step in scan.explain().steps)


def test_filters_of_dates_are_asked_for_single_days() -> None:
    table = with_indexes(COW)
    for name in INDEXES.keys() - {"filter"}:
        table.indexes.drop(name)
    for month in (2, 3):
        table.upsert(rows([month, 10 + month], month), options=GROUPS)
    for where, found, count in [
        ("to_date(day) = '2024-02-05'", [2], 2),
        ("to_date(day) in (date '2024-01-05', date '2024-02-05')", [0, 2], 1),
        ("to_date(day) = '2024-02-05' and id > 2", [], 2),
        ("to_date(day) <= '2024-01-05'", [0], 0),
        ("to_date(day) = '2024-02-05' or id = 3", [2, 3], 0),
        ("to_date(day) = '2030-01-01'", [], 3),
    ]:
        scan = table.scan(where=where)
        assert (ids(scan), sum(step.skipped for step in scan.explain().steps)) == (found, count), where


def test_files_without_a_date_are_skipped() -> None:
    table = with_indexes(COW)
    table.upsert(rows([1, 2], 2, "never", None), options=GROUPS)
    scan = table.scan(where="to_date(day) < '2030-01-01'")
    assert ids(scan) == [0]
    assert [(step.by, step.skipped) for step in scan.explain().steps if step.skipped] == [
        ("expr_index_by_date", 1)
    ]
    assert ids(table.scan(where="to_date(day) is null")) == [1, 2]


def test_indexes_are_shown_with_their_expression_and_why_they_are_not_used() -> None:
    shown = {each.name.removeprefix("expr_index_"): each for each in with_indexes(COW).indexes.list()}
    assert {name: (each.using, dict(each.options)) for name, each in shown.items()} == INDEXES
    unused = {name: each.unused for name, each in shown.items() if each.unused}
    assert unused.keys() == {"by_time", "by_second", "by_text"}
    assert all("depend on the time zone of the session" in why for why in unused.values() if why)


def test_an_index_of_a_partition_column_is_shown_as_not_used() -> None:
    table = create(SCHEMA, partition_by="day", ordering="ts")
    table.upsert(rows([1], 1))
    index = table.indexes.create("by_date", "day", using="column_stats", options={"expr": "to_date"})
    assert index.unused is not None
    assert "values of partition columns from the paths" in index.unused
    steps = table.scan(where="to_date(day) = '2030-01-01'").explain().steps
    assert not any(step.by == index.name and step.skipped for step in steps)


@pytest.mark.parametrize("using", ["column_stats", "bloom_filters"])
def test_an_index_of_lists_is_refused(using: str) -> None:
    table = create(SCHEMA, partition_by=None, ordering="ts")
    table.upsert(rows([1], 1))
    before = table.indexes.list()
    with pytest.raises(UnsupportedError, match="its values are lists, which have no bounds"):
        table.indexes.create("parts", "day", using=using, options={"expr": "split", "pattern": "-"})
    assert table.indexes.list() == before
