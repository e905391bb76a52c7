"""Types of numbers, as Spark 4 decides them.

    literal                    5 is int, 5000000000 bigint, 2^63 decimal; 0.25 is decimal(2,2); 1e3 is double
    integer and integer        the wider of the two
    integer and decimal        decimal: an int counts as decimal(10,0), a bigint as decimal(20,0)
    float or double, other     double; two floats stay float

So `n + 0.25` is a decimal sum and exact, for an `n` of any size. An integer literal in the arithmetic of
decimals has just its own digits: `amount * 2` multiplies by a decimal(1,0).

The types of decimal results, for operands of precision p1, p2 and scale s1, s2:

    + and -    scale max(s1, s2)              precision max(p1 - s1, p2 - s2) + scale + 1
    *          scale s1 + s2                  precision p1 + p2 + 1
    /          scale max(6, s1 + p2 + 1)      precision p1 - s1 + s2 + scale

If the precision exceeds 38, it becomes 38, and the scale shrinks by as much, but not below six digits. Sums
and products of integers are integers; a quotient without a decimal is a double.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from typing import Final

import pyarrow as pa

from drawstring.base.errors import InvalidError

Number = int | float | Decimal

DIGITS_MAX: Final = 38
EXACT: Final = Context(prec=400)
"""For decimals in Python, in which no number of a column loses a digit."""

_SCALE_KEPT: Final = 6
_DIGITS: Final[dict[int, int]] = {8: 3, 16: 5, 32: 10, 64: 20}
"""Digits of the decimal for an integer, by its bits."""


def is_number(kind: pa.DataType) -> bool:
    """Return whether a type is an integer, a float or a decimal."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def literal_type(value: Number) -> pa.DataType:
    """Return the type of a number literal.

    Raises:
        InvalidError: it has more than 38 digits.
    """
    if isinstance(value, float):
        return pa.float64()
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return pa.int32() if -(2**31) <= value < 2**31 else pa.int64()
    return own_decimal(value)


def own_decimal(value: int | Decimal) -> pa.DataType:
    """Return the decimal type with just the digits of a value.

    Raises:
        InvalidError: it has more than 38 digits.
    """
    _, digits, exponent = Decimal(value).as_tuple()
    scale = max(0, -int(exponent))
    precision = max(len(digits) + max(0, int(exponent)), scale)
    if precision > DIGITS_MAX:
        raise InvalidError(
            f"The SQL contains {value}, which has more than {DIGITS_MAX} digits. Use a number with fewer."
        )
    return pa.decimal128(precision, scale)


def decimal_of(kind: pa.DataType) -> pa.DataType:
    """Return the decimal type that holds all values of an integer or decimal type."""
    return kind if pa.types.is_decimal(kind) else pa.decimal128(_DIGITS[kind.bit_width], 0)


def widest(kinds: Sequence[pa.DataType]) -> pa.DataType:
    """Return the type of a value that comes from one of several branches, as in CASE and COALESCE."""
    if any(pa.types.is_floating(kind) for kind in kinds):
        return pa.float32() if all(kind == pa.float32() for kind in kinds) else pa.float64()
    if any(pa.types.is_decimal(kind) for kind in kinds):
        precision, scale = _enclosing([decimal_of(kind) for kind in kinds])
        surplus = max(0, precision - DIGITS_MAX)
        return pa.decimal128(precision - surplus, max(0, scale - surplus))
    return max(kinds, key=lambda kind: kind.bit_width)


def comparable(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Return the type in which two numbers are compared; if it is no float, it holds all values of both."""
    kind = widest([left, right])
    if not pa.types.is_decimal(kind):
        return kind
    return decimal_type(*_enclosing([decimal_of(left), decimal_of(right)]))


def decimal_type(precision: int, scale: int) -> pa.DataType:
    """Return a decimal type of up to 76 digits, for intermediate results."""
    return (pa.decimal128 if precision <= DIGITS_MAX else pa.decimal256)(precision, scale)


def _enclosing(kinds: Sequence[pa.DataType]) -> tuple[int, int]:
    scale = max(kind.scale for kind in kinds)
    return max(kind.precision - kind.scale for kind in kinds) + scale, scale


def sum_digits(left: pa.DataType, right: pa.DataType) -> tuple[int, int]:
    """Return precision and scale of the exact sum or difference of decimals."""
    precision, scale = _enclosing([left, right])
    return precision + 1, scale


def product_digits(left: pa.DataType, right: pa.DataType) -> tuple[int, int]:
    """Return precision and scale of the exact product of decimals."""
    return left.precision + right.precision + 1, left.scale + right.scale


def quotient_digits(left: pa.DataType, right: pa.DataType) -> tuple[int, int]:
    """Return precision and scale of the quotient of decimals."""
    scale = max(_SCALE_KEPT, left.scale + right.precision + 1)
    return left.precision - left.scale + right.scale + scale, scale


Digits = Callable[[pa.DataType, pa.DataType], tuple[int, int]]


def bounded(precision: int, scale: int) -> pa.DataType:
    """Return the decimal type of a result: with 38 digits at most, it gives up digits after the point."""
    if precision <= DIGITS_MAX:
        return pa.decimal128(precision, scale)
    whole = precision - scale
    return pa.decimal128(DIGITS_MAX, max(DIGITS_MAX - whole, min(scale, _SCALE_KEPT)))
