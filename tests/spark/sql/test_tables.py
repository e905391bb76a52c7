"""Tables of the catalog: created, found, described, read by name and by path, dropped."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import drawstring
import drawstring.spark
from drawstring.base.errors import InvalidError, NoTableError
from tests.support.sql import Ask

pytestmark = pytest.mark.spark

RIDES = "CREATE TABLE rides (id INT, fare DOUBLE, ts BIGINT, city STRING) USING hudi PARTITIONED BY (city)"
KEYED = f"{RIDES} TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts', type = 'mor')"


def opened(tmp_path: Path, name: str = "rides") -> drawstring.Table:
    return drawstring.open(f"{tmp_path}/lake/{name}")


def test_a_statement_creates_a_table_that_others_can_open(sql: Ask, tmp_path: Path) -> None:
    sql(KEYED)
    table = opened(tmp_path)
    assert table.schema.names == ["id", "fare", "ts", "city"]
    assert table.config.record_key_fields == ("id",)
    assert table.config.partition_fields == ("city",)
    assert table.config.ordering_fields == ("ts",)
    assert table.config.is_merge_on_read
    assert (table.config.name, table.config.properties["hoodie.database.name"]) == ("rides", "lake")
    assert sql("SELECT * FROM rides") == []
    assert sql("SHOW TABLES") == [("lake", "rides", False)]


@pytest.mark.parametrize(
    "properties",
    [
        "TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts', type = 'cow')",
        "OPTIONS (primaryKey = 'id', preCombineField = 'ts')",
        "TBLPROPERTIES ('hoodie.datasource.write.recordkey.field' = 'id',"
        " 'hoodie.table.ordering.fields' = 'ts')",
    ],
)
def test_properties_and_options_have_several_spellings(sql: Ask, tmp_path: Path, properties: str) -> None:
    sql(f"CREATE TABLE rides (id INT, ts BIGINT) USING hudi {properties}")
    config = opened(tmp_path).config
    assert (config.record_key_fields, config.ordering_fields) == (("id",), ("ts",))
    assert not config.is_merge_on_read


def test_a_table_may_exist_only_if_the_statement_says_so(sql: Ask) -> None:
    sql(RIDES)
    sql("INSERT INTO rides VALUES (1, 2.5, 1, 'oslo')")
    sql("CREATE TABLE IF NOT EXISTS rides (other INT) USING hudi")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        sql("CREATE TABLE rides (other INT) USING hudi")
    assert sql("SELECT * FROM rides") == [(1, 2.5, 1, "oslo")]


def test_a_table_that_is_there_gets_a_name(sql: Ask, tmp_path: Path) -> None:
    uri = f"{tmp_path}/elsewhere"
    schema = pa.schema([("id", pa.int64()), ("city", pa.string())])
    drawstring.create(uri, schema, record_key="id", partition_by="city").insert(
        pa.table({"id": [1], "city": ["oslo"]})
    )
    sql(f"CREATE TABLE rides USING hudi LOCATION '{uri}'")
    assert sql("SELECT * FROM rides") == [(1, "oslo")]
    assert ("city", "string", None) in sql("DESCRIBE rides")
    with pytest.raises(AnalysisException, match="Column name of CREATE TABLE is not in the table"):
        sql(f"CREATE TABLE other (id BIGINT, name STRING) USING hudi LOCATION '{uri}'")
    with pytest.raises(AnalysisException, match="partitioned by city, not by id"):
        sql(f"CREATE TABLE other (id BIGINT, city STRING) USING hudi PARTITIONED BY (id) LOCATION '{uri}'")
    sql("DROP TABLE rides")
    assert drawstring.open(uri).scan().to_arrow().num_rows == 1


def test_a_new_table_is_created_at_a_location_with_spaces(sql: Ask, tmp_path: Path) -> None:
    sql(f"CREATE TABLE rides (id INT) USING hudi LOCATION '{tmp_path}/a place'")
    sql("INSERT INTO rides VALUES (7)")
    assert drawstring.open(f"{tmp_path}/a place").scan(["id"]).to_arrow().to_pylist() == [{"id": 7}]
    assert sql(f"SELECT id FROM hudi.`{tmp_path}/a place`") == [(7,)]


def test_a_wrong_statement_leaves_nothing_behind(sql: Ask, tmp_path: Path) -> None:
    for properties, why in (
        ("primaryKey = 'nope'", "column nope that the schema lacks"),
        ("type = 'cows'", "no table type 'cows'"),
    ):
        with pytest.raises(InvalidError, match=why) as caught:
            sql(f"CREATE TABLE rides (id INT, ts INT) USING hudi TBLPROPERTIES ({properties})")
        assert isinstance(caught.value, AnalysisException)
    with pytest.raises(InvalidError, match="names no columns"):
        sql("CREATE TABLE rides USING hudi")
    with pytest.raises(InvalidError, match="has a transform"):
        sql("CREATE TABLE rides (id INT) USING hudi PARTITIONED BY (bucket(2, id))")
    assert sql("SHOW TABLES") == []
    assert not (tmp_path / "lake/rides/.hoodie").exists()


def test_a_table_shows_its_columns_and_properties(sql: Ask, tmp_path: Path) -> None:
    sql(KEYED.replace("TBLPROPERTIES", "COMMENT 'of the city' TBLPROPERTIES"))
    described = sql("DESCRIBE EXTENDED rides")
    assert ("Comment", "of the city", "") in described
    assert ("fare", "double", None) in described
    assert ("_hoodie_record_key", "string", "") in described
    assert ("Provider", "hudi", "") in described
    assert ("Type", "MANAGED", "") in described
    assert ("primaryKey", "id") in sql("SHOW TBLPROPERTIES rides")
    sql(f"CREATE TABLE elsewhere USING hudi LOCATION '{tmp_path}/lake/rides'")
    assert ("Type", "EXTERNAL", "") in sql("DESCRIBE EXTENDED elsewhere")
    assert "USING hudi" in sql("SHOW CREATE TABLE rides")[0][0]


def test_meta_columns_are_there_by_name(sql: Ask) -> None:
    sql(KEYED)
    sql("INSERT INTO rides VALUES (1, 2.5, 1, 'oslo')")
    assert sql("SELECT _hoodie_record_key, _hoodie_partition_path, id FROM rides") == [("1", "city=oslo", 1)]


def test_conditions_and_columns_reach_the_files(sql: Ask, session: SparkSession) -> None:
    sql(RIDES)
    sql("INSERT INTO rides VALUES (1, 2.5, 1, 'oslo'), (2, 4.5, 1, 'rome')")
    query = "SELECT id FROM rides WHERE city = 'rome' AND fare > 3"
    assert sql(query) == [(2,)]
    plan = session.sql(f"EXPLAIN {query}").collect()[0][0]
    assert "PartitionFilters: [isnotnull(city" in plan
    assert "PushedFilters: [IsNotNull(fare), GreaterThan(fare,3.0)]" in plan
    assert "ReadSchema: struct<id:int,fare:double>" in plan


def test_fields_of_columns_are_found_by_name(sql: Ask) -> None:
    sql("CREATE TABLE trips (id INT, tip STRUCT<amount: INT, currency: STRING>) USING hudi")
    sql("INSERT INTO trips VALUES (1, named_struct('amount', 5, 'currency', 'EUR'))")
    assert sql("SELECT tip.currency FROM trips WHERE tip.amount = 5") == [("EUR",)]


def test_a_dataframe_keeps_its_snapshot_and_a_new_query_does_not(sql: Ask, session: SparkSession) -> None:
    sql(RIDES)
    sql("INSERT INTO rides VALUES (1, 2.5, 1, 'oslo')")
    before = session.table("rides")
    sql("CACHE TABLE rides")
    sql("INSERT INTO rides VALUES (2, 4.5, 1, 'rome')")
    assert before.count() == 1
    assert session.table("rides").count() == 2
    sql("UNCACHE TABLE rides")
    assert sql("SELECT a.id, b.fare FROM rides a JOIN rides b USING (id)") == [(1, 2.5), (2, 4.5)]


def test_a_view_of_a_table_shows_the_rows_of_now(sql: Ask) -> None:
    sql(RIDES)
    sql("CREATE VIEW cheap AS SELECT id FROM rides WHERE fare < 3")
    sql("INSERT INTO rides VALUES (1, 2.5, 1, 'oslo'), (2, 4.5, 1, 'oslo')")
    assert sql("SELECT * FROM cheap") == [(1,)]


def test_a_dropped_table_loses_its_files_if_they_are_the_catalogs(sql: Ask, tmp_path: Path) -> None:
    sql(RIDES)
    sql("DROP TABLE rides")
    assert not (tmp_path / "lake/rides").exists()
    sql("DROP TABLE IF EXISTS rides")
    for purge, is_left in (("", True), ("PURGE", False)):
        sql(f"CREATE TABLE IF NOT EXISTS rides (id INT) USING hudi LOCATION '{tmp_path}/outside'")
        sql(f"DROP TABLE rides {purge}")
        assert (tmp_path / "outside/.hoodie/hoodie.properties").exists() == is_left


def test_a_table_without_files_says_so(sql: Ask, tmp_path: Path) -> None:
    sql(f"CREATE TABLE rides (id INT) USING hudi LOCATION '{tmp_path}/gone'")
    (tmp_path / "gone/.hoodie/hoodie.properties").rename(tmp_path / "elsewhere")
    (tmp_path / "gone/.hoodie/hoodie.properties.backup").unlink(missing_ok=True)
    with pytest.raises(NoTableError, match=r"The catalog has lake\.rides") as caught:
        sql("SELECT * FROM rides")
    assert isinstance(caught.value, AnalysisException)
    with pytest.raises(NoTableError):
        sql(f"SELECT * FROM hudi.`{tmp_path}/nowhere`")
    sql("DROP TABLE rides")


def test_other_tables_are_sparks_own(sql: Ask) -> None:
    sql("CREATE TABLE plain (id INT) USING parquet")
    sql("INSERT INTO plain VALUES (1)")
    assert sql("SELECT * FROM plain") == [(1,)]
    sql("ALTER TABLE plain RENAME TO renamed")
    sql("DROP TABLE renamed")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        sql("SELECT * FROM renamed")


def test_a_session_with_another_catalog_keeps_it(
    session: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    other = SparkSession(session.sparkContext, session._jsparkSession.newSession())
    other.conf.set("spark.sql.catalog.spark_catalog", "org.example.Catalog")
    with caplog.at_level(logging.WARNING, "drawstring.spark"):
        drawstring.spark.register(other)
    assert "spark.sql.catalog.spark_catalog is org.example.Catalog" in caplog.text
    assert other.conf.get("spark.sql.catalog.spark_catalog") == "org.example.Catalog"


def test_the_catalog_of_hudis_bundle_is_replaced(session: SparkSession) -> None:
    other = SparkSession(session.sparkContext, session._jsparkSession.newSession())
    other.conf.set("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.hudi.catalog.HoodieCatalog")
    drawstring.spark.register(other)
    assert [tuple(row) for row in other.sql("SELECT 1 AS one").collect()] == [(1,)]
    assert other.catalog.currentDatabase() == "default"
