"""Types of columns in catalogs: Hive's names, and Spark's schema as JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as kinds

from drawstring.base.errors import UnsupportedError
from drawstring.schema.logical_types import is_vector

_HIVE: Final[tuple[tuple[Callable[[pa.DataType], bool], str], ...]] = (
    (kinds.is_boolean, "boolean"),
    (lambda kind: kind in (pa.int8(), pa.int16(), pa.int32(), pa.time32("ms")), "int"),
    (kinds.is_int64, "bigint"),
    (kinds.is_time64, "bigint"),
    (kinds.is_float32, "float"),
    (kinds.is_float64, "double"),
    (lambda kind: kinds.is_string(kind) or kinds.is_large_string(kind), "string"),
    (lambda kind: kinds.is_binary(kind) or kinds.is_large_binary(kind), "binary"),
    (kinds.is_fixed_size_binary, "binary"),
    (is_vector, "binary"),
    (kinds.is_date, "date"),
)
_SPARK: Final[dict[str, str]] = {"int": "integer", "bigint": "long"}


def hive_type(kind: pa.DataType, has_timestamps: bool) -> str:
    """Return Hive's type of a column.

    Args:
        kind: of the column.
        has_timestamps: whether timestamps are `timestamp`, rather than `bigint`.

    Raises:
        UnsupportedError: Hive has none.
    """
    if kinds.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if kinds.is_timestamp(kind):
        return "timestamp" if has_timestamps else "bigint"
    if kinds.is_list(kind) or kinds.is_large_list(kind):
        return f"array<{hive_type(kind.value_type, has_timestamps)}>"
    if kinds.is_map(kind):
        key, value = hive_type(kind.key_type, has_timestamps), hive_type(kind.item_type, has_timestamps)
        return f"map<{key},{value}>"
    if kinds.is_struct(kind):
        fields = (f"{each.name}:{hive_type(each.type, has_timestamps)}" for each in kind)
        return f"struct<{','.join(fields)}>"
    return _plain(kind)


def _plain(kind: pa.DataType) -> str:
    for is_kind, name in _HIVE:
        if is_kind(kind):
            return name
    raise UnsupportedError(f"Catalogs have no type for {kind}.")


def spark_json(schema: pa.Schema) -> dict[str, Any]:
    """Return a schema as Spark's JSON has it."""
    fields = [
        {"name": each.name, "type": _spark_type(each.type), "nullable": each.nullable, "metadata": {}}
        for each in schema
    ]
    return {"type": "struct", "fields": fields}


def _spark_type(kind: pa.DataType) -> Any:
    if kinds.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if kinds.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if kinds.is_list(kind) or kinds.is_large_list(kind):
        element = kind.value_field
        return {"type": "array", "elementType": _spark_type(element.type), "containsNull": element.nullable}
    if kinds.is_map(kind):
        key, value = _spark_type(kind.key_type), _spark_type(kind.item_type)
        nullable = kind.item_field.nullable
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": nullable}
    if kinds.is_struct(kind):
        return spark_json(pa.schema(list(kind)))
    name = _plain(kind)
    return _SPARK.get(name, name)
