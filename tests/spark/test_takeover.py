"""What `format("hudi")` does in registered sessions, and leaves alone everywhere else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter

import drawstring.spark
from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.spark import format as takeover
from drawstring.spark import functions

pytestmark = pytest.mark.spark

OPTIONS = {
    "hoodie.table.name": "rides",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
}


@pytest.fixture
def df(session: SparkSession) -> DataFrame:
    return session.range(3).selectExpr("id", "1L as ts", "'x' as city")


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    calls: list[dict[str, Any]] = []
    monkeypatch.setattr(functions, "write", lambda df, path, **said: calls.append({"path": path, **said}))
    return calls


def test_settings_arrive_in_any_order(df: DataFrame, written: list[dict[str, Any]]) -> None:
    df.write.mode("append").partitionBy("city").options(**OPTIONS).format("hudi").save("/t")
    df.write.option("path", "/t").format("HUDI").partitionBy(["city"]).options(**OPTIONS).mode(
        "append"
    ).save()
    df.write.save("/t", format="org.apache.hudi", mode="append", partitionBy="city", **OPTIONS)
    options = {**OPTIONS, "hoodie.datasource.write.partitionpath.field": "city"}
    assert written == [{"path": "/t", "mode": "append", "options": options}] * 3


def test_an_option_and_partition_by_say_the_same(df: DataFrame, written: list[dict[str, Any]]) -> None:
    for key, text in (
        ("hoodie.datasource.write.partitionpath.field", "city"),
        ("HOODIE.table.partition.fields", " city "),
        ("hoodie.datasource.write.partitionpath.field", "city:SIMPLE"),
    ):
        df.write.format("hudi").partitionBy("city").option(key, text).save("/t")
        assert written.pop() == {"path": "/t", "mode": "errorifexists", "options": {key: text}}
        for other in (["ts"], ["city", "ts"]):
            with pytest.raises(InvalidError, match=r"partitionBy names .* Nothing was written") as caught:
                df.write.format("hudi").partitionBy(other).option(key, text).save("/t")
            assert caught.value.table == "/t"
    with pytest.raises(InvalidError, match="no column"):
        df.write.format("hudi").partitionBy("city").option(key, "").save("/t")
    assert written == []


def test_values_arrive_as_texts(df: DataFrame, written: list[dict[str, Any]]) -> None:
    df.write.format("drawstring").option("a", True).options(b=5, c=None).save("/t")
    assert written[0]["options"] == {"a": "true", "b": "5"}


def test_what_a_table_does_not_have_is_refused(df: DataFrame) -> None:
    with pytest.raises(InvalidError, match="path"):
        df.write.format("hudi").save()
    with pytest.raises(InvalidError, match="bucketBy"):
        df.write.format("hudi").bucketBy(2, "id").save("/t")
    with pytest.raises(InvalidError, match="sortBy"):
        df.write.format("hudi").bucketBy(2, "id").sortBy("id").saveAsTable("t")
    with pytest.raises(InvalidError, match="one path"):
        df.sparkSession.read.format("hudi").load(["/a", "/b"])


def test_reads_pass_hudis_options(session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, Any]] = []
    monkeypatch.setattr(functions, "load", lambda spark, path, options: calls.append((path, options)))
    session.read.format("hudi").option("as.of.instant", "20260101").load("/t")
    session.read.load("/t", format="hudi", **{"as.of.instant": "20260101"})
    session.read.options(**{"as.of.instant": "20260101"}).option("path", "/t").format("drawstring").load()
    assert calls == [("/t", {"as.of.instant": "20260101"})] * 3


def test_other_formats_are_as_they_were(df: DataFrame, session: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "plain")
    df.write.partitionBy("city").mode("overwrite").format("parquet").save(path)
    df.write.mode("append").option("compression", "none").partitionBy("city").save(path)
    df.write.mode("append").partitionBy("city").parquet(path)
    assert session.read.format("parquet").load(path).count() == 9
    assert session.read.schema("id long").load([path]).count() == 9
    df.write.bucketBy(2, "id").sortBy("id").mode("overwrite").format("parquet").saveAsTable("bucketed")
    assert session.table("bucketed").count() == 3
    session.sql("drop table bucketed")


def unregistered(session: SparkSession) -> SparkSession:
    """Return another session of the application, which was made past PySpark's `newSession`."""
    return SparkSession(session.sparkContext, session._jsparkSession.newSession())


def test_other_sessions_are_left_alone(session: SparkSession) -> None:
    other = unregistered(session)
    assert type(other.read) is DataFrameReader
    assert type(other.range(1).write) is DataFrameWriter
    assert type(other.newSession().read) is DataFrameReader
    assert type(session.read) is takeover.TableReader


def test_each_session_of_an_application_can_be_registered(
    df: DataFrame, session: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    df.write.format("hudi").options(**OPTIONS).save(path)
    other = unregistered(session)
    for _ in range(2):
        drawstring.spark.register(other)
    assert other.read.format("hudi").load(path).count() == 3
    other.sql(f"create temporary view rides using hudi options (path '{path}')")
    assert other.sql("select count(*) from rides").first() == (3,)
    assert type(unregistered(session).read) is DataFrameReader


def test_a_new_session_of_a_registered_one_is_registered(session: SparkSession, tmp_path: Path) -> None:
    session.sql("set hoodie.datasource.write.operation=upsert")
    other = session.newSession()
    assert other.conf.get("hoodie.datasource.write.operation", "none") == "none"
    other.sql(
        f"create table trips (id int, name string) using hudi location '{tmp_path}/trips'"
        " tblproperties (primaryKey = 'id')"
    )
    other.sql("insert into trips values (1, 'ada'), (2, 'bob')")
    other.sql("update trips set name = 'cy' where id = 2")
    other.sql("select id, name from trips").write.format("hudi").mode("append").save(f"{tmp_path}/trips")
    asked = "select id, name from trips order by id"
    assert [tuple(row) for row in other.sql(asked).collect()] == [(1, "ada"), (2, "cy")]
    assert [tuple(row) for row in session.sql(asked).collect()] == [(1, "ada"), (2, "cy")]
    assert other.sql("show partitions trips").collect() == []
    other.sql("drop table trips")
    session.sql("reset hoodie.datasource.write.operation")


def test_sessions_that_spark_clones_stay_registered(session: SparkSession) -> None:
    clone = SparkSession(session.sparkContext, session._jsparkSession.cloneSession())
    assert type(clone.range(1).write) is takeover.TableWriter


def test_registering_twice_changes_nothing(session: SparkSession) -> None:
    before = SparkSession.read.fget  # type: ignore[attr-defined]
    drawstring.spark.register(session)
    assert SparkSession.read.fget is before  # type: ignore[attr-defined]


def test_spark_connect_is_refused() -> None:
    class SparkSession:
        __module__ = "pyspark.sql.connect.session"

    with pytest.raises(UnsupportedError, match="Spark Connect"):
        drawstring.spark.register(SparkSession())  # type: ignore[arg-type]


def test_the_package_does_without_pyspark() -> None:
    code = (
        "import sys; sys.modules['pyspark'] = None; import drawstring\n"
        "try: import drawstring.spark\n"
        "except ModuleNotFoundError as error: print(error)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'drawstring[spark]'" in said.stdout
    code = "import sys, drawstring; print('pyspark' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"


def test_a_base_path_of_another_folder_is_refused_before_anything_is_written(
    df: DataFrame, session: SparkSession, tmp_path: Path
) -> None:
    path, elsewhere = str(tmp_path / "t"), str(tmp_path / "elsewhere")
    options = {**OPTIONS, "hoodie.base.path": elsewhere}
    with pytest.raises(InvalidError, match=r"hoodie\.base\.path is .*elsewhere, but the table is at"):
        df.write.format("hudi").options(**options).save(path)
    assert not (tmp_path / "t").exists()
    for _ in range(2):
        df.write.format("hudi").options(**options | {"hoodie.base.path": path}).mode("overwrite").save(path)
    session.sql(f"create table trips using hudi location '{path}'")
    session.sql(f"set hoodie.base.path = {elsewhere}")
    for statement in (
        "insert into trips select * from trips",
        "update trips set city = 'x'",
        "delete from trips where id = 1",
        "truncate table trips",
        "call run_clean(table => 'trips')",
    ):
        with pytest.raises(InvalidError, match=r"hoodie\.base\.path"):
            session.sql(statement)
    with pytest.raises(InvalidError, match=r"hoodie\.base\.path"):
        session.sql(
            f"create table trips2 (id int) using hudi location '{tmp_path}/new'"
            f" tblproperties (hoodie.base.path = '{elsewhere}')"
        )
    session.sql("reset hoodie.base.path")
    assert session.table("trips").count() == 3
    assert not (tmp_path / "new/.hoodie").exists() and not (tmp_path / "elsewhere").exists()
    session.sql("drop table trips")
