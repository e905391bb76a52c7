"""Arithmetic of numbers in the types of `numbers`: an overflow fails on its row, x / 0 is null."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import InvalidError
from drawstring.expressions.comparisons import quotient
from drawstring.expressions.numbers import (
    DIGITS_MAX,
    Digits,
    bounded,
    decimal_of,
    decimal_type,
    own_decimal,
    product_digits,
    quotient_digits,
    sum_digits,
    widest,
)
from drawstring.expressions.terms import Term, rounded

_DIGITS_EXACT: Final = 76
"""Digits of Arrow's longest decimal."""


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation on two numbers.

    Attributes:
        apply: computes it on two expressions of one type.
        digits: precision and scale of its exact result for decimals.
    """

    apply: Callable[[pc.Expression, pc.Expression], pc.Expression]
    digits: Digits


ADD: Final = Operation(pc.add_checked, sum_digits)
SUBTRACT: Final = Operation(pc.subtract_checked, sum_digits)
MULTIPLY: Final = Operation(pc.multiply_checked, product_digits)


def computed(operation: Operation, left: Term, right: Term) -> pc.Expression:
    """Return a sum, difference or product.

    Raises:
        InvalidError: the operands are decimals with more digits than can be computed with.
    """
    if left.is_null or right.is_null:
        return _null_like(left, right)
    kind = widest([left.kind, right.kind])
    if not pa.types.is_decimal(kind):
        return operation.apply(left.to(kind), right.to(kind))
    first, second = decimal_kinds(left, right)
    precision, scale = operation.digits(first, second)
    _check_digits(precision)
    sides = (left.to(first), right.to(second))
    if precision <= DIGITS_MAX:
        return operation.apply(*sides)
    longer = [
        side.cast(pa.decimal256(each.precision, each.scale))
        for side, each in zip(sides, (first, second), strict=True)
    ]
    return rounded(operation.apply(*longer), decimal_type(precision, scale), bounded(precision, scale))


def divided(left: Term, right: Term) -> pc.Expression:
    """Return a quotient: a decimal if an operand is a decimal and none a float, otherwise a double.

    Raises:
        InvalidError: the operands are decimals with more digits than can be computed with.
    """
    kinds = [term.kind for term in (left, right) if not term.is_null]
    if len(kinds) < 2 or not pa.types.is_decimal(widest(kinds)):
        return quotient(left.to(pa.float64()), right.to(pa.float64()))
    first, second = decimal_kinds(left, right)
    result = bounded(*quotient_digits(first, second))
    # Arrow cuts the quotient after scale + precision2 - scale2 + 1 digits: one more than are kept is enough.
    scale = max(first.scale, result.scale + second.scale - second.precision)
    whole = first.precision - first.scale
    digits = max(4, scale + second.precision - second.scale + 1)
    _check_digits(whole + second.scale + digits)
    divisor_type = pa.decimal256(second.precision, second.scale)
    dividend = left.to(first).cast(pa.decimal256(whole + scale, scale))
    divisor = right.to(second).cast(divisor_type)
    nothing, zero = pa.scalar(None, divisor_type), pa.scalar(0, divisor_type)
    cut = pc.divide(dividend, pc.if_else(divisor == pc.scalar(zero), pc.scalar(nothing), divisor))
    return rounded(cut, pa.decimal256(whole + second.scale + digits, digits), result)


def decimal_kinds(left: Term, right: Term) -> tuple[pa.DataType, pa.DataType]:
    """Return the decimal types of two operands; a literal integer has just its own digits."""
    first, second = (
        own_decimal(term.literal) if isinstance(term.literal, int) else decimal_of(term.kind)
        for term in (left, right)
    )
    return first, second


def _null_like(left: Term, right: Term) -> pc.Expression:
    kind = right.kind if left.is_null else left.kind
    return pc.scalar(pa.scalar(None, kind))


def _check_digits(precision: int) -> None:
    if precision > _DIGITS_EXACT:
        raise InvalidError(
            f"The SQL computes with decimals whose exact result has {precision} digits, more than"
            f" {_DIGITS_EXACT}. Cast an operand to a decimal with fewer digits."
        )
