"""Values of partition columns on Spark come from the paths."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from drawstring.base.errors import UnsupportedError

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


FROM_PATHS = "hoodie.datasource.read.extract.partition.values.from.path"


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_values_are_taken_from_paths_that_have_them(
    session: SparkSession, tmp_path: Path, table_type: str
) -> None:
    session.sql(
        "CREATE TABLE visits (id INT, ts BIGINT, region STRING, day DATE) USING hudi"
        " PARTITIONED BY (region, day)"
        f" TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts', type = '{table_type}')"
        f" LOCATION '{tmp_path}/visits'"
    )
    session.sql(f"SET {FROM_PATHS} = true")
    session.sql("INSERT INTO visits PARTITION (region = 'north', day = '2023-10-01') SELECT 1, 1000")
    session.sql("INSERT INTO visits VALUES (2, 1, NULL, NULL)")
    session.sql("UPDATE visits SET ts = 2000 WHERE region = 'north'")
    asked = (
        "SELECT id, ts, region, CAST(day AS STRING) FROM visits WHERE NOT (region <=> 'south') ORDER BY id"
    )
    found = [tuple(row) for row in session.sql(asked).collect()]
    session.sql(f"RESET {FROM_PATHS}")
    session.sql("DROP TABLE visits")
    assert found == [(1, 2000, "north", "2023-10-01"), (2, 1, None, None)]


def test_folders_do_not_stand_for_values_that_were_formatted_as_dates(
    session: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    options = {
        **OPTIONS,
        "hoodie.datasource.write.partitionpath.field": "at",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
    }
    rows = session.createDataFrame([(1, 1704103200000, 1)], "id int, at long, ts long")
    rows.write.format("hudi").options(**options).save(path)
    assert session.read.format("hudi").option(FROM_PATHS, "false").load(path).first()["at"] == "1704103200000"
    with pytest.raises(UnsupportedError, match="select _hoodie_partition_path to see the folders"):
        session.read.format("hudi").option(FROM_PATHS, "true").load(path)
    with pytest.raises(UnsupportedError, match="folders in place of the values of at"):
        session.readStream.format("hudi").option(FROM_PATHS, "true").load(path).schema  # noqa: B018


def test_log_files_of_a_merge_on_read_table_may_lack_partition_columns(
    session: SparkSession, tmp_path: Path
) -> None:
    session.sql(
        "CREATE TABLE visits (id INT, fare DOUBLE, ts BIGINT, day STRING) USING hudi PARTITIONED BY (day)"
        " TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts', type = 'mor',"
        f" hoodie.datasource.write.drop.partition.columns = 'true') LOCATION '{tmp_path}/visits'"
    )
    session.sql("SET hoodie.spark.sql.insert.into.operation = upsert")
    session.sql("INSERT INTO visits PARTITION (day = '2021-12-25') VALUES (1, 10, 1000), (2, 20, 1000)")
    session.sql("INSERT INTO visits VALUES (2, 22, 1001, '2021-12-25'), (3, 30, 1000, '2021-12-26')")
    asked = "SELECT id, fare, day FROM visits WHERE day >= '2021-12-25' ORDER BY id"
    before = [tuple(row) for row in session.sql(asked).collect()]
    logs = list((tmp_path / "visits/day=2021-12-25").glob(".*.log.*"))
    session.sql("CALL run_compaction(op => 'scheduleandexecute', table => 'visits')")
    after = [tuple(row) for row in session.sql(asked).collect()]
    session.sql("RESET hoodie.spark.sql.insert.into.operation")
    session.sql("DROP TABLE visits")
    assert logs and before == [(1, 10.0, "2021-12-25"), (2, 22.0, "2021-12-25"), (3, 30.0, "2021-12-26")]
    assert after == before
