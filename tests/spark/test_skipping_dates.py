"""Conditions on dates in texts skip files by expression indexes, and find what Spark finds."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import drawstring
from drawstring.table import Table
from tests.support.tables import create

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("written", pa.string()), ("ts", pa.int64())])
GROUPS = {"hoodie.parquet.small.file.limit": "0", "hoodie.compact.inline": "false"}
INDEXES = {
    "by_date": ("day", {"expr": "to_date"}),
    "by_month": ("day", {"expr": "month"}),
    "by_next": ("day", {"expr": "date_add", "days": "1"}),
    "by_pattern": ("written", {"expr": "to_date", "format": "d.MM.yyyy"}),
}
CONDITIONS = {
    "to_date(day) = date '2024-02-05'": "by_date",
    "to_date(day) in (date '2024-02-05', date '2024-05-01')": "by_date",
    "day(day) = 5 and to_date(day) > date '2024-02-01'": "by_date",
    "month(day) < 2": "by_month",
    "date_add(day, 1) = date '2024-02-06'": "by_next",
    "to_date(day) = date '2024-02-05' and to_date(written, 'd.MM.yyyy[ HH]') > date '2024-01-01'": "by_date",
}
BY_PATTERN = {
    "to_date(written, 'd.MM.yyyy') = date '2024-01-05'": "by_pattern",
    "to_date(written, 'd.MM.yyyy') > date '2024-02-01'": "by_pattern",
    "to_date(written, 'd.MM.yyyy') > date '2024-03-01'": "by_pattern",
    "to_date(written, 'd.MM.yyyy') in (date '2024-01-05')": "by_pattern",
    "to_date(written, 'd.MM.yyyy') = date '2024-01-05' and id > 0": "by_pattern",
    "to_date(written, 'd.MM.yyyy') <= date '2024-02-04'": "by_pattern",
    "to_timestamp(written, 'd.MM.yyyy') < timestamp '2024-02-05 00:00:00'": "by_pattern",
    "to_timestamp(written, 'd.MM.yyyy') > timestamp '2024-01-06 10:00:00'": "by_pattern",
}
OTHERS = [
    "to_date(written, 'd.MM.yyyy') <> date '2024-01-05'",
    "to_timestamp(written, 'd.MM.yyyy') < timestamp '2024-02-05 00:00:01'",
    "to_date(written, 'd.M.yyyy') = date '2024-01-05'",
    "to_timestamp(day) = timestamp '2024-02-05 10:00:00'",
]


@pytest.fixture(scope="module", params=["MERGE_ON_READ", "COPY_ON_WRITE"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """A table with a file group for each of two months; a MERGE_ON_READ table has a log file in each."""
    path = str(tmp_path_factory.mktemp("dates") / "rides")
    made = create(SCHEMA, path, table_type=request.param, partition_by=None, ordering="ts")
    for month in (1, 2):
        made.insert(rows(month, 1), options=GROUPS)
    for name, (column, options) in INDEXES.items():
        made.indexes.create(name, column, using="column_stats", options=options)
    for month in (1, 2):
        made.upsert(rows(month, 2), options=GROUPS)
    return drawstring.open(path)


def rows(month: int, ts: int) -> pa.Table:
    days = {"day": [f"2024-{month}-5 10:00:00", f"2024-{month:02}-06"]}
    return pa.table(
        {"id": [month, 10 + month], **days, "written": [f"5.{month:02}.2024"] * 2, "ts": [ts] * 2}
    )


def skipped_by(df: DataFrame) -> list[str]:
    """Return what a query skips file slices by, by its plan."""
    plan = df._jdf.queryExecution().toString()
    return sorted({*re.findall(r"skipped \d+ by (\w+)", plan)})


def checked(session: SparkSession, table: Table, where: str) -> list[str]:
    """Return what a query skips by, once its rows are those of Spark without the table."""
    whole = session.createDataFrame(table.scan(["id", "day", "written"]).to_arrow())
    df = session.read.format("hudi").load(table.uri).where(where).select("id")
    assert sorted(row.id for row in df.collect()) == sorted(row.id for row in whole.where(where).collect())
    return skipped_by(df)


@pytest.mark.parametrize("where", CONDITIONS)
def test_conditions_on_dates_in_texts_skip_files(session: SparkSession, table: Table, where: str) -> None:
    assert checked(session, table, where) == [f"expr_index_{CONDITIONS[where]}"]


@pytest.mark.parametrize("where", BY_PATTERN)
def test_conditions_on_dates_by_a_pattern_skip_files(session: SparkSession, table: Table, where: str) -> None:
    assert checked(session, table, where) == [f"expr_index_{BY_PATTERN[where]}"]
    session.conf.set("spark.sql.legacy.timeParserPolicy", "LEGACY")
    try:
        assert checked(session, table, where) == []
    finally:
        session.conf.unset("spark.sql.legacy.timeParserPolicy")


@pytest.mark.parametrize("where", OTHERS)
def test_conditions_that_no_index_knows_skip_nothing(session: SparkSession, table: Table, where: str) -> None:
    assert checked(session, table, where) == []
