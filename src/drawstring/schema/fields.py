"""Find columns and fields of structs by name, and define the meta columns and the SQL names of types.

Names of nested fields are joined by dots (`type_at`, `values_of`). Meta columns precede a table's own
columns (specification: Meta Fields). `type_named` returns the type of a name in SQL.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.base.errors import InvalidError


def type_at(name: str, columns: pa.Schema) -> pa.DataType | None:
    """Return the type of a column or of a field of structs (`a.k`); None if there is none, or several.

    Args:
        name: the name.
        columns: the columns.
    """
    first, *inner = field_path(columns, name)
    at = columns.get_field_index(first)
    kind: pa.DataType | None = None if at < 0 else columns.field(at).type
    for each in inner:
        if kind is None or not pt.is_struct(kind):
            return None
        at = kind.get_field_index(each)
        kind = None if at < 0 else kind.field(at).type
    return kind


def leaf_type(schema: pa.Schema, column: str) -> pa.DataType | None:
    """Return the type of a column or of a field of structs; None if there is none, or if it is nested.

    Args:
        schema: the columns.
        column: the name.
    """
    kind = type_at(column, schema)
    return None if kind is None or pt.is_nested(kind) else kind


def field_path(schema: pa.Schema, column: str) -> list[str]:
    """Return the name of a column, or the names that lead to a field of structs."""
    return [column] if column in schema.names else column.split(".")


def values_of(batch: pa.RecordBatch | pa.Table, column: str) -> pa.Array | pa.ChunkedArray:
    """Return the values of a column or of a field of structs; null where a struct is null.

    Args:
        batch: has the column.
        column: the name.
    """
    if column in batch.schema.names:
        return batch.column(column)
    name, *fields = column.split(".")
    return pc.struct_field(batch.column(name), fields)


def columns_with(values: Mapping[str, pa.Array], schema: pa.Schema) -> dict[str, pa.Array]:
    """Return the columns that some values are in; other fields of these columns are null.

    Args:
        values: values of columns and fields of structs, by name, all of one length.
        schema: the columns.
    """
    paths = {tuple(field_path(schema, name)): column for name, column in values.items()}
    names = dict.fromkeys(path[0] for path in paths)
    return {name: _with_fields(schema.field(name).type, _inside(paths, name)) for name in names}


def _inside(paths: Mapping[tuple[str, ...], pa.Array], name: str) -> dict[tuple[str, ...], pa.Array]:
    return {path[1:]: column for path, column in paths.items() if path[0] == name}


def _with_fields(kind: pa.DataType, paths: Mapping[tuple[str, ...], pa.Array]) -> pa.Array:
    if () in paths:
        return paths[()]
    count, fields = len(next(iter(paths.values()))), list(kind)
    inner = [_inside(paths, field.name) for field in fields]
    columns = [
        _with_fields(field.type, some) if some else pa.nulls(count, field.type)
        for field, some in zip(fields, inner, strict=True)
    ]
    return pa.StructArray.from_arrays(columns, fields=fields)


def top_level(columns: Sequence[str], schema: pa.Schema) -> list[str]:
    """Return the columns that some columns and fields of structs are in, each once."""
    return list(dict.fromkeys(each if each in schema.names else each.partition(".")[0] for each in columns))


COMMIT_TIME: Final = "_hoodie_commit_time"
COMMIT_SEQNO: Final = "_hoodie_commit_seqno"
RECORD_KEY: Final = "_hoodie_record_key"
PARTITION_PATH: Final = "_hoodie_partition_path"
FILE_NAME: Final = "_hoodie_file_name"

KEY_ALONE: Final = pa.schema([(RECORD_KEY, pa.string())])
"""The columns of rows that are read for their record keys."""

META_COLUMNS: Final = (COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY, PARTITION_PATH, FILE_NAME)
"""The five meta columns, in the order of the file."""

OPERATION_COLUMN: Final = "_hoodie_operation"
"""The sixth meta column, in tables that store the change operation of each record."""

IS_DELETED_COLUMN: Final = "_hoodie_is_deleted"
"""An ordinary boolean column: a record in which it is true deletes its key."""

_SCHEMAS_KEPT: Final = 16
"""Each file and log block of a write has the same schema."""


def with_meta(schema: pa.Schema) -> pa.Schema:
    """Return a schema with the five meta columns in front.

    Args:
        schema: table schema; meta columns already in it move to the front.
    """
    meta = [pa.field(name, pa.string()) for name in META_COLUMNS]
    return pa.schema([*meta, *without_meta(schema)])


def stored_columns(schema: pa.Schema, *, has_meta: bool) -> pa.Schema:
    """Return the columns of the files of a table.

    Args:
        schema: table schema.
        has_meta: whether the table populates its meta columns.
    """
    return with_meta(schema) if has_meta else schema


def without_meta(schema: pa.Schema) -> pa.Schema:
    """Return a schema without the five meta columns; the operation column remains.

    Args:
        schema: any schema.
    """
    return pa.schema([field for field in schema if field.name not in META_COLUMNS])


@lru_cache(maxsize=_SCHEMAS_KEPT)
def with_meta_fields(schema_json: str) -> str:
    """Return an Avro record schema with the missing meta columns added in front.

    Args:
        schema_json: the record schema as JSON text, which is returned unchanged if none is missing.
    """
    schema = json.loads(schema_json)
    present = {field["name"] for field in schema["fields"]}
    missing = [
        {"name": name, "type": ["null", "string"], "doc": "", "default": None}
        for name in META_COLUMNS
        if name not in present
    ]
    if not missing:
        return schema_json
    return json.dumps(schema | {"fields": missing + schema["fields"]}, separators=(",", ":"))


_NAMES: Final[Mapping[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "byte": pa.int8(),
    "smallint": pa.int16(),
    "short": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "varchar": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_DECIMAL: Final = re.compile(r"(?:decimal|dec|numeric)(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?")
_VARCHAR: Final = re.compile(r"varchar\(\s*\d+\s*\)")
_PRECISION: Final = "10"
_PRECISION_MAX: Final = 38


def type_named(name: str) -> pa.DataType:
    """Return the type of a name in Spark's SQL, such as `bigint` or `decimal(10,2)`; case does not matter.

    A table stores small integers as `int`, and texts of any length as `string`.

    Raises:
        InvalidError: there is no such type, or it is nested.
    """
    text = name.strip().lower()
    if found := _DECIMAL.fullmatch(text):
        precision, scale = int(found[1] or _PRECISION), int(found[2] or 0)
        if scale <= precision and 1 <= precision <= _PRECISION_MAX:
            return pa.decimal128(precision, scale)
        raise InvalidError(
            f"{name!r} is no type: a decimal has 1 to {_PRECISION_MAX} digits, and at most all of them behind"
            " the point. Give it as decimal(digits,digits behind the point)."
        )
    if _VARCHAR.fullmatch(text):
        return pa.string()
    if text not in _NAMES:
        raise InvalidError(
            f"There is no type {name!r} here. Use one of {', '.join(_NAMES)} or decimal(precision,scale);"
            " columns of nested types are added in Python (Table.columns.add) or SQL."
        )
    return _NAMES[text]


def constants_of(values: Mapping[str, Any], schema: pa.Schema) -> dict[str, pa.Scalar]:
    """Return values as scalars of their columns' types; columns that the schema lacks are omitted.

    Args:
        values: Python value by column.
        schema: the table's columns.
    """
    return {
        name: pa.scalar(value, schema.field(name).type)
        for name, value in values.items()
        if name in schema.names
    }
