"""Table services that Spark's executors carry out."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import drawstring.spark
from drawstring.base.errors import InvalidError
from tests.support.rows import held, rides
from tests.support.tables import MOR, create, logs

pytestmark = pytest.mark.spark

COLUMNS = "id string, city string, ts long, fare double"
BACKGROUND = {
    "hoodie.datasource.compaction.async.enable": "true",
    "hoodie.compact.inline.max.delta.commits": "2",
}


@pytest.fixture
def table(tmp_path: Path) -> drawstring.Table:
    made = create(path=tmp_path / "rides", table_type=MOR)
    made.upsert(rides(("a", "rome", 1, 1.0), ("b", "oslo", 1, 1.0)))
    made.upsert(rides(("a", "rome", 2, 2.0), ("b", "oslo", 2, 2.0)))
    return made


def test_a_compaction_is_planned_and_run_by_spark(spark: SparkSession, table: drawstring.Table) -> None:
    opened = drawstring.spark.table(spark, table.uri)
    instant = opened.services.schedule_compaction()
    assert (logs(table), opened.services.schedule_compaction()) == (2, None)
    with pytest.raises(InvalidError, match="no compaction"):
        drawstring.spark.compact(spark, table.uri, "20200101000000000")
    result = drawstring.spark.compact(spark, table.uri, instant)
    assert (result.instant, result.files) == (instant, 2)
    assert (logs(table), held(table)) == (0, [("a", "rome", 2, 2.0), ("b", "oslo", 2, 2.0)])


def test_a_write_compacts_after_five_delta_commits_unless_told_not_to(
    spark: SparkSession, table: drawstring.Table
) -> None:
    for turn in (3, 4):
        table.upsert(rides(("a", "rome", turn, float(turn))))
    rows = spark.createDataFrame([("a", "rome", 5, 5.0)], COLUMNS)
    drawstring.spark.write(rows, table.uri, options={"hoodie.compact.inline": "false"})
    assert logs(table) == 5
    drawstring.spark.write(rows, table.uri)
    assert (logs(table), held(table)) == (0, [("a", "rome", 5, 5.0), ("b", "oslo", 2, 2.0)])


def test_a_thread_compacts_between_the_writes_of_a_stream(
    spark: SparkSession, table: drawstring.Table
) -> None:
    for turn in (3, 4):
        rows = spark.createDataFrame([("a", "rome", turn, float(turn))], COLUMNS)
        drawstring.spark.write(rows, table.uri, options=BACKGROUND)
    assert drawstring.spark.table(spark, table.uri).services.wait(120)
    assert held(table) == [("a", "rome", 4, 4.0), ("b", "oslo", 2, 2.0)]
    assert any(each.action == "commit" for each in table.timeline.writes())


def test_spark_rewrites_the_buckets_of_a_partition(spark: SparkSession, tmp_path: Path) -> None:
    buckets = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    made = create(path=tmp_path / "hashed", table_type=MOR, properties=buckets)
    made.upsert(rides(*((f"k{number}", city, 1, 1.0) for city in ("oslo", "rome") for number in range(20))))
    made.upsert(rides(("k7", "rome", 2, 2.0)))
    before = held(made)
    assert drawstring.spark.table(spark, made.uri).services.rescale_buckets(5, "rome").files == 5
    assert held(made) == before
    assert len(made.scan(where="city = 'rome' AND id = 'k7'").tasks()) == 1
    made.upsert(rides(("k7", "rome", 3, 3.0)))
    assert len(held(made)) == 40
    assert made.services.validate().is_sound
