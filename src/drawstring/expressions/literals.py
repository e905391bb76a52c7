"""Conversion of literals to Arrow scalars that compare with a column."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa

from drawstring.base.errors import InvalidError


def typed(value: Any, kind: pa.DataType) -> pa.Scalar:
    """Return a literal as an Arrow scalar that compares with a column.

    Args:
        value: a Python value or a scalar.
        kind: type of the column.

    Raises:
        InvalidError: the literal does not fit the type.
    """
    if pa.types.is_integer(kind) and _is_huge(value):
        return _huge(value, kind)  # more than 64 bits: let the comparison promote the column
    if isinstance(value, int | Decimal) and not pa.types.is_decimal(kind) and _is_wide(value):
        value = float(value)
    scalar = value if isinstance(value, pa.Scalar) else pa.scalar(value)
    if pa.types.is_integer(kind) and isinstance(value, int | float):
        return scalar  # 2.5 lies between two integers: let the comparison promote the column
    if pa.types.is_floating(kind) and isinstance(value, int | float):
        return pa.scalar(float(value))  # 0.1 has no exact float32 value: promote the column
    if pa.types.is_decimal(kind) and isinstance(value, int | Decimal) and not isinstance(value, bool):
        return pa.scalar(Decimal(value))  # more digits than the column has: promote the column
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


def _is_wide(value: int | Decimal) -> bool:
    return isinstance(value, Decimal) or _is_huge(value)


def _is_huge(value: Any) -> bool:
    return isinstance(value, int) and not -(2**63) <= value < 2**63


def _huge(value: int, kind: pa.DataType) -> pa.Scalar:
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
