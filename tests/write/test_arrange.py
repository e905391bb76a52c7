"""Sort modes of bulk_insert: which rows stand together in which file, and in what order."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.engine.spill import SortedRanges
from drawstring.table import Table
from tests.support.tables import BUCKETS, MOR, create, table_types

MODE = "hoodie.bulkinsert.sort.mode"
COLUMNS = "hoodie.bulkinsert.user.defined.partitioner.sort.columns"
CLASS = "hoodie.bulkinsert.user.defined.partitioner.class"
SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        ("city", pa.string()),
        ("ts", pa.int64()),
        ("fare", pa.float64()),
    ]
)
CITIES = ("oslo", "rome", "lima")
ROWS = 3000


def shuffled() -> pa.RecordBatchReader:
    """Rows in no order, in many small batches; one fare in ten is null."""
    numbers = [number * 1999 % ROWS for number in range(ROWS)]
    table = pa.table(
        [
            [f"k{number:05}" for number in numbers],
            [CITIES[number % 3] for number in numbers],
            [1] * ROWS,
            [None if number % 10 == 0 else float(number % 97) for number in numbers],
        ],
        schema=SCHEMA,
    )
    return pa.RecordBatchReader.from_batches(SCHEMA, table.to_batches(max_chunksize=100))


def files(table: Table) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return the rows of every base file, with its partition path, in their order."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    columns = ["_hoodie_partition_path", "_hoodie_file_name", *SCHEMA.names]
    for row in table.scan(columns=columns).to_arrow().to_pylist():
        found.setdefault((row["_hoodie_partition_path"], row["_hoodie_file_name"]), []).append(row)
    return [(path, rows) for (path, _), rows in found.items()]


def loaded(table_type: str = "COPY_ON_WRITE", how: dict[str, Any] | None = None, **options: str) -> Table:
    table = create(SCHEMA, table_type=table_type, **(how or {}))
    table.bulk_insert(shuffled(), options=options)
    assert sorted(row["id"] for _, rows in files(table) for row in rows) == [f"k{n:05}" for n in range(ROWS)]
    return table


@table_types
@pytest.mark.parametrize("mode", ["GLOBAL_SORT", "partition_sort"])
def test_sorted_rows_stand_in_the_order_of_their_keys(table_type: str, mode: str) -> None:
    for _, rows in files(loaded(table_type, **{MODE: mode})):
        keys = [row["id"] for row in rows]
        assert keys == sorted(keys)


def test_files_of_a_global_sort_do_not_overlap() -> None:
    table = loaded(**{MODE: "GLOBAL_SORT"})
    for city in CITIES:
        ends = sorted((rows[0]["id"], rows[-1]["id"]) for path, rows in files(table) if path == city)
        assert all(one[1] < other[0] for one, other in itertools.pairwise(ends))
    assert len(files(table)) <= len(CITIES) + 15


@pytest.mark.parametrize("mode", ["PARTITION_PATH_REPARTITION", "PARTITION_PATH_REPARTITION_AND_SORT"])
def test_a_repartition_makes_one_file_a_partition(mode: str) -> None:
    assert sorted(path for path, _ in files(loaded(**{MODE: mode}))) == sorted(CITIES)


@pytest.mark.parametrize("named", [{}, {CLASS: "RDDCustomColumnsSortPartitioner"}], ids=["columns", "class"])
def test_rows_are_sorted_by_columns_null_first(named: dict[str, str]) -> None:
    table = loaded(
        **{COLUMNS: "fare", MODE: "NONE", "hoodie.bulkinsert.sort.suffix.record_key": "true"}, **named
    )
    for _, rows in files(table):
        order = [(row["fare"] is not None, row["fare"] or 0.0, row["id"]) for row in rows]
        assert order == sorted(order)


@pytest.mark.parametrize("properties", [{}, BUCKETS], ids=["simple", "bucket"])
def test_rows_are_sorted_in_buckets_and_when_copies_are_combined(properties: dict[str, str]) -> None:
    options = {MODE: "GLOBAL_SORT", "hoodie.combine.before.insert": "true"}
    table = loaded(how={"properties": properties}, **options)
    for _, rows in files(table):
        keys = [row["id"] for row in rows]
        assert keys == sorted(keys)


@pytest.mark.parametrize(
    ("options", "kind", "says"),
    [
        ({MODE: "SORTED"}, InvalidError, "GLOBAL_SORT"),
        ({COLUMNS: "nobody"}, InvalidError, "cannot be sorted by nobody"),
        ({CLASS: "RowCustomColumnsSortPartitioner"}, InvalidError, "sort.columns"),
        ({CLASS: "org.mine.Partitioner"}, UnsupportedError, "org.mine.Partitioner"),
    ],
)
def test_a_wrong_order_is_refused_before_anything_is_written(
    options: dict[str, str], kind: type[Exception], says: str
) -> None:
    table = create(SCHEMA)
    with pytest.raises(kind, match=says):
        table.bulk_insert(shuffled(), options=options)
    assert table.timeline.instants == ()


def test_a_sort_does_not_take_more_memory_than_it_may() -> None:
    ranges = SortedRanges(SCHEMA, ("city", "id"), memory_bytes=40_000, parts=3)
    try:
        ranges.take(shuffled())
        parts = [pa.Table.from_batches(list(part)) for part in ranges.parts()]
    finally:
        ranges.close()
    assert len(parts) == 3
    found = [(row["city"], row["id"]) for part in parts for row in part.to_pylist()]
    assert found == sorted(found)
    assert len(found) == ROWS
    assert min(map(len, parts)) > ROWS // 6


def test_a_sort_of_nothing_is_nothing() -> None:
    table = create(SCHEMA, table_type=MOR)
    table.bulk_insert(shuffled().read_all().slice(0, 0), options={MODE: "GLOBAL_SORT"})
    assert drawstring.open(table.uri).scan().to_arrow().num_rows == 0
