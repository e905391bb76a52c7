"""Statistics that drawstring keeps: real Hudi skips files by them, loses no rows, and goes on with them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from tests.support.referee import Referee
from tests.support.tables import COW, MOR

METADATA = {"hoodie.metadata.enable": "true"}
ENABLED = {"hoodie.metadata.index.column.stats.enable": "true"}
SKIPPING = {**METADATA, **ENABLED, "hoodie.enable.data.skipping": "true"}
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("city", pa.string()),
        ("ts", pa.int64()),
        ("flag", pa.bool_()),
        ("fare", pa.float64()),
        ("ratio", pa.float32()),
        ("amount", pa.decimal128(12, 2)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("text", pa.string()),
        ("data", pa.binary()),
        ("trip", pa.struct([("distance", pa.int32()), ("name", pa.string())])),
    ]
)
LONG = "y" * 5_000
CONDITIONS = (
    "id = 103",
    "id > 200 AND text < 't2'",
    "flag = false AND id < 100",
    "fare > 1000000",
    "isnan(fare)",
    "fare < 2.5",
    "fare = 0.0",
    "ratio > 1000000 AND id >= 0",
    "amount = 101.50",
    "amount < 0",
    "day = date'2024-01-08'",
    "day > date'2030-01-01' AND id > 0",
    "at >= timestamp'2024-07-01 00:00:00'",
    "text > 'x'",
    "text > 'x' AND id > 0 AND fare IS NULL",
    "text = 'é5'",
    "text IS NULL",
    "text IS NOT NULL AND id < 3",
    "trip.distance > 300",
    "_hoodie_record_key = '7' OR _hoodie_record_key = '205'",
    "city = 'c2' AND ts > 1",
)
HELD_BY_HUDI = tuple(each for each in CONDITIONS if not re.search("fare|ratio|text", each))
"""Conditions by which Hudi loses no rows of files that it wrote itself."""


def row(number: int, ts: int, city: str) -> dict[str, Any]:
    """Return a row whose values depend on its number; some are NaN, longer than a bound, or missing."""
    is_odd = number % 10 == 3
    return {
        "id": number,
        "city": city,
        "ts": ts,
        "flag": None if is_odd else number % 2 == 0,
        "fare": math.nan if is_odd else (None if number % 10 == 4 else (number % 50 - 10) / 2),
        "ratio": math.nan if number % 20 == 7 else float(number % 3),
        "amount": Decimal(number) / 2 + 50 if number % 7 else Decimal("-0.01") * number,
        "day": None if is_odd else date(2024, 1, 1 + number % 28),
        "at": datetime(2024, 1 + number % 12, 1, tzinfo=UTC),
        "text": LONG + str(number) if is_odd else (None if number % 10 == 6 else f"é{number}"),
        "data": bytes([number % 256]),
        "trip": None if is_odd else {"distance": number * 2, "name": f"t{number}"},
    }


def rows(first: int, ts: int, city: str, count: int = 12) -> pa.Table:
    return pa.Table.from_pylist([row(number, ts, city) for number in range(first, first + count)], SCHEMA)


def hudi_options(version: int, table_type: str) -> dict[str, str]:
    return {
        "hoodie.table.name": "rides",
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.write.table.version": str(version),
        "hoodie.write.auto.upgrade": "false",
        **METADATA,
        **ENABLED,
    }


def keys(found: pa.Table) -> list[int]:
    return sorted(found.column("id").to_pylist())


def check(referee: Referee, path: str, conditions: Sequence[str] = CONDITIONS) -> None:
    """Check that Hudi finds with data skipping what it finds without, and drawstring the same rows."""
    table = drawstring.open(path)
    assert {*table.config.metadata_partitions} >= {"column_stats", "partition_stats"}
    every = keys(referee.read(path, columns=["id"]))
    assert every == keys(table.scan(columns=["id"]).to_arrow())
    for where in conditions:
        without = {"hoodie.metadata.enable": "false", "hoodie.enable.data.skipping": "false"}
        expected = keys(referee.read(path, without, ["id"], where))
        assert keys(referee.read(path, SKIPPING, ["id"], where)) == expected, where


@pytest.mark.parametrize(
    ("version", "table_type"),
    [
        (9, COW),
        (8, MOR),
        pytest.param(9, MOR, marks=pytest.mark.long),
        pytest.param(8, COW, marks=pytest.mark.long),
    ],
)
def test_hudi_loses_no_rows_by_statistics_of_drawstring(
    referee: Referee, tmp_path: Path, version: int, table_type: str
) -> None:
    path = str(tmp_path / "rides")
    drawstring.create(
        path,
        SCHEMA,
        name="rides",
        record_key="id",
        partition_by="city",
        ordering="ts",
        version=version,
        table_type=table_type,
    )
    table = drawstring.open(path, options=METADATA)
    for number, city in enumerate(("c0", "c1", "c2")):
        table.bulk_insert(rows(100 * number, 1, city), options=ENABLED)
    table.upsert(rows(3, 2, "c0", 4), options=ENABLED)
    check(referee, path)

    referee.write(path, rows(205, 3, "c2"), hudi_options(version, table_type))
    check(referee, path, HELD_BY_HUDI)

    table = drawstring.open(path)
    table.upsert(rows(213, 4, "c2", 9))
    table.delete(rows(100, 5, "c1", 3))
    check(referee, path, HELD_BY_HUDI)


def test_hudi_opens_no_file_that_the_statistics_rule_out(referee: Referee, tmp_path: Path) -> None:
    path = tmp_path / "rides"
    drawstring.create(path, SCHEMA, name="rides", record_key="id", partition_by="city", ordering="ts")
    table = drawstring.open(str(path), options=METADATA)
    for number in range(3):
        table.bulk_insert(rows(100 * number, 1, "c0"), options=ENABLED)
    table.bulk_insert(rows(300, 1, "c1"), options=ENABLED)
    (needed,) = table.scan(["_hoodie_file_name"], where="id = 105").to_arrow().column(0).to_pylist()
    for each in table.inspect.files():
        assert each.base is not None
        if each.base.status.name != needed:
            (path / each.base.status.path).unlink()
    assert keys(referee.read(str(path), SKIPPING, ["id"], "id = 105")) == [105]


ADDED = ("extra = 5", "extra IS NULL", "extra IS NULL AND id < 300", "extra = 5 AND id > 100", "extra > 9")


@pytest.mark.parametrize(
    ("version", "table_type"), [(9, COW), (6, MOR), pytest.param(9, MOR, marks=pytest.mark.long)]
)
def test_hudi_loses_no_rows_by_statistics_of_added_columns(
    referee: Referee, tmp_path: Path, version: int, table_type: str
) -> None:
    path = str(tmp_path / "rides")
    how = {"record_key": "id", "partition_by": "city", "ordering": "ts", "version": version}
    drawstring.create(path, SCHEMA, name="rides", table_type=table_type, **how)  # type: ignore[arg-type]
    table = drawstring.open(path, options=METADATA)
    for number, city in enumerate(("c0", "c1", "c2")):
        table.bulk_insert(rows(100 * number, 1, city), options=ENABLED)
    some = rows(105, 2, "c1", 3)
    table.upsert(some.append_column("extra", pa.array([5, None, 11], pa.int64())))
    assert "extra" in table.inspect.metadata("column_stats")["column"].to_pylist()
    known = table.config.metadata_partitions
    check_added(referee, path)

    more = rows(205, 3, "c2", 2).append_column("extra", pa.array([5, None], pa.int64()))
    referee.write(path, more, hudi_options(version, table_type))
    assert drawstring.open(path).config.metadata_partitions == known
    check_added(referee, path)


def check_added(referee: Referee, path: str) -> None:
    for where in ADDED:
        without = {"hoodie.metadata.enable": "false", "hoodie.enable.data.skipping": "false"}
        expected = keys(referee.read(path, without, ["id"], where))
        assert keys(referee.read(path, SKIPPING, ["id"], where)) == expected, where
        assert keys(drawstring.open(path).scan(columns=["id"], where=where).to_arrow()) == expected, where
