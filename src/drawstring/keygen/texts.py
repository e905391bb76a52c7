"""Texts of column values in record keys and partition paths, as Java formats them (specification: Keys).

| type | text |
|---|---|
| integers | decimal |
| boolean | `true`, `false` |
| float, double | `Double.toString`: `1.5`, `1.0E10`, `NaN` |
| decimal | plain: `12.30` |
| date | `2024-01-15` |
| timestamp | the number of micro- or milliseconds |
| binary | lower-case hex |

Spark SQL formats timestamps in partition paths differently: `2024-01-15 10:30:00`, see `sql_text`. Tables
whose timestamps are texts have `2024-01-15 10:30:00.0`, see `timestamp_text`.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.base.errors import InvalidError
from drawstring.schema.evolution import normal_type

_PLAIN_FROM: Final = 1e-3
_PLAIN_TO: Final = 1e7
"""Java formats floats between these bounds without an exponent."""

_MICROS_IN_A_MILLISECOND: Final = 1_000
_MILLIS_IN_A_SECOND: Final = 1_000.0


def java_text(values: pa.Array, column: str) -> pa.Array:
    """Return the text of each value, null for null.

    Args:
        values: a column.
        column: its name, for the error.

    Raises:
        InvalidError: values of this type are not supported in keys and paths.
    """
    kind = normal_type(values.type, column)
    values = values.cast(kind)
    if pt.is_string(kind):
        return values
    if pt.is_null(kind):
        return pa.nulls(len(values), pa.string())
    if pt.is_integer(kind) or pt.is_boolean(kind) or pt.is_date32(kind):
        return values.cast(pa.string())
    if pt.is_timestamp(kind):
        return values.cast(pa.int64()).cast(pa.string())
    if pt.is_floating(kind):
        return _floats(values, _single if pt.is_float32(kind) else _double)
    for matches, text in _TEXTS:
        if matches(kind):
            return texts_of_distinct(values, text)
    raise InvalidError(
        f"Column {column} of type {kind} cannot be part of a record key or partition path."
        " Choose another column."
    )


def is_moment(kind: pa.DataType) -> bool:
    """Return whether a type is a timestamp with a time zone, `TIMESTAMP` in Spark SQL."""
    return bool(pt.is_timestamp(kind)) and kind.tz is not None


def key_text(values: pa.Array, column: str, *, texts_of_timestamps: bool) -> pa.Array:
    """Return the text of each value in a record key; see `java_text`.

    Args:
        values: a column.
        column: its name, for the error.
        texts_of_timestamps: whether timestamps become dates and times.
    """
    if texts_of_timestamps and is_moment(values.type):
        return timestamp_text(values)
    return java_text(values, column)


def timestamp_text(values: pa.Array) -> pa.Array:
    """Return the text of each timestamp as `java.sql.Timestamp` has it in UTC, null for null.

    The fraction of a second has one to three digits. Hudi truncates microseconds to milliseconds towards
    zero.

    Args:
        values: timestamps with a time zone.
    """
    texts = pc.strftime(milliseconds(values).cast(pa.timestamp("ms")), "%Y-%m-%d %H:%M:%S", locale="C")
    return pc.replace_substring_regex(pc.utf8_rtrim(texts, "0"), r"\.$", ".0")


def milliseconds(values: pa.Array) -> pa.Array:
    """Return the milliseconds since 1970 of timestamps, microseconds cut towards zero."""
    micros = values.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    return pc.divide(micros, _MICROS_IN_A_MILLISECOND)


def sql_text(values: pa.Array) -> pa.Array:
    """Return the text of each timestamp in partition paths of Spark SQL, null for null.

    The text is the date and time in UTC, in whole seconds. Hudi truncates microseconds to milliseconds
    towards zero, and these to seconds downwards.

    Args:
        values: timestamps with a time zone.
    """
    millis = milliseconds(values)
    seconds = pc.floor(pc.divide(millis.cast(pa.float64()), _MILLIS_IN_A_SECOND)).cast(pa.int64())
    return pc.strftime(seconds.cast(pa.timestamp("s")), "%Y-%m-%d %H:%M:%S", locale="C")


def map_distinct(texts: pa.Array, function: Callable[[str], str]) -> pa.Array:
    """Apply a function to each distinct text; null stays null.

    If the function changes no text, the input array itself is returned.
    """
    encoded = pc.dictionary_encode(texts)
    distinct = encoded.dictionary.to_pylist()
    mapped = [function(text) for text in distinct]
    return texts if mapped == distinct else pa.array(mapped, pa.string()).take(encoded.indices)


def texts_of_distinct(values: pa.Array, text: Callable[[Any], str]) -> pa.Array:
    """Return the text of each value; the function runs once for each distinct value, and null stays null."""
    encoded = pc.dictionary_encode(values)
    texts = pa.array([text(value) for value in encoded.dictionary.to_pylist()], pa.string())
    return texts.take(encoded.indices)


def _floats(values: pa.Array, text: Callable[[Any], str]) -> pa.Array:
    """Return Java's texts of floats; Arrow's differ for whole, very small, very large and special numbers."""
    size = pc.abs(values)
    is_plain = pc.fill_null(pc.and_(pc.greater_equal(size, _PLAIN_FROM), pc.less(size, _PLAIN_TO)), True)
    texts = values.cast(pa.string())
    whole = pc.binary_join_element_wise(texts, ".0", "")
    texts = pc.if_else(pc.match_substring(texts, "."), texts, whole)
    if pc.all(is_plain).as_py():
        return texts
    others = pc.invert(is_plain)
    return pc.replace_with_mask(texts, others, texts_of_distinct(values.filter(others), text))


def _decimal(value: Decimal) -> str:
    return format(value, "f")


def _double(value: float) -> str:
    return _java_float(value, np.float64(value))


def _single(value: float) -> str:
    return _java_float(value, np.float32(value))


def _java_float(value: float, exact: np.floating[Any]) -> str:
    """Format a float like `Double.toString`: shortest digits, exponent outside [1e-3, 1e7)."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or _PLAIN_FROM <= abs(value) < _PLAIN_TO:
        return np.format_float_positional(exact, unique=True, trim="0")
    mantissa, _, exponent = np.format_float_scientific(exact, unique=True, trim="0").partition("e")
    return f"{mantissa}E{int(exponent)}"


_TEXTS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any], str]], ...] = (
    (pt.is_decimal, _decimal),
    (pt.is_binary, bytes.hex),
    (pt.is_fixed_size_binary, bytes.hex),
)
