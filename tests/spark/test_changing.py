"""Rows are updated, deleted and merged by Spark's executors."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import drawstring.spark
from tests.support.spark_tables import BUCKETS, COW, KEYS, MOR, held, rides

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("options", [COW, MOR | BUCKETS], ids=["cow-simple", "mor-bucket"])
def test_rows_are_changed_and_merged(spark: SparkSession, tmp_path: Path, options: dict[str, str]) -> None:
    path = str(tmp_path / "rides")
    drawstring.spark.write(rides(spark, 1, 2, 3, 4, 5), path, options={**KEYS, **options})
    table = drawstring.spark.table(spark, path)
    assert table.update("id >= 4 and city = 'amsterdam'", {"ts": "ts + 10"}).updates == 1
    assert table.delete(where="id = 5").deletes == 1
    assert held(spark, path) == [(1, 1), (2, 1), (3, 1), (4, 11)]
    source = rides(spark, 1, 2, 8, ts=2)
    merged = (
        table.merge(source, "target.id = source.id")
        .when_matched_delete("source.id = 2")
        .when_matched_update({"ts": "source.ts + target.ts"})
        .when_not_matched_insert_all()
        .when_not_matched_by_source_update({"ts": "ts * 100"}, "city = 'amsterdam'")
        .execute()
    )
    assert (merged.inserts, merged.updates, merged.deletes) == (1, 2, 1)
    assert held(spark, path) == [(1, 3), (3, 1), (4, 1100), (8, 2)]
    twice = rides(spark, 1, ts=7).union(rides(spark, 1, ts=8))
    table.merge(twice, ["id", "city"]).when_matched_update_all().execute()
    assert held(spark, path)[0] == (1, 8), "of several rows the greatest ordering value wins"
    table.merge(rides(spark, 1, ts=9), ["id", "city"]).when_matched_update_all().execute()
    assert held(spark, path) == [(1, 9), (3, 1), (4, 1100), (8, 2)]


@pytest.mark.parametrize("options", [COW, MOR], ids=["cow", "mor"])
def test_a_merge_without_columns_leaves_other_partitions_alone(
    spark: SparkSession, tmp_path: Path, options: dict[str, str]
) -> None:
    path, columns = str(tmp_path / "rides"), "id string, city string, ts long"
    stored = spark.createDataFrame([("a", "lima", 1), ("a", "oslo", 1)], columns)
    keys = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.table.name": "rides"}
    keys["hoodie.datasource.write.partitionpath.field"] = "city"
    drawstring.spark.write(stored, path, options={**keys, **options})
    table = drawstring.spark.table(spark, path)
    source = spark.createDataFrame([("a", "lima", 2), ("a", "rome", 2)], columns)
    table.merge(source).when_matched_update_all().when_not_matched_insert_all().execute()
    found = table.scan(["city", "ts"]).to_arrow().sort_by("city").to_pylist()
    assert [tuple(each.values()) for each in found] == [("lima", 2), ("oslo", 1), ("rome", 2)]
