"""Dates and times in comparisons and casts, as Spark 4 has them in a session in UTC.

    compared                     in the type             what becomes of the other value
    date, timestamp              timestamp               midnight in UTC
    date, timestamp_ntz          timestamp_ntz           midnight
    timestamp, timestamp_ntz     timestamp               a time in UTC
    text, any of these           that of the other one   a date or time in a text (`dates_in_texts`)

A timestamp is cast to the number of its seconds, and a number of seconds to a timestamp. Nothing else can be
compared with a date or a time, or cast to one.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.base.errors import InvalidError
from drawstring.expressions.dates_in_texts import AS_DATE, AS_TIME, moments_in, times_in
from drawstring.expressions.numbers import is_number
from drawstring.expressions.terms import Term

_MICROS: Final = 1_000_000


def is_time(kind: pa.DataType) -> bool:
    """Return whether a type is that of dates or timestamps."""
    return bool(pt.is_date32(kind) or pt.is_timestamp(kind))


def compared_kind(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """Return the type in which two values are compared, one of which is a date or a time.

    Returns:
        None if they cannot be compared.
    """
    text = next((kind for kind in (left, right) if pt.is_string(kind)), None)
    if text is None and not (is_time(left) and is_time(right)):
        return None
    zones = [kind.tz for kind in (left, right) if pt.is_timestamp(kind)]
    if not zones:
        return pa.date32()
    return pa.timestamp("us", next((zone for zone in zones if zone), None))


def has_value(kind: pa.DataType, value: object) -> bool:
    """Return whether a literal is a date or time that a type of dates and times has, too."""
    if not (is_time(kind) and isinstance(value, pa.Scalar) and is_time(value.type)):
        return False
    clock = value.cast(pa.timestamp("us"))
    try:
        held = clock.cast(kind) if pt.is_timestamp(kind) else value.cast(kind)
    except pa.ArrowInvalid:
        return False  # it has a finer fraction of a second
    return bool(held.cast(pa.timestamp("us")) == clock)


def incomparable(comparison: str, left: pa.DataType, right: pa.DataType) -> InvalidError:
    """Return the error for values that cannot be compared.

    Args:
        comparison: the comparison in SQL.
        left, right: the types of its values.
    """
    return InvalidError(
        f"The SQL contains {comparison}, which compares a value of type {left} with one of type {right}."
        " Dates and times can be compared with each other and with texts. Write date '2024-01-31' or"
        " timestamp '2024-01-31 12:00:00', or cast one of the two values."
    )


def as_time(value: pc.Expression, kind: pa.DataType, to: pa.DataType) -> pc.Expression:
    """Return the cast of a text, a date or a time to a date or a time.

    A text that is not a date or a time gives null. One that may be a time which only Spark knows fails on its
    row; see `dates_in_texts`.

    Args:
        value: the text, date or time.
        kind: its type.
        to: the type to cast it to.
    """
    if kind == to:
        return value
    if pt.is_string(kind):
        if pt.is_date32(to):
            return times_in(value, AS_DATE).cast(to)
        return moments_in(value, AS_TIME, has_zone=to.tz is not None, fails=True).cast(to)
    if pt.is_date32(kind):
        value = value.cast(pa.timestamp("us"))  # Arrow has no cast to one with a zone
    return value.cast(to)


def time_of_number(term: Term, to: pa.DataType) -> pc.Expression | None:
    """Return the time of a number of seconds since 1970; None if the cast is not supported."""
    if not (pt.is_integer(term.kind) and pt.is_timestamp(to) and to.tz):
        return None
    return pc.multiply_checked(term.to(pa.int64()), pc.scalar(_MICROS)).cast(to)


def number_of_time(value: pc.Expression, kind: pa.DataType, to: pa.DataType) -> pc.Expression | None:
    """Return the seconds of a time since 1970; None if the cast is not supported."""
    if not (pt.is_timestamp(kind) and kind.tz and is_number(to)) or pt.is_decimal(to):
        return None
    if pt.is_floating(to):
        micros = value.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
        return pc.divide(micros.cast(pa.float64()), pc.scalar(float(_MICROS))).cast(to)
    return pc.floor_temporal(value, unit="second").cast(pa.timestamp("s", kind.tz)).cast(pa.int64()).cast(to)
