"""Reads as scripts spell them: partition folders and patterns as paths, a schema, options of locks."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import drawstring.spark
from drawstring.base.errors import InvalidError
from tests.support.mislabelled import mislabel
from tests.support.spark_tables import COW, MOR, load, rides, save

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("options", [COW, MOR], ids=["cow", "mor"])
def test_a_path_of_partitions_reads_these(
    session: SparkSession, tmp_path: Path, options: dict[str, str]
) -> None:
    table = tmp_path / "rides"
    save(rides(session, 1, 2, 3), table, "upsert", **options)
    save(rides(session, 3, 4, ts=2), table, "upsert", **options)
    assert load(session, table / "berlin") == [(1, 1), (3, 2)]
    assert load(session, table / "a*") == [(2, 1), (4, 2)]
    assert load(session, table / "*/*") == [(1, 1), (2, 1), (3, 2), (4, 2)]
    begin = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": "earliest",
    }
    assert load(session, table / "berlin", **begin) == [(1, 1), (3, 2)]
    with pytest.raises(InvalidError, match="No partition of the table is at rome"):
        load(session, table / "rome")


def test_views_and_streams_keep_to_the_path(session: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "rides"
    save(rides(session, 1, 2, 3), table, "upsert")
    session.sql(f"create or replace temporary view berlin using hudi options (path '{table}/berlin')")
    assert session.sql("select id from berlin order by id").collect() == [(1,), (3,)]
    query = session.readStream.format("hudi").load(f"{table}/berlin").select("id").writeStream
    stream = query.format("memory").queryName("by_folder").trigger(availableNow=True).start()
    stream.awaitTermination()
    assert session.sql("select id from by_folder order by id").collect() == [(1,), (3,)]


def test_a_table_that_was_opened_by_a_folder_can_be_read_only(session: SparkSession, tmp_path: Path) -> None:
    save(rides(session, 1, 2, 3), tmp_path / "rides", "upsert")
    with pytest.raises(InvalidError, match="not a Hudi table"):
        drawstring.spark.table(session, f"{tmp_path}/rides/berlin")


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ("city string, extra int, ID string", [("amsterdam", None, "2"), ("berlin", None, "1")]),
        ("ts int", [(1,), (1,)]),
    ],
)
def test_a_schema_selects_columns_and_types(
    session: SparkSession, tmp_path: Path, schema: str, expected: list[tuple[Any, ...]]
) -> None:
    save(rides(session, 1, 2), tmp_path / "rides", "upsert")
    df = session.read.format("hudi").schema(schema).load(str(tmp_path / "rides"))
    assert df.schema.simpleString() == session.createDataFrame([], schema).schema.simpleString()
    assert sorted(tuple(row) for row in df.collect()) == expected


def test_options_of_locks_are_passed_over_by_reads(session: SparkSession, tmp_path: Path) -> None:
    save(rides(session, 1), tmp_path / "rides", "upsert")
    options = {
        "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
        "hoodie.write.lock.provider": "com.example.OwnLock",
        "hoodie.write.lock.example.url": "zk:2181",
        "hoodie.write.lock.zookeeper.base_path": "/locks",
        "hoodie.clean.failed.writes.policy": "LAZY",
    }
    assert load(session, tmp_path / "rides", **options) == [(1, 1)]


def test_milliseconds_that_files_call_microseconds_are_milliseconds(
    session: SparkSession, tmp_path: Path
) -> None:
    path, moments = tmp_path / "t", pa.timestamp("ms", "UTC")
    schema = pa.schema([("id", pa.int64()), ("at", moments), ("trip", pa.struct([("start", moments)]))])
    when = datetime(2024, 7, 10, 17, 7, 4, 939000, tzinfo=UTC)
    rows = [{"id": n, "at": when, "trip": {"start": when}} for n in (1, 2)]
    drawstring.create(path, schema, record_key="id").upsert(pa.Table.from_pylist(rows, schema))
    assert mislabel(path) == 1
    drawstring.spark.register(session)
    df = session.read.format("hudi").load(str(path))
    shown = "date_format(at, 'yyyy-MM-dd') day", "date_format(trip.start, 'SSS') millis"
    assert df.selectExpr("id", *shown).orderBy("id").collect() == [(n, "2024-07-10", "939") for n in (1, 2)]
    assert df.where("at > timestamp '2020-01-01'").count() == 2
    assert df.where("at < timestamp '2020-01-01'").count() == 0
    assert df.select("id").where("id = 1").collect() == [(1,)]
    df.where("id = 1").write.format("hudi").mode("append").save(str(path))
    assert session.read.format("hudi").load(str(path)).where("year(at) = 2024").count() == 2
