"""Key generators, generated keys and change logs on Spark: the same rules, in Python workers."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession

import drawstring
import drawstring.spark
from drawstring.config import table_types

pytestmark = pytest.mark.spark

WRITE = "hoodie.datasource.write."
TIMEBASED = {
    "hoodie.keygen.timebased.timestamp.type": "UNIX_TIMESTAMP",
    "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
}
CHANGES = {
    "hoodie.datasource.query.type": "incremental",
    "hoodie.datasource.query.incremental.format": "cdc",
    "hoodie.datasource.read.begin.instanttime": "earliest",
}


def rides(spark: SparkSession, *numbers: int, ts: int = 1) -> DataFrame:
    values = ", ".join(f"({number}L)" for number in numbers)
    return spark.sql(
        f"select id, 'rome' as city, id * 86400 as made, {ts}L as ts from values {values} as t(id)"
    )


def save(df: DataFrame, path: Path, **options: str) -> None:
    df.write.format("hudi").options(**{"hoodie.table.name": "rides", **options}).mode("append").save(
        str(path)
    )


def backwards(rows: pa.RecordBatch) -> tuple[pa.Array, pa.Array]:
    return rows.column("id").cast(pa.string()), pc.utf8_reverse(rows.column("city"))


def test_keys_of_several_kinds_and_change_logs(session: SparkSession, tmp_path: Path) -> None:
    keyed = {f"{WRITE}recordkey.field": "id", f"{WRITE}precombine.field": "ts"}
    custom = keyed | TIMEBASED | {f"{WRITE}partitionpath.field": "city:SIMPLE,made:TIMESTAMP"}
    custom |= {f"{WRITE}keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator"}
    custom |= {"hoodie.table.cdc.enabled": "true"}
    save(rides(session, 0, 1, 2), tmp_path / "custom", **custom)
    save(rides(session, 1, 3, ts=2), tmp_path / "custom", **custom)
    found = session.read.format("hudi").load(str(tmp_path / "custom")).select("_hoodie_partition_path", "ts")
    assert sorted(tuple(row) for row in found.collect()) == [
        (f"rome/1970-01-0{number}", ts) for number, ts in ((1, 1), (2, 2), (3, 1), (4, 2))
    ]
    changes = session.read.format("hudi").options(**CHANGES).load(str(tmp_path / "custom"))
    assert sorted(row.op for row in changes.select("op").collect()) == ["i", "i", "i", "i", "u"]

    save(rides(session, 0, 1), tmp_path / "keyless", **{f"{WRITE}partitionpath.field": "city"})
    save(rides(session, 0, 1), tmp_path / "keyless", **{f"{WRITE}partitionpath.field": "city"})
    keys = session.read.format("hudi").load(str(tmp_path / "keyless")).select("_hoodie_record_key").collect()
    assert len({row[0] for row in keys}) == 4

    drawstring.register_key_generator("Backwards", backwards)
    try:
        own = keyed | {f"{WRITE}partitionpath.field": "city", f"{WRITE}keygenerator.class": "a.Backwards"}
        save(rides(session, 0, 1), tmp_path / "own", **own)
        found = session.read.format("hudi").load(str(tmp_path / "own")).select("_hoodie_partition_path")
        assert {row[0] for row in found.collect()} == {"emor"}
    finally:
        table_types._generators.pop("Backwards")


def test_timestamps_are_texts_in_keys_and_folders_where_a_writer_says_so(
    session: SparkSession, tmp_path: Path
) -> None:
    rows = session.sql(
        "select * from values (1, timestamp'2024-01-15 01:11:12.123456Z', 1L),"
        " (2, timestamp'1960-01-15 01:11:12.0006Z', 1L), (3, null, 1L) as t(id, at, ts)"
    )
    texts = {
        f"{WRITE}recordkey.field": "id,at",
        f"{WRITE}partitionpath.field": "at",
        f"{WRITE}precombine.field": "ts",
        f"{WRITE}partitionpath.urlencode": "true",
        f"{WRITE}keygenerator.consistent.logical.timestamp.enabled": "true",
    }
    save(rows, tmp_path / "texts", **texts)
    save(rows.where("id = 1").selectExpr("id", "at", "2L as ts"), tmp_path / "texts", **texts)
    found = session.read.format("hudi").load(str(tmp_path / "texts"))
    columns = ("_hoodie_record_key", "_hoodie_partition_path", "ts", "unix_micros(at)")
    assert sorted(tuple(row) for row in found.selectExpr(*columns).collect()) == [
        ("id:1,at:2024-01-15 01:11:12.123", "2024-01-15 01%3A11%3A12.123", 2, 1705281072123456),
        ("id:2,at:1960-01-15 01:11:12.001", "1960-01-15 01%3A11%3A12.001", 1, -314405327999400),
        ("id:3,at:__null__", "__HIVE_DEFAULT_PARTITION__", 1, None),
    ]
    assert found.where("at = timestamp'2024-01-15 01:11:12.123456Z'").count() == 1
