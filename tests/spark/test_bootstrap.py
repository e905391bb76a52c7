"""A script of Hudi's that bootstraps a table, and goes on with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import drawstring.spark
from drawstring.base.errors import InvalidError

pytestmark = pytest.mark.spark

OPTIONS = {
    "hoodie.table.name": "rides",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
}
SELECTOR = "org.apache.hudi.client.bootstrap.selector.BootstrapRegexModeSelector"


def test_a_script_that_bootstraps_runs_unchanged(spark: SparkSession, tmp_path: Path) -> None:
    drawstring.spark.register(spark)
    source, path = str(tmp_path / "source"), str(tmp_path / "table")
    city = "element_at(array('a:b', 'oslo'), cast(id % 2 as int) + 1)"
    rides = spark.sql(f"select id, id * 10 as fare, 1L as ts, {city} as city from range(20)")
    rides.coalesce(1).write.partitionBy("city").parquet(source)
    options = {
        **OPTIONS,
        "hoodie.datasource.write.operation": "bootstrap",
        "hoodie.bootstrap.base.path": source,
        "hoodie.bootstrap.mode.selector": SELECTOR,
        "hoodie.bootstrap.mode.selector.regex": "city=a.*",
        "hoodie.bootstrap.mode.selector.regex.mode": "METADATA_ONLY",
    }
    nothing = spark.createDataFrame([], rides.schema)
    nothing.write.format("hudi").options(**options).mode("overwrite").save(path)

    def held(**query: str) -> list[Any]:
        rows = spark.read.format("hudi").options(**query).load(path).select("id", "fare", "city").collect()
        return sorted((row.id, row.fare, row.city) for row in rows)

    expected = [(number, number * 10, ("a:b", "oslo")[number % 2]) for number in range(20)]
    assert held() == expected
    changes = rides.where("id in (3, 4)").selectExpr("id", "-1L as fare", "2L as ts", "city")
    changes.write.format("hudi").options(**OPTIONS).mode("append").save(path)
    expected[3:5] = [(3, -1, "oslo"), (4, -1, "a:b")]
    assert held() == expected
    read = spark.read.format("hudi").load(path)
    assert read.where("city = 'a:b' and fare < 100").count() == 5
    with pytest.raises(InvalidError, match="already has rows"):
        nothing.write.format("hudi").options(**options).mode("append").save(path)
