"""`CALL`: Hudi's procedures by their names, parameters and columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import Row, SparkSession

import drawstring.spark
from drawstring.base.errors import ConflictError, InvalidError, UnsupportedError
from drawstring.query.table_state import facts_of
from drawstring.services.clean import savepoints
from drawstring.spark.sql.procedures.registry import PROCEDURES
from drawstring.testing import context_of
from tests.support.sql import Ask

pytestmark = pytest.mark.spark

SIGNATURES = json.loads((Path(__file__).parent / "procedures_of_hudi.json").read_text())


@pytest.fixture
def rides(sql: Ask) -> None:
    sql(
        "CREATE TABLE rides (id INT, fare DOUBLE, ts BIGINT, city STRING) USING hudi PARTITIONED BY (city)"
        " TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts', type = 'mor',"
        " 'hoodie.compact.inline' = 'false', 'hoodie.clean.automatic' = 'false')"
    )
    sql("INSERT INTO rides VALUES (1, 1.5, 1, 'oslo'), (2, 2.5, 1, 'lima')")
    sql("UPDATE rides SET fare = 9.5, ts = 2 WHERE id = 1")


def called(session: SparkSession, procedure: str, **values: Any) -> list[Row]:
    given = ", ".join(f"{name} => {value!r}" for name, value in values.items())
    return session.sql(f"CALL {procedure}({given})").collect()


@pytest.mark.parametrize("name", sorted(PROCEDURES))
def test_a_procedure_has_the_parameters_and_columns_that_hudi_gives_it(name: str) -> None:
    procedure = PROCEDURES[name]
    given = [[each.name, each.dataType.simpleString()] for each in procedure.given]
    result = [[each.name, each.dataType.simpleString()] for each in procedure.result]
    assert given == [each[:2] for each in SIGNATURES[name]["parameters"]]
    assert procedure.required == [each[0] for each in SIGNATURES[name]["parameters"] if each[2]]
    assert result == SIGNATURES[name]["output"]


@pytest.mark.usefixtures("rides")
def test_commits_are_shown(session: SparkSession) -> None:
    update, insert = called(session, "show_commits", table="rides")
    assert (insert.action, insert.total_records_written, insert.total_files_added) == ("deltacommit", 2, 2)
    assert (update.total_files_updated, update.total_update_records_written) == (1, 1)
    assert len(called(session, "show_commits", table="lake.rides", limit=1)) == 1
    files = called(session, "show_commits_metadata", table="rides")
    assert sorted((row.partition, row.num_writes) for row in files) == [
        ("city=lima", 1),
        ("city=oslo", 1),
        ("city=oslo", 1),
    ]
    one = {"table": "rides", "instant_time": insert.commit_time}
    assert {row.partition_path for row in called(session, "show_commit_files", **one)} == {
        "city=lima",
        "city=oslo",
    }
    assert [row.total_records_inserted for row in called(session, "show_commit_partitions", **one)] == [1, 1]
    assert called(session, "show_commit_write_stats", **one)[0].total_records_written == 2
    extra = called(session, "show_commit_extra_metadata", table="rides", metadata_key="schema")
    assert extra[0].instant_time == update.commit_time
    keys = {row.metadata_key for row in called(session, "show_commit_extra_metadata", table="rides")}
    assert keys == {"schema", "drawstring.writer"}
    with pytest.raises(InvalidError, match="There is no commit 2020"):
        called(session, "show_commit_files", table="rides", instant_time="2020")


@pytest.mark.usefixtures("rides")
def test_services_run(session: SparkSession, sql: Ask, tmp_path: Path) -> None:
    [planned] = called(session, "run_compaction", op="schedule", table="rides")
    assert (planned.operation_size, planned.state) == (1, "REQUESTED")
    [done] = called(
        session, "run_compaction", op="run", path=f"{tmp_path}/lake/rides", timestamp=planned.timestamp
    )
    assert (done.timestamp, done.state) == (planned.timestamp, "COMPLETED")
    assert called(session, "show_compaction", table="rides") == [done]
    sql("UPDATE rides SET fare = 10.5, ts = 3 WHERE id = 1")
    [planned] = called(session, "run_compaction", op="schedule", table="rides")
    [done] = called(session, "run_compaction", op="run", table="rides")
    assert (done.timestamp, done.state) == (planned.timestamp, "COMPLETED"), (
        "nothing new: what is pending runs"
    )
    [clustered] = called(
        session,
        "run_clustering",
        table="rides",
        predicate="city = 'oslo'",
        order="fare",
        show_involved_partition=True,
    )
    assert (clustered.state, clustered.involved_partitions) == ("COMPLETED", "city=oslo")
    assert called(session, "show_clustering", table="rides")[0].timestamp == clustered.timestamp
    with pytest.raises(InvalidError, match=r"names id\. Only partition columns"):
        called(session, "run_clustering", table="rides", predicate="city = 'oslo' AND id = 1")
    with pytest.raises(UnsupportedError, match="schedule_in_line"):
        called(session, "run_clean", table="rides", schedule_in_line=False)
    [cleaned] = called(
        session,
        "run_clean",
        table="rides",
        clean_policy="KEEP_LATEST_FILE_VERSIONS",
        file_versions_retained=1,
    )
    assert cleaned.total_files_deleted > 0
    versions = {"clean_policy": "KEEP_LATEST_FILE_VERSIONS", "file_versions_retained": 1}
    sql("UPDATE rides SET ts = 4 WHERE id = 1")
    sql("CALL run_compaction(op => 'run', table => 'rides')")
    before = len(called(session, "show_fsview_all", table="rides"))
    assert called(session, "run_clean", table="rides", trigger_max_commits=3, **versions) == []
    sql("SET hoodie.clean.policy = KEEP_LATEST_FILE_VERSIONS")
    assert called(session, "run_clean", table="rides", retain_commits=1) == []
    sql("RESET hoodie.clean.policy")
    assert len(called(session, "show_fsview_all", table="rides")) == before
    [again] = called(session, "run_clean", table="rides", trigger_max_commits=2, **versions)
    assert again.total_files_deleted > 0
    assert called(session, "run_clean", table="rides", **versions) == [], "no write since the last one"
    with pytest.raises(InvalidError, match="NONSENSE"):
        called(session, "run_clean", table="rides", clean_policy="NONSENSE")
    assert called(session, "show_cleans", table="rides")[0].total_files_deleted == again.total_files_deleted
    assert called(session, "show_clean_plans", table="rides")[0].state == "COMPLETED"
    assert [row.result for row in called(session, "archive_commits", table="rides")] == [0]
    assert sql("SELECT id, fare FROM rides") == [(1, 10.5), (2, 2.5)]


@pytest.mark.usefixtures("rides")
def test_a_table_goes_back_to_a_savepoint(session: SparkSession, sql: Ask) -> None:
    newest = called(session, "show_commits", table="rides")[0].commit_time
    assert called(session, "create_savepoint", table="rides", commit_time=newest)[0][0] is True
    oldest = called(session, "show_commits", table="rides")[-1].commit_time
    called(session, "create_savepoint", table="rides", commit_time=oldest)
    with pytest.raises(InvalidError, match="There is no savepoint 2020"):
        called(session, "delete_savepoint", table="rides", instant_time=f"{oldest},2020")
    with pytest.raises(InvalidError, match="one savepoint"):
        called(session, "rollback_to_savepoint", table="rides", instant_time=f"{oldest},{newest}")
    called(session, "delete_savepoint", table="rides", instant_time=f"{oldest},{newest}")
    assert called(session, "show_savepoints", table="rides") == []
    called(session, "create_savepoint", table="rides")
    assert [row.savepoint_time for row in called(session, "show_savepoints", table="rides")] == [newest]
    sql("DELETE FROM rides WHERE id = 2")
    called(session, "rollback_to_savepoint", table="rides", instant_time=newest)
    assert sql("SELECT id FROM rides") == [(1,), (2,)]
    called(session, "delete_savepoint", table="rides", instant_time=newest)
    assert called(session, "show_savepoints", table="rides") == []
    sql("DELETE FROM rides WHERE id = 2")
    called(
        session,
        "rollback_to_instant",
        table="rides",
        instant_time=called(session, "show_commits", table="rides")[0][0],
    )
    assert sql("SELECT id FROM rides") == [(1,), (2,)]


@pytest.mark.usefixtures("rides")
def test_a_savepoint_names_its_user_and_archiving_goes_by_all_its_bounds(
    session: SparkSession, sql: Ask, tmp_path: Path
) -> None:
    given = {"table": "rides", "user": "ada", "comments": "before the move"}
    assert [called(session, "create_savepoint", **given)[0][0] for _ in range(2)] == [True, False]
    table = drawstring.open(f"{tmp_path}/lake/rides")
    [saved] = savepoints(facts_of(context_of(table)).store, table.timeline).values()
    assert (saved.by, saved.comments) == ("ada", "before the move")
    called(session, "delete_savepoint", table="rides")
    with pytest.raises(UnsupportedError, match="delete_metadata_table first"):
        called(session, "archive_commits", table="rides", enable_metadata=False)
    called(session, "delete_metadata_table", table="rides")
    for number in range(4):
        sql(f"INSERT INTO rides VALUES ({number + 3}, 1.5, 1, 'oslo')")
    sql("CALL run_compaction(op => 'run', table => 'rides')")
    called(session, "delete_metadata_table", table="rides")
    bounds = {"min_commits": 2, "max_commits": 3}
    called(session, "archive_commits", table="rides", retain_commits=3, **bounds)
    count = len(table.timeline.writes())
    called(session, "archive_commits", table="rides", retain_commits=1, enable_metadata=False, **bounds)
    assert len(table.timeline.writes()) < count < 7
    assert len(sql("SELECT id FROM rides")) == 6


@pytest.mark.usefixtures("rides")
def test_slices_of_a_pending_compaction_are_shown_whole(session: SparkSession, sql: Ask) -> None:
    whole = called(session, "show_fsview_latest", table="rides", merge=False)
    assert len(whole) == len(called(session, "show_fsview_latest", table="rides")) == 2
    called(session, "run_compaction", op="schedule", table="rides")
    sql("UPDATE rides SET fare = 11.5, ts = 3 WHERE id = 1")
    assert len(called(session, "show_fsview_latest", table="rides")) == 2
    with pytest.raises(UnsupportedError, match="while a compaction is pending"):
        called(session, "show_fsview_latest", table="rides", merge=False)


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_numbers_of_buckets_are_managed_by_rules(
    session: SparkSession, sql: Ask, tmp_path: Path, kind: str
) -> None:
    sql(
        "CREATE TABLE rides (id INT, fare DOUBLE, ts BIGINT, month STRING) USING hudi PARTITIONED BY (month)"
        f" TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts', type = '{kind}',"
        " 'hoodie.index.type' = 'BUCKET', 'hoodie.bucket.index.num.buckets' = '2')"
    )
    sql("INSERT INTO rides SELECT id, 1.5, 1, if(id % 2 = 0, '2024-01', '2023-01') FROM range(24)")
    table = drawstring.open(f"{tmp_path}/lake/rides")

    def manage(**values: Any) -> list[tuple[Any, ...]]:
        return [
            tuple(row) for row in called(session, "partition_bucket_index_manager", table="rides", **values)
        ]

    def buckets() -> list[int]:
        return [len(table.scan(where=f"month = '{month}'").tasks()) for month in ("2023-01", "2024-01")]

    assert manage() == [("ERROR", "INVALID_OPERATION", "No valid operation specified")]
    planned = "\nmonth=2024-01 => 3\n"
    assert manage(overwrite="2024.*,3", bucket_number=2) == [("SUCCESS", "DRY_RUN_OVERWRITE", planned)]
    assert (buckets(), manage(show_config=True)[0][2]) == ([2, 2], "")
    done = "Expression: 2024.*,3, Bucket Number: 2, Dry Run: false"
    assert manage(overwrite="2024.*,3", bucket_number=2, dry_run=False) == [("SUCCESS", "OVERWRITE", done)]
    done = "Expression: 2023.*,4;2024.*,3, Bucket Number: 2, Dry Run: false"
    assert manage(add="2023.*,4", dry_run=False) == [("SUCCESS", "OVERWRITE", done)]
    assert buckets() == [4, 3]
    [(_, _, shown)] = manage(show_config=True)
    assert "(expressions=2023.*,4;2024.*,3, defaultBucketNumber=2, rule=regex, version=1, instant=" in shown
    newest = shown.rpartition("instant=")[2].rstrip(")")
    with pytest.raises(InvalidError, match="No commit 2020 changed the numbers"):
        manage(rollback="2020")
    assert manage(rollback=newest) == [("SUCCESS", "ROLLBACK", f"true to rollback {newest}")]
    assert buckets() == [2, 3]
    sql("UPDATE rides SET fare = 2.5, ts = 2 WHERE id < 8")
    sql("INSERT INTO rides VALUES (99, 1.5, 1, '2025-01')")
    assert sql("SELECT count(*), count(DISTINCT id), sum(fare) FROM rides") == [(25, 25, 45.5)]
    assert buckets() == [2, 3]
    with pytest.raises(InvalidError, match="There is no rule nope"):
        manage(overwrite="2024.*,3", rule="nope")
    with pytest.raises(InvalidError, match=r"not pattern,count"):
        manage(overwrite="2024.*", dry_run=False)


@pytest.mark.usefixtures("rides")
def test_views_of_files_show_the_folders_and_times_that_are_asked_for(session: SparkSession) -> None:
    def partitions(procedure: str, **given: Any) -> list[tuple[str, int]]:
        rows = called(session, procedure, table="rides", **given)
        return sorted((row.partition, row.num_delta_files) for row in rows)

    both = [("city=lima", 0), ("city=oslo", 1)]
    update, insert = (row.commit_time for row in called(session, "show_commits", table="rides"))
    for procedure in ("show_fsview_latest", "show_fsview_all"):
        assert partitions(procedure, path_regex="city=oslo/") == [("city=oslo", 1)]
        assert partitions(procedure, path_regex="city={oslo,rome}") == [("city=oslo", 1)]
        assert partitions(procedure, path_regex="*") == partitions(procedure) == both
        assert partitions(procedure, path_regex="") == partitions(procedure, path_regex="*/*") == []
        assert partitions(procedure, max_instant=update) == [("city=lima", 0), ("city=oslo", 0)]
        assert partitions(procedure, max_instant=update, include_max=True) == both
        assert partitions(procedure, max_instant=insert) == []
    with pytest.raises(InvalidError, match="Give one of them"):
        partitions("show_fsview_latest", path_regex="*", partition_path="city=oslo")


@pytest.mark.usefixtures("rides")
def test_compactions_have_statements_of_their_own(session: SparkSession, sql: Ask, tmp_path: Path) -> None:
    sql("SET hoodie.compact.inline.max.delta.commits = 1")
    [(time, size, state)] = sql("SCHEDULE COMPACTION ON rides")
    assert (size, state) == (1, "REQUESTED")
    with pytest.raises(InvalidError, match="Nothing is pending at 20200101000000"):
        sql("RUN COMPACTION ON rides AT 20200101000000")
    assert sql(f"run compaction on lake.rides at {time};") == [(time, 1, "COMPLETED")]
    sql("UPDATE rides SET fare = 10.5, ts = 3 WHERE id = 1")
    assert [row[1:] for row in sql(f"RUN COMPACTION ON '{tmp_path}/lake/rides'")] == [(1, "COMPLETED")]
    assert len(sql("SHOW COMPACTION ON rides")) == 2
    assert len(sql(f"SHOW COMPACTION ON '{tmp_path}/lake/rides' LIMIT 1")) == 1
    assert sql("SELECT id, fare FROM rides") == [(1, 10.5), (2, 2.5)]


@pytest.mark.usefixtures("rides")
def test_a_call_passes_over_parameters_that_the_procedure_lacks_and_suggests_misspelt_ones(
    session: SparkSession, sql: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    assert len(sql("CALL show_commits(table => 'rides', path => '/nowhere, at all', limit => 1)")) == 1
    assert "CALL show_commits has no parameter path" in caplog.text
    sql("CALL show_commits(it => array(1, 2), limit => 1, table => 'rides')")
    assert len(sql("CALL show_commits(path_regex => 'a, table => b)', table => 'rides', it => -1.5)")) == 2
    with pytest.raises(InvalidError, match=r"clean\.trigger\.max\.commits is 'abc'"):
        sql("CALL run_clean(table => 'rides', options => 'hoodie.clean.trigger.max.commits=abc')")
    with pytest.raises(AnalysisException, match="`limit`"):
        sql("CALL show_commits(table => 'rides', limits => 1)")
    with pytest.raises(AnalysisException, match="WRONG_NUM_ARGS"):
        sql("CALL show_commits('rides', 1, 'surplus')")
    assert len(sql("CALL show_commits('rides', '1')")) == 1
    with pytest.raises(InvalidError, match="limit is -1"):
        sql("CALL show_commits(table => 'rides', limit => -1)")


def test_write_amplification_counts_updated_records_of_base_files(session: SparkSession, sql: Ask) -> None:
    sql("CREATE TABLE kept (id INT, n INT) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    sql("INSERT INTO kept SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 1), (2, 2)")
    sql("UPDATE kept SET n = 3 WHERE id = 1")
    found = called(session, "stats_wa", table="kept")
    assert [tuple(row)[1:] for row in found] == [(0, 2, "0"), (1, 2, "2.00"), (1, 4, "4.00")]
    assert called(session, "stats_wa", table="kept", limit=1) == found[:1]


@pytest.mark.usefixtures("rides")
def test_timeline_files_and_properties_are_shown(session: SparkSession, sql: Ask) -> None:
    timeline = called(session, "show_timeline", table="rides", filter="action = 'deltacommit'")
    assert [(row.state, row.timeline_type) for row in timeline] == [("COMPLETED", "ACTIVE")] * 2
    slices = called(session, "show_fsview_latest", table="rides", partition_path="city=oslo")
    [oslo] = slices
    assert (oslo.num_delta_files, oslo.delta_size_compaction_unscheduled) == (1, 0)
    assert oslo.delta_size_compaction_scheduled == oslo.total_delta_file_size > 0
    assert (oslo.delta_files_compaction_scheduled, oslo.data_file.startswith("file:/")) == ("[]", True)
    assert f"fileSize={oslo.total_delta_file_size})]" in oslo.delta_files_compaction_unscheduled
    assert len(called(session, "show_fsview_all", table="rides")) == 2
    every = called(session, "stats_file_sizes", table="rides")
    assert [(row.commit_time == "ALL", row.num_files) for row in every] == [(False, 1), (False, 2), (True, 3)]
    assert every[-1]["min"] == min(row["min"] for row in every)
    of_lima = called(session, "stats_file_sizes", table="rides", partition_path="city=lima")
    assert [(row.num_files, row.std_dev) for row in of_lima] == [(1, 0.0), (1, 0.0)]
    assert len(called(session, "stats_file_sizes", table="rides", partition_path="*", limit=1)) == 1
    of_none = called(session, "stats_file_sizes", table="rides", partition_path="/city=nowhere*")
    assert of_none == [("ALL", 0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0.0)]
    with pytest.raises(InvalidError, match="has a depth of 2, but the table's partitions have 1"):
        called(session, "stats_file_sizes", table="rides", partition_path="*/*")
    assert called(session, "stats_wa", table="rides") == [("Total", 0, 0, "0")]
    properties = dict(called(session, "show_table_properties", table="rides", limit=100))
    assert properties["hoodie.table.name"] == "rides"
    found = called(session, "show_table_properties", table="rides", filter="key = 'hoodie.table.type'")
    assert found == [("hoodie.table.type", "MERGE_ON_READ")]
    sql("CREATE INDEX record_index ON rides (id)")
    assert len(called(session, "show_metadata_table_partitions", table="rides")) == 2
    assert len(called(session, "show_metadata_table_files", table="rides", partition="city=oslo")) == 2
    assert called(session, "validate_metadata_table_files", table="rides") == []
    assert called(session, "repair_add_partition_meta", table="rides") == []


@pytest.mark.usefixtures("rides")
def test_rows_are_dropped_and_copied(session: SparkSession, sql: Ask, tmp_path: Path) -> None:
    called(session, "copy_to_temp_view", table="rides", view_name="copy", replace=True)
    assert sql("SELECT id FROM copy") == [(1,), (2,)]
    sql("INSERT INTO rides VALUES (3, 3.5, 1, 'rome')")
    called(session, "drop_partition", table="rides", partition="city=oslo, city=rome")
    assert sql("SELECT id FROM rides") == [(2,)]
    called(session, "export_instants", table="rides", local_folder=str(tmp_path))
    assert len(list(tmp_path.glob("*.deltacommit"))) == 3
    called(session, "truncate_table", table="rides")
    assert sql("SELECT id FROM rides") == []


def test_a_wrong_call_says_what_is_right(session: SparkSession, sql: Ask) -> None:
    with pytest.raises(AnalysisException, match=r"no procedure show_comits\. Did you mean show_commits"):
        called(session, "show_comits", table="rides")
    with pytest.raises(AnalysisException, match="no procedure show_inflight_commits"):
        called(session, "show_inflight_commits", table="rides")
    with pytest.raises(InvalidError, match="CALL show_commits needs table"):
        called(session, "show_commits")
    with pytest.raises(InvalidError, match="no Hudi table nowhere"):
        called(session, "show_commits", table="nowhere")
    with pytest.raises(AnalysisException, match="`cmd`"):
        sql("CALL help(not_valid => true)")
    [(all_of_them,)] = sql("CALL help")
    assert "\tshow_commits\tReturn the writes of the active timeline" in all_of_them
    [(one,)] = sql("CALL help(cmd => 'show_commits')")
    assert [line.split() for line in one.splitlines()][2:5] == [
        ["table", "string", "null", "true"],
        ["limit", "integer", "10", "false"],
        ["outputType:"],
    ]
    with pytest.raises(InvalidError, match="no procedure show_comits"):
        sql("CALL help(cmd => 'show_comits')")


@pytest.mark.usefixtures("rides")
def test_a_table_goes_to_any_version_by_either_procedure(session: SparkSession, sql: Ask) -> None:
    def version() -> str:
        properties = dict(called(session, "show_table_properties", table="rides", limit=100))
        return str(properties["hoodie.table.version"])

    for procedure, name, number in (
        ("upgrade_table", "EIGHT", "8"),
        ("upgrade_table", "SIX", "6"),
        ("downgrade_table", "NINE", "9"),
        ("downgrade_table", "6", "6"),
    ):
        assert called(session, procedure, table="rides", to_version=name) == [(True,)]
        assert version() == number
    with pytest.raises(InvalidError, match="no table version BAD"):
        called(session, "upgrade_table", table="rides", to_version="bad")
    assert sql("SELECT id, fare FROM rides") == [(1, 9.5), (2, 2.5)]


@pytest.mark.usefixtures("rides")
def test_a_partition_with_a_pending_compaction_is_not_dropped(session: SparkSession, sql: Ask) -> None:
    sql("SET hoodie.compact.inline.max.delta.commits = 1")
    sql("SCHEDULE COMPACTION ON rides")
    for statement in (
        "ALTER TABLE rides DROP PARTITION (city = 'oslo')",
        "CALL drop_partition(table => 'rides', partition => 'city=*')",
        "TRUNCATE TABLE rides PARTITION (city = 'oslo')",
    ):
        with pytest.raises(ConflictError, match="city=oslo has file groups in the pending compaction"):
            sql(statement)
    sql("ALTER TABLE rides DROP PARTITION (city = 'lima')")
    assert sql("SELECT id, fare FROM rides") == [(1, 9.5)]
    sql("DELETE FROM rides WHERE city = 'oslo'")
    assert sql("SELECT id FROM rides") == []
    sql("RUN COMPACTION ON rides")
    sql("ALTER TABLE rides DROP PARTITION (city = 'oslo')")
    assert sql("SELECT id FROM rides") == []


@pytest.mark.usefixtures("rides")
def test_functions_are_tables(session: SparkSession, sql: Ask, tmp_path: Path) -> None:
    assert sql("SELECT id, fare FROM hudi_table_changes('rides', 'latest_state', 'earliest')") == [
        (1, 9.5),
        (2, 2.5),
    ]
    changes = session.sql("SELECT * FROM hudi_table_changes('rides', 'cdc', 'earliest')").collect()
    assert sorted(row.op for row in changes) == ["i", "i", "u"]
    assert sql(f"SELECT id FROM hudi_query('{tmp_path}/lake/rides', 'read_optimized') WHERE fare > 2") == [
        (2,)
    ]
    timeline = "SELECT action, state, total_records_written FROM hudi_query_timeline('rides', 'true')"
    assert sql(timeline) == [("deltacommit", "COMPLETED", 1), ("deltacommit", "COMPLETED", 2)]
    files = "SELECT Partition_Path, Log_File_Count FROM hudi_filesystem_view('rides', 'city=o*')"
    assert sql(files) == [("city=oslo", 1)]
    sql("CREATE INDEX record_index ON rides (id)")
    assert sql("SELECT key, size(filesystemMetadata) FROM hudi_metadata('rides') WHERE type = 2") == [
        ("city=lima", 1),
        ("city=oslo", 2),
    ]
    sql("CREATE INDEX by_fare ON rides USING column_stats (fare) OPTIONS (expr = 'identity')")
    stats = "ColumnStatsMetadata.columnName, ColumnStatsMetadata.minValue.member4.value"
    where = "type = 3 AND ColumnStatsMetadata.columnName = 'fare'"
    assert sql(f"SELECT {stats} FROM hudi_metadata('rides') WHERE {where}") == [
        ("fare", 1.5),
        ("fare", 2.5),
        ("fare", 9.5),
    ]
    places = "SELECT key, recordIndexMetadata.partitionName FROM hudi_metadata('rides') WHERE type = 5"
    assert sql(places) == [("1", "city=oslo"), ("2", "city=lima")]
    assert session.sql("SELECT * FROM hudi_metadata('rides')").columns == [
        "key",
        "type",
        "filesystemMetadata",
        "BloomFilterMetadata",
        "ColumnStatsMetadata",
        "recordIndexMetadata",
        "SecondaryIndexMetadata",
    ]
    with pytest.raises(AnalysisException, match="takes 3 or 4 arguments"):
        sql("SELECT * FROM hudi_table_changes('rides')")


@pytest.mark.usefixtures("rides")
def test_a_table_is_opened_by_its_name(session: SparkSession, sql: Ask) -> None:
    table = drawstring.spark.table_named(session, "lake.rides")
    assert table.update("city = 'lima'", {"fare": "fare * 2", "ts": "ts + 1"}).updates == 1
    assert sql("SELECT fare FROM rides WHERE city = 'lima'") == [(5.0,)]
    with pytest.raises(InvalidError, match="no Hudi table nowhere"):
        drawstring.spark.table_named(session, "nowhere")


def test_the_metadata_table_is_deleted_and_made_again(session: SparkSession, sql: Ask, rides: None) -> None:
    sql("CREATE TABLE trips (id INT) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    sql("INSERT INTO trips VALUES (1)")
    (deleted,) = called(session, "delete_metadata_table", table="rides,lake.trips")
    assert deleted.result.startswith("Removed Metadata Table from ")
    sql("CREATE TABLE spots (id INT) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    (deleted,) = called(session, "delete_metadata_table", table="trips,spots")
    assert deleted.result == "Removed Metadata Table from no table: none has one"
    sql("INSERT INTO trips VALUES (2)")
    (deleted,) = called(session, "delete_metadata_table", table="spots,trips")
    assert deleted.result.endswith("/trips/.hoodie/metadata") and "spots" not in deleted.result
    with pytest.raises(InvalidError, match="has no metadata table"):
        called(session, "init_metadata_table", table="rides")
    (made,) = called(session, "create_metadata_table", table="rides")
    assert made.result.startswith("Created Metadata Table in ")
    with pytest.raises(InvalidError, match="Delete it first"):
        called(session, "create_metadata_table", table="rides")
    (opened,) = session.sql("CALL init_metadata_table(table => 'rides', read_only => true)").collect()
    assert opened.result.startswith("Opened Metadata Table in ")
    assert {row[0] for row in sql("CALL show_metadata_table_partitions(table => 'rides')")} == {
        "city=lima",
        "city=oslo",
    }
    assert sql("SELECT id, fare FROM rides") == [(1, 9.5), (2, 2.5)]


def test_properties_are_replaced_by_those_of_a_file(
    session: SparkSession, rides: None, tmp_path: Path
) -> None:
    text = (tmp_path / "lake/rides/.hoodie/hoodie.properties").read_text()
    kept = [line for line in text.splitlines() if not line.startswith(("hoodie.table.checksum", "#"))]
    file = tmp_path / "new.properties"
    file.write_text("\n".join([*kept, "hoodie.table.cdc.supplemental.logging.mode=OP_KEY_ONLY"]))
    path = str(file)
    rows = called(session, "repair_overwrite_hoodie_props", table="rides", new_props_file_path=path)
    changed = [tuple(row) for row in rows if row.old_value != row.new_value]
    assert changed == [("hoodie.table.cdc.supplemental.logging.mode", "null", "OP_KEY_ONLY")]
    assert session.sql("SELECT count(*) FROM rides").first()[0] == 2
    file.write_text("\n".join([*kept, "hoodie.table.storage.layout=lsm_tree"]))
    with pytest.raises(InvalidError, match="files of the table are not sorted by record key"):
        called(session, "repair_overwrite_hoodie_props", table="rides", new_props_file_path=path)
    file.write_text("\n".join(line.replace("MERGE_ON_READ", "COPY_ON_WRITE") for line in kept))
    with pytest.raises(InvalidError, match=r"hoodie\.table\.type is 'MERGE_ON_READ' and would become"):
        called(session, "repair_overwrite_hoodie_props", table="rides", new_props_file_path=path)
