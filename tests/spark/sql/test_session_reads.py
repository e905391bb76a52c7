"""Options of reads that a session or a table's properties set, and how records merge by properties.

The rows are those that Apache Hudi 1.2.0 returned for the same statements.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from drawstring.base.errors import InvalidError, UnsupportedError
from tests.support.sql import Ask

pytestmark = pytest.mark.spark

PAYLOADS = "org.apache.hudi.common.model."
QUERY_TYPE, BEGIN = "hoodie.datasource.query.type", "hoodie.datasource.read.begin.instanttime"


def create(sql: Ask, name: str, properties: str, table_type: str) -> None:
    sql(
        f"CREATE TABLE {name} (id INT, name STRING, price INT, ts BIGINT) USING hudi TBLPROPERTIES"
        f" (primaryKey = 'id', preCombineField = 'ts', type = '{table_type}', {properties})"
    )


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_properties_of_create_table_say_how_records_merge(sql: Ask, table_type: str) -> None:
    sql("SET hoodie.spark.sql.insert.into.operation = upsert")
    latest = (
        "recordMergeMode = 'commit_time_ordering'",
        "RECORDMERGEMODE = 'COMMIT_TIME_ORDERING'",
        f"payloadClass = '{PAYLOADS}OverwriteWithLatestAvroPayload'",
        "recordMergeStrategyId = 'ce9acb64-bde0-424c-9b91-f6ebba25356d'",
    )
    for number, said in enumerate(latest):
        create(sql, f"late{number}", said, table_type)
        sql(f"INSERT INTO late{number} VALUES (1, 'new', 1, 100)")
        sql(f"INSERT INTO late{number} VALUES (1, 'late', 2, 50)")
        assert sql(f"SELECT id, name, price, ts FROM late{number}") == [(1, "late", 2, 50)], said
    create(sql, "part", f"payloadClass = '{PAYLOADS}PartialUpdateAvroPayload'", table_type)
    for values in ("1, 'new', 1, 100", "1, 'late', NULL, 150", "1, NULL, 7, 120"):
        sql(f"INSERT INTO part VALUES ({values})")
    assert sql("SELECT id, name, price, ts FROM part") == [(1, "late", 7 if table_type == "mor" else 1, 150)]


@pytest.mark.parametrize(
    ("properties", "kind", "text"),
    [
        ("recordMergeStrategyId = 'my-own'", UnsupportedError, "The merge strategy my-own is Java code"),
        (
            "recordMergeMode = 'EVENT_TIME_ORDERING',"
            " recordMergeStrategyId = 'ce9acb64-bde0-424c-9b91-f6ebba25356d'",
            InvalidError,
            "means COMMIT_TIME_ORDERING, but the merge mode is EVENT_TIME_ORDERING",
        ),
        ("payloadClass = 'com.acme.Own'", UnsupportedError, "com.acme.Own is Java code"),
        ("recordMergeMod = 'COMMIT_TIME_ORDERING'", InvalidError, "Did you mean 'recordMergeMode'"),
        (f"'{QUERY_TYPE}' = 'read_optimized'", InvalidError, "is an option of queries"),
        (f"'{BEGIN}' = '20260101'", InvalidError, "is an option of queries"),
    ],
)
def test_properties_without_the_effect_that_they_name_are_refused(
    sql: Ask, properties: str, kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind, match=text):
        create(sql, "rides", properties, "mor")
    assert sql("SHOW TABLES") == []


def logged(sql: Ask) -> None:
    """Create a table whose record 1 has an update in a log file."""
    create(sql, "m", f"'{QUERY_TYPE}' = 'snapshot'", "mor")
    sql("INSERT INTO m VALUES (1, 'base', 1, 1)")
    sql("UPDATE m SET name = 'log' WHERE id = 1")


def test_a_session_says_what_queries_read(session: SparkSession, sql: Ask, tmp_path: Path) -> None:
    logged(sql)
    names = "SELECT name FROM m"

    def loaded(**options: str) -> list[str]:
        return [
            row.name
            for row in session.read.format("hudi").options(**options).load(f"{tmp_path}/lake/m").collect()
        ]

    sql(f"SET {QUERY_TYPE} = read_optimized")
    assert (sql(names), loaded()) == ([("base",)], ["base"])
    assert loaded(**{QUERY_TYPE: "snapshot"}) == ["log"]
    sql(f"SET {QUERY_TYPE} = incremental")
    with pytest.raises((AnalysisException, InvalidError), match="needs a begin"):
        sql(names)
    sql(f"SET {BEGIN} = 000")
    assert sql(names) == [("log",)]
    sql(f"SET {BEGIN} = 99990101000000")
    assert (sql(names), loaded()) == ([], [])
    assert loaded(**{BEGIN: "000"}) == ["log"]
    sql(f"RESET {QUERY_TYPE}")
    assert (sql(names), loaded()) == ([("log",)], ["log"])
    sql("SET hoodie.query.as.ro.table = true")
    assert (sql(names), loaded()) == ([("base",)], ["base"])
    sql("RESET hoodie.query.as.ro.table")
    sql("SET hoodie.nobody.knows.this = 1")
    assert sql(names) == [("log",)]
    sql("SET drawstring.options.unknown = error")
    with pytest.raises((AnalysisException, InvalidError), match="There is no option"):
        sql(names)
    sql("RESET hoodie.nobody.knows.this")
    sql("SET hoodie.parquet.compresion.codec = gzip")
    with pytest.raises(
        (AnalysisException, InvalidError), match=r"Did you mean 'hoodie\.parquet\.compression"
    ):
        sql("INSERT INTO m VALUES (2, 'two', 1, 1)")
    sql("RESET hoodie.parquet.compresion.codec")
    sql("SET hoodie.datasource.merge.type = skip_merge")
    with pytest.raises((AnalysisException, UnsupportedError), match=r"hoodie\.datasource\.merge\.type"):
        sql(names)


def test_a_table_of_the_catalog_shows_base_files_only(sql: Ask, tmp_path: Path) -> None:
    logged(sql)
    sql(
        f"CREATE TABLE m_ro USING hudi LOCATION '{tmp_path}/lake/m'"
        " TBLPROPERTIES ('hoodie.query.as.ro.table' = 'true')"
    )
    assert sql("SELECT name FROM m_ro") == [("base",)]
    assert sql("SELECT name FROM m") == [("log",)]
    with pytest.raises((AnalysisException, InvalidError), match="change the latest rows"):
        sql("UPDATE m_ro SET name = 'x' WHERE name = 'base'")
    sql("INSERT INTO m_ro VALUES (2, 'two', 1, 1)")
    assert sql("SELECT name FROM m") == [("log",), ("two",)]
    sql("CREATE TABLE c USING hudi TBLPROPERTIES (primaryKey = 'id') AS SELECT 1 AS id")
    shown = "TBLPROPERTIES ('hoodie.query.as.ro.table' = 'false', type = 'mor')"
    for statement, why in (
        (f"CREATE TABLE c_ro USING hudi {shown} LOCATION '{tmp_path}/lake/c'", "for MERGE_ON_READ tables"),
        (f"CREATE TABLE new_rt (id INT) USING hudi {shown}", "another name of a table that is there"),
        (
            f"CREATE TABLE new_rt USING hudi {shown} AS SELECT 1 AS id",
            "another name of a table that is there",
        ),
    ):
        with pytest.raises((AnalysisException, InvalidError), match=why):
            sql(statement)
    assert {name for _, name, _ in sql("SHOW TABLES")} == {"m", "m_ro", "c"}


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE m SET price = 5 WHERE name = 'base'",
        "DELETE FROM m WHERE name = 'base'",
        "MERGE INTO m USING (SELECT 1 id, 'x' name, 1 price, 5L ts) s ON m.id = s.id"
        " WHEN MATCHED THEN UPDATE SET *",
    ],
)
def test_rows_are_not_changed_by_what_base_files_have(sql: Ask, statement: str) -> None:
    logged(sql)
    sql(f"SET {QUERY_TYPE} = read_optimized")
    with pytest.raises((AnalysisException, InvalidError), match="change the latest rows"):
        sql(statement)
    sql(f"RESET {QUERY_TYPE}")
    assert sql("SELECT id, name, price FROM m") == [(1, "log", 1)]


def test_a_table_is_truncated_whatever_queries_read_and_takes_no_options_of_queries(sql: Ask) -> None:
    logged(sql)
    with pytest.raises((AnalysisException, InvalidError), match="is an option of queries"):
        sql(f"ALTER TABLE m SET TBLPROPERTIES ('{QUERY_TYPE}' = 'read_optimized')")
    sql(f"SET {QUERY_TYPE} = read_optimized")
    sql("TRUNCATE TABLE m")
    sql(f"RESET {QUERY_TYPE}")
    assert sql("SELECT * FROM m") == []
