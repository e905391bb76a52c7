"""Plain values as scalars that compare with a column."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa

from drawstring.base.errors import InvalidError


def typed(value: Any, kind: pa.DataType) -> pa.Scalar:
    """Return a literal as a scalar that compares with a column.

    Args:
        value: a Python value or a scalar.
        kind: type of the column.

    Raises:
        InvalidError: the literal does not fit the type.
    """
    if isinstance(value, Decimal) and not pa.types.is_decimal(kind):
        value = float(value)
    scalar = value if isinstance(value, pa.Scalar) else pa.scalar(value)
    if pa.types.is_integer(kind) and isinstance(value, int | float):
        return scalar  # 2.5 lies between two integers: let the comparison promote the column
    if pa.types.is_floating(kind) and isinstance(value, int | float):
        return pa.scalar(float(value))  # 0.1 is no single-precision number: promote the column
    if pa.types.is_decimal(kind) and isinstance(value, int | Decimal) and not isinstance(value, bool):
        return pa.scalar(Decimal(value))  # more digits than the column has: promote the column
    if pa.types.is_string(kind) and not pa.types.is_string(scalar.type):
        raise _unfit(value, kind)
    try:
        return scalar.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        pass
    try:
        # Without an offset a text is a time in UTC.
        return scalar.cast(pa.timestamp("us")).cast(pa.timestamp("us", getattr(kind, "tz", None))).cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise _unfit(value, kind) from None


def _unfit(value: Any, kind: pa.DataType) -> InvalidError:
    return InvalidError(f"the value {str(value)!r} does not fit a column of type {kind}")
