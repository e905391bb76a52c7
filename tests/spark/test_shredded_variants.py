"""Variants that Spark shreds are the same values when they are put together again."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import VariantVal

from drawstring.base.errors import UnsupportedError
from drawstring.schema.shredded_variants import whole_variants
from tests.support.spark import settings_kept

pytestmark = pytest.mark.spark

MANY = ",".join(f'"k{number:03}": {number}' for number in range(300))
TEXTS = (
    '{"a": 7, "b": "x", "z": [1, {"q": null}]}',
    '{"a": "seven", "c": {"d": 1.25, "e": [1, 2, "three"]}}',
    "[1, 2]",
    '"text"',
    "null",
    "{}",
    f'{{"b": "{"é" * 100}", "c": {{"d": null, "other": 1, "e": []}}}}',
    f'{{"a": 1, "big": {{{MANY}}}}}',
    "12345678901",
)
SHAPES = ("a int, b string, c struct<d decimal(9,2), e array<bigint>>", "array<int>", "bigint")
KINDS = (
    "named_struct('d', date'2020-01-02', 't', timestamp'2020-01-02 03:04:05.678901',"
    " 'n', timestamp_ntz'1960-01-02 03:04:05', 'y', -1Y, 's', 2S, 'bi', X'0102', 'f', 1.5f, 'g', true,"
    " 'de', 123456789012345678901234.5BD, 'dn', -1.5BD)"
)
OF_KINDS = (
    "d date, t timestamp, n timestamp_ntz, y byte, s short, bi binary, f float, g boolean,"
    " de decimal(26, 1), dn decimal(2, 1)"
)


def stored(session: SparkSession, query: str, shape: str, path: str) -> pa.StructArray:
    """Have Spark write a column `x` shredded into a shape."""
    session.conf.set("spark.sql.variant.writeShredding.enabled", "true")
    session.conf.set("spark.sql.variant.forceShreddingSchemaForTest", shape)
    session.sql(query).coalesce(1).write.parquet(path)
    column = pq.read_table(path)["x"].combine_chunks()
    return column.storage if isinstance(column, pa.ExtensionArray) else column


def json_of(array: pa.StructArray) -> list[str | None]:
    return [each and VariantVal(each["value"], each["metadata"]).toJson() for each in array.to_pylist()]


def test_spark_and_drawstring_read_the_same_from_shredded_files(
    session: SparkSession, tmp_path: Path
) -> None:
    values = ", ".join(f"({number}, '{text}')" for number, text in enumerate(TEXTS))
    query = f"SELECT id, parse_json(t) x FROM VALUES {values}, (99, null) AS v(id, t) ORDER BY id"
    with settings_kept(session):
        for number, shape in enumerate(SHAPES):
            path = f"{tmp_path}/{number}"
            array = stored(session, query, shape, path)
            assert "typed_value" in [field.name for field in array.type]
            found = json_of(whole_variants(array, "x"))
            assert [each and json.loads(each) for each in found] == [*map(json.loads, TEXTS), None]
        array = stored(session, f"SELECT to_variant_object({KINDS}) x", OF_KINDS, f"{tmp_path}/kinds")
        wanted = session.read.parquet(f"{tmp_path}/kinds").selectExpr("to_json(x)").first()
    assert wanted is not None
    (found_json,) = json_of(whole_variants(array, "x"))
    assert found_json is not None
    assert json.loads(found_json) == json.loads(wanted[0])


def test_typed_values_that_variants_have_not_are_refused() -> None:
    kind = pa.struct([("metadata", pa.binary()), ("typed_value", pa.uint8())])
    array = pa.array([{"metadata": b"\x01\0\0", "typed_value": 1}], kind)
    with pytest.raises(UnsupportedError, match="'x' is shredded into values of type uint8"):
        whole_variants(array, "x")
