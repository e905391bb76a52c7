"""Numbers in an expression with their types, and conversions between the types.

Arrow gives a literal the smallest type that holds it: the sum of a bigint column and 0.25 would be a float of
24 bits, and 100 + 100 would overflow a tinyint. So every operand of another type than the operation is
converted, and literals of integers and floats are cast to the type that they have anyway.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import InvalidError
from drawstring.expressions.numbers import EXACT, Number, is_number, literal_type


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
