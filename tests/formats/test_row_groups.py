"""Row groups that a condition rules out by their statistics, and those that it does not."""

from __future__ import annotations

import struct

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from drawstring.expressions.predicate import parse_where
from drawstring.formats.parquet import ParquetQuery, read_parquet_bytes
from drawstring.formats.parquet.reader import groups_that_may_match


@pytest.mark.parametrize(
    ("where", "found"),
    [
        (pc.field("x") < 3, [1, 2]),
        (pc.field("x") != 1, [0, 2, 3, 4, 5, 6, 7]),
        (~(pc.field("x") <= 5), [0, 6, 7]),
        ((pc.field("x") > 5) | pc.is_nan(pc.field("x")), [0, 6, 7]),
        (((pc.field("x") > 5) | pc.is_nan(pc.field("x"))) & (pc.field("id") < 6), [0]),
        (pc.is_nan(pc.field("x")) & pc.is_nan(pc.field("y")), [0]),
    ],
    ids=str,
)
def test_row_groups_with_nan_are_kept_whatever_their_statistics_say(
    where: pc.Expression, found: list[int]
) -> None:
    """The first group has one number, which its statistics give as least and as greatest value."""
    nan = float("nan")
    xs = [nan, 1.0, 2.0, 3.0, 4.0, 4.5, 7.0, 9.0]
    rows = pa.table({"id": range(8), "x": xs, "y": [nan if x != x else 1.0 for x in xs]})
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, row_group_size=2)
    kept = pa.Table.from_batches(read_parquet_bytes(sink.getvalue(), ParquetQuery(where=where)), rows.schema)
    assert kept.column("id").to_pylist() == found


def test_row_groups_are_left_out_beside_a_condition_on_floats() -> None:
    rows = pa.table({"id": range(8), "x": [1.0] * 8})
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, row_group_size=2)
    fragment = ds.ParquetFileFormat().make_fragment(pa.BufferReader(sink.getvalue()))
    where = (pc.field("x") > 0) & (pc.field("id") >= 4)
    assert groups_that_may_match(fragment, where, rows.schema, rows.schema) == [2, 3]
    assert groups_that_may_match(fragment, pc.field("x") < 1, rows.schema, rows.schema) == []


LARGEST = 1.5e300
"""Is NaN in the files of another writer."""


def by_parquet_mr(rows: pa.Table) -> pa.Buffer:
    """Return a file as parquet-mr writes it: NaN is a bound of its row group; `LARGEST` becomes NaN."""
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, row_group_size=2, compression="none", use_dictionary=False)
    data = bytes(sink.getvalue())
    own = pq.read_metadata(pa.BufferReader(data)).created_by.encode()
    data = data.replace(own, b"parquet-mr version 1.13.1 (build"[: len(own)].ljust(len(own)))
    return pa.py_buffer(data.replace(struct.pack("<d", LARGEST), struct.pack("<d", float("nan"))))


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("x > 4", [1, 2]),
        ("x >= 4", [1, 2]),
        ("x < 2.5", [0]),
        ("x > 6", [1]),
        ("x = 7", [1]),
        ("x <> 1", [0, 1, 2]),
    ],
)
def test_row_groups_are_left_out_whose_bounds_tell_that_they_lack_nan(where: str, kept: list[int]) -> None:
    rows = pa.table({"id": range(6), "x": [1.0, 2.0, 3.0, LARGEST, 5.0, 6.0]})
    file, condition = by_parquet_mr(rows), parse_where(where, rows.schema)
    assert condition is not None
    fragment = ds.ParquetFileFormat().make_fragment(pa.BufferReader(file))
    bound = pa.schema([rows.schema.field("x")])
    assert groups_that_may_match(fragment, condition, bound, rows.schema) == kept
    stored = pq.read_table(pa.BufferReader(file))
    found = pa.Table.from_batches(read_parquet_bytes(file, ParquetQuery(where=condition)), rows.schema)
    assert found.column("id").equals(stored.filter(condition).column("id"))


@pytest.mark.parametrize("where", ["x > 4", "x >= 4"])
def test_row_groups_of_writers_that_leave_nan_out_of_bounds_are_kept(where: str) -> None:
    rows = pa.table({"x": [1.0, 2.0, 3.0, float("nan"), 5.0, 6.0]})
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, row_group_size=2)
    fragment = ds.ParquetFileFormat().make_fragment(pa.BufferReader(sink.getvalue()))
    condition = parse_where(where, rows.schema)
    assert condition is not None
    assert groups_that_may_match(fragment, condition, rows.schema, rows.schema) == [0, 1, 2]
