"""Key generators, generated keys and change logs: real Hudi and drawstring agree on one table, in turns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from tests.support.referee import Referee
from tests.support.rows import arrow_rows
from tests.support.tables import create

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("city", pa.string()),
        ("made", pa.int64()),
        ("ts", pa.int64()),
        ("fare", pa.float64()),
    ]
)
HOUR = 3_600_000
TIMEBASED = {
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd-HH",
    "hoodie.keygen.timebased.timezone": "Asia/Kolkata",
}
META = ["_hoodie_record_key", "_hoodie_partition_path"]
CLASS = "hoodie.datasource.write.keygenerator.class"
HUDIS = "org.apache.hudi.keygen."
MODE = "hoodie.table.cdc.supplemental.logging.mode"
CHANGES = {
    "hoodie.datasource.query.type": "incremental",
    "hoodie.datasource.query.incremental.format": "cdc",
    "hoodie.datasource.read.begin.instanttime": "000",
}


def rows_of(start: int, end: int, ts: int) -> pa.Table:
    rows = [
        (f"k{n}", ("rome", "oslo")[n % 2], 1_700_000_000_000 + n * HOUR, ts, ts + n / 4)
        for n in range(start, end)
    ]
    return arrow_rows(SCHEMA, *rows)


def options_of(version: int, partition: str, key: str = "id", **more: str) -> dict[str, str]:
    options = {
        "hoodie.table.name": "rides",
        "hoodie.datasource.write.partitionpath.field": partition,
        "hoodie.write.table.version": str(version),
        "hoodie.write.auto.upgrade": "false",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.metadata.enable": "false",
        **more,
    }
    if key:
        options |= {
            "hoodie.datasource.write.recordkey.field": key,
            "hoodie.datasource.write.precombine.field": "ts",
        }
    return options


def sorted_rows(table: pa.Table, columns: list[str]) -> list[tuple[Any, ...]]:
    return sorted(tuple(str(value) for value in row.values()) for row in table.select(columns).to_pylist())


TIMESTAMP = {CLASS: HUDIS + "TimestampBasedKeyGenerator", **TIMEBASED}
# With a custom generator Hudi's own reader takes folders for values of the column's type: digits only.
DIGITS = {"hoodie.keygen.timebased.output.dateformat": "yyyyMMddHH"}
CUSTOM = {CLASS: HUDIS + "CustomKeyGenerator", **TIMEBASED, **DIGITS}
BOTH = "city:SIMPLE,made:TIMESTAMP"
GENERATORS = [
    pytest.param(9, "made", TIMESTAMP, id="v9-timestamp"),
    pytest.param(9, BOTH, CUSTOM, id="v9-custom"),
    pytest.param(6, "made", TIMESTAMP, id="v6-timestamp", marks=pytest.mark.long),
    pytest.param(8, BOTH, CUSTOM, id="v8-custom", marks=pytest.mark.long),
    pytest.param(9, "city", {CLASS: HUDIS + "ComplexKeyGenerator"}, id="v9-complex", marks=pytest.mark.long),
]


@pytest.mark.parametrize(("version", "partition", "more"), GENERATORS)
def test_both_find_the_keys_that_the_other_made(
    referee: Referee, tmp_path: Path, version: int, partition: str, more: dict[str, str]
) -> None:
    path = str(tmp_path / "rides")
    options = options_of(version, partition, **more)
    table = drawstring.create(
        path, SCHEMA, name="rides", record_key="id", partition_by=partition.split(","), ordering="ts",
        version=version, properties=more,
    )  # fmt: skip
    table.insert(rows_of(0, 20, 1))
    referee.write(path, rows_of(10, 30, 2), options)
    drawstring.open(path).upsert(rows_of(25, 40, 3))
    expected = sorted_rows(
        pa.concat_tables([rows_of(0, 10, 1), rows_of(10, 25, 2), rows_of(25, 40, 3)]),
        ["id", "city", "ts", "fare"],
    )
    ours = drawstring.open(path).scan().to_arrow()
    assert sorted_rows(ours, ["id", "city", "ts", "fare"]) == expected
    theirs = referee.read(path)
    assert sorted_rows(theirs, ["id", "city", "ts", "fare"]) == expected
    assert sorted_rows(theirs, META) == sorted_rows(ours, META)


NESTED = pa.schema([("a", pa.struct([("k", pa.string()), ("c", pa.string())])), ("ts", pa.int64())])


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_both_find_keys_inside_a_column(referee: Referee, tmp_path: Path, table_type: str) -> None:
    def rows(start: int, end: int, ts: int) -> pa.Table:
        numbers = range(start, end)
        data = [{"a": {"k": f"k{n}", "c": ("rome", "oslo")[n % 2]}, "ts": ts} for n in numbers]
        return pa.Table.from_pylist(data, NESTED)

    path = str(tmp_path / "rides")
    kind = {"hoodie.datasource.write.table.type": table_type}
    table = drawstring.create(
        path, NESTED, name="rides", record_key="a.k", partition_by="a.c", ordering="ts", table_type=table_type
    )
    table.upsert(rows(0, 6, 1))
    referee.write(path, rows(3, 8, 2), options_of(9, "a.c", key="a.k", **kind))
    drawstring.open(path).upsert(rows(5, 10, 3))
    times = [(f"k{n}", ("rome", "oslo")[n % 2], str(1 + (n > 2) + (n > 4))) for n in range(10)]
    for found in (drawstring.open(path).scan().to_arrow(), referee.read(path)):
        assert sorted_rows(found, [*META, "ts"]) == times


def test_both_add_to_a_table_without_key_columns(referee: Referee, tmp_path: Path) -> None:
    path = str(tmp_path / "rides")
    table = drawstring.create(path, SCHEMA, name="rides", partition_by="city")
    table.insert(rows_of(0, 4, 1))
    referee.write(path, rows_of(0, 4, 1), options_of(9, "city", key=""))
    drawstring.open(path).upsert(rows_of(0, 4, 1))
    expected = sorted_rows(pa.concat_tables([rows_of(0, 4, 1)] * 3), SCHEMA.names)
    for rows in (drawstring.open(path).scan().to_arrow(), referee.read(path)):
        assert sorted_rows(rows, SCHEMA.names) == expected
        assert len(set(rows.column(META[0]).to_pylist())) == 12


def changes_of(rows: pa.Table) -> list[tuple[str, str, str]]:
    """Return operation and images without meta columns and nulls, sorted."""

    def plain(image: str | None) -> str:
        columns = json.loads(image) if image else None
        return str(columns and {k: v for k, v in columns.items() if k[:8] != "_hoodie_" and v is not None})

    found = rows.select(["ts_ms", "op", "before", "after"]).to_pylist()
    return sorted((row["ts_ms"] + row["op"], plain(row["before"]), plain(row["after"])) for row in found)


@pytest.mark.parametrize(
    ("version", "mode"),
    [
        (9, "DATA_BEFORE_AFTER"),
        (9, "OP_KEY_ONLY"),
        pytest.param(6, "DATA_BEFORE", marks=pytest.mark.long),
        pytest.param(8, "DATA_BEFORE", marks=pytest.mark.long),
        pytest.param(6, "OP_KEY_ONLY", marks=pytest.mark.long),
    ],
)
def test_both_read_the_changes_that_either_logged(
    referee: Referee, tmp_path: Path, version: int, mode: str
) -> None:
    path = str(tmp_path / "rides")
    logged = {"hoodie.table.cdc.enabled": "true", MODE: mode}
    table = create(SCHEMA, path, version=version, properties=logged)
    table.insert(rows_of(0, 10, 1))
    table.upsert(rows_of(5, 14, 2))
    table.delete(rows_of(0, 3, 2))
    assert changes_of(referee.read(path, CHANGES)) == changes_of(table.changes("earliest").to_arrow())
    referee.write(path, rows_of(8, 16, 3), options_of(version, "city", **logged))
    drawstring.open(path).upsert(rows_of(15, 18, 4))
    ours = changes_of(drawstring.open(path).changes("earliest").to_arrow())
    assert changes_of(referee.read(path, CHANGES)) == ours
    assert [change[0][-1] for change in ours].count("d") == 3
