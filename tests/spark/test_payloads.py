"""New tables with a payload class of Hudi's, created and written by Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

OPTIONS = {
    "hoodie.table.name": "rides",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
}
MODEL = "org.apache.hudi.common.model."


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ("AWSDmsAvroPayload", [(1, "new", None), (2, "old", "old")]),
        ("PartialUpdateAvroPayload", [(1, "old", "old"), (2, "old", "old"), (3, "old", "old")]),
        (
            "OverwriteNonDefaultsWithLatestAvroPayload",
            [(1, "new", "old"), (2, "old", "old"), (3, "old", "old")],
        ),
    ],
)
def test_changes_merge_by_the_class(
    session: SparkSession, tmp_path: Path, payload: str, expected: list[tuple[object, ...]]
) -> None:
    options = OPTIONS | {"hoodie.datasource.write.payload.class": MODEL + payload}
    for rows in (
        "(1, 5, 'I', 'old', 'old'), (2, 5, 'I', 'old', 'old'), (3, 5, 'I', 'old', 'old')",
        "(1, 4, 'U', 'new', cast(null as string)), (3, 6, 'D', cast(null as string), cast(null as string))",
    ):
        df = session.sql(f"select * from values {rows} as t(id, ts, Op, a, b)")
        df.write.format("hudi").options(**options).mode("append").save(str(tmp_path / "t"))
    found = session.read.format("hudi").load(str(tmp_path / "t")).select("id", "a", "b")
    assert sorted(tuple(row) for row in found.collect()) == expected


@pytest.mark.parametrize("operation", ["upsert", "delete"])
def test_rows_of_empty_payloads_are_deleted(session: SparkSession, tmp_path: Path, operation: str) -> None:
    path = str(tmp_path / "t")
    rows = session.sql("select * from values (1, 5), (2, 5), (3, 5) as t(id, ts)")
    rows.write.format("hudi").options(**OPTIONS).mode("append").save(path)
    deletes = {
        "hoodie.datasource.write.operation": operation,
        "hoodie.datasource.write.payload.class": f"{MODEL}EmptyHoodieRecordPayload",
    }
    rows.where("id > 1").write.format("hudi").options(**OPTIONS, **deletes).mode("append").save(path)
    assert [row.id for row in session.read.format("hudi").load(path).select("id").collect()] == [1]
    stored = (tmp_path / "t/.hoodie/hoodie.properties").read_text()
    assert "Empty" not in stored
