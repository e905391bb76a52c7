"""Columns and fields of structs by name: the names of nested fields are joined by dots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt


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
