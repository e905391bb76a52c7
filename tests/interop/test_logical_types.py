"""Real Hudi reads vectors and blobs of drawstring and goes on, and drawstring those of Hudi."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.schema.logical_types import BLOB, vector_type
from tests.support.referee import Referee
from tests.support.tables import COW, MOR

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("v", vector_type(3)),
        pa.field("d", vector_type(2, pa.float64())),
        pa.field("i", vector_type(4, pa.int8())),
        pa.field("w", vector_type(3)),
        pa.field("b", BLOB),
        pa.field("ts", pa.int64()),
    ]
)
REFERENCE = {"external_path": "file:/lake/a", "offset": 3, "length": None, "managed": False}
BLOBS = (
    {"type": "INLINE", "data": b"\x00\xff", "reference": None},
    {"type": "OUT_OF_LINE", "data": None, "reference": REFERENCE},
    None,
)
MERGED = "{table} t USING (SELECT 2L id, array(8f, 8f, 8f) v, 5L ts) s ON t.id = s.id"
KINDS = [(COW, 9, "avro"), (MOR, 9, "avro"), (MOR, 9, "parquet"), (MOR, 6, "avro")]


def row(number: int, ts: int) -> dict[str, Any]:
    return {
        "id": number,
        "v": [number, ts, 0.5] if number % 3 else None,
        "d": [number / 4, -1e300],
        "i": [number, -128, 127, ts],
        "w": [number + 0.25] * 3,
        "b": BLOBS[number % 3],
        "ts": ts,
    }


def rows(numbers: range, ts: int) -> pa.Table:
    return pa.Table.from_pylist([row(number, ts) for number in numbers], SCHEMA)


def by_id(rows: pa.Table) -> dict[int, dict[str, Any]]:
    return {each["id"]: each for each in rows.select(SCHEMA.names).to_pylist()}


def assert_read(referee: Referee, path: str, expected: dict[int, dict[str, Any]]) -> None:
    assert by_id(drawstring.open(path).scan().to_arrow()) == expected
    assert by_id(referee.read(path, columns=SCHEMA.names)) == expected


@pytest.mark.parametrize(("kind", "version", "logs"), KINDS)
def test_both_read_and_write_vectors_and_blobs_of_the_other(
    referee: Referee, tmp_path: Path, kind: str, version: int, logs: str
) -> None:
    path, options = str(tmp_path / "t"), {"hoodie.logfile.data.block.format": logs}
    how: dict[str, Any] = {"record_key": "id", "ordering": "ts", "table_type": kind, "version": version}
    table = drawstring.create(path, SCHEMA, **how)
    table.insert(rows(range(8), 1), options=options)
    table.upsert(rows(range(2, 5), 2), options=options)
    table.delete(where="id = 7", options=options)
    expected = by_id(rows(range(7), 1)) | by_id(rows(range(2, 5), 2))
    assert_read(referee, path, expected)
    referee.sql(
        path,
        "UPDATE {table} SET v = array(9f, 9f, 9f), ts = 5 WHERE id = 1",
        f"MERGE INTO {MERGED} WHEN MATCHED THEN UPDATE SET v = s.v, ts = s.ts",
        "DELETE FROM {table} WHERE id = 0",
        options=options,
    )
    expected[1] |= {"v": [9, 9, 9], "ts": 5}
    expected[2] |= {"v": [8, 8, 8], "ts": 5}
    del expected[0]
    assert_read(referee, path, expected)
    table = drawstring.open(path)
    assert table.schema == SCHEMA
    table.upsert(rows(range(4, 9), 6), options=options)
    expected |= by_id(rows(range(4, 9), 6))
    assert_read(referee, path, expected)
    if kind == MOR:
        table.services.compact()
        assert_read(referee, path, expected)
        table.upsert(rows(range(5, 7), 7), options=options)
        expected |= by_id(rows(range(5, 7), 7))
        referee.compact(path)
    else:
        table.services.cluster()
    assert_read(referee, path, expected)
