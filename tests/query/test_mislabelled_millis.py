"""Milliseconds that files of Apache Hudi before 1.1 call microseconds: their numbers are milliseconds."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import drawstring
from drawstring.base.errors import InvalidError
from drawstring.table import Table
from tests.support.mislabelled import mislabel
from tests.support.tables import COW, MOR, WITHOUT_SERVICES

MOMENT = pa.timestamp("ms", "UTC")
SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        ("city", pa.string()),
        ("ts", MOMENT),
        ("trip", pa.struct([("start", MOMENT), ("fare", pa.int64())])),
        ("stops", pa.list_(MOMENT)),
        ("seen", pa.map_(pa.string(), MOMENT)),
    ]
)
START = datetime(2024, 7, 10, 17, tzinfo=UTC)
INLINE_PARQUET = {"hoodie.logfile.data.block.format": "parquet"}
INLINE_AVRO = {"hoodie.logfile.data.block.format": "avro"}
KINDS = [
    (COW, 6, {}),
    (COW, 9, {}),
    (MOR, 6, INLINE_AVRO),
    (MOR, 8, INLINE_PARQUET),
    (MOR, 9, INLINE_AVRO),
    (MOR, 10, {}),
]
kinds = pytest.mark.parametrize(("table_type", "version", "options"), KINDS)


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes, milliseconds=int(minutes) % 1000)


def row(key: str, minutes: float, city: str = "lima") -> dict[str, Any]:
    moment = at(minutes)
    return {
        "id": key,
        "city": city,
        "ts": moment,
        "trip": {"start": moment, "fare": int(minutes)},
        "stops": [moment, None],
        "seen": [("a", moment)],
    }


def table_of(path: Path, table_type: str, version: int, **how: Any) -> Table:
    settings = {"record_key": "id", "partition_by": "city", "ordering": "ts", **how}
    return drawstring.create(path / "t", SCHEMA, name="t", table_type=table_type, version=version, **settings)


def upsert(table: Table, rows: list[dict[str, Any]], options: dict[str, str]) -> None:
    table.upsert(pa.Table.from_pylist(rows, SCHEMA), options={**WITHOUT_SERVICES, **options})


def shown(table: Table, where: str | None = None, **how: Any) -> dict[str, Any]:
    rows = table.scan(SCHEMA.names, where=where, **how).to_arrow().to_pylist()
    assert len({each["id"] for each in rows}) == len(rows)
    return {each["id"]: each for each in rows}


@kinds
def test_files_of_all_kinds_are_read_and_rewritten_as_milliseconds(
    tmp_path: Path, table_type: str, version: int, options: dict[str, str]
) -> None:
    table = table_of(tmp_path, table_type, version)
    upsert(table, [row("a", 1), row("b", 2), row("c", 3)], options)
    upsert(table, [row("b", 20)], options)
    assert mislabel(tmp_path / "t") == 2
    table = drawstring.open(tmp_path / "t")
    expected = {"a": row("a", 1), "b": row("b", 20), "c": row("c", 3)}
    assert shown(table) == expected
    assert shown(table, "ts >= timestamp '2024-07-10 17:02:00+00:00'").keys() == {"b", "c"}
    assert shown(table, "trip.start < timestamp '2024-07-10 17:02:00+00:00'").keys() == {"a"}
    assert shown(table, "ts < timestamp '1980-01-01 00:00:00+00:00'") == {}

    upsert(table, [row("c", 2), row("a", 30), row("d", 4)], options)  # c comes late
    expected |= {"a": row("a", 30), "d": row("d", 4)}
    assert shown(table) == expected
    if table_type == MOR:
        table.services.compact(options={**WITHOUT_SERVICES, "hoodie.compact.inline.max.delta.commits": "1"})
        assert shown(table) == expected
    table.services.cluster(options=WITHOUT_SERVICES)
    assert shown(table) == expected
    for each in table.inspect.files():
        assert each.base is not None
        stored = pq.read_schema(tmp_path / "t" / each.base.status.path)
        assert stored.field("ts").type == MOMENT
        assert stored.field("trip").type.field("start").type == MOMENT


@pytest.mark.parametrize(("table_type", "version", "options"), [KINDS[1], KINDS[4], KINDS[5]])
def test_rows_in_microseconds_do_not_widen_columns_of_such_files(
    tmp_path: Path, table_type: str, version: int, options: dict[str, str]
) -> None:
    table = table_of(tmp_path, table_type, version, ordering=None)
    upsert(table, [row("a", 1), row("b", 2)], options)
    mislabel(tmp_path / "t")
    wide = pa.schema([(each.name, in_micros(each.type)) for each in SCHEMA])
    table.upsert(pa.Table.from_pylist([row("a", 3)], wide), options={**WITHOUT_SERVICES, **options})
    assert shown(table) == {"a": row("a", 3), "b": row("b", 2)}
    assert table.schema.field("ts").type == MOMENT
    fine = {**row("a", 4), "ts": at(4) + timedelta(microseconds=7)}
    rows = pa.Table.from_pylist([fine], wide)
    if table_type == MOR:
        with pytest.raises(InvalidError, match=r"Column 'ts' does not fit its type timestamp\[ms, tz=UTC\]"):
            table.upsert(rows, options={**WITHOUT_SERVICES, **options})
        table.services.compact(options=WITHOUT_SERVICES)
    table.upsert(rows, options={**WITHOUT_SERVICES, **options})
    assert shown(table) == {"a": fine, "b": row("b", 2)}


def test_each_file_of_a_commit_says_its_own_units(tmp_path: Path) -> None:
    """Hudi copies row groups, so one file of a commit may be mislabelled, and another not."""
    table = table_of(tmp_path, COW, 9, ordering=None)
    upsert(table, [row("a", 1, "lima"), row("b", 2, "rome")], {})
    assert mislabel(tmp_path / "t" / "rome") == 1
    table = drawstring.open(tmp_path / "t")
    wide = pa.schema([(each.name, in_micros(each.type)) for each in SCHEMA])
    table.upsert(pa.Table.from_pylist([row("c", 3)], wide), options=WITHOUT_SERVICES)
    assert shown(table) == {"a": row("a", 1), "b": row("b", 2, "rome"), "c": row("c", 3)}
    assert table.schema.field("ts").type == MOMENT


def in_micros(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([(each.name, in_micros(each.type)) for each in kind])
    if pa.types.is_list(kind):
        return pa.list_(in_micros(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, in_micros(kind.item_type))
    return pa.timestamp("us", "UTC") if kind == MOMENT else kind


STATISTICS = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.parquet.small.file.limit": "0",
}


def random_condition(chance: random.Random) -> tuple[str, Any]:
    """Return a condition in SQL, and the function that says the same of a row."""
    minutes = chance.choice([0.0, 5.0, 17.0, 30.0, 44.0, 61.0])
    moment = at(minutes) if chance.random() < 0.8 else datetime(1980, 1, 1, tzinfo=UTC)
    text = f"timestamp '{moment.isoformat(sep=' ', timespec='milliseconds')}'"
    column, value = chance.choice(
        [("ts", lambda row: row["ts"]), ("trip.start", lambda row: row["trip"]["start"])]
    )
    operations = {"<": "__lt__", ">=": "__ge__", "=": "__eq__", ">": "__gt__"}
    name = chance.choice(list(operations))
    return f"{column} {name} {text}", lambda row: getattr(value(row), operations[name])(moment)


@pytest.mark.parametrize(("table_type", "version", "options"), [KINDS[1], KINDS[3], KINDS[5]])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 8))])
def test_random_histories_and_conditions_find_the_rows_of_a_model(
    tmp_path: Path, table_type: str, version: int, options: dict[str, str], seed: int
) -> None:
    chance = random.Random(seed)
    table = table_of(tmp_path, table_type, version)
    options, model = {**options, **STATISTICS}, dict[str, dict[str, Any]]()
    for _ in range(5):
        keys = chance.sample(range(12), chance.randrange(1, 9))
        rows = [row(f"k{key}", chance.randrange(60), "lima" if key % 2 else "oslo") for key in keys]
        upsert(table, rows, options)
        for each in rows:
            known = model.get(each["id"])
            model[each["id"]] = each if known is None or each["ts"] >= known["ts"] else known
        match chance.choice(["mislabel", "mislabel", "cluster", "compact", "delete"]):
            case "mislabel":
                mislabel(tmp_path / "t")
                table = drawstring.open(tmp_path / "t")
            case "cluster":
                table.services.cluster(options={**WITHOUT_SERVICES, **STATISTICS})
            case "compact" if table_type == MOR:
                table.services.compact(options=WITHOUT_SERVICES)
            case "delete":
                sql, says = random_condition(chance)
                table.delete(where=sql, options={**WITHOUT_SERVICES, **options})
                model = {key: each for key, each in model.items() if not says(each)}
        assert shown(table) == model
        for _ in range(5):
            sql, says = random_condition(chance)
            expected = {key: each for key, each in model.items() if says(each)}
            for skipping in ("true", "false"):
                opened = drawstring.open(tmp_path / "t", options={"hoodie.enable.data.skipping": skipping})
                assert shown(opened, sql) == expected, (sql, skipping)
