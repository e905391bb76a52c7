"""Partition columns of timestamps and decimals on Spark: their values come from the paths."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

OPTIONS = {
    "hoodie.table.name": "rides",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
}
ZONE = "spark.sql.session.timeZone"


@pytest.fixture
def elsewhere(session: SparkSession) -> Iterator[SparkSession]:
    before = session.conf.get(ZONE)
    session.conf.set(ZONE, "Asia/Kolkata")
    yield session
    session.conf.set(ZONE, before)


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize(
    ("column", "where", "expected"),
    [
        ("timestamp_micros(id * 86400000000 + 123456)", "part > timestamp'1970-01-03 06:00:00'", [3]),
        ("timestamp_ntz'1969-12-31 23:59:59.5' + make_interval(0, 0, 0, id)", "part < '1970-01-02'", [1]),
        ("cast(id / 4 as decimal(5, 2))", "part between 0.5 and 0.6", [2]),
    ],
)
def test_the_values_are_those_that_were_written(
    elsewhere: SparkSession, tmp_path: Path, table_type: str, column: str, where: str, expected: list[int]
) -> None:
    options = {**OPTIONS, "hoodie.datasource.write.table.type": table_type}
    rows = elsewhere.range(1, 4).selectExpr("id", f"{column} as part", "1L as ts")
    path = str(tmp_path / "t")
    for df in (rows, rows.where("id = 2").selectExpr("id", "part", "2L as ts")):
        partition = {"hoodie.datasource.write.partitionpath.field": "part"}
        df.write.format("hudi").options(**options, **partition).mode("append").save(path)
    found = elsewhere.read.format("hudi").load(path).select("id", "part")
    assert sorted(map(tuple, found.collect())) == sorted(map(tuple, rows.select("id", "part").collect()))
    assert [row.id for row in found.where(where).orderBy("id").collect()] == expected
