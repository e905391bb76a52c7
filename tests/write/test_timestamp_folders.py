"""Partition folders of timestamps as SQL writes of Hudi name them; Hudi's own tables: tests/golden."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from drawstring.base.errors import UnsupportedError
from drawstring.config.table.config import TableConfig
from drawstring.keygen import path_parts
from drawstring.keygen.texts import sql_text
from drawstring.table import Table
from drawstring.write import facts as keys
from drawstring.write.facts import _spread
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
            return replace(config, timestamps_as_text=True)

        with monkeypatch.context() as patch:
            patch.setattr(keys, "with_known_folders", as_text)
            patch.setattr(path_parts, "sql_text", text)
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


def an_hour_later(values: pa.Array) -> pa.Array:
    return sql_text(pc.add(values, pa.scalar(dt.timedelta(hours=1))))


def only_summer_time(values: pa.Array) -> pa.Array:
    is_summer = pc.equal(pc.month(values), 7)
    return pc.if_else(is_summer, an_hour_later(values), sql_text(values))


def with_fraction(values: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(sql_text(values), "0", ".")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (an_hour_later, "another date and time in UTC"),
        (only_summer_time, "another date and time in UTC"),
        (with_fraction, "neither a number nor a date and time"),
    ],
    ids=["another zone", "a zone with summer time", "consistent logical timestamps"],
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
    found = _spread(paths)
    assert (found[0], found[-1], len(found)) == ("0000", "0999", len(set(found)))
    assert 100 < len(found) < 1_000
    assert _spread(paths[:3]) == paths[:3]
    assert _spread(paths[:1]) == paths[:1]


def test_timestamps_as_texts_are_accepted_where_no_key_is_a_timestamp() -> None:
    option = {"hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled": "true"}
    plain = create(SCHEMA, partition_by="v")
    plain.upsert(rows((1, "a", 1, WINTER)), options=option)
    assert folders(plain) == ["a"]
    for table in (
        create(SCHEMA, partition_by="part"),
        create(SCHEMA, record_key=["id", "part"], partition_by="v"),
    ):
        with pytest.raises(UnsupportedError, match="the timestamps of part"):
            table.upsert(rows((1, "a", 1, WINTER)), options=option)
        assert not table.timeline.writes()
        table.upsert(rows((1, "a", 1, WINTER)), options=dict.fromkeys(option, "false"))
        assert held(table) == [(1, "a")]
