"""Timestamps in record keys and folders as Hudi's writes show them; its own tables: tests/golden."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.base.lazy import evenly_spaced
from drawstring.config.table.key_settings import TEXTS_OF_TIMESTAMPS, PathTimestamps
from drawstring.config.table_config import TableConfig
from drawstring.keygen import key_generator, texts
from drawstring.keygen.texts import sql_text, timestamp_text
from drawstring.table import Table
from drawstring.write import facts as keys
from tests.support.rows import scanned
from tests.support.tables import BUCKETS, COW, MOR, create

SCHEMA = pa.schema(
    [("id", pa.int32()), ("v", pa.string()), ("ts", pa.int64()), ("part", pa.timestamp("us", "UTC"))]
)
WINTER = dt.datetime(2024, 1, 5, 18, 0, 0, 120_000, dt.UTC)
SUMMER = dt.datetime(2024, 7, 5, 6, 30, 15, tzinfo=dt.UTC)
FOLDERS = ["part=2024-01-05 18%3A00%3A00", "part=2024-07-05 06%3A30%3A15", "part=__HIVE_DEFAULT_PARTITION__"]

MakesTable = Callable[..., Table]


def rows(*values: tuple[Any, ...]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in values], SCHEMA)


def held(table: Table) -> list[tuple[int, str]]:
    return scanned(table, ["id", "v"])


def folders(table: Table) -> list[str]:
    found = table.scan(columns=["_hoodie_partition_path"]).to_arrow().column(0)
    return sorted(pc.unique(found).to_pylist())


@pytest.fixture
def sql_table(monkeypatch: pytest.MonkeyPatch) -> MakesTable:
    """Make tables with three rows whose folders are named as SQL writes name them."""

    def make(text: Callable[[pa.Array], pa.Array] = sql_text, **how: Any) -> Table:
        properties = {"hoodie.datasource.write.hive_style_partitioning": "true", **how.pop("properties", {})}
        table = create(SCHEMA, **{"partition_by": "part", **how}, properties=properties)

        def as_text(facts: object, config: TableConfig, schema: pa.Schema) -> TableConfig:
            return replace(config, path_timestamps=PathTimestamps.SECONDS)

        with monkeypatch.context() as patch:
            patch.setattr(keys, "with_known_folders", as_text)
            patch.setattr(key_generator, "sql_text", text)
            table.upsert(rows((1, "a", 1, WINTER), (2, "a", 1, SUMMER), (3, "a", 1, None)))
        return table

    return make


@pytest.mark.parametrize("table_type", [COW, MOR])
@pytest.mark.parametrize("properties", [{}, BUCKETS], ids=["simple", "bucket"])
def test_known_keys_are_found_in_their_folders(
    sql_table: MakesTable, table_type: str, properties: dict[str, str]
) -> None:
    table = sql_table(table_type=table_type, properties=properties)
    assert folders(table) == FOLDERS
    later = WINTER.replace(microsecond=999_999)
    table.upsert(rows((1, "b", 2, later), (3, "b", 2, None), (4, "b", 2, SUMMER)))
    assert held(table) == [(1, "b"), (2, "a"), (3, "b"), (4, "b")]
    assert folders(table) == FOLDERS
    table.delete(rows((2, "", 3, SUMMER), (3, "", 3, None)).select(["id", "part"]))
    assert held(table) == [(1, "b"), (4, "b")]
    table.insert_overwrite(rows((5, "c", 1, WINTER)))
    assert held(table) == [(4, "b"), (5, "c")]


def test_every_partition_column_keeps_its_own_form(sql_table: MakesTable) -> None:
    table = sql_table(partition_by=["v", "part"])
    table.upsert(rows((1, "a", 2, WINTER), (4, "b c", 2, SUMMER)))
    assert held(table) == [(1, "a"), (2, "a"), (3, "a"), (4, "b c")]
    assert folders(table) == sorted([*(f"v=a/{folder}" for folder in FOLDERS), f"v=b c/{FOLDERS[1]}"])


def test_rows_that_a_global_index_left_where_they_were_are_no_obstacle(sql_table: MakesTable) -> None:
    table = sql_table()
    stays = {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "false"}
    table.upsert(rows((4, "a", 1, WINTER)))
    table.upsert(rows((1, "b", 2, SUMMER)), options=stays)
    table.upsert(rows((4, "b", 2, WINTER)))
    assert held(table) == [(1, "b"), (2, "a"), (3, "a"), (4, "b")]


def an_hour_later(values: pa.Array, text: Callable[[pa.Array], pa.Array] = sql_text) -> pa.Array:
    return text(pc.add(values, pa.scalar(dt.timedelta(hours=1))))


def only_summer_time(values: pa.Array) -> pa.Array:
    is_summer = pc.equal(pc.month(values), 7)
    return pc.if_else(is_summer, an_hour_later(values), sql_text(values))


def with_wrong_fraction(values: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(sql_text(values), "7", ".")


def of_iso(values: pa.Array) -> pa.Array:
    return pc.replace_substring(sql_text(values), " ", "T")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (an_hour_later, "another date and time in UTC"),
        (only_summer_time, "another date and time in UTC"),
        (with_wrong_fraction, "another date and time in UTC"),
        (of_iso, "neither a number nor a date and time"),
    ],
    ids=["another zone", "a zone with summer time", "another fraction", "another form"],
)
@pytest.mark.parametrize("table_type", [COW, MOR])
def test_folders_of_another_form_are_refused_and_nothing_is_written(
    sql_table: MakesTable, table_type: str, text: Callable[[pa.Array], pa.Array], reason: str
) -> None:
    table = sql_table(text, table_type=table_type)
    before = table.timeline.latest_write()
    for write in (table.upsert, table.insert, table.bulk_insert, table.delete):
        with pytest.raises(UnsupportedError, match=reason):
            write(rows((1, "b", 2, WINTER)))
    assert table.timeline.latest_write() == before
    assert held(table) == [(1, "a"), (2, "a"), (3, "a")]


def test_folders_of_two_forms_are_refused(sql_table: MakesTable, monkeypatch: pytest.MonkeyPatch) -> None:
    table = sql_table()
    with monkeypatch.context() as patch:
        patch.setattr(keys, "with_known_folders", lambda facts, config, schema: config)
        table.upsert(rows((1, "b", 2, WINTER)))
    assert len(held(table)) == 4, "as DataFrame writes of Hudi leave it"
    with pytest.raises(UnsupportedError, match="a number in 'part=1704477600120000' and a date and time in"):
        table.upsert(rows((1, "c", 3, WINTER)))


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (0, "1970-01-01 00:00:00"),
        (1_999_999, "1970-01-01 00:00:01"),
        (-999, "1970-01-01 00:00:00"),
        (-1_000, "1969-12-31 23:59:59"),
        (-500_000, "1969-12-31 23:59:59"),
        (-1_000_000, "1969-12-31 23:59:59"),
        (253_402_300_799_000_000, "9999-12-31 23:59:59"),
        (None, None),
    ],
)
def test_the_text_is_in_whole_seconds(micros: int | None, text: str | None) -> None:
    assert sql_text(pa.array([micros], pa.int64()).cast(pa.timestamp("us", "UTC"))).to_pylist() == [text]


def test_many_partitions_are_looked_at_from_the_first_to_the_last() -> None:
    paths = [f"{number:04d}" for number in range(1_000)]
    found = evenly_spaced(paths, 256)
    assert (found[0], found[-1], len(found)) == ("0000", "0999", len(set(found)))
    assert 100 < len(found) < 1_000
    assert evenly_spaced(paths[:3], 256) == paths[:3]
    assert evenly_spaced(paths[:1], 256) == paths[:1]


ENCODED = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
TEXTS = {TEXTS_OF_TIMESTAMPS: "true"}
BOTH = {"record_key": ["id", "part"], "partition_by": "part"}


def keys_of(table: Table) -> list[tuple[str, str]]:
    return scanned(table, ["_hoodie_record_key", "_hoodie_partition_path"])


@pytest.mark.parametrize("is_stored", [True, False])
@pytest.mark.parametrize("table_type", [COW, MOR])
@pytest.mark.parametrize("index", [{}, BUCKETS], ids=["simple", "bucket"])
def test_keys_and_folders_are_texts_if_the_first_write_says_so(
    table_type: str, index: dict[str, str], is_stored: bool
) -> None:
    stored = TEXTS if is_stored else {}
    table = create(SCHEMA, **BOTH, table_type=table_type, properties=ENCODED | index | stored)
    table.upsert(rows((1, "a", 1, WINTER), (2, "a", 1, SUMMER), (3, "a", 1, None)), options=TEXTS)
    expected = [
        ("id:1,part:2024-01-05 18:00:00.12", "2024-01-05 18%3A00%3A00.12"),
        ("id:2,part:2024-07-05 06:30:15.0", "2024-07-05 06%3A30%3A15.0"),
        ("id:3,part:__null__", "__HIVE_DEFAULT_PARTITION__"),
    ]
    assert keys_of(table) == expected
    table.upsert(rows((1, "b", 2, WINTER), (3, "b", 2, None)))
    assert held(table) == [(1, "b"), (2, "a"), (3, "b")]
    table.delete(rows((2, "", 3, SUMMER)).select(["id", "part"]), options=TEXTS)
    assert keys_of(table) == [expected[0], expected[2]]
    with pytest.raises(InvalidError, match=r"as dates and times|but the table has true"):
        table.upsert(rows((1, "c", 3, WINTER)), options=dict.fromkeys(TEXTS, "false"))
    assert held(table) == [(1, "b"), (3, "b")]


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_texts_without_encoded_paths_have_folders_in_whole_seconds(table_type: str) -> None:
    hive = {"hoodie.datasource.write.hive_style_partitioning": "true"}
    table = create(SCHEMA, partition_by="part", table_type=table_type, properties=hive)
    table.upsert(rows((1, "a", 1, WINTER), (2, "a", 1, SUMMER), (3, "a", 1, None)), options=TEXTS)
    assert folders(table) == FOLDERS
    table.upsert(rows((1, "b", 2, WINTER)), options=TEXTS)
    assert held(table) == [(1, "b"), (2, "a"), (3, "a")]


@pytest.mark.parametrize("table_type", [COW, MOR])
@pytest.mark.parametrize(
    "keys_by", [{"partition_by": "part"}, {"record_key": ["id", "part"], "partition_by": ()}]
)
def test_texts_beside_numbers_are_refused(table_type: str, keys_by: dict[str, Any]) -> None:
    table = create(SCHEMA, **keys_by, table_type=table_type, properties=ENCODED)
    table.upsert(rows((1, "a", 1, WINTER)))
    with pytest.raises(InvalidError, match="of the table show timestamps as numbers"):
        table.upsert(rows((1, "b", 2, WINTER)), options=TEXTS)
    table.upsert(rows((1, "c", 2, WINTER)), options=dict.fromkeys(TEXTS, "false"))
    assert held(table) == [(1, "c")]


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_record_keys_of_another_zone_are_refused(table_type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = create(SCHEMA, record_key=["id", "part"], partition_by=(), table_type=table_type)
    with monkeypatch.context() as patch:
        patch.setattr(texts, "timestamp_text", lambda values: an_hour_later(values, timestamp_text))
        table.upsert(rows((1, "a", 1, WINTER)), options=TEXTS)
    assert keys_of(table) == [("id:1,part:2024-01-05 19:00:00.12", "")]
    with pytest.raises(UnsupportedError, match="the timestamps of record keys are another date and time"):
        table.upsert(rows((1, "b", 2, WINTER)))
    assert held(table) == [(1, "a")]


def test_readers_that_make_keys_anew_refuse_texts() -> None:
    lean = {"hoodie.populate.meta.fields": "false"}
    table = create(SCHEMA, record_key=["id", "part"], partition_by=(), table_type=COW, properties=lean)
    with pytest.raises(UnsupportedError, match="without meta columns"):
        table.upsert(rows((1, "a", 1, WINTER)), options=TEXTS)
    assert not table.timeline.writes()
    with pytest.raises(UnsupportedError, match="without meta columns"):
        create(SCHEMA, record_key=["id", "part"], partition_by=(), table_type=COW, properties=lean | TEXTS)


def test_texts_leave_other_types_and_other_tables_as_they_are() -> None:
    plain = create(SCHEMA, partition_by="v")
    plain.upsert(rows((1, "a", 1, WINTER)), options=TEXTS)
    assert keys_of(plain) == [("1", "a")]
    local = pa.schema([("id", pa.int32()), ("at", pa.timestamp("us")), ("day", pa.date32())])
    table = create(local, record_key=["id", "at"], partition_by="day", ordering=())
    row = {"id": 1, "at": dt.datetime(2024, 1, 15, 10, 11, 12), "day": dt.date(2024, 2, 3)}
    table.upsert(pa.Table.from_pylist([row], local), options=TEXTS)
    assert keys_of(table) == [("id:1,at:1705313472000000", "2024-02-03")]


def test_a_formatted_timestamp_is_a_moment_where_texts_are_asked_for() -> None:
    dates = {
        "hoodie.datasource.write.keygenerator.type": "CUSTOM",
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyyMMddHH",
    }
    by_moment = create(SCHEMA, partition_by=["part:TIMESTAMP"], properties=dates | TEXTS)
    by_number = create(SCHEMA, partition_by=["part:TIMESTAMP"], properties=dates)
    for table in (by_moment, by_number):
        table.upsert(rows((1, "a", 1, WINTER), (2, "a", 1, None)))
    assert folders(by_moment) == ["1970010100", "2024010518"]
    assert folders(by_number) == ["1970010100", "55982093000"]


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (0, "1970-01-01 00:00:00.0"),
        (1_999_999, "1970-01-01 00:00:01.999"),
        (-999, "1970-01-01 00:00:00.0"),
        (-1_000, "1969-12-31 23:59:59.999"),
        (1_705_281_072_123_456, "2024-01-15 01:11:12.123"),
        (1_705_281_072_500_000, "2024-01-15 01:11:12.5"),
        (None, None),
    ],
)
def test_the_text_with_a_fraction_is_in_milliseconds(micros: int | None, text: str | None) -> None:
    values = pa.array([micros], pa.int64()).cast(pa.timestamp("us", "UTC"))
    assert timestamp_text(values).to_pylist() == [text]
