"""Spark's executors cluster a table."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import drawstring.spark
from tests.spark.test_changing import held
from tests.spark.test_tables import KEYS, MOR, rides

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
    before, groups = held(spark, path), len(table.file_slices())
    told: list[tuple[int, int]] = []
    result = table.cluster(lambda done, total: told.append((done, total)), **ORDER)
    assert result is not None and result.files == told[-1][1] < groups
    assert len(table.file_slices()) == result.files
    assert held(spark, path) == before
    assert table.cluster(**ORDER) is None
