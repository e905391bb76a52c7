"""Key and partition fields inside struct columns, written by Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

OPTIONS = {
    "hoodie.table.name": "rides",
    "hoodie.datasource.write.recordkey.field": "a.k",
    "hoodie.datasource.write.partitionpath.field": "a.c",
    "hoodie.datasource.write.precombine.field": "ts",
}


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_records_are_found_by_a_nested_key(session: SparkSession, tmp_path: Path, table_type: str) -> None:
    kind = {"hoodie.datasource.write.table.type": table_type}
    for first, last, ts, operation in ((1, 5, 1, "upsert"), (3, 7, 2, "upsert"), (6, 7, 3, "delete")):
        df = session.range(first, last).selectExpr(
            "named_struct('k', id, 'c', if(id % 2 = 0, 'oslo', 'rome')) as a", f"{ts}L as ts"
        )
        more = {"hoodie.datasource.write.operation": operation, **kind}
        df.write.format("hudi").options(**OPTIONS, **more).mode("append").save(str(tmp_path / "t"))
    found = session.read.format("hudi").load(str(tmp_path / "t"))
    rows = found.where("a.k > 1").select("_hoodie_record_key", "_hoodie_partition_path", "a.k", "ts")
    assert sorted(tuple(row) for row in rows.collect()) == [
        ("2", "oslo", 2, 1),
        ("3", "rome", 3, 2),
        ("4", "oslo", 4, 2),
        ("5", "rome", 5, 2),
    ]
