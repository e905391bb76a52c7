"""Keys of a secondary index: the text of a column's value, and the record key (`metadata.keys`).

    text                          as it is
    int, long                     decimal
    float, double                 as Java formats them: 1.5, 1.0E10
    date                          days since 1970-01-01
    timestamp (micros, UTC)       microseconds since then

A key in the files of the index has at most 32,767 bytes. Values with texts of more than half of that are left
out of the index, and look-ups of them do without it.

Version V1 of the index hashes the whole key to find its file group, V2 the value with the `$` behind it.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.base.bounds import HFILE_KEY_BYTES_MAX
from drawstring.keygen.texts import java_text
from drawstring.merge.versions import flat

_TO_ESCAPE: Final = r"[\\$\x00]"
_ESCAPED: Final = r"\\\0"
_NULL: Final = "\0"
_PLAIN: Final = "plain"
_TEXT_BYTES_MAX: Final = HFILE_KEY_BYTES_MAX // 2
_MOMENT: Final = pa.timestamp("us", "UTC")


def text_form(kind: pa.DataType) -> str | None:
    """Return how values of a type are written, None if they cannot be indexed.

    Types of one form write a value of both in the same way.
    """
    if pt.is_string(kind) or pt.is_int32(kind) or pt.is_int64(kind):
        return _PLAIN
    if pt.is_float32(kind) or pt.is_float64(kind) or pt.is_date32(kind) or kind == _MOMENT:
        return str(kind)
    return None


def indexed_texts(values: pa.Array) -> pa.Array:
    """Return the texts of values of a type that can be indexed; null for null."""
    if pt.is_date32(values.type):
        values = values.cast(pa.int32())
    return java_text(values, "")


def secondary_keys(values: pa.Array, record_keys: pa.Array) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Return the keys of records of an index, the parts of them with the value and the `$`, and record keys.

    Args:
        values: of the indexed column.
        record_keys: of the same rows (string).
    """
    is_indexed = are_indexed(values)
    if not pc.all(is_indexed, min_count=0).as_py():
        values, record_keys = values.filter(is_indexed), record_keys.filter(is_indexed)
    distinct = values.dictionary_encode()
    escaped = _escape(indexed_texts(distinct.dictionary)).take(distinct.indices).fill_null(_NULL)
    prefixes = pc.binary_join_element_wise(escaped, "", "$")
    return pc.binary_join_element_wise(prefixes, _escape(flat(record_keys)), ""), prefixes, record_keys


def are_indexed(values: pa.Array) -> pa.Array:
    """Return which values an index has: texts that are not too long, and all others, null among them."""
    longest = pc.max(pc.binary_length(values)).as_py() or 0 if pt.is_string(values.type) else 0
    if longest <= _TEXT_BYTES_MAX // 2:  # a letter and its escape have two bytes at most
        return pa.repeat(True, len(values))
    return pc.less_equal(pc.binary_length(_escape(values)), _TEXT_BYTES_MAX).fill_null(True)


def _escape(texts: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(texts, _TO_ESCAPE, _ESCAPED)
