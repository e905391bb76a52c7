"""Spark's types and Arrow's."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import types as T

from drawstring.base.errors import UnsupportedError
from drawstring.spark.workers.rows import arrow_schema, spark_schema

BOTH_WAYS = pa.schema(
    [
        pa.field("bool", pa.bool_(), nullable=False),
        ("byte", pa.int8()),
        ("short", pa.int16()),
        ("int", pa.int32()),
        ("long", pa.int64()),
        ("float", pa.float32()),
        ("double", pa.float64()),
        ("text", pa.string()),
        ("bytes", pa.binary()),
        ("day", pa.date32()),
        ("instant", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("amount", pa.decimal128(20, 3)),
        ("list", pa.list_(pa.field("element", pa.int64(), nullable=False))),
        ("map", pa.map_(pa.string(), pa.field("value", pa.decimal128(5, 1), nullable=False))),
        ("struct", pa.struct([("a", pa.timestamp("us", "UTC")), ("b", pa.struct([("c", pa.string())]))])),
    ]
)


def test_types_go_both_ways() -> None:
    assert arrow_schema(spark_schema(BOTH_WAYS)) == BOTH_WAYS


def test_types_that_only_arrow_has_become_their_nearest() -> None:
    given = pa.schema(
        [
            ("millis", pa.timestamp("ms", "Europe/Berlin")),
            ("fixed", pa.binary(16)),
            ("time", pa.time64("us")),
            ("coded", pa.dictionary(pa.int32(), pa.string())),
            ("large", pa.large_string()),
        ]
    )
    expected = [T.TimestampType(), T.BinaryType(), T.LongType(), T.StringType(), T.StringType()]
    assert [field.dataType for field in spark_schema(given)] == expected


def test_types_that_spark_lacks_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match=r"column a\.b of type duration"):
        spark_schema(pa.schema([("a", pa.struct([("b", pa.duration("s"))]))]))


def test_types_that_tables_lack_are_refused_by_name() -> None:
    schema = T.StructType([T.StructField("x", T.ArrayType(T.DayTimeIntervalType()))])
    with pytest.raises(UnsupportedError, match=r"Column x\.element has the Spark type interval"):
        arrow_schema(schema)
