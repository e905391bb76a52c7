"""Spark's executors write to buckets that are being resized, and resize them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import drawstring.spark
from tests.support.consistent_buckets import CONSISTENT, MORE
from tests.support.spark_tables import KEYS, MOR, held, rides

pytestmark = pytest.mark.spark


def test_executors_write_to_old_and_new_buckets(spark: SparkSession, tmp_path: Path) -> None:
    path, options = str(tmp_path / "rides"), {**KEYS, **MOR, **CONSISTENT}
    drawstring.spark.write(rides(spark, *range(1, 13)), path, options=options)
    table = drawstring.spark.table(spark, path)
    planned = table.services.schedule_clustering(options=MORE)
    groups = len(table.inspect.files())
    assert planned is not None
    result = drawstring.spark.write(rides(spark, 1, 2, 3, 40, ts=5), path, options=options)
    assert result.records_written == 4
    assert table.delete(where="id = 4").deletes == 1
    expected = sorted([(1, 5), (2, 5), (3, 5), (40, 5), *((number, 1) for number in range(5, 13))])
    assert (held(spark, path), len(table.inspect.files())) == (expected, groups)
    assert table.services.cluster(instant=planned)
    assert held(spark, path) == expected
    assert len(table.inspect.files()) > groups
    assert table.services.validate().findings == ()
