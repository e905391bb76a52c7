"""Conversion between Spark and Arrow types.

Text, numbers, booleans, dates, decimals, binary, arrays, maps and structs keep their type and
nullability. A timestamp with a time zone is Spark's TIMESTAMP, one without is TIMESTAMP_NTZ. A time of
day, which Spark lacks before 4.1, is a LONG with the stored value. A fixed-size binary is BINARY.

Hudi's own types (`logical_types`) have their name in the metadata of their column (`hudi_type`): a VECTOR
is an array whose items are not null, a BLOB a struct all of whose fields may be null, as Hudi shows it.
VARIANT is Spark's own type. In statements, whose grammar lacks VECTOR and BLOB, a struct stands for one of
them: its one field has the name of the type (`stand_in`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import types as T

from drawstring.base.errors import UnsupportedError
from drawstring.schema.comments import fields_in
from drawstring.schema.logical_types import (
    HUDI_TYPE,
    described_type,
    descriptor,
    is_blob,
    is_variant,
    is_vector,
    nested_vector,
)

_COMMENT: Final = "comment"
_LENGTHS: Final = re.compile(r'''(^|"(?:type|elementType|keyType|valueType)"\s*:\s*)"(?:var)?char\(\d+\)"''')
_ELEMENT: Final = "element"
_VALUE: Final = "value"
_STAND_IN: Final = "hudi "
_VARIANT: Final = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata={"variant": "true"}),
    ]
)
"""VARIANT as Spark passes it to Python."""

_PLAIN: list[tuple[type[T.DataType], pa.DataType]] = [
    (T.BooleanType, pa.bool_()),
    (T.ByteType, pa.int8()),
    (T.ShortType, pa.int16()),
    (T.IntegerType, pa.int32()),
    (T.LongType, pa.int64()),
    (T.FloatType, pa.float32()),
    (T.DoubleType, pa.float64()),
    (T.StringType, pa.string()),
    (T.BinaryType, pa.binary()),
    (T.DateType, pa.date32()),
    (T.TimestampType, pa.timestamp("us", "UTC")),
    (T.TimestampNTZType, pa.timestamp("us")),
]
_FROM_ARROW: dict[pa.DataType, T.DataType] = {
    **{arrow: spark() for spark, arrow in _PLAIN},
    pa.large_string(): T.StringType(),
    pa.large_binary(): T.BinaryType(),
}


def without_lengths(schema: str) -> str:
    """Return Spark's JSON of columns or of a type with strings for `varchar(n)` and `char(n)`, as in Hudi."""
    return _LENGTHS.sub(r'\1"string"', schema)


def spark_schema(schema: pa.Schema) -> T.StructType:
    """Return the Spark columns for Arrow columns.

    Raises:
        UnsupportedError: Spark has no type for a column; the error names it.
    """
    return T.StructType([_spark_field(field, field.name) for field in schema])


def with_comments(schema: T.StructType, comments: Mapping[str, str]) -> T.StructType:
    """Return Spark columns with comments.

    Args:
        schema: the columns.
        comments: comments by the names of columns, with dots for what is inside of them.
    """
    told = schema.jsonValue()
    for path, field in fields_in(told):
        if (name := ".".join(path)) in comments:
            field["metadata"] = {**field["metadata"], _COMMENT: comments[name]}
    return T.StructType.fromJson(told)


def commented_schema(schema: T.StructType) -> pa.Schema:
    """Return the Arrow columns for Spark columns, with their comments and Hudi's types in their metadata.

    Raises:
        InvalidError: a VECTOR is inside of another column.
        UnsupportedError: tables cannot store the type of a column; the error names it.
    """
    told = {path: field["metadata"] for path, field in fields_in(schema.jsonValue())}
    return pa.schema([_told(field, (field.name,), told) for field in arrow_schema(schema)])


def _told(field: pa.Field, path: tuple[str, ...], told: Mapping[tuple[str, ...], Any]) -> pa.Field:
    kind = field.type
    if pa.types.is_struct(kind):
        inner = [_told(each, (*path, each.name), told) for each in kind]
        field = field.with_type(pa.struct(inner))
    elif pa.types.is_list(kind):
        item = _told(kind.value_field, (*path, _ELEMENT), told)
        field = field.with_type(pa.list_(item))
    elif pa.types.is_map(kind):
        field = field.with_type(pa.map_(kind.key_field, _told(kind.item_field, (*path, _VALUE), told)))
    found = told.get(path, {})
    metadata = {key: found[key] for key in (_COMMENT, HUDI_TYPE) if found.get(key)}
    return field.with_metadata(metadata) if metadata else field


def stand_in(name: str) -> str:
    """Return the type that stands for one of Hudi's types in a statement.

    Args:
        name: the type, such as `VECTOR(3, DOUBLE)`.
    """
    return f"STRUCT<`{_STAND_IN}{name}`: BINARY>"


def arrow_schema(schema: T.StructType) -> pa.Schema:
    """Return the Arrow columns for Spark columns; timestamps with a zone are in UTC.

    Raises:
        UnsupportedError: tables cannot store the type of a column; the error names it.
    """
    return pa.schema([_arrow_field(field, field.name) for field in schema.fields])


def _spark_field(field: pa.Field, path: str) -> T.StructField:
    told = descriptor(field.type)
    metadata = {HUDI_TYPE: told} if told and not is_variant(field.type) else None
    return T.StructField(field.name, _spark_type(field.type, path), field.nullable, metadata)


def _spark_type(arrow: pa.DataType, path: str) -> T.DataType:
    if arrow in _FROM_ARROW:
        return _FROM_ARROW[arrow]
    if pa.types.is_timestamp(arrow):
        return T.TimestampNTZType() if arrow.tz is None else T.TimestampType()
    if pa.types.is_decimal(arrow):
        return T.DecimalType(arrow.precision, arrow.scale)
    if pa.types.is_time(arrow):
        return T.LongType()
    if pa.types.is_fixed_size_binary(arrow):
        return T.BinaryType()
    if pa.types.is_dictionary(arrow):
        return _spark_type(arrow.value_type, path)
    return _spark_nested(arrow, path)


def _spark_nested(arrow: pa.DataType, path: str) -> T.DataType:
    if is_blob(arrow):
        return _nullable(arrow)
    if is_variant(arrow):
        return T.VariantType()
    if is_vector(arrow):
        return T.ArrayType(_spark_type(arrow.value_type, path), containsNull=False)
    if pa.types.is_struct(arrow):
        return T.StructType([_spark_field(field, f"{path}.{field.name}") for field in arrow])
    if pa.types.is_map(arrow):
        keys, items = _spark_type(arrow.key_type, path), _spark_type(arrow.item_type, path)
        return T.MapType(keys, items, arrow.item_field.nullable)
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
        return T.ArrayType(_spark_type(arrow.value_type, path), arrow.value_field.nullable)
    raise UnsupportedError(
        f"Spark has no type for column {path} of type {arrow}. Select other columns with `columns`."
    )


def _nullable(arrow: pa.DataType) -> T.DataType:
    if not pa.types.is_struct(arrow):
        return _FROM_ARROW[arrow]
    return T.StructType([T.StructField(each.name, _nullable(each.type)) for each in arrow])


def _arrow_field(field: T.StructField, path: str) -> pa.Field:
    return pa.field(field.name, _arrow_type(field.dataType, path), field.nullable)


def _stands_for(spark: T.StructType, path: str) -> pa.DataType | None:
    """Return the type of Hudi that a struct stands for in a statement, if it does."""
    name = spark.fieldNames()[0] if len(spark) == 1 else ""
    if not name.startswith(_STAND_IN):
        return None
    kind = described_type(name.removeprefix(_STAND_IN), path)
    if is_vector(kind) and "." in path:
        raise nested_vector(path)
    return kind


def _arrow_type(spark: T.DataType, path: str) -> pa.DataType:
    for kind, arrow in _PLAIN:
        if isinstance(spark, kind):
            return arrow
    if isinstance(spark, T.DecimalType):
        return pa.decimal128(spark.precision, spark.scale)
    if isinstance(spark, T.StructType) and (stands := _stands_for(spark, path)) is not None:
        return stands
    if isinstance(spark, T.VariantType):
        return _VARIANT
    if isinstance(spark, T.StructType):
        return pa.struct([_arrow_field(field, f"{path}.{field.name}") for field in spark.fields])
    if isinstance(spark, T.ArrayType):
        return pa.list_(
            pa.field("element", _arrow_type(spark.elementType, f"{path}.{_ELEMENT}"), spark.containsNull)
        )
    if isinstance(spark, T.MapType):
        value = pa.field("value", _arrow_type(spark.valueType, f"{path}.{_VALUE}"), spark.valueContainsNull)
        return pa.map_(pa.field("key", _arrow_type(spark.keyType, path), nullable=False), value)
    raise UnsupportedError(
        f"Column {path} has the Spark type {spark.simpleString()}, which a table cannot store. Cast it first."
    )
