"""A Spark job and the embedded engine write to one table at the same time, to the same file groups."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import drawstring
from tests.support.rows import held, rides
from tests.support.tables import create, table_types

SPARK_WRITES = 3


def ridden(writer: str, number: int) -> pa.Table:
    """Return a new ride of a writer, and the one that all writers change."""
    return rides((f"{writer}{number}", "rome", number, 1.0), ("shared", "rome", number, 2.0))


@pytest.mark.spark
@table_types
def test_both_engines_write_at_the_same_time(session: SparkSession, tmp_path: Path, table_type: str) -> None:
    table = create(path=tmp_path / "t", table_type=table_type)
    table.upsert(ridden("first", 0))
    spark_is_done = threading.Event()
    meanwhile: list[int] = []
    by_other: list[int] = []
    errors: list[Exception] = []

    def write_beside() -> None:
        beside = drawstring.open(table.uri)
        try:
            while not spark_is_done.is_set():
                beside.upsert(ridden("other", len(by_other)))
                by_other.append(len(by_other))
                spark_is_done.wait(0.2)
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=write_beside)
    thread.start()
    try:
        for number in range(SPARK_WRITES):
            rows = session.createDataFrame(ridden("spark", number).to_pandas())
            rows.write.format("hudi").option("hoodie.table.name", "rides").mode("append").save(table.uri)
            meanwhile.append(len(by_other))
    finally:
        spark_is_done.set()
        thread.join()
    assert errors == []
    written = [f"spark{each}" for each in range(SPARK_WRITES)] + [f"other{each}" for each in by_other]
    expected = sorted(["first0", "shared", *written])
    assert [row[0] for row in held(table)] == expected
    assert sorted(row.id for row in session.read.format("hudi").load(table.uri).collect()) == expected
    assert meanwhile[-1] > meanwhile[0], "the embedded engine wrote nothing while Spark did"
    assert table.services.validate().findings == ()
