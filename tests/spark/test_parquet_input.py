"""DataFrames that are Parquet files as they are get read by the workers, and all others by Spark."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import drawstring
import drawstring.spark
from drawstring.spark.engine import FILES_MAX, parquet_input
from drawstring.spark.workers.rows import arrow_schema

pytestmark = pytest.mark.spark

ROWS = pa.table(
    {
        "id": [f"r{number}" for number in range(100)],
        "city": [["x", "z z"][number % 2] for number in range(100)],
        "ts": list(range(100)),
        "at": pa.array([datetime(2024, 1, 1, tzinfo=UTC)] * 100, pa.timestamp("us", "UTC")),
        "tags": pa.array([["a", None]] * 100, pa.list_(pa.string())),
    }
)


def stored(folder: Path, rows: pa.Table = ROWS, name: str = "some rows.parquet", **how: Any) -> str:
    folder.mkdir(exist_ok=True)
    pq.write_table(rows, folder / name, row_group_size=7, **how)
    return str(folder)


def is_direct(df: DataFrame) -> bool:
    return parquet_input(df, arrow_schema(df.schema)) is not None


def test_files_are_loaded_row_by_row_as_spark_loads_them(spark: SparkSession, tmp_path: Path) -> None:
    stored(tmp_path / "in", ROWS.slice(0, 0), "none.parquet")
    df = spark.read.parquet(stored(tmp_path / "in"))
    assert is_direct(df)
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.precombine.field": "ts",
    }
    path = str(tmp_path / "t")
    drawstring.spark.write(df, path, operation="bulk_insert", options=options)
    found = drawstring.open(path).scan(columns=ROWS.schema.names).to_arrow().sort_by("ts")
    assert found.to_pylist() == ROWS.to_pylist()


CHANGED: dict[str, Callable[[DataFrame], DataFrame]] = {
    "filter": lambda df: df.where("ts > 3"),
    "column": lambda df: df.withColumn("ts", F.col("ts") + 1),
    "cut": lambda df: df.limit(3),
    "select": lambda df: df.select("id", "ts"),
    "metadata": lambda df: df.select("*", "_metadata.file_size"),
    "file name": lambda df: df.withColumn("file", F.input_file_name()),
}


@pytest.mark.parametrize("change", CHANGED)
def test_rows_that_spark_changes_come_from_spark(spark: SparkSession, tmp_path: Path, change: str) -> None:
    df = spark.read.parquet(stored(tmp_path / "in"))
    assert is_direct(df)
    assert not is_direct(CHANGED[change](df))


def test_rows_that_spark_keeps_come_from_spark(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.read.parquet(stored(tmp_path / "in")).cache()
    try:
        assert not is_direct(df)
    finally:
        df.unpersist()


def test_files_that_spark_reads_in_its_own_way_come_from_spark(spark: SparkSession, tmp_path: Path) -> None:
    def df(folder: str, rows: pa.Table = ROWS, **options: str) -> DataFrame:
        return spark.read.options(**options).parquet(stored(tmp_path / folder, rows))

    assert is_direct(df("plain"))
    assert not is_direct(df("old", ROWS.replace_schema_metadata({"org.apache.spark.legacyDateTime": ""})))
    assert not is_direct(df("older", ROWS.replace_schema_metadata({"org.apache.spark.version": "2.4.6"})))
    assert is_direct(df("new", ROWS.replace_schema_metadata({"org.apache.spark.version": "4.0.0"})))
    assert not is_direct(df("unsigned", ROWS.set_column(2, "ts", ROWS["ts"].cast(pa.uint32()))))
    assert not is_direct(df("merged", mergeSchema="true"))
    narrower = spark.read.schema("id string").parquet(str(tmp_path / "plain"))
    assert not is_direct(narrower)
    by_city = tmp_path / "by city"
    for city in ("x", "y"):
        (by_city / f"city={city}").mkdir(parents=True)
        stored(by_city / f"city={city}", ROWS.drop_columns("city"))
    assert not is_direct(spark.read.parquet(str(by_city)))


def test_many_files_come_from_spark(spark: SparkSession, tmp_path: Path) -> None:
    for number in range(FILES_MAX + 1):
        stored(tmp_path / "in", ROWS.slice(number, 1), f"{number}.parquet")
    assert not is_direct(spark.read.parquet(str(tmp_path / "in")))


def test_a_damaged_file_is_told_in_sparks_words(spark: SparkSession, tmp_path: Path) -> None:
    folder = stored(tmp_path / "in")
    df = spark.read.parquet(folder)
    (file,) = Path(folder).iterdir()
    file.write_bytes(b"PAR1 and no more")
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    with pytest.raises((PySparkException, Py4JJavaError), match="FAILED_READ_FILE"):
        drawstring.spark.write(df, str(tmp_path / "t"), options=options)
