"""Comparisons and arithmetic as Spark does them, so that both engines keep the same rows.

NaN equals itself and is greater than every other number; a quotient is a float, and null when it
is by zero, as a remainder is. A comparison with null is null.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

Comparison = Callable[[pc.Expression, pc.Expression], pc.Expression]


def in_pairs(operands: list[pc.Expression], operator: Comparison) -> pc.Expression:
    """Join operands, of which there may be hundreds, to a tree that is not deep."""
    while len(operands) > 1:
        pairs = zip(operands[::2], operands[1::2], strict=False)
        operands = [operator(*pair) for pair in pairs] + operands[len(operands) & ~1 :]
    return operands[0]


def equal(left: pc.Expression, right: pc.Expression) -> pc.Expression:
    """Compare floats, NaN with NaN too."""
    return (left == right) | (pc.is_nan(left) & pc.is_nan(right))


def greater(left: pc.Expression, right: pc.Expression) -> pc.Expression:
    """Compare floats, with NaN above all others."""
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


def quotient(left: pc.Expression, right: pc.Expression) -> pc.Expression:
    """Divide numbers as floats; null where the divisor is zero."""
    dividend, divisor = left.cast(pa.float64()), right.cast(pa.float64())
    return pc.if_else(divisor == 0.0, pc.scalar(pa.scalar(None, pa.float64())), pc.divide(dividend, divisor))


def remainder(left: pc.Expression, right: pc.Expression) -> pc.Expression:
    """Return what is left of whole numbers, with the sign of the dividend; null where the divisor is zero."""
    nothing = pc.scalar(pa.scalar(None, pa.int64()))
    # Nothing is left by -1 as by 1, but the least number divided by -1 does not fit.
    divisor = pc.if_else(right == 0, nothing, pc.if_else(right == -1, pc.scalar(1), right))
    return pc.subtract(left, pc.multiply(pc.divide(left, divisor), divisor))
