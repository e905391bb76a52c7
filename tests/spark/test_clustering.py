"""Spark's executors cluster a table."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import drawstring.spark
from tests.support.spark_tables import KEYS, MOR, held, rides

pytestmark = pytest.mark.spark

ORDER = {
    "hoodie.clustering.plan.strategy.sort.columns": "ts,id",
    "hoodie.layout.optimize.strategy": "HILBERT",
}


def test_file_groups_come_together_in_executors(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "rides")
    apart = {**KEYS, **MOR, "hoodie.parquet.small.file.limit": "0"}
    for first in (1, 11, 21):
        drawstring.spark.write(rides(spark, *range(first, first + 6)), path, options=apart)
    drawstring.spark.write(rides(spark, 2, 13, ts=5), path, options=apart)
    table = drawstring.spark.table(spark, path)
    before, groups = held(spark, path), len(table.inspect.files())
    told: list[tuple[int, int]] = []
    result = table.services.cluster(progress=lambda done, total: told.append((done, total)), options=ORDER)
    assert result and result.files == told[-1][1] < groups
    assert len(table.inspect.files()) == result.files
    assert held(spark, path) == before
    assert not table.services.cluster(options=ORDER)


def test_executors_fold_log_files_when_a_table_changes_its_version(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "rides")
    old = {**KEYS, **MOR, "hoodie.write.table.version": "6"}
    drawstring.spark.write(rides(spark, *range(6)), path, options=old)
    drawstring.spark.write(rides(spark, 2, 3, ts=5), path, options=old)
    before, table = held(spark, path), drawstring.spark.table(spark, path)
    assert table.config.version == 6
    told: list[tuple[int, int]] = []
    result = table.versions.upgrade(9, progress=lambda done, total: told.append((done, total)))
    assert result.compacted and told[-1][0] == told[-1][1] > 0
    assert (table.config.version, held(spark, path)) == (9, before)
    drawstring.spark.write(rides(spark, 2, ts=7), path, options={**KEYS, **MOR})
    assert table.versions.downgrade(6).compacted
    assert len(held(spark, path)) == len(before)
