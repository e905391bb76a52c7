"""Statements that Spark refuses, or understands in another way than Hudi."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import drawstring
from tests.support.sql import Ask

pytestmark = pytest.mark.spark

RIDES = "CREATE TABLE rides (id INT, name STRING, ts BIGINT, day STRING) USING hudi PARTITIONED BY (day)"
KEYED = f"{RIDES} TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts'"


def test_a_query_goes_in_by_the_names_of_the_columns(session: SparkSession, sql: Ask) -> None:
    sql(RIDES)
    sql("INSERT INTO rides SELECT 'd1' AS DAY, 5L AS ts, 'ada' AS Name, 1 AS id")
    sql("INSERT INTO rides PARTITION (day = 'd2') SELECT 6L AS ts, 'bob' AS name, 2 AS id")
    sql("WITH w AS (SELECT 'cyd' AS name, 'd3' AS day, 3 AS id, 7L AS ts) INSERT INTO rides SELECT * FROM w")
    rows = session.createDataFrame([("d4", "dan", 8, 4)], "day string, name string, ts long, id int")
    rows.write.insertInto("rides")
    sql("INSERT INTO rides SELECT 5 AS id, 'd5' AS other, 9L AS ts, 'eve' AS day")
    assert sql("SELECT * FROM rides") == [
        (1, "ada", 5, "d1"),
        (2, "bob", 6, "d2"),
        (3, "cyd", 7, "d3"),
        (4, "dan", 8, "d4"),
        (5, "d5", 9, "eve"),
    ]
    sql("INSERT OVERWRITE rides PARTITION (day = 'd1') SELECT 10L AS ts, 'fay' AS name, 6 AS id")
    assert sql("SELECT id, name FROM rides WHERE day = 'd1'") == [(6, "fay")]


def test_a_query_with_parameters_or_after_from_goes_in_by_name(session: SparkSession, sql: Ask) -> None:
    sql(RIDES)
    sql("CREATE TABLE others (id INT, name STRING, ts BIGINT, day STRING) USING hudi")
    rows = session.createDataFrame([("cyd",)], "name string")
    named = "INSERT INTO rides SELECT 'd1' AS day, :ts AS ts, 'ada' AS name, :id AS id"
    session.sql(named, args={"id": 1, "ts": 5})
    session.sql(
        "WITH w AS (SELECT ? AS day) INSERT INTO rides SELECT day, ? AS name, 2 AS id, 6L AS ts FROM w",
        ["d2", "bob"],
    )
    session.sql("INSERT INTO rides SELECT 'd3' AS day, 7L AS ts, name, 3 AS id FROM {rows}", rows=rows)
    session.sql(
        "INSERT INTO rides PARTITION (day = :day) SELECT 8L AS ts, :name AS name, 4 AS id",
        {"name": "dan", "day": "d4"},
    )
    query = "(SELECT 'd5' AS day, 9L AS ts, 'eve' AS name, 5 AS id) q"
    sql(f"FROM {query} INSERT INTO rides SELECT *")
    sql(f"FROM {query} INSERT INTO others SELECT *")
    session.sql(
        "INSERT INTO IDENTIFIER(:t) SELECT 'd6' AS day, 6 AS id, 9L AS ts, 'eve' AS name", {"t": "rides"}
    )
    session.sql("INSERT INTO rides VALUES (:id, 'fay', 10, 'd7')", {"id": 7})
    assert sql("SELECT * FROM rides") == [
        (1, "ada", 5, "d1"),
        (2, "bob", 6, "d2"),
        (3, "cyd", 7, "d3"),
        (4, "dan", 8, "d4"),
        (5, "eve", 9, "d5"),
        (6, "eve", 9, "d6"),
        (7, "fay", 10, "d7"),
    ]
    assert sql("SELECT * FROM others") == [(5, "eve", 9, "d5")]
    session.sql("UPDATE others SET ts = :ts", {"ts": "11"})
    assert sql("SELECT ts FROM others") == [(11,)]
    with pytest.raises(AnalysisException, match=r"partitionBy\(\)"):
        rows.selectExpr("'d' AS day", "1L AS ts", "name", "8 AS id").write.partitionBy("day").insertInto(
            "rides"
        )


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_merge_that_only_inserts_adds_the_records_that_the_table_lacks(sql: Ask, kind: str) -> None:
    sql(f"{KEYED}, type = '{kind}')")
    sql("INSERT INTO rides VALUES (1, 'a', 10, 'd1')")
    sql(
        "MERGE INTO rides t USING (SELECT 1 AS id, 'z' AS name, 5L AS ts, 'd1' AS day"
        " UNION ALL SELECT 2, 'b', 7L, 'd1' UNION ALL SELECT 2, 'c', 6L, 'd1') s"
        " ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
    )
    assert sql("SELECT id, name, ts FROM rides") == [(1, "a", 10), (2, "b", 7)]
    sql(
        "MERGE INTO rides t USING (SELECT 1 AS id, 'n' AS name, 50L AS ts, 'd1' AS day"
        " UNION ALL SELECT 3, 'p', 7L, 'd1' UNION ALL SELECT 3, 'q', 9L, 'd1') s"
        " ON t.name = s.name WHEN NOT MATCHED THEN INSERT *"
    )
    assert sql("SELECT id, name, ts FROM rides") == [(1, "a", 10), (2, "b", 7), (3, "q", 9)]
    sql(
        "MERGE INTO rides t USING (SELECT 1 AS id, 'x' AS name, 60L AS ts, 'd1' AS day"
        " UNION ALL SELECT 1, 'y', 70L, 'd1') s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *"
    )
    assert sql("SELECT id, name, ts FROM rides WHERE id = 1") == [(1, "y", 70)]


def test_a_record_of_a_table_without_order_is_inserted_once_by_a_merge(sql: Ask) -> None:
    sql(f"{RIDES} TBLPROPERTIES (primaryKey = 'id')")
    merge = (
        "MERGE INTO rides t USING (SELECT 2 AS id, 'b' AS name, 1L AS ts, 'd1' AS day"
        " UNION ALL SELECT 2, 'b', 2L, 'd1') s ON t.id = s.id"
    )
    sql(f"{merge} WHEN NOT MATCHED THEN INSERT *")
    assert sql("SELECT id, name FROM rides") == [(2, "b")]
    with pytest.raises(Exception, match="MERGE_CARDINALITY_VIOLATION"):
        sql(f"{merge} WHEN MATCHED THEN UPDATE SET *")


def test_values_are_cast_to_the_types_of_the_columns(session: SparkSession, sql: Ask) -> None:
    sql(
        "CREATE TABLE kinds (id BIGINT, price DOUBLE, n INT, info STRUCT<a: INT, b: STRING>, ts BIGINT)"
        " USING hudi TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts')"
    )
    sql("INSERT INTO kinds VALUES (1, 1.0, 1, named_struct('a', 1, 'b', 'x'), 1)")
    sql("UPDATE kinds SET ts = '5', price = '2.5', n = 5.9, info = struct(9, 'z') WHERE id = 1")
    assert [tuple(row[3]) for row in sql("SELECT * FROM kinds")] == [(9, "z")]
    assert sql("SELECT id, price, n, ts FROM kinds") == [(1, 2.5, 5, 5)]
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        sql("UPDATE kinds SET n = 'abc', ts = 6 WHERE id = 1")
    sql(
        "MERGE INTO kinds t USING (SELECT 1L AS id, '10.5' AS price, '7' AS n, struct(2, 'q') AS info,"
        " 9L AS ts) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    sql(
        "MERGE INTO kinds t USING (SELECT '1' AS id, '11.5' AS price, '10' AS ts) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET id = s.id, price = s.price, ts = s.ts"
    )
    sql(
        "MERGE INTO kinds t USING (SELECT 2L AS id, '3.5' AS price, '8' AS n, 4L AS ts) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET t.price = s.price"
        " WHEN NOT MATCHED THEN INSERT (id, price, n, ts) VALUES (s.id, s.price, s.n, s.ts)"
    )
    assert sql("SELECT id, price, n, ts FROM kinds") == [(1, 11.5, 7, 10), (2, 3.5, 8, 4)]
    assert "spark.sql.storeAssignmentPolicy" not in session.conf.getAll
    sql("SET spark.sql.storeAssignmentPolicy = LEGACY")
    sql("INSERT INTO kinds SELECT '3', '1.5', '4', named_struct('a', 1, 'b', 'x'), '5'")
    assert sql("SELECT id, price, n, ts FROM kinds WHERE id = 3") == [(3, 1.5, 4, 5)]
    assert sql("SET spark.sql.storeAssignmentPolicy") == [("spark.sql.storeAssignmentPolicy", "LEGACY")]


def test_a_cached_table_shows_what_each_kind_of_write_did(
    session: SparkSession, sql: Ask, tmp_path: Path
) -> None:
    sql(f"{KEYED})")
    sql("INSERT INTO rides VALUES (1, 'a', 1, 'd1'), (2, 'b', 1, 'd2')")
    sql("CACHE TABLE rides")
    sql("UPDATE rides SET name = 'u', ts = 2 WHERE id = 1")
    assert sql("SELECT id, name FROM rides") == [(1, "u"), (2, "b")]
    sql("DELETE FROM rides WHERE name = 'b'")
    assert sql("SELECT id, name FROM rides") == [(1, "u")]
    sql(
        "MERGE INTO rides t USING (SELECT 1 AS id, 'm' AS name, 9L AS ts, 'd1' AS day) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET *"
    )
    assert sql("SELECT id, name FROM rides") == [(1, "m")]
    sql("INSERT INTO rides VALUES (3, 'i', 1, 'd3')")
    assert sql("SELECT id, name FROM rides") == [(1, "m"), (3, "i")]
    row = session.createDataFrame([(4, "f", 1, "d4")], "id int, name string, ts long, day string")
    row.write.format("hudi").mode("append").save(f"{tmp_path}/lake/rides")
    assert sql("SELECT id, name FROM rides") == [(1, "m"), (3, "i"), (4, "f")]
    drawstring.open(f"{tmp_path}/lake/rides").delete(where="id = 4")
    assert sql("SELECT id, name FROM rides") == [(1, "m"), (3, "i")]
    sql("ALTER TABLE rides DROP PARTITION (day = 'd3')")
    assert sql("SELECT id, name FROM rides") == [(1, "m")]
    sql("ALTER TABLE rides ADD COLUMNS (extra INT)")
    assert sql("SELECT * FROM rides") == [(1, "m", 9, None, "d1")]
    sql("CALL truncate_table(table => 'rides')")
    assert sql("SELECT * FROM rides") == []
    sql("UNCACHE TABLE rides")


def test_a_table_is_created_like_another_one(sql: Ask, tmp_path: Path) -> None:
    sql(f"{KEYED}, type = 'mor')")
    sql("CREATE TABLE second LIKE rides")
    sql(
        "CREATE TABLE third LIKE rides USING hudi TBLPROPERTIES (primaryKey = 'name')"
        f" LOCATION '{tmp_path}/3'"
    )
    sql("CREATE TABLE IF NOT EXISTS second LIKE rides USING hudi")
    sql("CREATE TABLE plain (id INT, name STRING, day STRING) USING parquet PARTITIONED BY (day)")
    sql("CREATE TABLE fourth LIKE plain USING hudi TBLPROPERTIES (primaryKey = 'id')")
    sql("CREATE TABLE fifth LIKE rides USING parquet")
    configs = [drawstring.open(f"{tmp_path}/{each}").config for each in ("lake/second", "3", "lake/fourth")]
    assert [each.record_key_fields for each in configs] == [("id",), ("name",), ("id",)]
    assert [each.ordering_fields for each in configs] == [("ts",), ("ts",), ()]
    assert [each.partition_fields for each in configs] == [("day",)] * 3
    assert [each.is_merge_on_read for each in configs] == [True, True, False]
    sql("INSERT INTO second VALUES (1, 'a', 1, 'd1')")
    sql("INSERT INTO fifth SELECT * FROM second")
    assert sql("SELECT * FROM fifth") == [(1, "a", 1, "d1")]


def test_columns_of_any_script_and_texts_with_lengths(sql: Ask, tmp_path: Path) -> None:
    sql(
        "CREATE TABLE names (ID INT, `ü` VARCHAR(3), `日本` CHAR(2), ts BIGINT) USING hudi"
        " TBLPROPERTIES (primaryKey = 'id', preCombineField = 'TS')"
    )
    sql("INSERT INTO names VALUES (1, 'longer', 'x', 1)")
    sql("ALTER TABLE names ADD COLUMNS (`名字` VARCHAR(2))")
    sql("UPDATE names SET `日本` = 'longer', `名字` = 'longer', ts = 2 WHERE `ü` = 'longer'")
    assert sql("SELECT `ü`, `日本`, `名字` FROM names") == [("longer", "longer", "longer")]
    config = drawstring.open(f"{tmp_path}/lake/names").config
    assert (config.record_key_fields, config.ordering_fields) == (("ID",), ("ts",))
    sql("CREATE TABLE keyless (id INT, ts BIGINT) USING hudi TBLPROPERTIES (preCombineField = 'ts')")
    sql("INSERT INTO keyless VALUES (1, 1)")
    sql("INSERT INTO keyless VALUES (1, 2)")
    sql("UPDATE keyless SET id = 3 WHERE ts = 2")
    assert sql("SELECT * FROM keyless") == [(1, 1), (3, 2)]


def test_partitions_are_dropped_by_a_pattern(sql: Ask) -> None:
    sql("CREATE TABLE hours (id INT, d STRING, h STRING) USING hudi PARTITIONED BY (d, h)")
    sql("INSERT INTO hours VALUES (1, '2023-08-01', '01'), (2, '2023-08-02', '01'), (3, '2023-09-01', '02')")
    sql("ALTER TABLE hours DROP PARTITION (d = '2023-08-*', h = '01')")
    assert sql("SELECT id FROM hours") == [(3,)]
    sql("ALTER TABLE hours DROP IF EXISTS PARTITION (d = '2029-*', h = '*')")
    with pytest.raises(AnalysisException, match="PARTITIONS_NOT_FOUND"):
        sql("ALTER TABLE hours DROP PARTITION (d = '2029-01-01', h = '01')")
    sql("ALTER TABLE hours DROP PARTITION (d = '2023-09-01', h = '*')")
    assert sql("SELECT id FROM hours") == []


def test_a_star_is_a_pattern_only_where_partitions_are_dropped(sql: Ask) -> None:
    sql("CREATE TABLE hours (id INT, d STRING, h STRING) USING hudi PARTITIONED BY (d, h)")
    sql("INSERT INTO hours VALUES (1, 'd1', '10'), (2, 'd1', '11'), (3, 'd1', '1*')")
    sql("INSERT OVERWRITE hours PARTITION (d, h = '1*') SELECT 9, 'd1'")
    assert sql("SELECT id, h FROM hours") == [(1, "10"), (2, "11"), (9, "1*")]
    sql("DELETE FROM hours WHERE h = '1*'")
    assert sql("SELECT id, h FROM hours") == [(1, "10"), (2, "11")]
    assert sql("SHOW PARTITIONS hours PARTITION (h = '1*')") == []
    assert sql("SHOW PARTITIONS hours PARTITION (h = '11')") == [("d=d1/h=11",)]
    with pytest.raises(AnalysisException, match="PARTITIONS_NOT_FOUND"):
        sql("ALTER TABLE hours DROP PARTITION (d = 'd1', h = '2*')")
    sql("TRUNCATE TABLE hours PARTITION (d = 'd*', h = '*1')")
    assert sql("SELECT id, h FROM hours") == [(1, "10")]


def test_a_time_travel_in_a_text_is_text(sql: Ask) -> None:
    sql("CREATE TABLE notes (id INT, note STRING) USING hudi")
    sql("INSERT INTO notes VALUES (1, \"see notes TIMESTAMP AS OF '2024-01-01'\") -- notes TIMESTAMP AS OF 1")
    assert sql("SELECT note FROM notes") == [("see notes TIMESTAMP AS OF '2024-01-01'",)]
    assert sql("SELECT id FROM notes TIMESTAMP AS OF '2099-01-01' WHERE 'it''s' <> ''") == [(1,)]
