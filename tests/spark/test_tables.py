"""Scripts written for Hudi's bundle: every operation, save mode and query, on DataFrames and in SQL."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import drawstring
import drawstring.spark
from drawstring.base.errors import ConflictError, InvalidError, UnsupportedError
from drawstring.config.keys.read import SYNC
from drawstring.spark.storage_options import storage_options
from drawstring.spark.writing import save as replacing
from drawstring.storage.local import FileSystem
from drawstring.testing import context_of
from drawstring.txn.locks.table_lock import table_lock
from tests.support.spark_tables import BUCKETS, COW, KEYS, MOR, OPERATION, load, rides, save

pytestmark = pytest.mark.spark


def times(path: Path) -> list[str]:
    return [str(i.completed) for i in drawstring.open(path).timeline.writes()]


@pytest.mark.parametrize("options", [COW, MOR | BUCKETS], ids=["cow", "mor-bucket"])
def test_a_table_goes_through_all_operations(
    session: SparkSession, tmp_path: Path, options: dict[str, str]
) -> None:
    path = tmp_path / "rides"
    save(rides(session, 1, 2, 3), path, "bulk_insert", **options)
    save(rides(session, 3, 4, ts=2), path, "upsert", **options)
    save(rides(session, 4, ts=1), path, "upsert", **options)
    assert load(session, path) == [(1, 1), (2, 1), (3, 2), (4, 2)]
    save(rides(session, 1, ts=9), path, "delete", **options)
    save(rides(session, 6), path, "insert", **options)
    assert load(session, path) == [(2, 1), (3, 2), (4, 2), (6, 1)]
    save(rides(session, 8, ts=3), path, "insert_overwrite", **options)
    assert load(session, path) == [(3, 2), (8, 3)]
    save(rides(session, 9, ts=4), path, "insert_overwrite_table", **options)
    assert load(session, path) == [(9, 4)]
    save(rides(session, 10, ts=4), path, "insert", **options)
    save(rides(session, 8), path, "delete_partition", **options)
    assert load(session, path) == [(9, 4)]
    no_rows = session.createDataFrame([], "id long")
    named = {"hoodie.datasource.write.partitions.to.delete": "ber*"}
    no_rows.write.format("hudi").options(**{OPERATION: "delete_partition", **named}).mode("append").save(
        str(path)
    )
    assert load(session, path) == []


def test_queries_go_back_and_follow_changes(session: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "rides"
    for number in (1, 2, 3):
        save(rides(session, 1, number, ts=number), path, "upsert", **MOR)
    first, second, third = times(path)
    requested = [i.requested for i in drawstring.open(path).timeline.instants]
    assert load(session, path, **{"as.of.instant": requested[1]}) == [(1, 2), (2, 2)]
    incremental = {"hoodie.datasource.query.type": "incremental"}
    begin, end = "hoodie.datasource.read.begin.instanttime", "hoodie.datasource.read.end.instanttime"
    assert load(session, path, **incremental, **{begin: first, end: second}) == [(1, 2), (2, 2)]
    assert load(session, path, **incremental, **{begin: second}) == [(1, 3), (3, 3)]
    assert load(session, path, **incremental, **{begin: third}) == []
    read_optimized = load(session, path, **{"hoodie.datasource.query.type": "read_optimized"})
    assert set(read_optimized) < set(load(session, path)) | {(1, 1), (2, 2)}


def test_an_increment_of_a_partial_update_has_whole_rows(session: SparkSession, tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("note", pa.string())])
    table = drawstring.create(
        tmp_path / "t", schema, record_key="id", ordering="ts", table_type="MERGE_ON_READ"
    )
    start = table.upsert(pa.table({"id": [1, 2], "ts": [1, 1], "note": ["n1", "n2"]}, schema)).completed
    table.upsert(pa.table({"id": [1], "ts": [2]}), options={"drawstring.write.partial_update": "true"})
    found = drawstring.spark.read(session, table.uri, columns=schema.names, incremental=(start, None))
    assert [tuple(row) for row in found.collect()] == [(1, 2, "n1")]


def test_columns_and_conditions_are_options_too(session: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "rides"
    save(rides(session, 1, 2, 3, 4), path, "insert")
    options = {"drawstring.columns": "ts,id", "drawstring.where": "city = 'berlin' and id > 1"}
    df = session.read.format("drawstring").options(**options).load(str(path))
    assert [tuple(row) for row in df.collect()] == [(1, 3)]
    assert drawstring.spark.read(session, str(path), columns=["city"], where="id = 2").collect() == [
        ("amsterdam",)
    ]


def test_flushes_of_local_files_are_an_option_of_reads_and_writes(
    session: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "rides"
    with pytest.raises(InvalidError, match=r"drawstring.storage.sync is 'no'\. Give true or false"):
        save(rides(session, 1), path, "upsert", **{SYNC: "no"})
    save(rides(session, 1, 2), path, "upsert", **{SYNC: "false"})
    save(rides(session, 2, 3), path, "upsert", mode="overwrite", **{SYNC: "true"})
    assert load(session, path, **{SYNC: "false"}) == [(2, 1), (3, 1)]
    assert storage_options(session, str(path), {SYNC: "false", "other": "x"}) == {SYNC: "false"}


def test_the_folder_is_flushed_before_the_old_table_is_deleted(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, there = tmp_path / "rides", list[list[str]]()
    save(rides(session, 1), path, "upsert")
    flush = FileSystem.flush_folder

    def noted(files: FileSystem, folder: str) -> None:
        if folder == str(tmp_path):
            names = sorted(each.name for each in tmp_path.iterdir())
            there.append([name.rpartition("-")[2][-4:] if "-" in name else name for name in names])
        flush(files, folder)

    monkeypatch.setattr(FileSystem, "flush_folder", noted)
    save(rides(session, 2), path, "upsert", mode="overwrite")
    assert [len(names) for names in there] == [2, 2]
    assert [".old" in names for names in there] == [False, True]
    assert [each.name for each in tmp_path.iterdir()] == ["rides"]


def test_save_modes_mean_what_they_mean_for_hudi(session: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "rides"
    save(rides(session, 1), path, "upsert", mode="errorifexists")
    with pytest.raises(InvalidError, match="The table already exists"):
        save(rides(session, 2), path, "upsert", mode="error")
    save(rides(session, 2), path, "upsert", mode="ignore")
    assert load(session, path) == [(1, 1)]
    save(rides(session, 3), path, "insert", mode="overwrite", **MOR)
    assert load(session, path) == [(3, 1)]
    assert len(times(path)) == 1
    assert drawstring.open(path).config.is_merge_on_read
    save(rides(session, 5), path, "insert_overwrite_table", mode="overwrite", **MOR)
    assert load(session, path) == [(5, 1)]
    assert len(times(path)) == 2


def test_partition_by_says_the_partitions_of_a_new_table_and_may_not_contradict_an_old_one(
    session: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "rides"
    options = {key: value for key, value in KEYS.items() if "partitionpath" not in key}

    def write(*columns: str) -> None:
        writer = rides(session, 1).write.format("hudi").options(**options).mode("append")
        writer.partitionBy(*columns).save(str(path))

    write("city")
    assert drawstring.open(path).config.partition_fields == ("city",)
    write("city")
    before = times(path)
    for columns in (("ts",), ("city", "ts")):
        with pytest.raises(InvalidError, match=f"partition path {','.join(columns)} but the table has city"):
            write(*columns)
    assert times(path) == before


def test_an_overwrite_of_partitions_is_no_overwrite_of_the_table(
    session: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "rides"
    save(rides(session, 1, 2), path, "insert_overwrite", "overwrite")
    with pytest.raises(InvalidError, match=r"mode append.*insert_overwrite_table") as caught:
        save(rides(session, 3, ts=2), path, "insert_overwrite", "overwrite")
    assert caught.value.table == str(path)
    assert load(session, path) == [(1, 1), (2, 1)]
    save(rides(session, 3, ts=2), path, "insert_overwrite")
    assert load(session, path) == [(2, 1), (3, 2)]


def test_an_upsert_that_lacks_columns_is_refused(session: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "rides"
    save(rides(session, 1).selectExpr("*", "'kept' as note"), path, "insert")
    with pytest.raises(InvalidError, match="lack columns of the table: note"):
        save(rides(session, 1, ts=2), path, "upsert")
    more = {"drawstring.write.partial_update": "true"}
    save(rides(session, 1, ts=2), path, "upsert", **more)
    notes = session.read.format("hudi").load(str(path)).select("ts", "note")
    assert notes.collect() == [(2, "kept")]
    save(rides(session, 1, ts=3), path, "upsert", **{"hoodie.write.set.null.for.missing.columns": "true"})
    notes = session.read.format("hudi").load(str(path)).select("ts", "note")
    assert notes.collect() == [(3, None)]


def test_a_mistake_loses_nothing(session: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "rides"
    save(rides(session, 1), path, "upsert")
    refused: list[tuple[DataFrame, dict[str, str], str]] = [
        (rides(session, 2), {"hoodie.datasource.write.recordkey.field": "no"}, "no"),
        (rides(session, 2).selectExpr("*", "interval 1 day as i"), {}, "Column i"),
        (rides(session, 2), {"hoodie.datasource.write.table.typ": "MERGE_ON_READ"}, "table.type"),
        (session.read.format("hudi").load(str(path)), {}, "would drop"),
    ]
    for df, options, said in refused:
        with pytest.raises((InvalidError, UnsupportedError), match=said):
            save(df, path, "upsert", mode="overwrite", **options)
    with pytest.raises(InvalidError, match="null"):
        save(rides(session, 2).selectExpr("nullif(id, 2) as id", "city", "ts"), path, "upsert")
    assert load(session, path) == [(1, 1)]
    assert len(times(path)) == 1


@pytest.mark.parametrize("renames", [True, False], ids=["folder", "object-store"])
def test_an_overwrite_that_fails_leaves_the_old_table(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, renames: bool
) -> None:
    if not renames:
        monkeypatch.setattr(replacing, "_staging_folder", lambda storage: None)
    path = tmp_path / "rides"
    save(rides(session, 1, 2), path, "insert", **MOR)
    save(rides(session, 2, ts=2), path, "upsert", **MOR)
    before = times(path)
    bad = "if(id = 5, cast(raise_error('a row that fails') as bigint), id) as id"
    with pytest.raises(PySparkException, match="a row that fails"):
        save(rides(session, 3, 4, 5).selectExpr(bad, "city", "ts"), path, "bulk_insert", "overwrite")
    no_key = rides(session, 3, 4).selectExpr("nullif(id, 4) as id", "city", "ts")
    with pytest.raises(InvalidError, match="null") as error:
        save(no_key, path, "upsert", "overwrite")
    assert error.value.table == str(path)
    assert load(session, path) == [(1, 1), (2, 2)]
    assert times(path) == before
    save(rides(session, 3, ts=3).selectExpr("*", "'x' as note"), path, "bulk_insert", "overwrite", **COW)
    assert load(session, path) == [(3, 3)]
    table = drawstring.open(path)
    assert (len(times(path)), table.config.is_merge_on_read, "note" in table.schema.names) == (1, False, True)
    assert [entry.name for entry in tmp_path.iterdir()] == ["rides"]


def test_an_overwrite_waits_for_a_writer_of_the_old_table(session: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "rides"
    save(rides(session, 1), path, "insert")
    context = context_of(drawstring.open(path))
    with table_lock(context.storage, context.clock, context.ids, 0), pytest.raises(ConflictError):
        save(rides(session, 2), path, "insert", "overwrite", **{"hoodie.write.lock.wait_time_ms": "1"})
    assert load(session, path) == [(1, 1)]


def test_what_cannot_be_is_said(session: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match="no table to delete"):
        save(rides(session, 1), tmp_path / "new", "delete")
    with pytest.raises(InvalidError, match="There is no save mode"):
        drawstring.spark.write(rides(session, 1), str(tmp_path / "new"), options=KEYS, mode="sometimes")
    with pytest.raises(UnsupportedError, match="memory://"):
        drawstring.spark.write(rides(session, 1), "memory://t", options=KEYS)
    with pytest.raises(InvalidError):
        session.read.format("hudi").load(str(tmp_path / "new"))
    assert not list(tmp_path.iterdir())


def test_columns_come_later(session: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "rides"
    save(rides(session, 1, 2), path, "insert")
    save(rides(session, 4, ts=2).selectExpr("*", "struct(1 as a, 'x' as b) as more"), path, "upsert")
    df = session.read.format("hudi").load(str(path)).selectExpr("id", "more.b as b")
    assert sorted((row.id, row.b) for row in df.collect()) == [(1, None), (2, None), (4, "x")]


def test_views_of_sql_read_it(session: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "rides"
    save(rides(session, 1, 2, 3), path, "insert", **MOR)
    save(rides(session, 3, 5, ts=2), path, "upsert", **MOR)
    session.sql(f"create temporary view rides using hudi options (path '{path}')")
    found = session.sql("select id, ts from rides where city = 'berlin' and ts > 1 and id in (3, 5, 7)")
    assert sorted(tuple(row) for row in found.collect()) == [(3, 2), (5, 2)]
    assert session.sql("select count(*) from rides").first() == (4,), "no filter of the query before"
    save(rides(session, 6), path, "upsert", **MOR)
    looks_again = session.version.startswith("4.0.")
    counted = session.sql("select count(*) from rides where id is not null").first()
    assert counted == (5 if looks_again else 4,), "one snapshot"
    with pytest.raises(PySparkException, match=r"drawstring\.spark\.write"):
        session.sql("insert into rides select * from rides")
    session.sql(f"create or replace temporary view rides using hudi options (path '{path}')")
    assert session.sql("select count(*) from rides").first() == (5,)
    session.sql("drop view rides")
    assert load(session, path) == [(1, 1), (2, 1), (3, 2), (5, 2), (6, 1)]


def test_a_table_of_the_catalog_may_name_the_format_drawstring(session: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "rides"
    save(rides(session, 1), path, "insert")
    for where in (f"location '{path}'", f"options (path '{path}')"):
        session.sql(f"create table rides_table using drawstring {where}")
        try:
            assert session.sql("select id, ts from rides_table").collect() == [(1, 1)]
        finally:
            session.sql("drop table rides_table")
    assert load(session, path) == [(1, 1)]


def test_each_batch_of_a_stream_can_be_upserted(session: SparkSession, tmp_path: Path) -> None:
    path, source = tmp_path / "rides", tmp_path / "source"
    rides(session, 1, 2).coalesce(1).write.parquet(str(source))
    stream = session.readStream.schema("id long, city string, ts long").parquet(str(source))
    query = stream.writeStream.foreachBatch(lambda df, number: save(df, path, "upsert"))
    query.trigger(availableNow=True).start().awaitTermination()
    assert load(session, path) == [(1, 1), (2, 1)]


def test_a_dead_write_is_passed_over_until_a_clean_takes_it_back(
    session: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "rides"
    lazy = {
        "hoodie.write.concurrency.mode": "SINGLE_WRITER",
        "hoodie.clean.failed.writes.policy": "LAZY",
    }
    save(rides(session, 1, 2), path, "upsert", **MOR)
    save(rides(session, 2, 3, ts=5), path, "upsert")
    table = drawstring.open(path)
    dead = table.timeline.writes()[-1]
    next((path / ".hoodie/timeline").glob(f"{dead.requested}_*")).unlink()
    save(rides(session, 4), path, "upsert", **lazy, **{"hoodie.clean.automatic": "false"})
    assert [each.requested for each in table.timeline.pending_writes()] == [dead.requested]
    assert load(session, path) == [(1, 1), (2, 1), (4, 1)]
    save(rides(session, 5), path, "upsert", **lazy)
    assert table.timeline.pending() == ()
    assert load(session, path) == [(1, 1), (2, 1), (4, 1), (5, 1)]
