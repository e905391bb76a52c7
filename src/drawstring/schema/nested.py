"""Fields inside columns, by dotted names."""

from __future__ import annotations

import pyarrow as pa


def type_at(name: str, columns: pa.Schema) -> pa.DataType | None:
    """Return the type of a column or of a field in it (`a.k`); None if there is none, or several.

    Args:
        name: name of the column, and of the fields that lead to the one in it.
        columns: the columns.
    """
    first, *inner = [name] if name in columns.names else name.split(".")
    at = columns.get_field_index(first)
    kind: pa.DataType | None = None if at < 0 else columns.field(at).type
    for each in inner:
        if kind is None or not pa.types.is_struct(kind):
            return None
        at = kind.get_field_index(each)
        kind = None if at < 0 else kind.field(at).type
    return kind
