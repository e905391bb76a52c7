"""Statements that Hudi refuses, or that lose their effect there (docs/reference/differences.md)."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException

import drawstring
from drawstring.base.errors import UnsupportedError
from tests.support.sql import Ask

pytestmark = pytest.mark.spark

KEYED = (
    "CREATE TABLE rides (id INT, name STRING, ts BIGINT) USING hudi"
    " TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts'"
)


def test_a_merge_deletes_rows_of_a_table_that_generates_its_keys(sql: Ask) -> None:
    sql("CREATE TABLE legs (start STRING, stop STRING, city STRING) USING hudi PARTITIONED BY (city)")
    sql("INSERT INTO legs VALUES ('a', 'b', 'rome'), ('a', 'c', 'rome'), ('x', 'y', 'oslo')")
    sql(
        "MERGE INTO legs t USING (SELECT 'a' AS start, 'b' AS stop) s"
        " ON t.start = s.start AND t.stop = s.stop WHEN MATCHED THEN DELETE"
    )
    assert sql("SELECT * FROM legs") == [("a", "c", "rome"), ("x", "y", "oslo")]


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_condition_of_a_merge_on_columns_of_the_table_holds(sql: Ask, kind: str) -> None:
    sql(f"{KEYED}, type = '{kind}')")
    sql("INSERT INTO rides VALUES (1, 'a', 5), (2, 'b', 5)")
    sql(
        "MERGE INTO rides t USING (SELECT * FROM VALUES (1, 9L), (2, 9L) AS v(id, ts)) s ON t.id = s.id"
        " WHEN MATCHED AND t.name > 'a' THEN UPDATE SET id = s.id, ts = s.ts"
    )
    assert sql("SELECT * FROM rides") == [(1, "a", 5), (2, "b", 9)]


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_merge_needs_no_ordering_column_in_its_source(sql: Ask, kind: str) -> None:
    sql(f"{KEYED}, type = '{kind}')")
    sql("INSERT INTO rides VALUES (1, 'a', 5), (2, 'b', 5)")
    merge = "MERGE INTO rides t USING (SELECT {source}) s ON t.id = s.id WHEN"
    sql(merge.format(source="1 AS id, 'x' AS name") + " MATCHED THEN UPDATE SET name = s.name")
    sql(merge.format(source="2 AS id") + " MATCHED THEN DELETE")
    insert = " NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)"
    sql(merge.format(source="7 AS id, 'n' AS name") + insert)
    assert sql("SELECT id, name, ts FROM rides") == [(1, "x", 5), (7, "n", None)]


def test_table_properties_name_several_columns(sql: Ask, tmp_path: Path) -> None:
    sql(
        "CREATE TABLE steps (id INT, name STRING, day STRING, seq INT) USING hudi"
        " TBLPROPERTIES (primaryKey = 'id, name', orderingFields = 'day,seq')"
    )
    sql("SET hoodie.spark.sql.insert.into.operation = upsert")
    sql("INSERT INTO steps VALUES (1, 'a', 'd2', 5), (1, 'b', 'd2', 5)")
    sql("INSERT INTO steps VALUES (1, 'a', 'd2', 4), (1, 'b', 'd3', 0)")
    sql("RESET hoodie.spark.sql.insert.into.operation")
    assert sql("SELECT * FROM steps") == [(1, "a", "d2", 5), (1, "b", "d3", 0)]
    config = drawstring.open(f"{tmp_path}/lake/steps").config
    assert (config.record_key_fields, config.ordering_fields) == (("id", "name"), ("day", "seq"))


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_table_of_the_merge_mode_custom_merges_as_its_payload(sql: Ask, kind: str) -> None:
    payload = "org.apache.hudi.common.model.PartialUpdateAvroPayload"
    sql(
        f"{KEYED}, type = '{kind}', recordMergeMode = 'CUSTOM',"
        f" 'hoodie.datasource.write.payload.class' = '{payload}')"
    )
    sql("SET hoodie.spark.sql.insert.into.operation = upsert")
    sql("INSERT INTO rides VALUES (1, 'a', 1)")
    sql("INSERT INTO rides VALUES (1, NULL, 2)")
    assert sql("SELECT * FROM rides") == [(1, "a", 2)]


def test_a_table_of_two_names_shows_each_write(sql: Ask, tmp_path: Path) -> None:
    sql(f"{KEYED})")
    sql("INSERT INTO rides VALUES (1, 'a', 1)")
    sql(f"CREATE TABLE trips USING hudi LOCATION '{tmp_path}/lake/rides'")
    assert sql("SELECT * FROM trips") == [(1, "a", 1)]
    sql("INSERT INTO rides VALUES (2, 'b', 1)")
    assert sql("SELECT * FROM trips") == [(1, "a", 1), (2, "b", 1)]
    sql("DELETE FROM trips WHERE id = 1")
    assert sql("SELECT * FROM rides") == [(2, "b", 1)]


def test_changes_of_a_table_without_logs_come_from_its_commits(sql: Ask) -> None:
    sql(f"{KEYED})")
    sql("INSERT INTO rides VALUES (1, 'a', 1), (2, 'b', 1)")
    sql("UPDATE rides SET name = 'c', ts = 2 WHERE id = 1")
    sql("DELETE FROM rides WHERE id = 2")
    names = "get_json_object(before, '$.name'), get_json_object(after, '$.name')"
    assert sql(f"SELECT op, {names} FROM hudi_table_changes('rides', 'cdc', 'earliest')") == [
        ("d", "b", None),
        ("i", None, "a"),
        ("i", None, "b"),
        ("u", "a", "c"),
    ]


def test_a_table_without_logs_has_nothing_to_compact(sql: Ask, tmp_path: Path) -> None:
    sql(
        "CREATE TABLE rides USING hudi TBLPROPERTIES (type = 'cow', primaryKey = 'id',"
        " hoodie.compact.inline = 'true', hoodie.compact.inline.max.delta.commits = '1')"
        " AS SELECT 1 AS id, 'a' AS name"
    )
    sql("UPDATE rides SET name = 'b' WHERE id = 1")
    assert sql("SELECT * FROM rides") == [(1, "b")]
    assert len(drawstring.open(f"{tmp_path}/lake/rides").timeline.writes()) == 2


def test_a_column_has_a_type(sql: Ask) -> None:
    with pytest.raises(UnsupportedError, match="void, which a table cannot store"):
        sql("CREATE TABLE rides (id INT, v VOID) USING hudi")
    assert sql("SHOW TABLES") == []


def test_properties_of_a_serde_are_refused(sql: Ask) -> None:
    sql(f"{KEYED})")
    with pytest.raises(AnalysisException, match="NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"):
        sql("ALTER TABLE rides SET SERDEPROPERTIES ('k' = 'v')")


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_merge_goes_by_what_its_on_says(sql: Ask, kind: str) -> None:
    sql(f"{KEYED}, type = '{kind}')")
    sql("INSERT INTO rides VALUES (1, 'a', 5), (2, 'b', 5), (3, 'c', 5)")
    late = "(SELECT 1 AS id, 4L AS ts)"
    sql(f"MERGE INTO rides t USING {late} s ON t.id = s.id WHEN MATCHED THEN DELETE")
    assert sql("SELECT id FROM rides") == [(2,), (3,)]
    sql(
        "MERGE INTO rides t USING (SELECT 1 AS n, 'd' AS name, 6L AS ts) s ON t.id = s.n + 1"
        " WHEN MATCHED THEN UPDATE SET name = concat(t.name, s.name), ts = s.ts"
    )
    assert sql("SELECT * FROM rides") == [(2, "bd", 6), (3, "c", 5)]
    sql(
        "MERGE INTO rides t USING (SELECT 3 AS id, 'e' AS name, 7L AS ts) s"
        " ON t.id = s.id AND t.name = s.name"
        " WHEN MATCHED THEN UPDATE SET ts = s.ts WHEN NOT MATCHED THEN INSERT *"
    )
    assert sql("SELECT * FROM rides") == [(2, "bd", 6), (3, "e", 7)]


@pytest.mark.parametrize("engine", ["SIMPLE", "CONSISTENT_HASHING"])
def test_bulk_inserts_follow_one_another_in_bucket_tables(sql: Ask, engine: str) -> None:
    kind = "cow" if engine == "SIMPLE" else "mor"
    sql(
        f"{KEYED}, type = '{kind}', 'hoodie.index.type' = 'BUCKET',"
        f" 'hoodie.index.bucket.engine' = '{engine}', 'hoodie.bucket.index.num.buckets' = '2')"
    )
    sql("SET hoodie.spark.sql.insert.into.operation = bulk_insert")
    sql("INSERT INTO rides VALUES (1, 'a', 5), (2, 'b', 5)")
    sql("INSERT INTO rides VALUES (3, 'c', 5), (4, 'd', 5)")
    assert sql("SELECT id FROM rides") == [(1,), (2,), (3,), (4,)]
    sql("SET hoodie.spark.sql.insert.into.operation = upsert")
    sql("INSERT INTO rides VALUES (3, 'e', 6)")
    assert sql("SELECT name FROM rides WHERE id = 3") == [("e",)]
