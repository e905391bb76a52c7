"""Parse row predicates: SQL conditions and Arrow expressions, checked against the columns of a table.

    "month = 3 AND (carrier IN ('AA', 'DL') OR delay > 15.5) AND dest IS NOT NULL"

The dialect is that of Spark 4, on both engines:

- Strings have single or double quotes, a quote inside a string is doubled.
- Column names are plain or in backticks.
- NaN equals itself and is greater than other numbers; `numbers` has the rules of number types.
- Logic is three-valued as in SQL: a row matches when the condition is true, not when it is null.
- Text takes the type of the column that it is compared with, as in `day >= '2013-06-01'`.
- A time without an offset is in UTC; `datetime` has the rules of dates and times.
- Division by zero is null, and the remainder has the sign of the dividend.
- Subqueries, aggregates and date functions are not supported.

Text of a condition (`condition_text`): SQL has NaN greater than all numbers, Arrow's comparisons with it are
false. So `f > 1.5` is translated to `invert((f <= 1.5))`. `condition_text` prints it as it was written.

Derived columns (`with_derived_column`): a condition on an expression becomes one on a column of its own, so
that statistics of the expression can decide it:

    upper(name) = 'A' AND id > 3        with upper(name) as column "e"        e = 'A' AND id > 3
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.expressions.columns import check_columns, typed
from drawstring.expressions.evaluation import evaluated
from drawstring.expressions.numbers import is_number, stored
from drawstring.expressions.plain_conditions import is_plain, plain_condition
from drawstring.formats.filter import ConditionSql, where_columns
from drawstring.schema.logical_types import is_vector

Where: TypeAlias = "str | pc.Expression | None"


def parse_where(where: Where, schema: pa.Schema, *, has_sides: bool = False) -> pc.Expression | None:
    """Return the condition as an expression that fits the columns.

    Args:
        where: SQL text, or an Arrow expression.
        schema: the table's columns.
        has_sides: whether the schema has columns of several tables, named `table.column`.

    Raises:
        InvalidError: an unknown column, a syntax error, or a type mismatch.
    """
    if where is None:
        return None
    if not isinstance(where, str | pc.Expression):
        raise InvalidError(f"The condition is {where!r}. Pass SQL text or a pyarrow expression.")
    expression = _condition(where, schema, has_sides) if isinstance(where, str) else where
    wording = condition_sql(where, expression)
    try:
        check_columns(where_columns(expression, schema), schema)
    except InvalidError as error:
        raise (error if wording is None else wording.of(error)) from error.__cause__
    try:
        pa.Table.from_batches([], schema).filter(expression)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise InvalidError(
            f"{where!s} is not a condition on the rows of the table. Correct it: {error}"
        ) from error
    return expression


def condition_sql(where: Where, expression: pc.Expression | None) -> ConditionSql | None:
    """Return the SQL of a condition for errors; None if the caller gave an expression.

    Args:
        where: the condition.
        expression: what it was translated to.
    """
    return ConditionSql(str(expression), where) if isinstance(where, str) else None


def parse_value(value: Any, schema: pa.Schema, column: pa.Field, *, has_sides: bool = False) -> pc.Expression:
    """Return the new value of a column as an expression of a type that the column accepts.

    Args:
        value: SQL text, an Arrow expression, or any other Python value as a literal.
        schema: the columns that the value may use.
        column: the column that is set.
        has_sides: as in `parse_where`.

    Raises:
        InvalidError: an unknown column, a syntax error, or a type that the column does not accept.
    """
    try:
        expression = _value(value, schema, column.type, has_sides)
        kind = evaluated(schema.empty_table(), [expression], ["value"]).schema.field("value").type
        if not isinstance(value, pc.Expression):
            expression = stored(expression, kind, column.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise InvalidError(f"Column {column.name} cannot be set to {value!s}: {error}") from error
    except InvalidError as error:
        raise InvalidError(f"Column {column.name} cannot be set to {value!s}. {error.message}") from error
    if not _fits(kind, column.type):
        raise InvalidError(
            f"Column {column.name} is {column.type} and cannot be set to {value!s}, which is {kind}. Cast it."
        )
    return expression


def _fits(kind: pa.DataType, column: pa.DataType) -> bool:
    """Return whether a column accepts values of a type; the cast of each value may still fail."""
    if kind == column or pa.types.is_null(kind):
        return True
    if is_number(kind) and is_number(column):
        return True
    if is_vector(column) and pa.types.is_list(kind):
        return is_number(kind.value_type)
    if pa.types.is_timestamp(kind) and pa.types.is_timestamp(column):
        return bool((kind.tz is None) == (column.tz is None))
    return bool(pa.types.is_nested(kind) and pa.types.is_nested(column) and kind.id == column.id)


def _value(value: Any, schema: pa.Schema, kind: pa.DataType, has_sides: bool) -> pc.Expression:
    if isinstance(value, pc.Expression):
        check_columns(where_columns(pc.field(schema.names[0]).is_null() & value.is_null(), schema), schema)
        return value
    if isinstance(value, str):
        from drawstring.expressions.sql_condition import value_of

        return value_of(value, schema, kind, has_sides=has_sides)
    return pc.scalar(pa.scalar(None, kind) if value is None else typed(value, kind))


def load_parser(where: Where, values: Iterable[Any] = ()) -> None:
    """Import the SQL parser if a condition or new values need it: it takes long, so not under a lock.

    Args:
        where: the condition.
        values: the new values; text is an expression.
    """
    if (isinstance(where, str) and not is_plain(where)) or any(isinstance(each, str) for each in values):
        import drawstring.expressions.sql_condition  # noqa: F401


def _condition(text: str, schema: pa.Schema, has_sides: bool) -> pc.Expression:
    plain = None if has_sides else plain_condition(text, schema)
    if plain is not None:
        return plain
    from drawstring.expressions.sql_condition import expression_of

    return expression_of(text, schema, has_sides=has_sides)


_INVERTED: Final = re.compile(r"invert\(\(([^()]+) (<=?) (-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)\)\)")
_OPPOSITE: Final = {"<=": ">", "<": ">="}


def condition_text(where: pc.Expression) -> str:
    """Return a condition as text, in which `f > 1.5` is printed so."""
    return _INVERTED.sub(lambda found: f"({found[1]} {_OPPOSITE[found[2]]} {found[3]})", str(where))


@dataclass(frozen=True, slots=True)
class DerivedColumn:
    """An expression that stands for a column.

    Attributes:
        sql: the expression, a column or a function of one.
        column: the column with its values.
    """

    sql: str
    column: pa.Field

    @property
    def function(self) -> str:
        """Name of the function, or of the column."""
        return self.sql.partition("(")[0].strip("`")


def with_derived_column(
    text: str, schema: pa.Schema, derived: DerivedColumn
) -> tuple[pc.Expression, pa.Schema] | None:
    """Return a condition with an expression replaced by a column, and the columns with that one.

    Args:
        text: the condition in SQL.
        schema: the columns of the table.
        derived: the expression.

    Returns:
        The condition without the parts that a column cannot be compared with; it is true where the whole
        condition is. None if no part that is left has the expression.
    """
    if not re.search(rf"\b{re.escape(derived.function)}\b", text, re.IGNORECASE):
        return None
    wanted = _plain(_tree(derived.sql))
    whole = pa.schema([*schema, derived.column])
    replaced = _tree(text).transform(
        lambda node: _column(derived.column.name) if _plain(node) == wanted else node
    )
    found = _implied(replaced, whole)
    has_column = found is not None and derived.column.name in where_columns(found, whole)
    return (found, whole) if found is not None and has_column else None


def _implied(tree: Any, columns: pa.Schema) -> pc.Expression | None:
    """Return a condition that is true where a tree is, without the conjuncts that Arrow cannot evaluate.

    Returns:
        None if nothing is left, such as of a literal that does not fit, or a date pattern of another index.
    """
    from sqlglot import expressions as sql

    from drawstring.expressions.sql_condition import expression_of_tree  # sqlglot loads slowly

    if isinstance(tree, sql.Paren):
        return _implied(tree.this, columns)
    if isinstance(tree, sql.And | sql.Or):
        sides = [_implied(tree.left, columns), _implied(tree.right, columns)]
        known = [side for side in sides if side is not None]
        if isinstance(tree, sql.Or):
            return reduce(or_, known) if len(known) == len(sides) else None
        return reduce(and_, known) if known else None
    try:
        return expression_of_tree(tree, columns)
    except (InvalidError, UnsupportedError):
        return None


def _tree(text: str) -> Any:
    from drawstring.expressions.parser import parsed

    return parsed(text, "condition")


def _column(name: str) -> Any:
    from sqlglot import expressions as sql

    return sql.column(name, quoted=True)


def _plain(node: Any) -> Any:
    """Return a node with the names of columns in one spelling."""
    from sqlglot import expressions as sql

    if not isinstance(node, sql.Column | sql.Func):
        return node

    def plain(part: Any) -> Any:
        is_name = isinstance(part, sql.Identifier)
        return sql.to_identifier(part.name.lower(), quoted=True) if is_name else part

    return node.transform(plain)
