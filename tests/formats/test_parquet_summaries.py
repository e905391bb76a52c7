"""Summaries of the columns of Parquet files: whoever wrote the file, the bounds contain every value."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawstring.formats.parquet import ParquetSink
from drawstring.formats.parquet.statistics import column_summaries
from drawstring.schema.avro import arrow_to_avro
from drawstring.storage.memory import MemoryStorage
from tests.support.tables import new_address

TYPES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.string(): st.one_of(st.text(), st.integers(3_000, 6_000).map("é".__mul__)),
    pa.binary(): st.binary(max_size=5_000),
    pa.decimal128(20, 4): st.decimals(-(10**15), 10**15, places=4),
    pa.date32(): st.dates(date(1600, 1, 1), date(2400, 1, 1)),
    pa.timestamp("us", "UTC"): st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1)).map(
        lambda each: each.replace(tzinfo=UTC)
    ),
    pa.timestamp("us"): st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1)),
}


def order(value: Any) -> Any:
    """Return a value as Spark orders it: NaN is the greatest number, texts are compared as bytes."""
    if isinstance(value, float):
        return math.inf if math.isnan(value) else value
    return value.encode() if isinstance(value, str) else value


def written(rows: pa.Table, by: str) -> MemoryStorage:
    storage = MemoryStorage(new_address())
    if by == "drawstring":
        avro = arrow_to_avro(rows.schema, "r", "n")
        sink = ParquetSink(
            storage, "f.parquet", rows.schema, table_avro_schema=avro, compression="zstd", bloom=False
        )
        for batch in rows.to_batches(max_chunksize=3):
            sink.write(batch)
        sink.close()
    else:
        target = pa.BufferOutputStream()
        pq.write_table(rows, target, row_group_size=3)
        storage.put("f.parquet", target.getvalue().to_pybytes())
    return storage


@pytest.mark.parametrize("by", ["drawstring", "arrow"])
@pytest.mark.parametrize("kind", TYPES, ids=str)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_bounds_contain_every_value(kind: pa.DataType, by: str, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | TYPES[kind], max_size=9))
    rows = pa.table(
        {
            "c": pa.array(values, kind),
            "s": pa.array([{"f": each} for each in values], pa.struct([("f", kind)])),
        }
    )
    found, count = column_summaries(written(rows, by), "f.parquet", ["c", "s.f", "other"], rows.schema)
    assert set(found) == {"c", "s.f"}
    assert count == len(values)
    for each in found.values():
        known = [order(value) for value in rows.column("c").to_pylist() if value is not None]
        assert (each.values, each.nulls) == (len(values), values.count(None))
        bounds = [order(bound) for bound in each.bounds.to_pylist()]
        assert bounds == ([min(known), max(known)] if known else [None, None])


def test_decimals_are_those_of_the_column() -> None:
    rows = pa.table({"c": pa.array([Decimal("-0.05"), Decimal("7.25")], pa.decimal128(5, 2))})
    found, _ = column_summaries(written(rows, "drawstring"), "f.parquet", ["c"], rows.schema)
    assert found["c"].bounds.to_pylist() == [Decimal("-0.05"), Decimal("7.25")]
