"""Translation of SQL text to Arrow expressions.

This module is imported when the first SQL text is parsed, because sqlglot loads slowly and most processes do
not need it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from operator import and_, or_
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import expressions as sql

from drawstring.base.errors import InvalidError
from drawstring.expressions.column_names import path_in, path_in_sides
from drawstring.expressions.comparisons import (
    FLOAT_COMPARISONS,
    PLAIN_COMPARISONS,
    Comparison,
    in_pairs,
    quotient,
)
from drawstring.expressions.evaluation import evaluated
from drawstring.expressions.literals import typed
from drawstring.expressions.sql_functions import CASTS, FUNCTIONS, KNOWN
from drawstring.expressions.sql_parser import DIALECT, parsed

_SPELLED_OUT_MAX: Final = 64
"""Largest IN list that is translated to equalities, which can prune row groups."""


def expression_of(text: str, schema: pa.Schema, *, has_sides: bool = False) -> pc.Expression:
    """Translate the text of a condition.

    Args:
        text: the condition.
        schema: the table's columns.
        has_sides: whether the schema has columns of several tables, named `table.column`.

    Raises:
        InvalidError: a syntax error, or a literal that does not fit its column.
    """
    with _bounded():
        return _Translator(schema, has_sides).of(parsed(text, "condition"))


def value_of(text: str, schema: pa.Schema, kind: pa.DataType, *, has_sides: bool = False) -> pc.Expression:
    """Translate the text of a value that a column is set to.

    Args:
        text: the value.
        schema, has_sides: as in `expression_of`.
        kind: type of the column; literals are converted to it.

    Raises:
        InvalidError: a syntax error, or a literal that does not fit the column.
    """
    with _bounded():
        return _Translator(schema, has_sides).value(parsed(text, "value"), kind)


@contextmanager
def _bounded() -> Iterator[None]:
    try:
        yield
    except RecursionError:
        raise InvalidError(
            "The SQL is nested too deeply. Remove parentheses, or use IN for many values."
        ) from None


class _Translator:
    """Translates a parsed condition or value to an Arrow expression."""

    def __init__(self, schema: pa.Schema, has_sides: bool) -> None:
        self._schema = schema
        self._has_sides = has_sides
        self._nodes: dict[type[sql.Expression], Callable[[Any], pc.Expression]] = {
            sql.And: lambda node: self._chain(node, and_),
            sql.Or: lambda node: self._chain(node, or_),
            sql.Not: lambda node: ~self.of(node.this),
            sql.Paren: lambda node: self.of(node.this),
            sql.Is: self._is,
            sql.In: self._in,
            sql.Between: self._between,
            sql.Like: lambda node: self._like(node, ignore_case=False),
            sql.ILike: lambda node: self._like(node, ignore_case=True),
            sql.Column: self._column,
            sql.Dot: self._column,
            sql.Boolean: lambda node: pc.scalar(bool(node.this)),
            sql.Null: lambda node: pc.scalar(pa.scalar(None, pa.bool_())),
            sql.Add: lambda node: self._arithmetic(node, pc.add_checked),
            sql.Sub: lambda node: self._arithmetic(node, pc.subtract_checked),
            sql.Mul: lambda node: self._arithmetic(node, pc.multiply_checked),
            sql.Div: self._divide,
        }

    def of(self, node: Any) -> pc.Expression:
        """Translate a condition or a value; raise InvalidError for syntax that is not supported."""
        _check_supported(node)
        if isinstance(node, _NEEDS_COLUMN):
            _check_names_column(node)
        if type(node) in _COMPARISONS:
            left, right = node.this, node.expression
            return self._comparison(_COMPARISONS[type(node)], left, right)(*self._operands(left, right))
        translate = self._nodes.get(type(node))
        if translate is not None:
            return translate(node)
        if (value := _literal(node)) is not None:
            return pc.scalar(float(value) if isinstance(value, Decimal) else _checked(value))
        return self._function(node, None)

    def value(self, node: Any, kind: pa.DataType | None) -> pc.Expression:
        """Translate a value; literals are converted to the given type."""
        if isinstance(node, sql.Paren):
            return self.value(node.this, kind)
        if type(node) in FUNCTIONS and _literal(node) is None:
            return self._function(node, kind)
        return self._operand(node, kind)

    def column_type(self, node: Any) -> pa.DataType | None:
        """Return the type of a node that is a column, None for other nodes."""
        return self._type(node)

    def plain_value(self, node: Any) -> Any:
        """Return the value of a literal; raise InvalidError for other nodes."""
        return _value(node)

    def type_of(self, expression: pc.Expression) -> pa.DataType:
        """Return the type of an expression's values."""
        return evaluated(self._schema.empty_table(), [expression], ["value"]).schema.field("value").type

    def _function(self, node: Any, kind: pa.DataType | None) -> pc.Expression:
        _check_supported(node)
        function = FUNCTIONS.get(type(node))
        if function is None:
            raise _unsupported(node)
        return function(self, node, kind)

    def _chain(self, node: Any, operator: Callable[[Any, Any], pc.Expression]) -> pc.Expression:
        """Translate a chain of one operator, without recursion along the chain."""
        kind, operands = type(node), []
        while type(node) is kind:
            _check_supported(node)
            operands.append(self.of(node.expression))
            node = node.this
        operands.append(self.of(node))
        operands.reverse()
        return in_pairs(operands, operator)

    def _column(self, node: Any) -> pc.Expression:
        name, *inner = self._path(node)
        return pc.field(name, *inner) if inner else pc.field(name)

    def _path(self, node: Any) -> list[str]:
        """Return the path of a column or a nested field, with the column name as the schema spells it."""
        parts = [part.name for part in node.parts]
        return path_in_sides(parts, self._schema) if self._has_sides else path_in(parts, self._schema)

    def _type(self, node: sql.Expression) -> pa.DataType | None:
        """Return the type of a node that is a column, None for other nodes."""
        if isinstance(node, sql.Paren):
            return self._type(node.this)
        if not isinstance(node, sql.Column | sql.Dot):
            return None
        name, *inner = self._path(node)
        kind = self._schema.field(name).type
        for part in inner:
            if not pa.types.is_struct(kind) or kind.get_field_index(part) < 0:
                column_type = self._schema.field(name).type
                raise InvalidError(
                    f"Column {name} has no field {'.'.join(inner)}. Its type is {column_type}."
                )
            kind = kind.field(part).type
        return kind

    def _is_float(self, node: sql.Expression) -> bool:
        """Return whether a value may be NaN."""
        if isinstance(node, sql.Div):
            return True
        if isinstance(node, sql.Paren | sql.Add | sql.Sub | sql.Mul):
            return any(self._is_float(side) for side in (node.this, node.args.get("expression")) if side)
        kind = self._type(node)
        return kind is not None and pa.types.is_floating(kind)

    def _comparison(self, operator: str, *nodes: sql.Expression) -> Comparison:
        """Return the comparison function for an operator and all values that it compares."""
        kinds = FLOAT_COMPARISONS if any(self._is_float(node) for node in nodes) else PLAIN_COMPARISONS
        return kinds[operator]

    def _operand(self, node: sql.Expression, kind: pa.DataType | None) -> pc.Expression:
        """Translate a value; a literal is converted to the type that it is compared with."""
        if isinstance(node, sql.Null):
            return pc.scalar(pa.scalar(None, kind or pa.null()))
        value = _literal(node)
        if value is None or kind is None:
            return self.of(node)
        return pc.scalar(typed(value, kind))

    def _operands(self, left: sql.Expression, right: sql.Expression) -> tuple[pc.Expression, pc.Expression]:
        """Translate two values that are compared with each other."""
        if _literal(left) is not None:
            second = self._operand(right, self._type(left))
            return self._operand(left, self._literal_type(right, second, left)), second
        first = self._operand(left, self._type(right))
        return first, self._operand(right, self._literal_type(left, first, right))

    def _literal_type(
        self, node: sql.Expression, translated: pc.Expression, *others: sql.Expression
    ) -> pa.DataType | None:
        """Return the type for literals that are compared with a value: of its column, or a temporal type."""
        kind = self._type(node)
        is_typed = kind is not None or _literal(node) is not None
        values = [] if is_typed else [_literal(other) for other in others]
        if not any(isinstance(value, str | pa.Scalar) for value in values):
            return kind
        try:
            value_type = self.type_of(translated)
        except pa.ArrowException:
            return None  # the evaluation of the condition reports the error
        return value_type if pa.types.is_temporal(value_type) else None

    def _is(self, node: Any) -> pc.Expression:
        if isinstance(node.expression, sql.Null):
            return self.of(node.this).is_null()
        if isinstance(node.expression, sql.Boolean):
            column = self.of(node.this)
            return column.is_valid() & (column == pc.scalar(bool(node.expression.this)))
        raise _unsupported(node)

    def _in(self, node: Any) -> pc.Expression:
        column = self.of(node.this)
        kind = self._literal_type(node.this, column, *node.expressions)
        if not node.expressions:
            raise InvalidError("IN needs a list of values. Subqueries are not supported: list the values.")
        if len(node.expressions) > _SPELLED_OUT_MAX and kind is not None:
            if pa.types.is_floating(kind):
                column, kind = column.cast(pa.float64()), pa.float64()
            values = pa.array([typed(_value(item), kind).as_py() for item in node.expressions], kind)
            return pc.if_else(column.is_null(), pc.scalar(pa.scalar(None, pa.bool_())), column.isin(values))
        equal = self._comparison("=", node.this, *node.expressions)
        result = equal(column, self._operand(node.expressions[0], kind))
        for item in node.expressions[1:]:
            result = result | equal(column, self._operand(item, kind))
        return result

    def _between(self, node: Any) -> pc.Expression:
        low, high = node.args["low"], node.args["high"]
        column = self.of(node.this)
        kind = self._literal_type(node.this, column, low, high)
        at_least, at_most = (self._comparison(sign, node.this, low, high) for sign in (">=", "<="))
        return at_least(column, self._operand(low, kind)) & at_most(column, self._operand(high, kind))

    def _like(self, node: Any, *, ignore_case: bool) -> pc.Expression:
        like = pc.match_like(self.of(node.this), str(_value(node.expression)), ignore_case=ignore_case)
        return ~like if node.args.get("negate") else like

    def _arithmetic(self, node: Any, function: Callable[[Any, Any], pc.Expression]) -> pc.Expression:
        left, right = node.this, node.expression
        return function(self._term(left, self._type(right)), self._term(right, self._type(left)))

    def _term(self, node: Any, other: pa.DataType | None) -> pc.Expression:
        """Translate an operand; if the other operand is a decimal column, a number becomes a decimal."""
        value = _literal(node) if other is not None and pa.types.is_decimal(other) else None
        if isinstance(value, int | Decimal) and not isinstance(value, bool):
            return pc.scalar(Decimal(value))
        return self.of(node)

    def _divide(self, node: Any) -> pc.Expression:
        for side in (node.this, node.expression):
            kind = self._type(side)
            if kind is not None and pa.types.is_decimal(kind):
                raise InvalidError(
                    f"The SQL contains {_sql_of(node)}, which divides a decimal. That is not supported."
                    " Multiply instead."
                )
        return quotient(self.of(node.this), self.of(node.expression))


_COMPARISONS: Final[dict[type[sql.Expression], str]] = {
    sql.EQ: "=",
    sql.NEQ: "<>",
    sql.GT: ">",
    sql.GTE: ">=",
    sql.LT: "<",
    sql.LTE: "<=",
}
_NEEDS_COLUMN: Final = (*_COMPARISONS, sql.Is, sql.In, sql.Between, sql.Like, sql.ILike, sql.RegexpLike)


def _check_names_column(node: Any) -> None:
    """Reject a predicate without a column, which is usually a column name written as a string."""
    strings = [literal for literal in node.find_all(sql.Literal) if literal.is_string]
    if strings and node.find(sql.Column) is None:
        raise InvalidError(
            f"The SQL contains {_sql_of(node)}, which names no column. Single and double quotes make a"
            " string. Write a column name without quotes, or in backticks."
        )


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


def _check_supported(node: Any) -> None:
    supported = _KNOWN.get(type(node), _OPERANDS)
    if any(value and name not in supported for name, value in node.args.items()):
        raise _unsupported(node)


def _unsupported(node: Any) -> InvalidError:
    return InvalidError(
        f"The SQL contains {_sql_of(node)}, which is not supported. Use comparisons, and, or, not, in,"
        " between, like, ilike, rlike, is null, + - * / %, ||, case, if, cast and the functions abs,"
        " coalesce, concat, length, lower, nullif, trim, upper, or pass a pyarrow expression."
    )


def _sql_of(node: Any) -> str:
    return repr(node.sql(dialect=DIALECT))


def _checked(value: Any) -> Any:
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise InvalidError(f"The SQL contains {value}, which has more than 64 bits. Use a smaller number.")
    return value


def _value(node: sql.Expression) -> Any:
    value = _literal(node)
    if value is None:
        raise InvalidError(f"The SQL contains {_sql_of(node)} where it needs a plain value. Write a literal.")
    return value


def _literal(node: sql.Expression) -> Any:
    """Return the value of a literal, None for other nodes."""
    _check_supported(node)
    if isinstance(node, sql.Paren):
        return _literal(node.this)
    if isinstance(node, sql.Neg):
        inner = _literal(node.this)
        return -inner if isinstance(inner, int | float | Decimal) else None
    if isinstance(node, sql.Boolean):
        return bool(node.this)
    if isinstance(node, sql.Cast) and (value := _literal(node.this)) is not None:
        _check_supported(node.to)
        kind = CASTS.get(node.to.this)
        return None if kind is None else typed(value, kind)
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


def _concatenated(nodes: list[Any]) -> str | None:
    """Return the concatenation of string literals, None if a node is not a string literal."""
    values = [_literal(node) for node in nodes]
    return "".join(values) if all(isinstance(value, str) for value in values) else None
