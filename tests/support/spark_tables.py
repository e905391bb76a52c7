"""Tables of rides on Spark, written and read with format("hudi")."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import drawstring.spark

COW = {"hoodie.datasource.write.table.type": "COPY_ON_WRITE"}
MOR = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
KEYS = {
    "hoodie.table.name": "rides",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
}
OPERATION = "hoodie.datasource.write.operation"
Rows = list[tuple[Any, ...]]


def rides(spark: SparkSession, *numbers: int, ts: int = 1) -> DataFrame:
    """Return rows by their keys."""
    values = ", ".join(f"(cast({number} as bigint))" for number in numbers)
    city = "element_at(array('amsterdam', 'berlin'), cast(id % 2 as int) + 1)"
    return spark.sql(f"select id, {city} as city, {ts}L as ts from values {values} as t(id)")


def save(df: DataFrame, path: Path, operation: str, mode: str = "append", **more: str) -> None:
    """Write rows by `format("hudi")`."""
    options = {**KEYS, **more, OPERATION: operation}
    df.write.format("hudi").options(**options).mode(mode).save(str(path))


def load(spark: SparkSession, path: Path, **options: str) -> Rows:
    """Return key and time of all rows as `format("hudi")` reads them."""
    df = spark.read.format("hudi").options(**options).load(str(path)).select("id", "ts")
    return sorted((row.id, row.ts) for row in df.collect())


def held(spark: SparkSession, path: str) -> Rows:
    """Return key and time of all rows as the engine reads them."""
    rows = drawstring.spark.read(spark, path, columns=["id", "ts"]).collect()
    return sorted((row.id, row.ts) for row in rows)
