"""Translation of SQL text to Arrow expressions.

This module is imported when the first SQL text is parsed, because sqlglot loads slowly and most processes do
not need it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import and_, or_
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import expressions as sql

from drawstring.base.errors import InvalidError
from drawstring.expressions.columns import resolve_column, resolve_join_column, typed
from drawstring.expressions.datetime import as_time, compared_kind, has_value, incomparable_error, is_time
from drawstring.expressions.evaluation import evaluated
from drawstring.expressions.numbers import (
    ADD,
    FLOAT_COMPARISONS,
    MULTIPLY,
    PLAIN_COMPARISONS,
    SUBTRACT,
    Operation,
    Term,
    as_float,
    compared,
    computed,
    divided,
    in_pairs,
    is_number,
    values_held,
    widest,
)
from drawstring.expressions.parser import (
    check_supported,
    literal,
    nested_too_deeply,
    number,
    parsed,
    plain_value,
    prefix_bounds,
    sql_of,
    unsupported_error,
)
from drawstring.expressions.sql_functions import function_of

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
    return expression_of_tree(parsed(text, "condition"), schema, has_sides=has_sides)


def expression_of_tree(tree: Any, schema: pa.Schema, *, has_sides: bool = False) -> pc.Expression:
    """Translate a condition that is parsed; see `expression_of`."""
    with _bounded():
        return _Translator(schema, has_sides).of(tree)


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
        raise nested_too_deeply() from None


class _Translator:
    """Translates a parsed condition or value to an Arrow expression."""

    def __init__(self, schema: pa.Schema, has_sides: bool) -> None:
        self._schema = schema
        self._has_sides = has_sides
        self._done: dict[tuple[int, pa.DataType | None], tuple[Any, pc.Expression]] = {}
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
            sql.Add: lambda node: self._arithmetic(node, ADD),
            sql.Sub: lambda node: self._arithmetic(node, SUBTRACT),
            sql.Mul: lambda node: self._arithmetic(node, MULTIPLY),
            sql.Div: lambda node: self._arithmetic(node, None),
        }

    def of(self, node: Any) -> pc.Expression:
        """Translate a condition or a value; raise InvalidError for syntax that is not supported."""
        check_supported(node)
        if isinstance(node, _NEEDS_COLUMN):
            _check_names_column(node)
        if type(node) in _COMPARISONS:
            return self._compared(_COMPARISONS[type(node)], node.this, node.expression)
        translate = self._nodes.get(type(node))
        if translate is not None:
            return translate(node)
        if (value := literal(node)) is not None:
            term = number(node)
            return pc.scalar(value) if term is None else term.expression
        return self._function(node, None)

    def value(self, node: Any, kind: pa.DataType | None) -> pc.Expression:
        """Translate a value; literals are converted to the given type."""
        if isinstance(node, sql.Paren):
            return self.value(node.this, kind)
        if function_of(node) is not None and literal(node) is None:
            return self._function(node, kind)
        return self._operand(node, kind)

    def column_type(self, node: Any) -> pa.DataType | None:
        """Return the type of a node that is a column, None for other nodes."""
        return self._type(node)

    def plain_value(self, node: Any) -> Any:
        """Return the value of a literal; raise InvalidError for other nodes."""
        return plain_value(node)

    def type_of(self, expression: pc.Expression) -> pa.DataType:
        """Return the type of an expression's values."""
        return evaluated(self._schema.empty_table(), [expression], ["value"]).schema.field("value").type

    def term(self, node: Any, kind: pa.DataType | None = None) -> Term | None:
        """Translate a number; return None if the value is something else."""
        while isinstance(node, sql.Paren):
            check_supported(node)
            node = node.this
        if isinstance(node, sql.Null):
            return Term(pa.null(), pc.scalar(None))
        if literal(node) is not None:
            return number(node)
        known = self._type(node)
        if known is not None and not is_number(known):
            return None
        expression = self.value(node, kind)
        try:
            known = known or self.type_of(expression)
        except pa.ArrowException:
            return None  # the evaluation of the condition reports the error
        return Term(known, expression) if is_number(known) else None

    def branches(
        self, nodes: list[Any], kind: pa.DataType | None
    ) -> tuple[list[pc.Expression], pa.DataType | None]:
        """Translate values of which one is chosen; return them in one type, and the type if it is known."""
        terms: list[Term] = []
        for node in nodes:
            if (term := self.term(node, kind)) is None:
                break
            terms.append(term)
        numbers = [term.kind for term in terms if not term.is_null]
        if len(terms) == len(nodes) and numbers:
            common = widest(numbers)
            return [term.to(common) for term in terms], common
        known = (column for node in nodes if (column := self._type(node)) is not None)
        kind = kind or next(known, None)
        return [self.value(node, kind) for node in nodes], kind

    def _function(self, node: Any, kind: pa.DataType | None) -> pc.Expression:
        """Translate a function, once for each type: a value may be translated to learn its type."""
        done = self._done.get((id(node), kind))
        if done is None:
            check_supported(node)
            function = function_of(node)
            if function is None:
                raise unsupported_error(node)
            done = self._done[id(node), kind] = (node, function(self, node, kind))
        return done[1]

    def _chain(self, node: Any, operator: Callable[[Any, Any], pc.Expression]) -> pc.Expression:
        """Translate a chain of one operator, without recursion along the chain."""
        kind, operands = type(node), []
        while type(node) is kind:
            check_supported(node)
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
        return (
            resolve_join_column(parts, self._schema)
            if self._has_sides
            else resolve_column(parts, self._schema)
        )

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

    def _compared(self, operator: str, left: Any, right: Any) -> pc.Expression:
        first = self.term(left)
        second = None if first is None else self.term(right)
        if first is not None and second is not None:
            return compared(operator, first, second)
        kinds = [kind for kind in (self._type(left), self._type(right)) if kind is not None]
        is_float = any(pa.types.is_floating(kind) for kind in kinds)
        comparisons = FLOAT_COMPARISONS if is_float else PLAIN_COMPARISONS
        operands = self._times(operator, left, right) or self._operands(left, right)
        return comparisons[operator](*operands)

    def _times(self, operator: str, left: Any, right: Any) -> list[pc.Expression] | None:
        """Translate values of two types of which one is a date or a time; None for others."""
        nodes, literals = (left, right), (literal(left), literal(right))
        if any(isinstance(node, sql.Null) for node in nodes) or any(
            isinstance(each, str) for each in literals
        ):
            return None  # they take the type of the other value
        kinds = [self._known_type(*each) for each in zip(nodes, literals, strict=True)]
        if None in kinds or kinds[0] == kinds[1] or not any(map(is_time, kinds)):
            return None
        common = compared_kind(*kinds)
        if common is None:
            raise incomparable_error(sql_of(left, operator, right), *kinds)
        if any(has_value(kind, each) for kind, each in zip(kinds, reversed(literals), strict=True)):
            return None  # statistics and partition values know columns as they are
        return [
            as_time(self.value(node, None), kind, common) for node, kind in zip(nodes, kinds, strict=True)
        ]

    def _known_type(self, node: Any, value: Any) -> pa.DataType | None:
        """Return the type of a node, or of its value if it is a literal."""
        if value is not None:
            return value.type if isinstance(value, pa.Scalar) else pa.scalar(value).type
        try:
            return self._type(node) or self.type_of(self.value(node, None))
        except pa.ArrowException:
            return None  # the evaluation of the condition reports the error

    def _operand(self, node: sql.Expression, kind: pa.DataType | None) -> pc.Expression:
        """Translate a value; a literal is converted to the type that it is compared with."""
        if isinstance(node, sql.Null):
            return pc.scalar(pa.scalar(None, kind or pa.null()))
        value = literal(node)
        if value is None or kind is None:
            return self.of(node)
        return pc.scalar(typed(value, kind))

    def _operands(self, left: sql.Expression, right: sql.Expression) -> tuple[pc.Expression, pc.Expression]:
        """Translate two values that are compared with each other."""
        if literal(left) is not None:
            second = self._operand(right, self._type(left))
            return self._operand(left, self._literal_type(right, second, left)), second
        first = self._operand(left, self._type(right))
        return first, self._operand(right, self._literal_type(left, first, right))

    def _literal_type(
        self, node: sql.Expression, translated: pc.Expression, *others: sql.Expression
    ) -> pa.DataType | None:
        """Return the type for literals that are compared with a value: of its column, or a temporal type."""
        kind = self._type(node)
        is_typed = kind is not None or literal(node) is not None
        values = [] if is_typed else [literal(other) for other in others]
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
        raise unsupported_error(node)

    def _in(self, node: Any) -> pc.Expression:
        if not node.expressions:
            raise InvalidError("IN needs a list of values. Subqueries are not supported: list the values.")
        listed = self._listed(node) if len(node.expressions) > _SPELLED_OUT_MAX else None
        if listed is not None:
            return listed
        return in_pairs([self._compared("=", node.this, item) for item in node.expressions], or_)

    def _listed(self, node: Any) -> pc.Expression | None:
        """Translate a long IN list of literals, None if the values have to be compared one by one."""
        column = self.of(node.this)
        kind = self._literal_type(node.this, column, *node.expressions)
        if kind is None:
            return None
        values: list[Any] = []
        for item in node.expressions:
            term = number(item)
            values.append(typed(plain_value(item), kind).as_py() if term is None else term.literal)
        if pa.types.is_floating(kind):
            column, kind = column.cast(pa.float64()), pa.float64()
            values = [as_float(value) for value in values]
            values += [-value for value in values if value == 0]  # Arrow tells 0.0 from -0.0 in a list
        elif is_number(kind):
            held = values_held(values, kind)
            if held is None:
                return None
            values = held
        null = pc.scalar(pa.scalar(None, pa.bool_()))
        return pc.if_else(column.is_null(), null, column.isin(pa.array(values, kind)))

    def _between(self, node: Any) -> pc.Expression:
        at_least = self._compared(">=", node.this, node.args["low"])
        return at_least & self._compared("<=", node.this, node.args["high"])

    def _like(self, node: Any, *, ignore_case: bool) -> pc.Expression:
        text, pattern = self.of(node.this), str(plain_value(node.expression))
        like = pc.match_like(text, pattern, ignore_case=ignore_case)
        kind = self._type(node.this)
        if not ignore_case and kind is not None and pa.types.is_string(kind):
            for bound in prefix_bounds(text, pattern):  # statistics and key ranges know no LIKE
                like = bound & like
        return ~like if node.args.get("negate") else like

    def _arithmetic(self, node: Any, operation: Operation | None) -> pc.Expression:
        """Translate an operation; None divides."""
        left, right = self.term(node.this), self.term(node.expression)
        if left is None or right is None:
            raise InvalidError(
                f"The SQL contains {sql_of(node)}, which computes with values that are not numbers. Cast"
                " them, or pass a pyarrow expression."
            )
        return divided(left, right) if operation is None else computed(operation, left, right)


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
            f"The SQL contains {sql_of(node)}, which names no column. Single and double quotes make a"
            " string. Write a column name without quotes, or in backticks."
        )
