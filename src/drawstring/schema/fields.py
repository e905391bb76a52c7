"""Columns and fields of structs by name: the names of nested fields are joined by dots."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt


def leaf_type(schema: pa.Schema, column: str) -> pa.DataType | None:
    """Return the type of a column or of a field of structs; None if there is none, or if it is nested.

    Args:
        schema: the columns.
        column: the name.
    """
    kind: pa.DataType = pa.struct(list(schema))
    for name in field_path(schema, column):
        if not pt.is_struct(kind) or kind.get_field_index(name) < 0:
            return None
        kind = kind.field(name).type
    return None if pt.is_nested(kind) else kind


def field_path(schema: pa.Schema, column: str) -> list[str]:
    """Return the name of a column, or the names that lead to a field of structs."""
    return [column] if column in schema.names else column.split(".")


def values_of(batch: pa.RecordBatch, column: str) -> pa.Array:
    """Return the values of a column or of a field of structs; null where a struct is null.

    Args:
        batch: has the column.
        column: the name.
    """
    if column in batch.schema.names:
        return batch.column(column)
    name, *fields = column.split(".")
    return pc.struct_field(batch.column(name), fields)


def top_level(columns: Sequence[str], schema: pa.Schema) -> list[str]:
    """Return the columns that some columns and fields of structs are in, each once."""
    return list(dict.fromkeys(each if each in schema.names else each.partition(".")[0] for each in columns))
