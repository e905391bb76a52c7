"""Keys of rewritten files, and conditions on keys."""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.formats.bloom.filters import BloomFilter
from drawstring.formats.parquet import parquet_footer
from drawstring.table import Table

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("fare", pa.float64())])
COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}


def create(table_type: str, properties: dict[str, str]) -> Table:
    return drawstring.create(
        f"memory://{uuid.uuid4()}",
        SCHEMA,
        name="rides",
        table_type=table_type,
        record_key="id",
        partition_by="city",
        ordering="ts",
        properties=properties,
    )


def rows_of(*rows: tuple[Any, ...]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


def held(table: Table, **how: Any) -> list[tuple[Any, ...]]:
    found = table.scan(columns=SCHEMA.names, **how).to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def test_a_rewritten_file_has_all_its_keys_in_the_bloom_filter() -> None:
    table = create(COW, BUCKETS | {"hoodie.bucket.index.num.buckets": "1"})
    rows = [(f"k{number}", "rome", 1, 1.0) for number in range(60)]
    table.insert(rows_of(*rows[:20]))
    table.upsert(rows_of(*rows[10:40]))
    table.delete(rows_of(*rows[:15]))
    table.upsert(rows_of(*rows[35:]))
    storage = table.state.storage
    newest = max(
        (status.path for status in storage.list_files("rome") if status.path.endswith(".parquet")),
        key=lambda path: path.rpartition("_")[2],
    )
    footer = parquet_footer(storage, newest)
    bloom = BloomFilter.decode(footer["org.apache.hudi.bloomfilter"], footer["hoodie_bloom_filter_type_code"])
    assert len(held(table)) == 45
    assert bloom.contains(pa.array([key for key, *_ in rows[15:]])).all()
    assert not bloom.contains(pa.array([f"absent{number}" for number in range(100)])).any()


@pytest.mark.parametrize("where", ["id = 'b'", "_hoodie_record_key = 'b'", "id >= 'b' and id < 'c'"])
def test_a_condition_on_the_key_sees_merged_records(where: str) -> None:
    table = create(MOR, BUCKETS)
    table.insert(rows_of(("a", "rome", 1, 1.0), ("b", "rome", 3, 3.0), ("c", "rome", 1, 1.0)))
    table.upsert(rows_of(("b", "rome", 2, 2.0), ("c", "rome", 2, 2.0)))
    assert held(table, where=where) == [("b", "rome", 3, 3.0)]
    table.upsert(rows_of(("b", "rome", 4, 4.0)))
    assert held(table, where=where) == [("b", "rome", 4, 4.0)]
    table.delete(rows_of(("b", "rome", 4, 4.0)))
    assert held(table, where=where) == []
