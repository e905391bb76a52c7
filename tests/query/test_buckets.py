"""Which buckets a condition on the key leads to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.config.table import KeyGeneratorType, TableConfig, TableType
from drawstring.query.buckets import buckets_to_read
from drawstring.query.predicate import parse_where

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("n", pa.int64()), ("x", pa.float64())])
COUNT = 8


def rides(count: int, key: pa.DataType) -> pa.Table:
    ids = pa.array(range(count)).cast(key)
    columns = [ids, ["a"] * count, range(count), [0.5] * count]
    return pa.table([pa.array(column) for column in columns], names=SCHEMA.names)


def table(path: Path, key: pa.DataType = pa.string(), **more: str) -> drawstring.Table:  # noqa: B008
    properties = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": str(COUNT), **more}
    made = drawstring.create(
        path,
        rides(1, key).schema,
        record_key="id",
        partition_by="city",
        table_type="MERGE_ON_READ",
        properties=properties,
    )
    made.insert(rides(100, key))
    return made


@pytest.mark.parametrize(
    ("where", "slices", "ids"),
    [
        ("id = '7'", 1, [7]),
        ("id = '7' AND x > 0.1", 1, [7]),
        ("id IN ('7', '7') OR id = '7'", 1, [7]),
        ("id = '7' AND city = 'b'", 0, []),
        ("id = '7' AND id = '8'", 0, []),
        ("(id = '7' OR id = '8') AND n < 8", 2, [7]),
        ("id = '7' OR n = 9", COUNT, [7, 9]),
        ("NOT id = '7' AND n < 2", COUNT, [0, 1]),
        ("id >= '98'", COUNT, [98, 99]),
        ("id LIKE '98%'", COUNT, [98]),
        ("id = '' OR id = '7'", COUNT, [7]),
        ("city = 'a' AND n = 7", COUNT, [7]),
        ("id = 'q\"u\\\\o' OR id = '7'", 2, [7]),
    ],
)
def test_only_buckets_that_may_hold_the_keys_are_read(
    tmp_path: Path, where: str, slices: int, ids: list[int]
) -> None:
    made = table(tmp_path / "t")
    scan = made.scan(columns=["n"], where=where)
    assert sorted(scan.to_arrow()["n"].to_pylist()) == ids
    assert len(scan.tasks()) <= slices
    assert len(scan.tasks()) == slices or slices < COUNT


@pytest.mark.parametrize(("where", "slices"), [("id = 7", 1), ("id = 7.5", COUNT), ("id < 1", COUNT)])
def test_whole_numbers_are_keys_too(tmp_path: Path, where: str, slices: int) -> None:
    scan = table(tmp_path / "t", pa.int64()).scan(where=where)
    assert len(scan.tasks()) == slices


def test_every_key_is_found_where_it_was_written(tmp_path: Path) -> None:
    made = table(tmp_path / "t")
    made.upsert(rides(120, pa.string()))
    for key in range(0, 120, 7):
        scan = made.scan(columns=["n"], where=f"id = '{key}'")
        assert scan.to_arrow()["n"].to_pylist() == [key]
        assert len(scan.tasks()) == 1


@pytest.mark.parametrize(
    "properties", [{"hoodie.index.type": "SIMPLE"}, {"hoodie.bucket.index.hash.field": "n"}]
)
def test_other_indexes_leave_nothing_out(tmp_path: Path, properties: dict[str, Any]) -> None:
    made = drawstring.create(
        tmp_path / "t", SCHEMA, record_key=["id", "n"], partition_by="city", properties=properties
    )
    made.insert(rides(10, pa.string()))
    whole = len(made.scan().tasks())
    assert len(made.scan(where="id = '7'").tasks()) == whole


@pytest.mark.parametrize(
    ("generator", "buckets"), [("COMPLEX", 1), ("USER_PROVIDED", None), ("CUSTOM", None)]
)
def test_keys_that_may_hold_more_than_the_column_lead_nowhere(generator: str, buckets: int | None) -> None:
    config = TableConfig(
        "t",
        TableType.MERGE_ON_READ,
        9,
        2,
        record_key_fields=("id",),
        key_generator=KeyGeneratorType(generator),
        index_type="BUCKET",
        bucket_count=COUNT,
        bucket_hash_fields=("id",),
    )
    found = buckets_to_read(parse_where("id = '7'", SCHEMA), config, SCHEMA)
    assert (None if found is None else len(found)) == buckets
