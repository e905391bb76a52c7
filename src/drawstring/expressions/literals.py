"""Conversion of literals to Arrow scalars that fit a column."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa

from drawstring.base.errors import InvalidError
from drawstring.expressions.numbers import is_number


def typed(value: Any, kind: pa.DataType) -> pa.Scalar:
    """Return a literal as an Arrow scalar that compares with a column, or that can be stored in it.

    A number keeps a type that holds it: whether the column can store it is known only then.

    Args:
        value: a Python value or a scalar.
        kind: type of the column.

    Raises:
        InvalidError: the literal does not fit the type.
    """
    is_exact = isinstance(value, int | Decimal) and not isinstance(value, bool)
    if is_exact and pa.types.is_integer(kind) and not _fits_long(value):
        return _exact(value, kind)
    if is_exact and not pa.types.is_decimal(kind) and not _fits_long(value):
        value = float(value)
    scalar = value if isinstance(value, pa.Scalar) else pa.scalar(value)
    if pa.types.is_integer(kind) and isinstance(value, int | float):
        return scalar
    if pa.types.is_floating(kind) and isinstance(value, int | float):
        return pa.scalar(float(value))
    if pa.types.is_decimal(kind) and is_exact:
        return _exact(value, kind)
    if isinstance(value, pa.Scalar) and is_number(value.type) and is_number(kind):
        return scalar
    is_text = pa.types.is_string(scalar.type)
    if pa.types.is_string(kind) and not is_text:
        raise _mismatch(scalar, kind)
    if not pa.types.is_temporal(kind) and pa.types.is_temporal(scalar.type):
        raise _mismatch(scalar, kind)
    try:
        return scalar.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        if not pa.types.is_temporal(kind):
            raise _mismatch(scalar, kind) from None
    try:
        # A string without an offset is a time in UTC.
        return scalar.cast(pa.timestamp("us")).cast(pa.timestamp("us", getattr(kind, "tz", None))).cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise _mismatch(scalar, kind) from None


def _fits_long(value: int | Decimal) -> bool:
    return isinstance(value, int) and -(2**63) <= value < 2**63


def _exact(value: int | Decimal, kind: pa.DataType) -> pa.Scalar:
    try:
        return pa.scalar(Decimal(value))
    except pa.ArrowInvalid:
        raise InvalidError(
            f"The value {value} has too many digits for a column of type {kind}. Use a smaller value."
        ) from None


def _mismatch(scalar: pa.Scalar, kind: pa.DataType) -> InvalidError:
    return InvalidError(
        f"The {scalar.type} {str(scalar)!r} does not fit a column of type {kind}. Use a value of that type."
    )
