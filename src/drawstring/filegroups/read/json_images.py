"""JSON images of records for change queries (Hudi: `before` and `after` of its CDC relation).

    from data files   {"id":1,"price":5.5}                   no spaces, null columns omitted
    from CDC logs     {"id": 1, "title": null, "price": 5.5} spaces, nulls written

Dates, times and timestamps are their stored numbers, decimals plain numbers, binary values base64.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.base.errors import UnsupportedError
from drawstring.keygen.texts import java_text
from drawstring.schema.logical_types import is_vector, vector_bytes

_SPECIAL: Final = r'["\\\x00-\x1f]'


@dataclass(frozen=True, slots=True)
class JsonStyle:
    """Style of JSON texts.

    Attributes:
        comma, colon: between columns, and between a name and its value.
        nulls: whether to write null columns.
    """

    comma: str
    colon: str
    nulls: bool


COMPACT: Final = JsonStyle(",", ":", False)
"""Style of images from data files."""

SPACED: Final = JsonStyle(", ", ": ", True)
"""Style of images from CDC logs."""


def json_images(rows: pa.RecordBatch | pa.Table, style: JsonStyle) -> pa.Array:
    """Return a JSON object for each row.

    Args:
        rows: records.
        style: style of the texts.

    Raises:
        UnsupportedError: the type of a column has no JSON form.
    """
    columns = [_flat(column) for column in rows.columns]
    return _object(rows.schema.names, columns, rows.num_rows, style)


def json_values(values: pa.Array, style: JsonStyle) -> pa.Array:
    """Return the JSON text of each value, null for null; see `json_images`."""
    kind = values.type
    if pt.is_struct(kind):
        names = [field.name for field in kind]
        return _where_valid(values, _object(names, values.flatten(), len(values), style))
    if pt.is_map(kind) or pt.is_list(kind):
        return _where_valid(values, _items(values, style))
    for matches, text in _TEXTS:
        if matches(kind):
            return text(values)
    raise UnsupportedError(
        f"Change queries cannot return columns of type {kind}. Cast the column in the table to a supported"
        " type."
    )


def _object(names: Sequence[str], columns: Sequence[pa.Array], rows: int, style: JsonStyle) -> pa.Array:
    if not columns:
        return pa.repeat("{}", rows)
    parts = []
    for name, column in zip(names, columns, strict=True):
        texts = json_values(column, style)
        if style.nulls:
            texts = pc.fill_null(texts, "null")
        named = pc.binary_join_element_wise(f"{style.comma}{json.dumps(name)}{style.colon}", texts, "")
        parts.append(pc.fill_null(named, ""))
    inner = pc.binary_join_element_wise(*parts, "")
    opened = pc.binary_replace_slice(inner, 0, len(style.comma), "{")
    return pc.binary_join_element_wise(opened, "}", "")


def _items(values: pa.Array, style: JsonStyle) -> pa.Array:
    """Return lists as arrays and maps as objects."""
    is_map = pt.is_map(values.type)
    if is_map:
        pair = pa.struct([("key", values.type.key_type), ("value", values.type.item_type)])
        values = values.cast(pa.list_(pair))
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    items = pc.list_flatten(values)
    if is_map:
        keys, entries = items.flatten()
        texts = pc.fill_null(json_values(entries, style), "null")
        texts = pc.binary_join_element_wise(json_values(keys, style), texts, style.colon)
    else:
        texts = pc.fill_null(json_values(items, style), "null")
    inner = pc.binary_join(pa.ListArray.from_arrays(offsets, texts), style.comma)
    opening, closing = "{}" if is_map else "[]"
    return pc.binary_join_element_wise(opening, inner, closing, "")


def _where_valid(values: pa.Array, texts: pa.Array) -> pa.Array:
    return (
        texts if not values.null_count else pc.if_else(values.is_valid(), texts, pa.scalar(None, pa.string()))
    )


def _flat(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    flat = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return flat.dictionary_decode() if pt.is_dictionary(flat.type) else flat


def _text(values: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring_regex(values, _SPECIAL)).as_py():
        return _by_distinct(values, _quoted)
    return pc.binary_join_element_wise('"', values, '"', "")


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _number(values: pa.Array) -> pa.Array:
    return values.cast(pa.string())


def _stored_number(values: pa.Array) -> pa.Array:
    return values.cast(pa.int32() if values.type.bit_width == 32 else pa.int64()).cast(pa.string())


def _float(values: pa.Array) -> pa.Array:
    """Return the texts of Java, with NaN and infinities in quotes."""
    texts = java_text(values, "")
    return pc.if_else(pc.is_finite(values), texts, pc.binary_join_element_wise('"', texts, '"', ""))


def _decimal(values: pa.Array) -> pa.Array:
    return java_text(values, "")


def _binary(values: pa.Array) -> pa.Array:
    return _by_distinct(values.cast(pa.binary()), lambda value: f'"{base64.b64encode(value).decode()}"')


def _nothing(values: pa.Array) -> pa.Array:
    return pa.nulls(len(values), pa.string())


def _by_distinct(values: pa.Array, text: Callable[[Any], str]) -> pa.Array:
    encoded = pc.dictionary_encode(values)
    texts = pa.array([text(value) for value in encoded.dictionary.to_pylist()], pa.string())
    return texts.take(encoded.indices)


_TEXTS: Final[tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], pa.Array]], ...]] = (
    (pt.is_string, _text),
    (lambda kind: pt.is_integer(kind) or pt.is_boolean(kind), _number),
    (pt.is_floating, _float),
    (lambda kind: pt.is_date32(kind) or pt.is_time(kind) or pt.is_timestamp(kind), _stored_number),
    (pt.is_decimal, _decimal),
    (lambda kind: pt.is_binary(kind) or pt.is_fixed_size_binary(kind), _binary),
    (is_vector, lambda values: _binary(vector_bytes(values))),
    (pt.is_null, _nothing),
)
