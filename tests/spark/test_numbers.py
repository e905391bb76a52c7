"""Expressions of numbers have Spark's types and values."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pytest
from pyspark.errors import ArithmeticException
from pyspark.sql import SparkSession

from drawstring.expressions.evaluation import evaluated
from drawstring.expressions.sql_condition import value_of
from drawstring.spark.workers.rows import spark_schema
from tests.support.number_cases import EXPRESSIONS, SCHEMA, SPARK_SCHEMA, VALUES, rows

pytestmark = pytest.mark.spark

FAILS: Final = "fails"


def ours(expression: str) -> tuple[pa.DataType, list[Any]]:
    """Return type and values of an expression, row by row, since one that fails spoils the others."""
    value = value_of(expression, SCHEMA, pa.float64())
    kind = evaluated(SCHEMA.empty_table(), [value], ["v"]).schema.field("v").type
    values = []
    for row in range(len(VALUES)):
        try:
            values.append(evaluated(rows().slice(row, 1), [value], ["v"]).column("v")[0].as_py())
        except pa.ArrowInvalid:
            values.append(FAILS)
    return kind, values


def theirs(spark: SparkSession, expression: str) -> list[Any]:
    """Return the values that Spark gives an expression, row by row."""
    values: list[Any] = []
    for row in VALUES:
        one = spark.createDataFrame([row], SPARK_SCHEMA).selectExpr(expression)
        try:
            values.append(one.collect()[0][0])
        except ArithmeticException:
            values.append(FAILS)
    return values


def test_numbers_have_the_types_and_values_that_spark_gives_them(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.ansi.enabled", True)
    answers = {expression: ours(expression) for expression in EXPRESSIONS}
    whole = [expression for expression, (_, values) in answers.items() if FAILS not in values]
    frame = spark.createDataFrame(VALUES, SPARK_SCHEMA)
    columns = zip(*frame.selectExpr(*whole).collect(), strict=True)
    expected = {expression: list(values) for expression, values in zip(whole, columns, strict=True)}
    expected |= {
        expression: theirs(spark, expression) for expression in EXPRESSIONS if expression not in whole
    }
    assert {expression: values for expression, (_, values) in answers.items()} == expected
    for expression, (kind, _) in answers.items():
        known = frame.selectExpr(f"{expression} as v").schema["v"].dataType
        assert spark_schema(pa.schema([("v", kind)]))["v"].dataType == known, expression
