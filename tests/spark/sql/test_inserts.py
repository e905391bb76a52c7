"""Rows that statements and DataFrame writers put into tables of the catalog."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.readwriter import DataFrameWriter

import drawstring
from drawstring.base.errors import InvalidError
from tests.support.sql import Ask
from tests.support.tables import store_of

pytestmark = pytest.mark.spark

RIDES = "CREATE TABLE rides (id INT, fare DOUBLE, ts BIGINT, city STRING) USING hudi PARTITIONED BY (city)"
KEYED = f"{RIDES} TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts')"
TWO = "INSERT INTO rides VALUES (1, 1.5, 1, 'oslo'), (2, 2.5, 1, 'lima')"


def newest(tmp_path: Path, name: str = "rides") -> str:
    return str(drawstring.open(f"{tmp_path}/lake/{name}").timeline.writes()[-1].action)


def test_rows_go_in_by_position_and_by_name(sql: Ask) -> None:
    sql(RIDES)
    sql(TWO)
    sql("INSERT INTO rides (city, id) VALUES ('rome', 3)")
    sql("INSERT INTO rides BY NAME SELECT 'rome' AS city, 4 AS id")
    sql("INSERT INTO rides PARTITION (city = 'bern') SELECT 5, 5.5D, 1L")
    assert sql("SELECT id, fare, city FROM rides") == [
        (1, 1.5, "oslo"),
        (2, 2.5, "lima"),
        (3, None, "rome"),
        (4, None, "rome"),
        (5, 5.5, "bern"),
    ]
    with pytest.raises(AnalysisException, match="INSERT_COLUMN_ARITY_MISMATCH"):
        sql("INSERT INTO rides VALUES (1)")
    with pytest.raises(AnalysisException, match=r"CAST_INVALID_INPUT|CANNOT_SAFELY_CAST"):
        sql("INSERT INTO rides VALUES ('x', 1.0, 1, 'oslo')")


def test_the_operation_of_an_insert_is_an_option(sql: Ask) -> None:
    sql(KEYED)
    sql(TWO)
    sql("SET hoodie.spark.sql.insert.into.operation = upsert")
    sql("INSERT INTO rides VALUES (1, 9.5, 2, 'oslo'), (2, 9.5, 0, 'lima')")
    assert sql("SELECT id, fare FROM rides") == [(1, 9.5), (2, 2.5)]
    sql("SET hoodie.spark.sql.insert.into.operation = bulk_insert")
    sql("INSERT INTO rides VALUES (1, 9.5, 2, 'oslo')")
    assert sql("SELECT id FROM rides") == [(1,), (1,), (2,)]
    sql("SET hoodie.spark.sql.insert.into.operation = delete")
    with pytest.raises(InvalidError, match="INSERT INTO does not do"):
        sql(TWO)


def test_the_insert_mode_chooses_the_operation_as_in_hudi(sql: Ask) -> None:
    sql(KEYED)
    sql(TWO)
    again = "INSERT INTO rides VALUES (1, 9.5, 2, 'oslo')"
    sql("SET hoodie.sql.insert.mode = strict")
    sql("SET hoodie.combine.before.insert = true")
    sql(again)
    assert sql("SELECT id, fare FROM rides") == [(1, 9.5), (2, 2.5)]
    sql("SET hoodie.sql.bulk.insert.enable = true")
    with pytest.raises(InvalidError, match="it is strict"):
        sql(again)
    sql("SET hoodie.sql.insert.mode = non-strict")
    sql("INSERT INTO rides VALUES (1, 7.5, 3, 'oslo')")
    assert sql("SELECT id, fare FROM rides") == [(1, 7.5), (1, 9.5), (2, 2.5)]
    sql("SET hoodie.spark.sql.insert.into.operation = upsert")
    sql("INSERT INTO rides VALUES (2, 4.5, 3, 'lima')")
    assert sql("SELECT id, fare FROM rides") == [(1, 7.5), (1, 9.5), (2, 4.5)]
    sql("RESET hoodie.spark.sql.insert.into.operation")
    sql("SET hoodie.sql.insert.mode = other")
    with pytest.raises(InvalidError, match="upsert, strict, non-strict"):
        sql(again)


def test_ctas_is_a_bulk_insert_and_a_prefix_of_the_session_chooses_metadata_of_commits(
    sql: Ask, tmp_path: Path
) -> None:
    sql("SET hoodie.datasource.write.commitmeta.key.prefix = of_job_")
    sql("SET of_job_run = 7")
    sql("CREATE TABLE filled USING hudi TBLPROPERTIES (primaryKey = 'id') AS SELECT 1 AS id")
    sql("INSERT INTO filled VALUES (2)")
    table = drawstring.open(tmp_path / "lake/filled")
    store = store_of(table)
    metadata = [store.commit_metadata(write) for write in table.timeline.writes()]
    assert [each.operation.lower() for each in metadata] == ["bulk_insert", "insert"]
    assert [each.extra["of_job_run"] for each in metadata] == ["7", "7"]


def test_an_overwrite_replaces_the_table(sql: Ask, tmp_path: Path) -> None:
    sql(RIDES)
    sql(TWO)
    sql("INSERT OVERWRITE rides VALUES (3, 3.5, 1, 'rome')")
    assert sql("SELECT id FROM rides") == [(3,)]
    assert newest(tmp_path) == "replacecommit"


@pytest.mark.parametrize(
    "setting", ["spark.sql.sources.partitionOverwriteMode", "hoodie.datasource.overwrite.mode"]
)
def test_a_dynamic_overwrite_replaces_the_partitions_of_its_rows(sql: Ask, setting: str) -> None:
    sql(RIDES)
    sql(TWO)
    sql(f"SET {setting} = dynamic")
    try:
        sql("INSERT OVERWRITE rides VALUES (3, 3.5, 1, 'oslo')")
        assert sql("SELECT id, city FROM rides") == [(2, "lima"), (3, "oslo")]
    finally:
        sql("SET spark.sql.sources.partitionOverwriteMode = static")


def test_a_static_overwrite_replaces_the_partition_that_it_names(sql: Ask) -> None:
    sql(RIDES)
    sql(TWO)
    sql("INSERT OVERWRITE rides PARTITION (city = 'oslo') SELECT 3, 3.5D, 1L")
    assert sql("SELECT id, city FROM rides") == [(2, "lima"), (3, "oslo")]
    sql("INSERT OVERWRITE rides PARTITION (city = 'oslo') SELECT 3, 3.5D, 1L WHERE 1 = 0")
    assert sql("SELECT id, city FROM rides") == [(2, "lima")]


def test_an_overwrite_may_name_the_first_of_several_partition_columns(sql: Ask) -> None:
    sql("CREATE TABLE days (id INT, y INT, d DATE) USING hudi PARTITIONED BY (y, d)")
    sql("INSERT INTO days VALUES (1, 2024, DATE'2024-01-01'), (2, 2024, DATE'2024-01-02'), (3, 2025, NULL)")
    sql("INSERT OVERWRITE days PARTITION (y = 2024, d) VALUES (4, DATE'2024-01-03')")
    assert sql("SELECT id, y FROM days") == [(3, 2025), (4, 2024)]
    sql("INSERT OVERWRITE days PARTITION (y = 2024, d = DATE'2024-01-03') VALUES (5)")
    sql("INSERT OVERWRITE days PARTITION (y = 2025, d = NULL) VALUES (6)")
    assert sql("SELECT id, y FROM days") == [(5, 2024), (6, 2025)]


def test_an_overwrite_may_name_any_of_several_partition_columns(sql: Ask) -> None:
    sql("CREATE TABLE hours (id INT, d STRING, h STRING) USING hudi PARTITIONED BY (d, h)")
    sql("INSERT INTO hours VALUES (0, 'd5', '00'), (1, 'd6', '00'), (2, 'd6', '01')")
    sql("INSERT OVERWRITE hours PARTITION (d, h = '00') VALUES (3, 'd5')")
    assert sql("SELECT * FROM hours") == [(2, "d6", "01"), (3, "d5", "00")]
    sql("INSERT OVERWRITE hours PARTITION (h = '01', d) VALUES (4, 'd7')")
    assert sql("SELECT * FROM hours") == [(3, "d5", "00"), (4, "d7", "01")]
    sql("SET hoodie.datasource.overwrite.mode = dynamic")
    sql("INSERT INTO hours VALUES (5, 'd7', '02')")
    sql("INSERT OVERWRITE hours PARTITION (d = 'd7', h) VALUES (6, '02')")
    assert sql("SELECT * FROM hours") == [(3, "d5", "00"), (4, "d7", "01"), (6, "d7", "02")]
    sql("INSERT OVERWRITE hours PARTITION (d = 'd7', h = '01') SELECT 7 WHERE 1 = 0")
    assert len(sql("SELECT * FROM hours")) == 3
    sql("SET hoodie.datasource.overwrite.mode = static")
    sql("SET spark.sql.sources.partitionOverwriteMode = dynamic")
    with pytest.raises(InvalidError, match="Set both to the same"):
        sql("INSERT OVERWRITE hours PARTITION (d = 'd7') VALUES (7, '02')")
    sql("RESET spark.sql.sources.partitionOverwriteMode")
    sql("SET hoodie.datasource.overwrite.mode = sometimes")
    with pytest.raises(InvalidError, match="Use static or dynamic"):
        sql("INSERT OVERWRITE hours VALUES (8, 'd8', '00')")


def test_an_operation_that_overwrites_wins_over_the_modes(session: SparkSession, sql: Ask) -> None:
    sql(RIDES)
    sql(TWO)
    sql("SET hoodie.datasource.write.operation = insert_overwrite")
    sql("INSERT OVERWRITE rides VALUES (3, 3.5, 1, 'lima')")
    assert sql("SELECT id, city FROM rides") == [(1, "oslo"), (3, "lima")]
    sql("INSERT INTO rides VALUES (4, 4.5, 1, 'oslo')")
    assert sql("SELECT id, city FROM rides") == [(3, "lima"), (4, "oslo")]
    row = session.createDataFrame([(5, 5.5, 1, "lima")], "id int, fare double, ts long, city string")
    row.write.insertInto("rides", overwrite=True)
    assert sql("SELECT id, city FROM rides") == [(4, "oslo"), (5, "lima")]
    sql("SET hoodie.datasource.write.operation = insert_overwrite_table")
    sql("INSERT OVERWRITE rides PARTITION (city = 'lima') SELECT 6, 6.5D, 1L")
    assert sql("SELECT id, city FROM rides") == [(6, "lima")]


def test_a_table_is_created_from_a_query(sql: Ask, tmp_path: Path) -> None:
    sql(RIDES)
    sql(TWO)
    sql(
        "CREATE TABLE copy USING hudi PARTITIONED BY (city) TBLPROPERTIES (primaryKey = 'id', type = 'mor')"
        " AS SELECT *, _hoodie_record_key FROM rides"
    )
    assert sql("SELECT id, city FROM copy") == [(1, "oslo"), (2, "lima")]
    table = drawstring.open(f"{tmp_path}/lake/copy")
    assert table.schema.names == ["id", "fare", "ts", "city"]
    assert table.config.is_merge_on_read
    assert len(table.timeline.writes()) == 1


def test_a_failed_query_leaves_no_table(sql: Ask, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="no rows for me"):
        sql("CREATE TABLE copy USING hudi AS SELECT CAST(raise_error('no rows for me') AS INT) AS id, 1 AS a")
    assert sql("SHOW TABLES") == []
    assert not (tmp_path / "lake/copy").exists()


def test_a_query_does_not_fill_a_table_that_is_there(sql: Ask, tmp_path: Path) -> None:
    sql(f"CREATE TABLE first USING hudi LOCATION '{tmp_path}/t' AS SELECT 1 AS id")
    with pytest.raises(InvalidError, match="has a table"):
        sql(f"CREATE TABLE second USING hudi LOCATION '{tmp_path}/t' AS SELECT CAST(2 AS INT) AS id")
    assert sql("SHOW TABLES") == [("lake", "first", False)]
    assert sql("SELECT * FROM first") == [(1,)]


def test_an_insert_of_a_table_into_itself_reads_each_row_once(sql: Ask) -> None:
    sql(RIDES)
    sql(TWO)
    sql("INSERT INTO rides SELECT id + 10, fare, ts, city FROM rides")
    sql("INSERT OVERWRITE rides SELECT id, fare + 1, ts, city FROM rides WHERE id > 2")
    assert sql("SELECT id, fare FROM rides") == [(11, 2.5), (12, 3.5)]


def test_an_insert_deletes_the_keys_of_its_rows_if_the_operation_says_so(sql: Ask) -> None:
    sql(
        "CREATE TABLE rides (id INT, fare DOUBLE, ts BIGINT, city STRING) USING hudi PARTITIONED BY (city)"
        " TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts')"
    )
    sql("INSERT INTO rides VALUES (1, 1.5, 1, 'oslo'), (2, 2.5, 1, 'lima')")
    sql("SET hoodie.datasource.write.operation = delete")
    sql("INSERT INTO rides SELECT id, fare + 9, ts - 1, city FROM rides WHERE id = 1")
    sql("INSERT INTO rides SELECT 7, fare, ts, city FROM rides")
    left = sql("SELECT id FROM rides")
    assert left == [(2,)]
    with pytest.raises(InvalidError, match="which INSERT OVERWRITE does not do"):
        sql("INSERT OVERWRITE rides SELECT id, fare, ts, city FROM rides")
    sql("RESET hoodie.datasource.write.operation")
    sql("SET hoodie.spark.sql.insert.into.operation = delete")
    with pytest.raises(InvalidError, match="which INSERT INTO does not do"):
        sql("INSERT INTO rides SELECT id, fare, ts, city FROM rides")
    assert sql("SELECT id FROM rides") == left


def test_dataframe_writers_know_tables_by_name(session: SparkSession, sql: Ask, tmp_path: Path) -> None:
    def rows(*ids: int) -> DataFrameWriter:
        return session.createDataFrame([(number, "oslo") for number in ids], "id int, city string").write

    options = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.table.name": "rides"}
    rows(1).format("hudi").options(**options).partitionBy("city").saveAsTable("rides")
    config = drawstring.open(f"{tmp_path}/lake/rides").config
    assert (config.record_key_fields, config.partition_fields) == (("id",), ("city",))
    rows(2).format("hudi").options(**options).mode("append").saveAsTable("rides")
    rows(3).insertInto("rides")
    session.createDataFrame([("rome", 4)], "city string, id int").writeTo("rides").append()
    assert sql("SELECT id, city FROM rides") == [(1, "oslo"), (2, "oslo"), (3, "oslo"), (4, "rome")]
    rows(5).format("hudi").mode("overwrite").options(**options).saveAsTable("rides")
    assert sql("SELECT id FROM rides") == [(5,)]
    with pytest.raises(InvalidError, match="bucketBy"):
        rows(6).format("hudi").bucketBy(2, "id").saveAsTable("other")


def test_all_types_come_back(sql: Ask) -> None:
    values = (
        "SELECT 1 AS id, CAST(1.25 AS DECIMAL(10, 2)) AS price, DATE'2024-02-03' AS day,"
        " TIMESTAMP'2024-02-03 04:05:06' AS at, TIMESTAMP_NTZ'2024-02-03 04:05:06' AS local, X'01' AS bytes,"
        " array(1, 2) AS list, map('a', 1) AS pairs, named_struct('a', 1, 'b', 'x') AS nested, true AS flag"
    )
    sql(f"CREATE TABLE kinds USING hudi TBLPROPERTIES (primaryKey = 'id') AS {values}")
    assert sql("SELECT * FROM kinds") == sql(values)


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_timestamps_are_texts_in_keys_where_the_session_or_the_table_says_so(sql: Ask, kind: str) -> None:
    option = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"
    first, second = "timestamp'2024-01-15 01:11:12.5Z'", "timestamp'2024-01-15 01:11:12Z'"
    query = "SELECT _hoodie_record_key, _hoodie_partition_path, id, v FROM rides"
    for column, path in (("d", "d=2024-02-03"), ("at", "at=2024-01-15 01%3A11%3A12")):
        key = "at" if column == "d" else "id,d"
        more = f", '{option}' = 'true'" if column == "d" else ""
        sql(
            "CREATE TABLE rides (id INT, v INT, at TIMESTAMP, d DATE) USING hudi"
            f" PARTITIONED BY ({column}) TBLPROPERTIES (primaryKey = '{key}', preCombineField = 'v',"
            f" type = '{kind}'{more})"
        )
        if column == "at":
            sql(f"SET {option} = true")
        columns = "(id, v, at, d)"
        sql(f"INSERT INTO rides {columns} VALUES (1, 1, {first}, DATE'2024-02-03')")
        sql(f"INSERT INTO rides {columns} VALUES (2, 1, {second}, DATE'2024-02-03')")
        sql("UPDATE rides SET v = 8 WHERE id = 1")
        keys = ("2024-01-15 01:11:12.5", "2024-01-15 01:11:12.0")
        if column == "at":
            keys = ("id:1,d:2024-02-03", "id:2,d:2024-02-03")
        assert sql(query) == sorted([(keys[0], path, 1, 8), (keys[1], path, 2, 1)])
        sql(f"RESET {option}")
        sql(
            f"MERGE INTO rides t USING (SELECT 1 AS id, 9 AS v, {first} AS at, DATE'2024-02-03' AS d) s"
            " ON t.id = s.id AND t.at = s.at AND t.d = s.d WHEN MATCHED THEN UPDATE SET *"
            " WHEN NOT MATCHED THEN INSERT *"
        )
        assert sql("SELECT id, v FROM rides") == [(1, 9), (2, 1)]
        sql("DELETE FROM rides WHERE id = 1")
        assert sql(query) == [(keys[1], path, 2, 1)]
        if column == "at":
            sql(f"INSERT OVERWRITE rides PARTITION (at = {second}) VALUES (3, 1, DATE'2024-02-03')")
            assert sql(query) == [("id:3,d:2024-02-03", path, 3, 1)]
        sql("DROP TABLE rides")
