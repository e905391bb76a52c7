"""Keys of a change are found however many there are: more of them are told to fewer tasks."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import drawstring
import drawstring.spark
from tests.support.limits import SetLimits
from tests.support.rows import arrow_rows
from tests.support.tables import create

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64())])
CITIES = ("rome", "oslo")


def rides(start: int, end: int, ts: int, moved: int = 0) -> pa.Table:
    rows = [(f"k{number:02}", CITIES[(number + moved) % 2], ts) for number in range(start, end)]
    return arrow_rows(SCHEMA, *rows)


@pytest.mark.parametrize(("index", "told_bytes_max"), [("GLOBAL_BLOOM", 1 << 20), ("BLOOM", 16)])
def test_more_keys_than_tasks_can_have_are_found_all_the_same(
    spark: SparkSession, tmp_path: Path, limit: SetLimits, index: str, told_bytes_max: int
) -> None:
    """Tasks that read the table have hashes of them, or know nothing but where they begin and end."""
    limit(spark_keys_bytes_max=told_bytes_max, spark_few_keys_bytes_max=8)
    moved = int(index == "GLOBAL_BLOOM")

    def give(rows: pa.Table) -> DataFrame:
        listed = [tuple(row.values()) for row in rows.to_pylist()]
        return spark.createDataFrame(listed, "id string, city string, ts long").repartition(5)

    there = create(SCHEMA, str(tmp_path), properties={"hoodie.index.type": index})
    there.upsert(rides(0, 30, 1))
    table = drawstring.spark.table(spark, str(tmp_path))
    table.upsert(give(rides(20, 40, 2, moved)))
    table.delete(give(rides(25, 28, 3, moved)))
    found = there.scan(SCHEMA.names).to_arrow().to_pylist()
    expected = [*rides(0, 20, 1).to_pylist(), *rides(20, 25, 2, moved).to_pylist()]
    assert sorted(found, key=str) == sorted([*expected, *rides(28, 40, 2, moved).to_pylist()], key=str)
