"""Comparisons and casts of dates and times give what Spark gives, in a session in UTC."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from drawstring.expressions.evaluation import evaluated
from drawstring.expressions.sql_condition import expression_of, value_of
from tests.support.spark import without_ansi
from tests.support.time_cases import CASTS, COMPARISONS, MORE, REFUSED, SCHEMA, rows

pytestmark = pytest.mark.spark


def given(frame: DataFrame, expressions: tuple[str, ...]) -> dict[str, pa.Array]:
    """Return what Spark gives expressions, in the order of the rows."""
    chosen = frame.selectExpr("at_row", *(f"{each} as v{at}" for at, each in enumerate(expressions)))
    found = chosen.toArrow().sort_by("at_row")
    return {each: found.column(f"v{at}").combine_chunks() for at, each in enumerate(expressions)}


def frame_of(spark: SparkSession) -> DataFrame:
    table = rows()
    frame = spark.createDataFrame(table.append_column("at_row", pa.array(range(len(table)))))
    return frame.withColumn("local", frame["local"].cast("timestamp_ntz"))


def test_comparisons_keep_the_rows_that_spark_keeps(spark: SparkSession) -> None:
    conditions = (*COMPARISONS, *MORE)
    with without_ansi(spark):
        theirs = given(frame_of(spark), conditions)
    table = rows()
    ours = {each: evaluated(table, [expression_of(each, SCHEMA)], ["v"]).column("v") for each in conditions}
    assert {each: found.to_pylist() for each, found in ours.items()} == {
        each: found.to_pylist() for each, found in theirs.items()
    }


def test_casts_give_the_values_that_spark_gives(spark: SparkSession) -> None:
    with without_ansi(spark):
        theirs = given(frame_of(spark), CASTS)
    table = rows()
    ours = {
        each: evaluated(table, [value_of(each, SCHEMA, found.type)], ["v"]).column("v").combine_chunks()
        for each, found in theirs.items()
    }
    assert {each: (found.type, found.to_pylist()) for each, found in ours.items()} == {
        each: (found.type, found.to_pylist()) for each, found in theirs.items()
    }


@pytest.mark.parametrize("condition", REFUSED)
def test_what_is_refused_spark_refuses_too(spark: SparkSession, condition: str) -> None:
    with pytest.raises(AnalysisException, match="DATATYPE_MISMATCH"):
        frame_of(spark).where(condition)
