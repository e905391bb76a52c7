"""Compute and compare numbers in the types that Spark 4 gives them; both engines return the same rows.

NaN equals itself and is greater than every other number. Quotient and remainder are null when the divisor is
zero. A comparison with null is null.

Types:

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

Conversions (`Term`): Arrow gives a literal the smallest type that holds it: the sum of a bigint column and
0.25 would be a float of 24 bits, and 100 + 100 would overflow a tinyint. So every operand of another type
than the operation is converted, and literals of integers and floats are cast to their own type explicitly.

Arithmetic: an overflow fails on its row, and x / 0 is null.

Comparisons (`compared`): a literal that an integer or decimal column cannot hold lies between two values of
the column, so the comparison becomes one with the value below: `n > 4.5` is `n > 4`. It is exact for every
integer, and statistics and partition values can decide it. Decimals compare with decimals and integers
without loss. A float compares in double precision, as in Spark.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import InvalidError

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
    return decimal_of_value(value)


def decimal_of_value(value: int | Decimal) -> pa.DataType:
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


@dataclass(frozen=True, slots=True)
class Term:
    """A number.

    Attributes:
        kind: its type; null for the literal NULL.
        expression: the expression.
        literal: its value if it is a literal, else None.
    """

    kind: pa.DataType
    expression: pc.Expression
    literal: Number | None = None

    @staticmethod
    def of(value: Number, kind: pa.DataType | None = None) -> Term:
        """Return a literal, of the type that Spark gives it or of the given type."""
        kind = kind or literal_type(value)
        return Term(kind, _constant(value, kind), value)

    def to(self, kind: pa.DataType) -> pc.Expression:
        """Return the number converted to a type."""
        if self.literal is not None:
            return _constant(self.literal, kind)
        return (
            pc.scalar(pa.scalar(None, kind)) if self.is_null else converted(self.expression, self.kind, kind)
        )

    @property
    def is_null(self) -> bool:
        """Whether it is the literal NULL."""
        return bool(pa.types.is_null(self.kind))


def _constant(value: Number, kind: pa.DataType) -> pc.Expression:
    scalar = cast_literal(value, kind)
    return pc.scalar(scalar) if pa.types.is_decimal(kind) else pc.scalar(scalar).cast(kind)


def cast_literal(value: Number, kind: pa.DataType) -> pa.Scalar:
    """Return a number cast to a type of numbers, as Spark casts it.

    Raises:
        InvalidError: the type cannot hold it.
    """
    try:
        return _cast_literal(value, kind)
    except (pa.ArrowInvalid, OverflowError, ValueError, ArithmeticError):
        raise InvalidError(f"The number {value} does not fit the type {kind}. Use a wider type.") from None


def _cast_literal(value: Number, kind: pa.DataType) -> pa.Scalar:
    if pa.types.is_decimal(kind):
        exact = Decimal(str(value)) if isinstance(value, float) else Decimal(value)
        rounded = exact.quantize(Decimal(1).scaleb(-kind.scale), ROUND_HALF_UP, EXACT)
        return pa.scalar(rounded, kind)
    if pa.types.is_integer(kind):
        whole = value if isinstance(value, int) else int(Decimal(value).to_integral_value(ROUND_DOWN))
        return pa.scalar(whole, kind)
    near = as_float(value)
    return pa.scalar(float(np.float32(near)) if kind == pa.float32() else near, kind)


def as_float(value: Number) -> float:
    """Return the double that is nearest to a number; an infinity if it exceeds all doubles."""
    return float(Decimal(value)) if isinstance(value, int) else float(value)


def converted(expression: pc.Expression, kind: pa.DataType, to: pa.DataType) -> pc.Expression:
    """Return the cast of a number to another type of numbers, as Spark casts it.

    A decimal is rounded half up, an integer is cut towards zero, and a float is the nearest one. A value that
    the type cannot hold fails on its row.

    Args:
        expression: the number.
        kind: its type.
        to: the type to cast it to.
    """
    if kind == to:
        return expression
    if pa.types.is_floating(to):
        # Arrow's own cast of a decimal is not always the nearest float.
        exact = expression.cast(pa.string()) if pa.types.is_decimal(kind) else expression
        return exact.cast(to, safe=not pa.types.is_integer(kind))
    if pa.types.is_integer(to):
        return (expression if pa.types.is_integer(kind) else pc.trunc(expression)).cast(to)
    if pa.types.is_floating(kind):
        return expression.cast(to)
    if pa.types.is_integer(kind):
        # Arrow converts an integer only to a decimal that holds all integers of its type.
        expression, kind = expression.cast(pa.decimal128(20, 0)), pa.decimal128(20, 0)
    return rounded(expression, kind, to)


def rounded(expression: pc.Expression, kind: pa.DataType, to: pa.DataType) -> pc.Expression:
    """Return a decimal as another decimal type, rounded half up if that has fewer digits after the point."""
    if to.scale >= kind.scale:
        return expression.cast(to)
    roomier = pa.decimal256(min(kind.precision + 1, 76), kind.scale)
    whole = pc.round(expression.cast(roomier), ndigits=to.scale, round_mode="half_towards_infinity")
    return whole.cast(to)


def stored(expression: pc.Expression, kind: pa.DataType, column: pa.DataType) -> pc.Expression:
    """Return a value in the type of its column, where a decimal has to be rounded for that.

    Values of other types, and those for integers, are converted when they are stored, which refuses a loss.
    """
    is_rounded = pa.types.is_decimal(column) or pa.types.is_floating(column)
    if is_rounded and pa.types.is_decimal(kind) and is_number(column):
        return converted(expression, kind, column)
    return expression


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
        decimal_of_value(term.literal) if isinstance(term.literal, int) else decimal_of(term.kind)
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
