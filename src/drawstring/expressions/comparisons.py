"""Comparisons and arithmetic with Spark's semantics, so that both engines return the same rows.

NaN equals itself and is greater than every other number. Quotient and remainder are null when the divisor is
zero. A comparison with null is null.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

Comparison = Callable[[pc.Expression, pc.Expression], pc.Expression]


def in_pairs(operands: list[pc.Expression], operator: Comparison) -> pc.Expression:
    """Combine operands pairwise into a balanced tree, so that hundreds of operands do not nest deeply."""
    while len(operands) > 1:
        pairs = zip(operands[::2], operands[1::2], strict=False)
        operands = [operator(*pair) for pair in pairs] + operands[len(operands) & ~1 :]
    return operands[0]


def equal(left: pc.Expression, right: pc.Expression) -> pc.Expression:
    """Compare floats for equality, where NaN equals NaN."""
    return (left == right) | (pc.is_nan(left) & pc.is_nan(right))


def greater(left: pc.Expression, right: pc.Expression) -> pc.Expression:
    """Compare floats, where NaN is greater than all other values."""
    return (left > right) | (pc.is_nan(left) & ~pc.is_nan(right))


FLOAT_COMPARISONS: Final[dict[str, Comparison]] = {
    "=": equal,
    "<>": lambda left, right: ~equal(left, right),
    ">": greater,
    ">=": lambda left, right: ~greater(right, left),
    "<": lambda left, right: greater(right, left),
    "<=": lambda left, right: ~greater(left, right),
}

PLAIN_COMPARISONS: Final[dict[str, Comparison]] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
    "<": pc.less,
    "<=": pc.less_equal,
}


def with_number(operator: str, left: pc.Expression, number: float) -> pc.Expression:
    """Compare floats with a number in the form whose bounds Arrow can use, as of `FLOAT_COMPARISONS`.

    Arrow's comparisons with NaN are false, so `x > 1` is what `x <= 1` is not.

    Args:
        operator: the operator in SQL.
        left: floats.
        number: the number.
    """
    right = pc.scalar(pa.scalar(number))
    if math.isnan(number):
        return FLOAT_COMPARISONS[operator](left, right)
    if operator in _INVERTED:
        return ~PLAIN_COMPARISONS[_INVERTED[operator]](left, right)
    return PLAIN_COMPARISONS[operator](left, right)


_INVERTED: Final = {">": "<=", ">=": "<"}


def quotient(left: pc.Expression, right: pc.Expression) -> pc.Expression:
    """Divide numbers as floats; null where the divisor is zero."""
    dividend, divisor = left.cast(pa.float64()), right.cast(pa.float64())
    return pc.if_else(divisor == 0.0, pc.scalar(pa.scalar(None, pa.float64())), pc.divide(dividend, divisor))


def remainder(left: pc.Expression, right: pc.Expression) -> pc.Expression:
    """Return the remainder of integers, with the sign of the dividend; null where the divisor is zero."""
    null = pc.scalar(pa.scalar(None, pa.int64()))
    # The remainder by -1 is that by 1, but the smallest integer divided by -1 overflows.
    divisor = pc.if_else(right == 0, null, pc.if_else(right == -1, pc.scalar(1), right))
    return pc.subtract(left, pc.multiply(pc.divide(left, divisor), divisor))
