"""Streams into tables: each micro-batch is in exactly one commit, whatever happens to the driver."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import drawstring
from drawstring.base.errors import DrawstringError, UnavailableError
from drawstring.services import streams
from tests.support.tables import store_of

pytestmark = pytest.mark.spark

NAME = "hoodie.datasource.write.streaming.checkpoint.identifier"
POSITIONS = "_hudi_streaming_sink_checkpoint"
OPERATION = "hoodie.datasource.write.operation"
KEYS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.table.ordering.fields": "ts",
}
INSERT = {**KEYS, OPERATION: "insert"}


class Folder:
    """A source of Parquet files: one micro-batch each."""

    def __init__(self, session: SparkSession, path: Path) -> None:
        self._session, self._path, self._count = session, path, 0
        path.mkdir()

    def put(self, *ids: int, ts: int = 1) -> None:
        self._count += 1
        rows = pa.table({"id": list(ids), "ts": [ts] * len(ids)}, SCHEMA)
        pa.parquet.write_table(rows, self._path / f"{self._count:04}.parquet")

    def stream(self) -> DataFrame:
        reader = self._session.readStream.schema("id long, ts long").option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self._path))


SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64())])


@pytest.fixture
def folder(session: SparkSession, tmp_path: Path) -> Folder:
    return Folder(session, tmp_path / "in")


def run(df: DataFrame, checkpoint: Path, path: Path, options: Mapping[str, Any], **more: Any) -> None:
    """Run a stream over what there is."""
    writer = df.writeStream.format("hudi").options(**options).option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start(str(path), **more).awaitTermination()


def ids(path: Path) -> list[int]:
    return sorted(drawstring.open(path).scan().to_arrow()["id"].to_pylist())


def positions(path: Path) -> list[dict[str, str]]:
    table = drawstring.open(path)
    store = store_of(table)
    extras = [store.commit_metadata(each).extra for each in store.load().writes()]
    return [json.loads(extra[POSITIONS]) for extra in extras if POSITIONS in extra]


def test_batches_are_commits_with_their_ids(folder: Folder, tmp_path: Path) -> None:
    folder.put(1, 2)
    folder.put(2, 3, ts=2)
    run(folder.stream(), tmp_path / "c", tmp_path / "t", KEYS)
    assert ids(tmp_path / "t") == [1, 2, 3]
    assert positions(tmp_path / "t") == [{"default_single_writer": "0"}, {"default_single_writer": "1"}]
    folder.put(4)
    run(folder.stream(), tmp_path / "c", tmp_path / "t", {**KEYS, NAME: "other"}, outputMode="update")
    assert positions(tmp_path / "t")[-1] == {"other": "2"}
    assert drawstring.open(tmp_path / "t").scan(where="id = 2").to_arrow()["ts"].to_pylist() == [2]


def test_a_batch_that_spark_repeats_after_the_commit_is_left_out(folder: Folder, tmp_path: Path) -> None:
    folder.put(1)
    folder.put(2)
    run(folder.stream(), tmp_path / "c", tmp_path / "t", INSERT)
    (
        tmp_path / "c" / "commits" / "1"
    ).unlink()  # as if the driver had died before Spark noted that it is done
    (tmp_path / "c" / "commits" / ".1.crc").unlink()
    folder.put(3)
    run(folder.stream(), tmp_path / "c", tmp_path / "t", INSERT)
    assert ids(tmp_path / "t") == [1, 2, 3]
    assert positions(tmp_path / "t") == [{"default_single_writer": each} for each in "012"]


def test_a_batch_without_rows_writes_nothing(folder: Folder, tmp_path: Path) -> None:
    folder.put(1)
    run(folder.stream(), tmp_path / "c", tmp_path / "t", KEYS)
    folder.put(2)
    run(folder.stream().where("id > 5"), tmp_path / "c", tmp_path / "t", KEYS)
    assert len(drawstring.open(tmp_path / "t").inspect.instants()) == 1


def test_two_streams_into_one_table_count_their_own_batches(folder: Folder, tmp_path: Path) -> None:
    for number in range(3):
        folder.put(number)
        run(folder.stream(), tmp_path / "a", tmp_path / "t", {**INSERT, NAME: "a"})
    run(
        folder.stream().selectExpr("id + 10 as id", "ts"),
        tmp_path / "b",
        tmp_path / "t",
        {**INSERT, NAME: "b"},
    )
    # A new checkpoint folder under the name of another stream is another query: its batches are new.
    run(
        folder.stream().selectExpr("id + 20 as id", "ts"),
        tmp_path / "d",
        tmp_path / "t",
        {**INSERT, NAME: "a"},
    )
    assert ids(tmp_path / "t") == [0, 1, 2, 10, 11, 12, 20, 21, 22]


def test_a_batch_that_fails_is_tried_again_and_one_that_keeps_failing_stops_the_stream(
    folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, failures = streams.write, [2]

    def failing(*arguments: Any, **more: Any) -> Any:
        if failures[0]:
            failures[0] -= 1
            raise UnavailableError("The storage does not answer.")
        return write(*arguments, **more)

    monkeypatch.setattr(streams, "write", failing)
    quick = {**INSERT, "hoodie.datasource.write.streaming.retry.interval.ms": 1}
    folder.put(1)
    run(folder.stream(), tmp_path / "c", tmp_path / "t", quick)
    assert ids(tmp_path / "t") == [1]
    folder.put(2)
    failures[0] = 3
    with pytest.raises(StreamingQueryException, match="does not answer"):
        run(folder.stream(), tmp_path / "c", tmp_path / "t", quick)
    failures[0] = 3
    ignoring = {**quick, "hoodie.datasource.write.streaming.ignore.failed.batch": "true"}
    folder.put(3)
    run(folder.stream(), tmp_path / "c", tmp_path / "t", ignoring)
    assert ids(tmp_path / "t") == [1, 3]


def test_complete_mode_replaces_the_rows_in_one_commit(folder: Folder, tmp_path: Path) -> None:
    for number in range(2):
        folder.put(number, number + 1)
    counts = folder.stream().groupBy("id").count().withColumnRenamed("count", "ts")
    run(counts, tmp_path / "c", tmp_path / "t", KEYS, outputMode="complete")
    rows = drawstring.open(tmp_path / "t").scan(columns=["id", "ts"]).to_arrow().to_pylist()
    assert sorted((row["id"], row["ts"]) for row in rows) == [(0, 1), (1, 2), (2, 1)]


def test_a_stream_to_a_table_of_the_catalog(folder: Folder, session: SparkSession, tmp_path: Path) -> None:
    folder.put(1)
    folder.put(2)
    options = {**KEYS, "checkpointLocation": str(tmp_path / "c")}
    writer = folder.stream().writeStream.format("hudi").options(**options).trigger(availableNow=True)
    writer.toTable("sunk").awaitTermination()
    try:
        assert sorted(row.id for row in session.table("sunk").collect()) == [1, 2]
        folder.put(3)
        again = folder.stream().writeStream.option("checkpointLocation", str(tmp_path / "c"))
        again.trigger(availableNow=True).toTable("sunk").awaitTermination()
        assert sorted(row.id for row in session.table("sunk").collect()) == [1, 2, 3]
    finally:
        session.sql("DROP TABLE sunk PURGE")


def test_a_stream_from_hudi_to_hudi(session: SparkSession, tmp_path: Path) -> None:
    source = drawstring.create(tmp_path / "s", SCHEMA, record_key="id", ordering="ts")
    rows = session.readStream.format("hudi").load(source.uri).select("id", "ts")
    writer = (
        rows.writeStream.format("hudi").options(**INSERT).option("checkpointLocation", str(tmp_path / "c"))
    )
    for number in (1, 2):
        source.upsert(pa.table({"id": [number, 9], "ts": [number] * 2}, SCHEMA))
        query = writer.start(str(tmp_path / "t"))
        query.processAllAvailable()
        query.stop()
    assert ids(tmp_path / "t") == [1, 2, 9, 9]


def test_compaction_of_a_stream_runs_in_the_background(folder: Folder, tmp_path: Path) -> None:
    merge_on_read = {
        **KEYS,
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.compact.inline.max.delta.commits": 2,
    }
    for number in range(3):
        folder.put(1, ts=number)
    run(folder.stream(), tmp_path / "c", tmp_path / "t", merge_on_read)
    table = drawstring.open(tmp_path / "t")
    assert table.services.wait()
    assert any(each.instant.action == "commit" for each in table.inspect.instants())
    assert drawstring.open(tmp_path / "t").scan().to_arrow()["ts"].to_pylist() == [2]


def test_what_no_stream_can_be_started_with(folder: Folder, tmp_path: Path) -> None:
    writer = folder.stream().writeStream.format("hudi").options(**KEYS)
    with pytest.raises(AnalysisException, match="checkpointLocation"):
        writer.start(str(tmp_path / "t"))
    with pytest.raises(AnalysisException, match="exactly one path"):
        writer.option("checkpointLocation", str(tmp_path / "c")).start()
    with pytest.raises(AnalysisException, match="cannot bootstrap"):
        writer.option(OPERATION, "bootstrap").start(str(tmp_path / "t"))
    with pytest.raises(DrawstringError, match="Did you mean"):
        folder.stream().writeStream.format("hudi").option("checkpointLocation", str(tmp_path / "c")).option(
            "hoodie.datasource.write.streaming.retry.cont", "1"
        ).start(str(tmp_path / "t"))


def test_other_sinks_are_sparks_own(folder: Folder, tmp_path: Path) -> None:
    folder.put(1)
    writer = folder.stream().writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "c"))
    writer.partitionBy("ts").trigger(availableNow=True).start(str(tmp_path / "out")).awaitTermination()
    assert list((tmp_path / "out" / "ts=1").glob("*.parquet"))
