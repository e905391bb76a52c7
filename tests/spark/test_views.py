"""Temporary views: one snapshot until Spark is told to refresh, and the rows of now after it."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import drawstring
import drawstring.spark
from drawstring.base.errors import InvalidError
from tests.support.tables import create

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string()), ("ts", pa.int64())])
Refresh = Callable[[SparkSession, Path], object]
REFRESHES: dict[str, Refresh] = {
    "sql-table": lambda spark, path: spark.sql("REFRESH TABLE rides"),
    "sql-path": lambda spark, path: spark.sql(f"refresh '{path}'"),
    "sql-clear": lambda spark, path: spark.sql("clear cache"),
}


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    drawstring.spark.register(spark)
    yield spark
    for name in ("rides", "other", "joined", "told", "read"):
        spark.catalog.dropTempView(name)
    spark.catalog.dropGlobalTempView("rides")


def rows(*numbers: int, ts: int = 1) -> pa.Table:
    cities = ["lima" if number % 2 else "oslo" for number in numbers]
    return pa.table([list(numbers), cities, [ts] * len(numbers)], schema=SCHEMA)


@pytest.fixture
def table(tmp_path: Path) -> drawstring.Table:
    table = create(SCHEMA, tmp_path / "t", table_type="MERGE_ON_READ")
    table.insert(rows(1, 2))
    return table


def load(spark: SparkSession, table: drawstring.Table, **options: str) -> DataFrame:
    return spark.read.format("hudi").options(**options).load(table.uri)


def held(spark: SparkSession, view: str = "rides") -> list[tuple[int, int]]:
    return sorted((row.id, row.ts) for row in spark.sql(f"select id, ts from {view}").collect())


@pytest.mark.parametrize("how", REFRESHES)
def test_a_refresh_shows_the_rows_of_now_in_views(
    how: str, session: SparkSession, table: drawstring.Table, tmp_path: Path
) -> None:
    df = load(session, table)
    df.createOrReplaceTempView("rides")
    table.upsert(rows(2, 3, ts=2))  # from here on there are log files: the view is read in another way
    assert held(session) == [(1, 1), (2, 1)]
    REFRESHES[how](session, tmp_path / "t")
    assert held(session) == [(1, 1), (2, 2), (3, 2)]
    assert df.count() == 2, "a DataFrame stays as it is"


def test_a_view_of_sql_text_can_be_refreshed(session: SparkSession, table: drawstring.Table) -> None:
    session.sql(f"create temporary view rides using hudi options (path '{table.uri}')")
    looks_again = session.version.startswith("4.0.")
    for number in (3, 4):  # the second time it is a view of the other kind
        before = held(session)
        table.upsert(rows(number))
        assert looks_again or held(session) == before
        session.sql("refresh table rides")
        assert held(session) == [(each, 1) for each in range(1, number + 1)]


def test_what_a_view_is_made_of_is_refreshed_together(session: SparkSession, table: drawstring.Table) -> None:
    rides = load(session, table)
    known = load(session, table).where("ts > 0").selectExpr("id as known")
    twice = rides.join(known, rides.id == known.known).groupBy("id")
    twice.agg({"ts": "max"}).toDF("id", "ts").createOrReplaceTempView("other")
    rides.alias("a").join(rides.alias("b"), "id").selectExpr("id", "b.ts").createOrReplaceTempView("joined")
    session.sql("create temporary view rides as select id, ts from other where id in (select id from joined)")
    table.upsert(rows(2, 3, ts=2))
    assert held(session, "joined") == held(session, "other") == held(session) == [(1, 1), (2, 1)]
    session.catalog.refreshTable("rides")
    now = [(1, 1), (2, 2), (3, 2)]
    assert held(session, "joined") == held(session, "other") == held(session) == now


def test_only_what_is_meant_is_refreshed(session: SparkSession, table: drawstring.Table) -> None:
    load(session, table).createOrReplaceTempView("rides")
    load(session, table).createOrReplaceTempView("other")
    load(session, table).createOrReplaceGlobalTempView("rides")
    table.upsert(rows(3))
    session.catalog.refreshTable("other")
    session.catalog.refreshByPath(f"{table.uri}2")
    views = ("rides", "other", "global_temp.rides")
    assert [len(held(session, view)) for view in views] == [2, 3, 2]
    session.sql("refresh table global_temp.rides")
    assert [len(held(session, view)) for view in views] == [2, 3, 3]
    session.catalog.refreshByPath(f"file:{Path(table.uri).parent}/")
    assert [len(held(session, view)) for view in views] == [3, 3, 3]


def test_a_cached_view_is_cached_again(session: SparkSession, table: drawstring.Table) -> None:
    load(session, table).createOrReplaceTempView("rides")
    session.catalog.cacheTable("rides")
    assert len(held(session)) == 2
    table.upsert(rows(3))
    session.sql("refresh table rides")
    assert len(held(session)) == 3
    assert session.catalog.isCached("rides")
    session.catalog.clearCache()


def test_changes_and_conditions_are_read_again_as_they_were_asked_for(
    session: SparkSession, table: drawstring.Table
) -> None:
    begin = table.timeline.writes()[-1].completed or ""
    options = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": begin,
        "drawstring.columns": "id,ts",
    }
    load(session, table, **options).createOrReplaceTempView("rides")
    drawstring.spark.changes(session, table.uri, begin).createOrReplaceTempView("told")
    condition = drawstring.spark.read(session, table.uri, where="city = 'lima'")
    condition.createOrReplaceTempView("read")
    assert held(session) == []
    table.upsert(rows(3, 4))
    session.catalog.clearCache()
    assert held(session) == [(3, 1), (4, 1)]
    assert session.table("told").count() == 2
    assert held(session, "read") == [(1, 1), (3, 1)]


def test_a_view_whose_columns_have_other_types_now_is_as_it_was(
    session: SparkSession, tmp_path: Path
) -> None:
    narrow = pa.schema([("id", pa.int64()), ("ts", pa.int32())])
    table = drawstring.create(tmp_path / "t", narrow, record_key="id")
    table.insert(pa.table([[1], [1]], schema=narrow))
    load(session, table).createOrReplaceTempView("rides")
    table.insert(pa.table({"id": [2], "ts": [2**40], "new": ["x"]}))
    with pytest.raises(InvalidError, match="Column ts of view rides was int and is bigint"):
        session.sql("refresh table rides")
    assert held(session) == [(1, 1)]


def test_a_view_of_a_table_that_is_gone_hinders_no_other(
    session: SparkSession, table: drawstring.Table, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    gone = drawstring.create(tmp_path / "gone", SCHEMA, record_key="id")
    gone.insert(rows(1))
    load(session, gone).createOrReplaceTempView("other")
    load(session, table).createOrReplaceTempView("rides")
    shutil.rmtree(tmp_path / "gone")
    table.upsert(rows(3))
    with caplog.at_level(logging.WARNING, "drawstring.spark"):
        session.catalog.clearCache()
    assert len(held(session)) == 3
    assert "View other was not refreshed" in caplog.text
