"""Validators on Spark see what a write is about to commit; one that fails leaves the table as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import drawstring
from drawstring.query.scan import Scan
from tests.support.spark_tables import COW, MOR, load, rides, save

pytestmark = pytest.mark.spark

NAMES = "hoodie.precommit.validators"
PACKAGE = "org.apache.hudi.client.validator."
SINGLE = {
    NAMES: f"{PACKAGE}SqlQuerySingleResultPreCommitValidator",
    f"{NAMES}.single.value.sql.queries": "select max(ts) < 9 from <TABLE_NAME>#true",
}
EQUALITY = {
    NAMES: f"{PACKAGE}SqlQueryEqualityPreCommitValidator",
    f"{NAMES}.equality.sql.queries": "select city, count(*) from <TABLE_NAME> group by city",
}


def temporary_views(session: SparkSession) -> list[str]:
    return [row["tableName"] for row in session.sql("SHOW TABLES").collect() if row["isTemporary"]]


@pytest.mark.parametrize("table_type", [COW, MOR], ids=["cow", "mor"])
def test_a_dataframe_write_is_checked(
    session: SparkSession, tmp_path: Path, table_type: dict[str, str]
) -> None:
    path = tmp_path / "t"
    save(rides(session, 1, 2, 3), path, "upsert", **table_type, **SINGLE)
    views = temporary_views(session)
    with pytest.raises(AnalysisException, match=r"max.*is False, not true.*Nothing was committed"):
        save(rides(session, 1, ts=9), path, "upsert", **table_type, **SINGLE)
    assert load(session, path) == [(1, 1), (2, 1), (3, 1)]
    save(rides(session, 1, 3, ts=5), path, "upsert", **table_type, **EQUALITY)
    with pytest.raises(
        AnalysisException, match=r"\('berlin', 3\) after the commit and \('berlin', 2\) before"
    ):
        save(rides(session, 5), path, "upsert", **table_type, **EQUALITY)
    assert load(session, path) == [(1, 5), (2, 1), (3, 5)]
    assert drawstring.open(path).timeline.pending() == ()
    assert temporary_views(session) == views


def test_a_wrong_query_is_told(session: SparkSession, tmp_path: Path) -> None:
    wrong = {**SINGLE, f"{NAMES}.single.value.sql.queries": "select nothing from <TABLE_NAME>#1"}
    with pytest.raises(AnalysisException, match=r"nothing.*runs in Spark"):
        save(rides(session, 1), tmp_path / "t", "upsert", **wrong)


def test_statements_are_checked(session: SparkSession, tmp_path: Path) -> None:
    session.sql(
        "CREATE TABLE checked (id INT, fare DOUBLE) USING hudi TBLPROPERTIES (primaryKey = 'id',"
        f" '{NAMES}' = '{SINGLE[NAMES]}',"
        f" '{NAMES}.single.value.sql.queries' = 'select count(*) from <TABLE_NAME> where fare < 0#0')"
        f" LOCATION '{tmp_path / 'checked'}'"
    )
    try:
        session.sql("INSERT INTO checked VALUES (1, 1.0), (2, 2.0)")
        with pytest.raises(AnalysisException, match="is 2, not 0"):
            session.sql("UPDATE checked SET fare = -fare")
        assert session.sql("SELECT sum(fare) FROM checked").first()[0] == 3.0
    finally:
        session.sql("DROP TABLE checked")


def test_a_function_gets_scans(session: SparkSession, tmp_path: Path) -> None:
    def never_fewer(before: Scan, after: Scan) -> str | None:
        return "rows are lost" if after.to_arrow().num_rows < before.to_arrow().num_rows else None

    drawstring.register_validator("com.example.NeverFewer", never_fewer)
    path, asked = tmp_path / "t", {NAMES: "com.example.NeverFewer"}
    save(rides(session, 1, 2, 3), path, "upsert", **asked)
    with pytest.raises(AnalysisException, match="rows are lost"):
        save(rides(session, 1), path, "delete", **asked)
    assert load(session, path) == [(1, 1), (2, 1), (3, 1)]
