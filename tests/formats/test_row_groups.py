"""Row groups that a condition rules out by their statistics, and those that it does not."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from drawstring.formats.parquet import read_parquet_bytes
from drawstring.formats.parquet.row_groups import groups_that_may_match


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
    kept = pa.Table.from_batches(read_parquet_bytes(sink.getvalue(), where=where), rows.schema)
    assert kept.column("id").to_pylist() == found


def test_row_groups_are_left_out_beside_a_condition_on_floats() -> None:
    rows = pa.table({"id": range(8), "x": [1.0] * 8})
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, row_group_size=2)
    fragment = ds.ParquetFileFormat().make_fragment(pa.BufferReader(sink.getvalue()))
    where = (pc.field("x") > 0) & (pc.field("id") >= 4)
    assert groups_that_may_match(fragment, where, rows.schema, rows.schema) == [2, 3]
    assert groups_that_may_match(fragment, pc.field("x") < 1, rows.schema, rows.schema) == []
