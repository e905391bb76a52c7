"""Errors on Spark: caught as those of Spark are, one clear message each."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import drawstring.spark
from drawstring.base.errors import ConflictError, InvalidError, NoTableError, UnsupportedError
from drawstring.spark.errors import on_spark
from tests.support.spark_tables import rides, save

pytestmark = pytest.mark.spark

Call = Callable[[SparkSession, str], object]


def view(options: str) -> Call:
    return lambda session, path: session.sql(
        f"create or replace temporary view wrong using hudi options (path '{path}'{options})"
    )


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (
            lambda session, path: session.read.format("hudi").load(f"{path}2"),
            NoTableError,
            "not a Hudi table",
        ),
        (
            lambda session, path: session.read.format("hudi").option("hoodie.tabel.name", "t").load(path),
            InvalidError,
            "Did you mean 'hoodie.table.name'",
        ),
        (
            lambda session, path: rides(session, 1).write.format("hudi").mode("error").save(path),
            InvalidError,
            "already exists",
        ),
        (
            lambda session, path: drawstring.spark.table(session, path).delete(where="nothing = 1"),
            InvalidError,
            "no column nothing",
        ),
        (
            lambda session, path: session.readStream.format("hudi").load(f"{path}2"),
            NoTableError,
            "not a Hudi table",
        ),
        (
            lambda session, path: session.sql(
                f"create or replace temporary view wrong using hudi options (path '{path}2')"
            ),
            NoTableError,
            "not a Hudi table",
        ),
        (view(", `hoodie.datasource.qery.type` 'x'"), InvalidError, "Did you mean"),
        (view(", `as.of.instant` 'yesterday'"), InvalidError, "yesterday"),
    ],
)
def test_a_mistake_is_one_message_that_users_of_spark_catch(
    session: SparkSession, tmp_path: Path, call: Call, kind: type[Exception], message: str
) -> None:
    save(rides(session, 1), tmp_path / "rides", "upsert")
    with pytest.raises(AnalysisException, match=message) as caught:
        call(session, str(tmp_path / "rides"))
    assert isinstance(caught.value, kind)
    for text in (str(caught.value), caught.value.getMessage()):
        assert "Traceback" not in text and "PYTHON_DATA_SOURCE_ERROR" not in text
        assert "\n" not in text and f"table: {tmp_path}" in text


def test_an_error_of_a_query_of_a_view_is_one_message(session: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "rides"
    save(rides(session, 1), path, "upsert")
    session.sql(f"create or replace temporary view gone using hudi options (path '{path}')")
    (path / ".hoodie").rename(tmp_path / "elsewhere")
    with pytest.raises(NoTableError, match="not a Hudi table") as caught:
        session.sql("select * from gone").collect()
    assert "Traceback" not in str(caught.value)


def test_what_is_not_supported_is_caught_as_well(session: SparkSession) -> None:
    with pytest.raises(AnalysisException, match="void") as caught:
        rides(session, 1).selectExpr("*", "null as nothing").write.format("hudi").save("/nowhere")
    assert isinstance(caught.value, UnsupportedError)


def test_the_errors_travel_between_processes() -> None:
    error = on_spark(InvalidError("No such column.", table="/t", path="f.parquet"))
    same = pickle.loads(pickle.dumps(error))
    assert isinstance(same, AnalysisException) and isinstance(same, InvalidError)
    assert str(same) == str(error) == "No such column. (table: /t, file: f.parquet)"
    conflict = ConflictError("Another writer was first.")
    assert on_spark(conflict) is conflict
