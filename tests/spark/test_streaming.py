"""Streams of what commits write: each commit in exactly one micro-batch, whatever happens in between."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import drawstring
import drawstring.spark
from drawstring.config.options.write_options import ReadOptions
from drawstring.query.stream import Position
from drawstring.spark.streaming.source import HAS_LIMITS, CommitStream, RememberingReader
from drawstring.spark.workers.rows import spark_schema
from tests.support.timelines import archive

START = "hoodie.datasource.streaming.startOffset"
ONE_EACH = {"drawstring.streaming.max_commits": "1"}
HOLD = {"drawstring.streaming.hold": "stream-1", "drawstring.streaming.hold_hours": "48"}
CDC = {
    "hoodie.datasource.query.type": "incremental",
    "hoodie.datasource.query.incremental.format": "cdc",
}
Batches = list[list[tuple[Any, ...]]]
SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64())])


class Interrupted(Exception):
    """Stands for a crash."""


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> drawstring.Table:
    drawstring.spark.register(spark)
    return drawstring.create(
        tmp_path / "t", SCHEMA, record_key="id", ordering="ts", table_type="MERGE_ON_READ"
    )


def write(table: drawstring.Table, *numbers: int, ts: int = 1) -> None:
    table.upsert(pa.table({"id": list(numbers), "ts": [ts] * len(numbers)}, SCHEMA))


def streamed(
    spark: SparkSession,
    table: drawstring.Table,
    checkpoint: Path,
    seen: Callable[[list[tuple[Any, ...]]], None],
    **options: str,
) -> None:
    """Run a stream until it has handed out what there is."""

    def take(df: DataFrame, number: int) -> None:
        seen(sorted(map(tuple, df.select("id", "ts").collect())))

    stream = spark.readStream.format("hudi").options(**options).load(table.uri)
    writer = stream.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint))
    if HAS_LIMITS:
        writer.trigger(availableNow=True).start().awaitTermination()  # a second one must not begin before
        return
    # There Spark ends such a query after one micro-batch of a Python source.
    query = writer.start()
    try:
        query.processAllAvailable()
    finally:
        query.stop()


@pytest.mark.spark
def test_a_stream_under_a_hold_keeps_what_it_has_not_seen(
    spark: SparkSession, table: drawstring.Table, tmp_path: Path
) -> None:
    batches: Batches = []
    few = {
        "hoodie.clean.commits.retained": "1",
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
    }
    write(table, 1)
    streamed(spark, table, tmp_path / "c", batches.append, **ONE_EACH, **HOLD)
    assert [each.name for each in table.holds.list()] == ["stream-1"]
    for number in range(2, 8):
        table.upsert(pa.table({"id": [number], "ts": [1]}, SCHEMA), options=few)
        table.services.compact(options=few)
        table.services.clean(options=few)
        table.services.archive(options=few)
    streamed(spark, table, tmp_path / "c", batches.append, **ONE_EACH, **HOLD)
    assert batches == [[(number, 1)] for number in range(1, 8)]


@pytest.mark.spark
def test_a_stream_goes_on_where_it_was_stopped_or_broke_off(
    spark: SparkSession, table: drawstring.Table, tmp_path: Path
) -> None:
    batches: Batches = []
    write(table, 1, 2)
    write(table, 2, 3, ts=2)
    streamed(spark, table, tmp_path / "c", batches.append, **ONE_EACH)
    limited, at_once = [[(1, 1), (2, 1)], [(2, 2), (3, 2)]], [[(1, 1), (2, 2), (3, 2)]]
    assert batches == (limited if HAS_LIMITS else at_once), "no limit there for the first one after a start"
    write(table, 4)
    write(table, 5)

    def breaks_off(rows: list[tuple[Any, ...]]) -> None:
        raise Interrupted

    with pytest.raises(StreamingQueryException):
        streamed(spark, table, tmp_path / "c", breaks_off, **ONE_EACH)
    table.services.compact()
    write(table, 6)
    batches.clear()
    streamed(spark, table, tmp_path / "c", batches.append, **ONE_EACH)
    assert [row for batch in batches for row in batch] == [(4, 1), (5, 1), (6, 1)]
    assert len(batches) == 3 or not HAS_LIMITS


@pytest.mark.spark
def test_a_stream_from_latest_and_one_of_changes(
    spark: SparkSession, table: drawstring.Table, tmp_path: Path
) -> None:
    batches: Batches = []
    write(table, 1, 2)
    streamed(spark, table, tmp_path / "c", batches.append, **{START: "latest"})
    write(table, 2, 3, ts=2)
    streamed(spark, table, tmp_path / "c", batches.append, **{START: "latest"})
    assert [rows for rows in batches if rows] == [[(2, 2), (3, 2)]]

    changes: list[tuple[Any, ...]] = []
    stream = spark.readStream.format("hudi").options(**CDC, **ONE_EACH).load(table.uri)
    query = (
        stream.writeStream.foreachBatch(lambda df, number: changes.extend(map(tuple, df.collect())))
        .option("checkpointLocation", str(tmp_path / "d"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    told = [
        (op, before and json.loads(before)["ts"], json.loads(after)["id"]) for op, _, before, after in changes
    ]
    assert sorted(told, key=str) == [("i", None, 1), ("i", None, 2), ("i", None, 3), ("u", 1, 2)]
    same = spark.read.format("hudi").options(**CDC, **{"drawstring.begin": "earliest"}).load(table.uri)
    assert sorted(map(tuple, same.collect()), key=str) == sorted(changes, key=str)


@pytest.mark.spark
def test_cleaned_commits_end_a_stream_with_an_error_or_go_on_with_the_table(
    spark: SparkSession, tmp_path: Path
) -> None:
    drawstring.spark.register(spark)
    table = drawstring.create(tmp_path / "t", SCHEMA, record_key="id", ordering="ts")
    batches: Batches = []
    write(table, 1, 2)
    streamed(spark, table, tmp_path / "c", batches.append)
    write(table, 1, 2, ts=2)
    write(table, 1, ts=3)
    archive(table, 2)
    with pytest.raises(StreamingQueryException, match="archived or their files cleaned away"):
        streamed(spark, table, tmp_path / "c", batches.append)
    batches.clear()
    policy = {"drawstring.streaming.on_cleaned": "snapshot"}
    streamed(spark, table, tmp_path / "c", batches.append, **policy)
    assert batches == [[(1, 3), (2, 2)]]


def test_a_stream_of_older_pyspark_goes_on_from_the_batch_before(tmp_path: Path) -> None:
    table = drawstring.create(tmp_path / "t", SCHEMA, record_key="id", ordering="ts")
    asked = ReadOptions.parse(ONE_EACH)
    reader = RememberingReader(CommitStream(table.uri, {}, asked), spark_schema(SCHEMA))
    for number in range(3):
        write(table, number)
    times = [str(instant.completed) for instant in table.timeline.writes()]
    start = reader.initialOffset()
    for time in times:
        end = reader.latestOffset()
        assert end == Position(time).fields()
        assert len(reader.partitions(start, end)) == 1
        start = end
    assert reader.latestOffset() == start
    restarted = RememberingReader(CommitStream(table.uri, {}, asked), spark_schema(SCHEMA))
    assert restarted.latestOffset() == Position(times[-1]).fields()


@pytest.mark.spark
def test_a_stream_passes_over_the_begin_of_incremental_queries_with_a_warning(
    spark: SparkSession, table: drawstring.Table, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(table, 1)
    write(table, 2)
    begin = {"hoodie.datasource.read.begin.instanttime": table.timeline.writes()[0].completed or ""}
    kinds: list[dict[str, str]] = [{}, {"hoodie.datasource.query.type": "incremental"}]
    for number, kind in enumerate(kinds):
        batches: Batches = []
        streamed(spark, table, tmp_path / f"c{number}", batches.append, **kind, **begin)
        assert sorted(row for rows in batches for row in rows) == [(1, 1), (2, 1)]
    assert "hoodie.datasource.streaming.startOffset" in caplog.text


@pytest.mark.spark
def test_a_stream_of_a_table_of_the_catalog_is_found_by_name(
    session: SparkSession, table: drawstring.Table, tmp_path: Path
) -> None:
    write(table, 1, 2)
    session.sql(f"CREATE TABLE streamed USING hudi LOCATION '{table.uri}'")
    session.range(3).write.format("parquet").saveAsTable("streamed_plain")
    try:
        for name, count in (("streamed", 2), ("streamed_plain", 3)):
            rows = session.readStream.option("drawstring.streaming.max_commits", "1").table(name)
            query = rows.writeStream.format("memory").queryName(f"of_{name}").start()
            query.processAllAvailable()
            query.stop()
            assert session.table(f"of_{name}").count() == count
    finally:
        session.sql("DROP TABLE streamed")
        session.sql("DROP TABLE streamed_plain")
