"""`CALL`: audits of locks, overlaps, and repairs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import Row, SparkSession

import drawstring
from drawstring.spark.sql.procedures.registry import REFUSED
from tests.support.sql import Ask

pytestmark = pytest.mark.spark

RIDES = (
    "CREATE TABLE rides (id INT, fare DOUBLE, city STRING) USING hudi PARTITIONED BY (city)"
    " TBLPROPERTIES (primaryKey = 'id', type = '{kind}',"
    " 'hoodie.metadata.index.column.stats.enable' = 'true')"
)


def called(session: SparkSession, procedure: str, **values: Any) -> list[Row]:
    given = ", ".join(f"{name} => {value!r}" for name, value in values.items())
    return session.sql(f"CALL {procedure}({given})").collect()


def with_duplicates(sql: Ask, kind: str) -> None:
    sql(RIDES.format(kind=kind))
    sql("INSERT INTO rides VALUES (1, 1.5, 'oslo'), (2, 2.5, 'oslo'), (1, 1.5, 'lima')")
    sql("SET hoodie.spark.sql.insert.into.operation = bulk_insert")
    sql("INSERT INTO rides VALUES (1, 9.5, 'oslo'), (3, 3.5, 'oslo')")
    sql("INSERT INTO rides VALUES (1, 5.5, 'oslo'), (1, 2.5, 'lima')")


def test_leases_are_audited_on_request(session: SparkSession, sql: Ask, tmp_path: Path) -> None:
    sql(RIDES.format(kind="cow"))
    [off] = called(session, "show_audit_lock_status", table="rides")
    assert (off.table, off.audit_enabled) == ("rides", False)
    assert off.config_path.endswith("/lake/rides/.hoodie/.locks/audit_enabled.json")
    [said] = called(session, "set_audit_lock", table="rides", state="enabled")
    assert (said.audit_state, said.message) == ("enabled", "Lock audit logging successfully enabled")
    assert called(session, "show_audit_lock_status", path=f"{tmp_path}/lake/rides")[0].audit_enabled
    assert called(session, "validate_audit_lock", table="rides")[0].details.startswith(
        "No audit folder found"
    )
    sql("SET hoodie.write.lock.provider = org.apache.hudi.client.transaction.lock.StorageBasedLockProvider")
    sql("INSERT INTO rides VALUES (1, 1.5, 'oslo')")
    [checked] = called(session, "validate_audit_lock", table="rides")
    assert (checked.validation_result, checked.issues_found) == ("PASSED", 0)
    assert (
        checked.transactions_validated
        == len(list((tmp_path / "lake/rides/.hoodie/.locks/audit").iterdir()))
        > 0
    )
    [kept] = called(session, "cleanup_audit_lock", table="rides")
    assert (kept.files_cleaned, kept.age_days, kept.message) == (
        0,
        7,
        "No audit files older than 7 days found",
    )
    with pytest.raises(AnalysisException, match="state is enabled or disabled"):
        called(session, "set_audit_lock", table="rides", state="on")


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_of_rows_with_one_key_in_a_partition_the_newest_stays(
    session: SparkSession, sql: Ask, tmp_path: Path, kind: str
) -> None:
    with_duplicates(sql, kind)
    given = {
        "table": "rides",
        "duplicated_partition_path": "city=oslo",
        "repaired_output_path": f"{tmp_path}/repaired",
    }
    called(session, "repair_deduplicate", **given)
    kept = session.read.parquet(f"{tmp_path}/repaired").select("id", "fare").collect()
    assert sorted(map(tuple, kept)) == [(1, 5.5), (2, 2.5), (3, 3.5)]
    assert len(sql("SELECT * FROM rides")) == 7
    [said] = called(session, "repair_deduplicate", dry_run=False, **given)
    assert said.result == "Deduplicated files placed in: city=oslo."
    assert sql("SELECT id, fare FROM rides WHERE city = 'oslo'") == [(1, 5.5), (2, 2.5), (3, 3.5)]
    assert sql("SELECT id, fare FROM rides WHERE city = 'lima'") == [(1, 1.5), (1, 2.5)]
    with pytest.raises(AnalysisException, match="There is no dedupe_type newest"):
        called(session, "repair_deduplicate", dedupe_type="newest", **given)


def test_a_key_that_a_file_has_twice_is_not_deleted(session: SparkSession, sql: Ask, tmp_path: Path) -> None:
    sql(RIDES.format(kind="cow"))
    rows = session.createDataFrame([(1, 1.5, "oslo"), (1, 2.5, "oslo")], "id int, fare double, city string")
    bulk = {"hoodie.datasource.write.operation": "bulk_insert"}
    rows.coalesce(1).write.format("hudi").options(**bulk).mode("append").save(f"{tmp_path}/lake/rides")
    before = sql("SELECT id, fare FROM rides")
    assert len(before) == 2
    with pytest.raises(AnalysisException, match="two rows of the key"):
        called(
            session,
            "repair_deduplicate",
            table="rides",
            duplicated_partition_path="city=oslo",
            repaired_output_path=f"{tmp_path}/repaired",
            dry_run=False,
        )
    assert sql("SELECT id, fare FROM rides") == before


def test_cleans_without_a_readable_plan_leave_the_timeline(
    session: SparkSession, sql: Ask, tmp_path: Path
) -> None:
    sql(RIDES.format(kind="cow"))
    sql("INSERT INTO rides VALUES (1, 1.5, 'oslo')")
    timeline = tmp_path / "lake/rides/.hoodie/timeline"
    (timeline / "20200101000000000.clean.requested").write_bytes(b"no plan")
    assert called(session, "repair_corrupted_clean_files", table="rides") == [Row(result=True)]
    assert list(timeline.glob("*.clean.*")) == []


def test_overlaps_of_columns_are_shown(session: SparkSession, sql: Ask) -> None:
    with_duplicates(sql, "cow")
    [row] = called(
        session, "show_metadata_column_stats_overlap", table="rides", targetColumns="id", partition="city=o"
    )
    assert (row["Partition path"], row["Field name"]) == ("city=oslo", "id")
    assert (row["Maximum file overlap"], row["99% overlap"], row["Total value number"]) == (3, 1, 3)
    filtered = session.sql(
        "CALL show_metadata_column_stats_overlap(table => 'rides', filter => '`Maximum file overlap` > 2')"
    )
    assert {each["Field name"] for each in filtered.collect()} == {"city", "id"}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_has_no_use_here_says_why(session: SparkSession, name: str) -> None:
    with pytest.raises(AnalysisException, match=f"{name} is not supported"):
        session.sql(f"CALL {name}(table => 'rides')")


def test_repaired_tables_are_sound(session: SparkSession, sql: Ask, tmp_path: Path) -> None:
    with_duplicates(sql, "mor")
    for city in ("oslo", "lima"):
        called(
            session,
            "repair_deduplicate",
            table="rides",
            duplicated_partition_path=f"city={city}",
            repaired_output_path=f"{tmp_path}/{city}",
            dry_run=False,
        )
    assert drawstring.open(f"{tmp_path}/lake/rides").services.validate().findings == ()
