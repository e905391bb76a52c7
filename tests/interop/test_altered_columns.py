"""Columns that one engine renames, drops, widens and moves are read by the other one, which goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.table import Table
from tests.support.referee import Referee
from tests.support.tables import COW, MOR

ON_ALLOW = "hoodie.datasource.write.schema.allow.auto.evolution.column.drop"
ON_READ = {"hoodie.schema.on.read.enable": "true"}
ALLOW = "hoodie.datasource.write.schema.allow.auto.evolution.column.drop"
READ = {**ON_READ, "spark.sql.parquet.enableVectorizedReader": "false"}
"""Hudi reads structs with changed fields row by row only."""

BEFORE = pa.schema(
    [
        ("id", pa.int64()),
        ("city", pa.string()),
        ("n", pa.int32()),
        ("name", pa.string()),
        ("at", pa.struct([("x", pa.int32()), ("y", pa.string())])),
        ("price", pa.decimal128(8, 2)),
        ("ts", pa.int64()),
    ]
)
AFTER = ["n", "id", "city", "number", "name", "at", "price", "ts"]


def row(number: int, ts: int) -> dict[str, Any]:
    return {
        "id": number,
        "city": f"c{number % 2}",
        "n": number * 10,
        "name": f"old{number}",
        "at": {"x": number, "y": f"y{number}"},
        "price": None,
        "ts": ts,
    }


def changed(key: int, ts: int, /, **values: Any) -> dict[str, Any]:
    """Return a row as it is after the changes."""
    old = row(key, ts)
    at = {"xx": old["at"]["x"], "y": old["at"]["y"]}
    kept = {"id": key, "city": old["city"], "number": old["n"], "at": at, "price": None, "ts": ts}
    return {"n": None, "name": None, **kept, **values}


def options(kind: str, version: int) -> dict[str, str]:
    return {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.write.table.version": str(version),
        "hoodie.write.auto.upgrade": "false",
        "hoodie.compact.inline": "false",
        **ON_READ,
    }


def begun(path: str, kind: str, version: int) -> Table:
    table = drawstring.create(
        path,
        BEFORE,
        record_key="id",
        partition_by="city",
        ordering="ts",
        table_type=kind,
        version=version,
    )
    table.insert(pa.Table.from_pylist([row(number, 1) for number in range(6)], BEFORE))
    table.upsert(
        pa.Table.from_pylist([row(1, 2), row(2, 2)], BEFORE), options={"hoodie.compact.inline": "false"}
    )
    return table


def by_id(rows: pa.Table) -> list[dict[str, Any]]:
    return sorted(rows.to_pylist(), key=lambda each: each["id"])


def assert_read(referee: Referee, path: str, expected: list[dict[str, Any]]) -> None:
    assert by_id(drawstring.open(path).scan(columns=AFTER).to_arrow()) == expected
    assert by_id(referee.read(path, READ, AFTER)) == expected


KINDS = [
    (MOR, 9),
    (COW, 9),
    pytest.param(MOR, 6, marks=pytest.mark.long),
    pytest.param(COW, 8, marks=pytest.mark.long),
]


@pytest.mark.parametrize(("kind", "version"), KINDS)
def test_hudi_reads_columns_that_drawstring_changed_and_goes_on(
    referee: Referee, tmp_path: Path, kind: str, version: int
) -> None:
    path = str(tmp_path / "t")
    table = begun(path, kind, version)
    table.columns.rename("n", "number")
    table.columns.change_type("number", pa.int64())
    table.columns.drop("name")
    table.columns.rename("at.x", "xx")
    table.columns.add("name", pa.int64(), after="number")
    table.columns.add("n", pa.string(), first=True)
    table.columns.change_type("price", pa.decimal128(12, 2))
    expected = [changed(number, 2 if number in (1, 2) else 1) for number in range(6)]
    assert_read(referee, path, expected)
    kinds = table.schema
    ours = [changed(2, 3, number=1 << 40, n="ours", name=7), changed(9, 1, n="new")]
    table.upsert(pa.Table.from_pylist(ours, kinds))
    expected = [*(each for each in expected if each["id"] != 2), *ours]
    assert_read(referee, path, sorted(expected, key=lambda each: each["id"]))
    theirs = [changed(3, 4, n="theirs", number=5), changed(8, 1, name=3)]
    given = {**options(kind, version), "hoodie.datasource.write.operation": "upsert"}
    referee.write(path, pa.Table.from_pylist(theirs, kinds), given)
    expected = [*(each for each in expected if each["id"] != 3), *theirs]
    assert_read(referee, path, sorted(expected, key=lambda each: each["id"]))
    if kind == MOR:
        drawstring.open(path).services.compact()
        assert_read(referee, path, sorted(expected, key=lambda each: each["id"]))


@pytest.mark.parametrize(("kind", "version"), KINDS)
def test_drawstring_reads_columns_that_hudi_changed_and_goes_on(
    referee: Referee, tmp_path: Path, kind: str, version: int
) -> None:
    path = str(tmp_path / "t")
    begun(path, kind, version)
    referee.sql(
        path,
        "ALTER TABLE {table} RENAME COLUMN n TO number",
        "ALTER TABLE {table} ALTER COLUMN number TYPE BIGINT",
        "ALTER TABLE {table} DROP COLUMN name",
        "ALTER TABLE {table} RENAME COLUMN at.x TO xx",
        "ALTER TABLE {table} ADD COLUMNS (name BIGINT AFTER number)",
        "ALTER TABLE {table} ADD COLUMNS (n STRING AFTER ts)",
        options={**options(kind, version), ALLOW: "true"},
    )
    expected = [changed(number, 2 if number in (1, 2) else 1) for number in range(6)]
    assert_read(referee, path, expected)
    table = drawstring.open(path)
    ours = [changed(2, 3, number=1 << 40, n="ours", name=7), changed(9, 1, n="new")]
    table.upsert(pa.Table.from_pylist(ours, table.schema))
    table.columns.rename("name", "label")
    table.columns.rename("label", "name")
    expected = sorted([*(each for each in expected if each["id"] != 2), *ours], key=lambda each: each["id"])
    assert_read(referee, path, expected)
