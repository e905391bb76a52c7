"""The order of columns in SQL: partition columns come last, as in Hudi and in Spark's file tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import drawstring
from tests.support.sql import Ask

pytestmark = pytest.mark.spark

PEOPLE = (
    "CREATE TABLE people (id INT, dt STRING, name STRING, city STRING, ts BIGINT) USING hudi"
    " PARTITIONED BY (city, dt) TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts')"
)


def test_partition_columns_in_the_middle_come_last(session: SparkSession, sql: Ask, tmp_path: Path) -> None:
    sql(PEOPLE)
    order = ["id", "name", "ts", "city", "dt"]
    assert session.table("people").columns == order
    assert [row[0] for row in session.sql("DESCRIBE people").collect()][:5] == order
    assert drawstring.open(f"{tmp_path}/lake/people").schema.names == order
    sql("INSERT INTO people VALUES (1, 'ada', 5, 'lima', '2024-01-01')")
    sql("INSERT INTO people (dt, id, city, ts, name) VALUES ('2024-01-03', 2, 'rome', 4, 'cyd')")
    sql("INSERT INTO people PARTITION (city = 'paris', dt) SELECT 3, 'dan', 3L, '2024-01-04'")
    sql("INSERT INTO people PARTITION (dt = '2024-01-06', city) SELECT 4, 'eve', 3L, 'kyiv'")
    sql("INSERT OVERWRITE people PARTITION (city = 'kyiv', dt = '2024-01-06') SELECT 5, 'fay', 3L")
    sql(
        "MERGE INTO people t USING (SELECT 6 AS id, '2024-01-07' AS dt, 'gus' AS name, 'oslo' AS city,"
        " 1L AS ts) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert sql("SELECT * FROM people") == [
        (1, "ada", 5, "lima", "2024-01-01"),
        (2, "cyd", 4, "rome", "2024-01-03"),
        (3, "dan", 3, "paris", "2024-01-04"),
        (5, "fay", 3, "kyiv", "2024-01-06"),
        (6, "gus", 1, "oslo", "2024-01-07"),
    ]


def test_a_table_made_of_a_query_has_its_partition_columns_last(
    session: SparkSession, sql: Ask, tmp_path: Path
) -> None:
    sql(
        "CREATE TABLE made USING hudi PARTITIONED BY (dt) TBLPROPERTIES (primaryKey = 'id', type = 'mor')"
        " AS SELECT 1 AS id, 'd1' AS dt, 'ada' AS name"
    )
    assert drawstring.open(f"{tmp_path}/lake/made").schema.names == ["id", "name", "dt"]
    sql("INSERT INTO made VALUES (2, 'bob', 'd2')")
    sql("ALTER TABLE made ADD COLUMNS (extra INT)")
    sql("INSERT INTO made VALUES (3, 'cyd', 17, 'd3')")
    assert sql("SELECT * FROM made") == [
        (1, "ada", None, "d1"),
        (2, "bob", None, "d2"),
        (3, "cyd", 17, "d3"),
    ]
    saved = session.createDataFrame([("d1", 1, "ada")], "dt string, id int, name string")
    key = {"hoodie.datasource.write.recordkey.field": "id"}
    saved.write.format("hudi").options(**key).partitionBy("dt").saveAsTable("saved")
    session.createDataFrame([(2, "bob", "d2")], "x int, y string, z string").write.insertInto("saved")
    assert session.table("saved").columns == ["id", "name", "dt"]
    assert sql("SELECT * FROM saved") == [(1, "ada", "d1"), (2, "bob", "d2")]


def test_a_table_stored_in_another_order_shows_its_partition_columns_last_in_sql(
    session: SparkSession, sql: Ask, tmp_path: Path
) -> None:
    rows = session.createDataFrame([("d1", 1, 5, "a")], "dt string, id int, ts long, name string")
    options = {
        "hoodie.table.name": "old",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "dt",
    }
    rows.write.format("hudi").options(**options).save(f"{tmp_path}/old")
    sql(f"CREATE TABLE old USING hudi LOCATION '{tmp_path}/old'")
    assert session.table("old").columns == ["id", "ts", "name", "dt"]
    sql("INSERT INTO old VALUES (2, 6, 'b', 'd2')")
    assert sql("SELECT * FROM old") == [(1, 5, "a", "d1"), (2, 6, "b", "d2")]
    assert drawstring.open(f"{tmp_path}/old").schema.names == ["dt", "id", "ts", "name"]
