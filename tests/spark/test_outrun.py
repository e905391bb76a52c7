"""Spark queries beside cleaning: the files that a query was planned with are gone when it runs."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import drawstring
import drawstring.spark
from drawstring.base.errors import CorruptTableError, InvalidError, UnavailableError
from drawstring.table import Table
from tests.support.tables import create

SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string()), ("ts", pa.int64())])
LEAVE = {"hoodie.clean.automatic": "false", "hoodie.compact.inline": "false"}
KEEP_1 = {"hoodie.clean.commits.retained": "1"}


def write(table: Table, ts: int) -> None:
    rows = [{"id": number, "city": f"c{number % 2}", "ts": ts} for number in range(4)]
    table.upsert(pa.Table.from_pylist(rows, SCHEMA), options=LEAVE)


def outdate(table: Table) -> None:
    """Write new versions of all files, and clean the old ones."""
    for ts in (10, 11):
        write(table, ts)
        if table.config.is_merge_on_read:
            table.services.compact(options=LEAVE)
    assert table.services.clean(options=KEEP_1)


def created(path: Path, table_type: str) -> Table:
    table = create(SCHEMA, path, table_type=table_type)
    write(table, 1)
    write(table, 2)
    return table


@pytest.mark.spark
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_query_whose_files_were_cleaned_is_to_be_run_again(
    spark: SparkSession, tmp_path: Path, table_type: str
) -> None:
    drawstring.spark.register(spark)
    table = created(tmp_path / "a table", table_type)
    first = table.timeline.writes()[-1].requested
    now = spark.read.format("hudi").load(table.uri)
    then = spark.read.format("hudi").option("as.of.instant", first).load(table.uri)
    outdate(table)
    for df in (now, then):
        with pytest.raises(UnavailableError, match="deleted after the query was planned") as caught:
            df.collect()
        assert caught.value.path and caught.value.path.startswith("c")
    again = spark.read.format("hudi").load(table.uri)
    assert {row.ts for row in again.collect()} == {11}
    with pytest.raises(InvalidError, match="were cleaned away"):
        spark.read.format("hudi").option("as.of.instant", first).load(table.uri)


@pytest.mark.spark
def test_a_file_that_spark_misses_in_a_table_that_stands_still_is_lost(
    spark: SparkSession, tmp_path: Path
) -> None:
    drawstring.spark.register(spark)
    table = created(tmp_path / "t", "COPY_ON_WRITE")
    df = spark.read.format("hudi").load(table.uri)
    (lost,) = {
        each.base.status.path for each in table.inspect.files() if each.base and each.partition == "c0"
    }
    (tmp_path / "t" / lost).unlink()
    with pytest.raises(CorruptTableError, match="is missing") as caught:
        df.collect()
    assert caught.value.path == lost
