"""Comparisons of numbers of any types.

A literal that an integer or decimal column cannot hold lies between two values of the column, so the
comparison becomes one with the value below: `n > 4.5` is `n > 4`. It is exact for every integer, and
statistics and partition values can decide it. Decimals compare with decimals and integers without loss. A
float compares in double precision, as in Spark.
"""

from __future__ import annotations

from decimal import ROUND_FLOOR, Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.expressions.comparisons import FLOAT_COMPARISONS, PLAIN_COMPARISONS, with_number
from drawstring.expressions.numbers import EXACT, Number, comparable
from drawstring.expressions.terms import Term, as_float

MIRRORED: Final = {"=": "=", "<>": "<>", ">": "<", ">=": "<=", "<": ">", "<=": ">="}
_BELOW: Final = {">": ">", ">=": ">", "<": "<=", "<=": "<="}
_FLOAT_EXACT: Final = 2**53
"""Up to here every integer is a double, so a double compares with integers exactly."""


def compared(operator: str, left: Term, right: Term) -> pc.Expression:
    """Return the comparison of two numbers."""
    if left.is_null or right.is_null:
        return pc.scalar(pa.scalar(None, pa.bool_()))
    if left.literal is not None and right.literal is None:
        return compared(MIRRORED[operator], right, left)
    kinds = (left.kind, right.kind)
    if left.literal is None and right.literal is not None:
        if pa.types.is_floating(left.kind):
            return with_number(operator, left.expression, as_float(right.literal))
        if _is_exact(left.kind, right):
            return _with_literal(operator, left, right.literal)
    if all(pa.types.is_integer(kind) for kind in kinds):
        return PLAIN_COMPARISONS[operator](left.expression, right.expression)
    kind = comparable(*kinds)
    functions = FLOAT_COMPARISONS if pa.types.is_floating(kind) else PLAIN_COMPARISONS
    return functions[operator](left.to(kind), right.to(kind))


def _is_exact(kind: pa.DataType, right: Term) -> bool:
    """Return whether a comparison with a literal has the same result in Spark as an exact one."""
    if not pa.types.is_floating(right.kind):
        return True
    return bool(pa.types.is_integer(kind)) and abs(as_float(right.literal or 0)) <= _FLOAT_EXACT


def _with_literal(operator: str, left: Term, value: Number) -> pc.Expression:
    """Compare an integer or decimal with a literal."""
    scale = left.kind.scale if pa.types.is_decimal(left.kind) else 0
    least, most = limits(left.kind)
    scaled = Decimal(value).scaleb(scale, EXACT)
    below = int(scaled.to_integral_value(ROUND_FLOOR))
    is_held = below == scaled and least <= below <= most
    if not is_held:
        if operator in ("=", "<>"):
            operator, below = ("<" if operator == "=" else ">="), least
        else:
            operator, below = _beyond(_BELOW[operator], below, least, most)
    return PLAIN_COMPARISONS[operator](left.expression, pc.scalar(_value(below, left.kind)))


def _beyond(operator: str, below: int, least: int, most: int) -> tuple[str, int]:
    """Return the comparison for a value below the literal, which may be outside the limits of the column."""
    if least <= below <= most:
        return operator, below
    is_true = (operator == ">") == (below < least)
    return (">=" if is_true else "<"), least


def limits(kind: pa.DataType) -> tuple[int, int]:
    """Return the least and the greatest value of an integer or decimal type, without the decimal point."""
    if pa.types.is_decimal(kind):
        return 1 - 10**kind.precision, 10**kind.precision - 1
    bits = kind.bit_width
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if pa.types.is_signed_integer(kind) else (0, 2**bits - 1)


def _value(units: int, kind: pa.DataType) -> pa.Scalar:
    if not pa.types.is_decimal(kind):
        return pa.scalar(units)
    return pa.scalar(Decimal(units).scaleb(-kind.scale, EXACT), kind)


def values_held(literals: list[Number], kind: pa.DataType) -> list[Any] | None:
    """Return those of some literals that a column of integers or decimals can hold, None if one is a float.

    Args:
        literals: the values.
        kind: type of the column.
    """
    if any(isinstance(literal, float) for literal in literals):
        return None
    scale = kind.scale if pa.types.is_decimal(kind) else 0
    least, most = limits(kind)
    units = [Decimal(literal).scaleb(scale, EXACT) for literal in literals]
    held = [int(each) for each in units if each == each.to_integral_value() and least <= each <= most]
    return [_value(each, kind).as_py() for each in held]
