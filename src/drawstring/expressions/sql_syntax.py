"""What is supported in the syntax tree of a condition, and the literals in it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from sqlglot import expressions as sql

from drawstring.base.errors import InvalidError
from drawstring.expressions.literals import typed
from drawstring.expressions.numbers import is_number
from drawstring.expressions.sql_functions import KNOWN, cast_type
from drawstring.expressions.sql_parser import DIALECT
from drawstring.expressions.terms import Term, cast_literal

_KNOWN: Final[dict[type[sql.Expression], frozenset[str]]] = {
    sql.In: frozenset({"this", "expressions", "query"}),
    sql.Between: frozenset({"this", "low", "high"}),
    sql.Like: frozenset({"this", "expression", "negate"}),
    sql.ILike: frozenset({"this", "expression", "negate"}),
    sql.Column: frozenset({"this", "table", "db", "catalog"}),
    sql.Div: frozenset({"this", "expression", "safe"}),
    sql.Literal: frozenset({"this", "is_string"}),
    **KNOWN,
}
"""Supported arguments of parser nodes that have more than one or two operands.

A new version of the parser may add arguments, such as the negation of LIKE, that must not be ignored.
"""

_OPERANDS: Final = frozenset({"this", "expression"})


def check_supported(node: Any) -> None:
    """Refuse a node with arguments that are not translated.

    Raises:
        InvalidError: it has one.
    """
    supported = _KNOWN.get(type(node), _OPERANDS)
    if any(value and name not in supported for name, value in node.args.items()):
        raise unsupported(node)


def unsupported(node: Any) -> InvalidError:
    """Return the error for syntax that is not supported."""
    return InvalidError(
        f"The SQL contains {sql_of(node)}, which is not supported. Use comparisons, and, or, not, in,"
        " between, like, ilike, rlike, is null, + - * / %, ||, case, if, cast and the functions abs,"
        " coalesce, concat, date_add, date_sub, day, length, lower, ltrim, month, nullif, rtrim, substring,"
        " to_date, trim, upper, year, or pass a pyarrow expression."
    )


def sql_of(*parts: Any) -> str:
    """Return the quoted SQL of nodes with what is between them, for error messages."""
    return repr(" ".join(each if isinstance(each, str) else each.sql(dialect=DIALECT) for each in parts))


def plain_value(node: sql.Expression) -> Any:
    """Return the value of a literal.

    Raises:
        InvalidError: the node is no literal.
    """
    value = literal(node)
    if value is None:
        raise InvalidError(f"The SQL contains {sql_of(node)} where it needs a plain value. Write a literal.")
    return value


def literal(node: sql.Expression) -> Any:
    """Return the value of a literal, as a scalar if a cast gives it its type; None for other nodes."""
    check_supported(node)
    if isinstance(node, sql.Paren):
        return literal(node.this)
    if isinstance(node, sql.Neg):
        return _negative(literal(node.this))
    if isinstance(node, sql.Boolean):
        return bool(node.this)
    if isinstance(node, sql.Cast) and (value := literal(node.this)) is not None:
        check_supported(node.to)
        return _cast(value, cast_type(node.to))
    if isinstance(node, sql.RawString):
        return str(node.this)
    if isinstance(node, sql.Concat):
        return _concatenated(node.expressions)
    if not isinstance(node, sql.Literal):
        return None
    if node.is_string:
        return str(node.this)
    text = str(node.this)
    if text.isdigit():
        return int(text)
    return float(text) if "e" in text.lower() else Decimal(text)


def _negative(value: Any) -> Any:
    if isinstance(value, pa.Scalar):
        return cast_literal(_negative(value.as_py()), value.type) if is_number(value.type) else None
    if isinstance(value, Decimal):
        return value.copy_negate()  # the operator rounds to 28 digits
    return -value if isinstance(value, int | float) else None


def _cast(value: Any, kind: pa.DataType | None) -> pa.Scalar | None:
    """Return the cast of a literal, None for casts that are left to Arrow."""
    if isinstance(value, pa.Scalar) and is_number(value.type):
        value = value.as_py()
    if kind is None or isinstance(value, bool):
        return None
    if not isinstance(value, int | float | Decimal):
        return typed(value, kind)
    if is_number(kind):
        return cast_literal(value, kind)
    return None if pa.types.is_string(kind) or pa.types.is_temporal(kind) else typed(value, kind)


def number(node: sql.Expression) -> Term | None:
    """Return a number literal with its type, None for other nodes.

    Raises:
        InvalidError: it has more than 38 digits.
    """
    value = literal(node)
    if isinstance(value, pa.Scalar):
        return Term.of(value.as_py(), value.type) if is_number(value.type) else None
    is_plain = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return Term.of(value) if is_plain else None


def _concatenated(nodes: list[Any]) -> str | None:
    """Return the concatenation of string literals, None if a node is not a string literal."""
    values = [literal(node) for node in nodes]
    return "".join(values) if all(isinstance(value, str) for value in values) else None
