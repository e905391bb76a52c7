"""`CALL`: procedures that look into files and history, make tables of files, and take back what was left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import Row, SparkSession

import drawstring
from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.spark.sql.tables import table_named
from tests.support.sql import Ask

pytestmark = pytest.mark.spark

SERVICES_OFF = "'hoodie.compact.inline' = 'false', 'hoodie.clean.automatic' = 'false'"


@pytest.fixture
def rides(sql: Ask, session: SparkSession) -> drawstring.Table:
    sql(
        "CREATE TABLE rides (id INT, fare DOUBLE, ts BIGINT, city STRING) USING hudi PARTITIONED BY (city)"
        f" TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts', type = 'mor', {SERVICES_OFF})"
    )
    sql("INSERT INTO rides VALUES (1, 1.5, 1, 'oslo'), (2, 2.5, 1, 'lima')")
    sql("UPDATE rides SET fare = 9.5, ts = 2 WHERE id = 1")
    return table_named(session, "rides")


def called(session: SparkSession, procedure: str, **values: Any) -> list[Row]:
    given = ", ".join(f"{name} => {json.dumps(value)}" for name, value in values.items())
    return session.sql(f"CALL {procedure}({given})").collect()


def test_log_files_show_their_blocks_and_records(session: SparkSession, rides: drawstring.Table) -> None:
    every = {"table": "rides", "log_file_path_pattern": "*"}
    [block] = called(session, "show_logfile_metadata", **every)
    assert (block.record_count, block.block_type) == (1, "PARQUET_DATA_BLOCK")
    assert json.loads(block.header_metadata)["INSTANT_TIME"] == block.instant_time
    by_path = {"table": "rides", "log_file_path_pattern": f"{rides.uri}/*/*.log.*"}
    assert called(session, "show_logfile_metadata", **by_path) == [block]
    [record] = called(session, "show_logfile_records", **every)
    assert json.loads(record.records)["fare"] == 9.5
    [merged] = called(session, "show_logfile_records", merge=True, **every)
    assert json.loads(merged.records)["id"] == 1
    assert called(session, "show_logfile_metadata", table="rides", log_file_path_pattern="no*") == []


@pytest.mark.usefixtures("rides")
def test_the_metadata_table_shows_numbers_and_statistics(session: SparkSession, sql: Ask) -> None:
    numbers = {
        row.stat_key: row.stat_value for row in called(session, "show_metadata_table_stats", table="rides")
    }
    assert int(numbers["files.fileGroupCount"]) == 1 and int(numbers["files.totalFileSizeInBytes"]) > 0
    sql("CREATE INDEX column_stats ON rides USING column_stats (fare)")
    found = called(
        session,
        "show_metadata_table_column_stats",
        table="rides",
        targetColumns="fare",
        partition="city=lima",
    )
    assert [(row.column_name, row.min_value, row.max_value) for row in found] == [("fare", "2.5", "2.5")]


def test_cleans_and_rollbacks_tell_what_they_deleted(
    session: SparkSession, sql: Ask, rides: drawstring.Table
) -> None:
    rides.services.compact()
    old = next(each for each in rides.inspect.files() if each.partition == "city=lima").base
    assert old is not None
    place = f"{rides.uri}/{old.status.path}"
    assert called(
        session, "show_file_status", table="rides", partition="city=lima", file=old.status.name
    ) == [("exist", "", "", "active", place)]
    with pytest.raises(InvalidError, match="The table is partitioned"):
        called(session, "show_file_status", table="rides", file=old.status.name)
    sql("UPDATE rides SET fare = 3.5, ts = 3 WHERE id = 2")
    rides.services.compact()
    rides.services.clean(retain_versions=1)
    cleaned = called(session, "show_cleans_metadata", table="rides")
    assert {row.partition_path for row in cleaned} == {"city=lima", "city=oslo"}
    assert sum(row.success_delete_files for row in cleaned) == cleaned[0].total_files_deleted > 0
    [gone] = called(session, "show_file_status", table="rides", partition="city=lima", file=old.status.name)
    assert tuple(gone) == ("deleted", "clean", cleaned[0].clean_time, "active", "")
    assert called(session, "show_file_status", table="rides", partition="city=lima", file="x.parquet") == [
        ("unknown", "", "", "", "")
    ]
    with pytest.raises(InvalidError, match="There is no rollback 2020"):
        called(session, "show_rollback_detail", table="rides", instant_time="2020")


def test_a_rollback_names_its_files(session: SparkSession, rides: drawstring.Table) -> None:
    newest = rides.timeline.writes()[-1].requested
    called(session, "rollback_to_instant", table="rides", instant_time=newest)
    [shown] = called(session, "show_rollbacks", table="rides")
    assert (shown.rollback_instant, shown.total_partitions) == (newest, 1)
    assert shown.total_files_deleted == 1
    [detail] = called(session, "show_rollback_detail", table="rides", instant_time=shown.instant)
    assert (detail.instant, detail.rollback_instant) == (shown.instant, f"[{newest}]")
    assert detail.succeeded and detail.deleted_file.startswith(f"{rides.uri}/{detail.partition}/")
    assert not Path(detail.deleted_file).exists()
    [newest_of_all, *_] = called(session, "show_timeline", table="rides")
    assert newest_of_all.rollback_info == f"Rolled back: {newest}"


def test_markers_of_a_pending_write_stay(session: SparkSession, rides: drawstring.Table) -> None:
    planned = str(rides.services.schedule_compaction())
    with pytest.raises(InvalidError, match="is pending"):
        called(session, "delete_marker", table="rides", instant_time=planned)
    done = rides.timeline.writes()[0].requested
    assert called(session, "delete_marker", table="rides", instant_time=done) == [
        Row(delete_marker_result=True)
    ]
    with pytest.raises(InvalidError, match="needs no rollback"):
        called(session, "run_rollback_inflight_tableservice", table="rides", pending_instant=planned)
    [given_up] = called(
        session,
        "run_rollback_inflight_tableservice",
        table="rides",
        pending_instant=planned,
        delete_request_instant_file=True,
    )
    assert given_up.instant == planned and rides.timeline.pending() == ()


def test_tables_are_compared_by_their_commits(
    session: SparkSession, sql: Ask, rides: drawstring.Table, tmp_path: Path
) -> None:
    sql(
        f"CREATE TABLE copy (id INT, ts BIGINT) USING hudi LOCATION '{tmp_path}/copy'"
        " TBLPROPERTIES (primaryKey = 'id')"
    )
    sql("INSERT INTO copy VALUES (1, 1)")
    [told] = called(session, "commits_compare", table="rides", path=f"{tmp_path}/copy")
    newest = table_named(session, "copy").timeline.writes()[-1].requested
    assert told.compare_detail == f"Source rides is behind by 1 commits. Commits to catch up - [{newest}]"
    [told] = called(session, "commits_compare", table="copy", path=f"{tmp_path}/copy")
    assert told.compare_detail == "Source copy is ahead by 0 commits. Commits to catch up - []"


def test_a_folder_of_files_becomes_a_table(session: SparkSession, tmp_path: Path) -> None:
    source, root = tmp_path / "source", str(tmp_path / "made")
    (source / "city=oslo").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1, 2], "fare": [1.0, 2.0]}), source / "city=oslo/a.parquet")
    given = {
        "table": "made",
        "table_type": "COPY_ON_WRITE",
        "bootstrap_path": str(source),
        "base_path": root,
        "rowKey_field": "id",
        "partition_path_field": "city",
        "options": "hoodie.datasource.write.hive_style_partitioning=true",
    }
    with pytest.raises(UnsupportedError, match="not of ORC"):
        called(session, "run_bootstrap", base_file_format="ORC", **given)
    for name in ("schema_provider_class", "full_bootstrap_input_provider", "bootstrap_index_class"):
        with pytest.raises(drawstring.DrawstringError, match=r"[Ss]chema|input\.provider|index\.class"):
            called(session, "run_bootstrap", **{name: "org.example.Mine"}, **given)
    with pytest.raises(InvalidError, match=r"mode\.selector"):
        called(session, "run_bootstrap", selector_class="org.example.Mine", **given)
    by_folder = {
        **given,
        "base_path": str(tmp_path / "mixed"),
        "selector_class": "org.apache.hudi.client.bootstrap.selector.BootstrapRegexModeSelector",
        "options": f"{given['options']},hoodie.bootstrap.mode.selector.regex.mode=FULL_RECORD",
    }
    called(session, "run_bootstrap", **by_folder)
    assert called(session, "show_bootstrap_mapping", path=by_folder["base_path"]) == []
    assert called(session, "run_bootstrap", bootstrap_overwrite=True, **given) == [Row(status=0)]
    assert drawstring.open(root).scan(["id"]).to_arrow().num_rows == 2
    [mapped] = called(session, "show_bootstrap_mapping", path=root)
    assert (mapped.source_partition, mapped.source_file) == ("city=oslo", "a.parquet")
    assert called(session, "show_bootstrap_partitions", path=root) == [Row(indexed_partitions="city=oslo")]
    with pytest.raises(InvalidError, match="already"):
        called(session, "run_bootstrap", bootstrap_overwrite=True, **given)


def test_files_are_counted_and_damaged_ones_found(session: SparkSession, rides: drawstring.Table) -> None:
    [whole] = called(session, "show_fs_path_detail", path=rides.uri)
    assert whole.file_num == sum(path.is_file() for path in Path(rides.uri).rglob("*"))
    below = called(session, "show_fs_path_detail", path=rides.uri, is_sub=True)
    assert sum(row.storage_size for row in below) == whole.storage_size
    assert called(session, "show_invalid_parquet", path=rides.uri) == []
    base = next(each.base for each in rides.inspect.files() if each.base)
    (Path(rides.uri) / base.status.path).write_bytes(b"x" * 500)
    [damaged] = called(session, "show_invalid_parquet", path=rides.uri)
    assert damaged.path.endswith(base.status.name)
    with pytest.raises(UnsupportedError, match="lost for good"):
        called(session, "show_invalid_parquet", path=rides.uri, needDelete=True)


@pytest.mark.usefixtures("rides")
def test_a_metastore_that_is_not_there_is_told(session: SparkSession) -> None:
    with pytest.raises(drawstring.DrawstringError, match="9"):
        called(session, "hive_sync", table="rides", metastore_uri="thrift://127.0.0.1:9")
    with pytest.raises(drawstring.DrawstringError, match="9"):
        hms = {"mode": "hms", "username": "ada", "use_jdbc": "true", "sync_incremental": "false"}
        called(session, "hive_sync", table="rides", metastore_uri="thrift://127.0.0.1:9", **hms)
    for wrong in ({"username": "ada"}, {"use_jdbc": "true"}, {"mode": "jdbc"}):
        with pytest.raises(UnsupportedError, match="hms"):
            called(session, "hive_sync", table="rides", **wrong)
    with pytest.raises(InvalidError, match=r"sync\.incremental"):
        called(session, "hive_sync", table="rides", sync_incremental="sometimes")


@pytest.mark.usefixtures("rides")
def test_an_age_of_no_days_drops_nothing(session: SparkSession, sql: Ask) -> None:
    assert called(session, "run_ttl", table="rides", retain_days=0) == []
    assert sql("SELECT count(*) FROM rides") == [(2,)]
