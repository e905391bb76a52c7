"""Row predicates: the text of a SQL condition, or an Arrow expression, checked against the columns.

    "month = 3 AND (carrier IN ('AA', 'DL') OR delay > 15.5) AND dest IS NOT NULL"

The dialect is that of Spark 4, on both engines: double quotes make a text as single ones do, a quote
inside a text is written twice, and names of columns stand plain or in backticks; NaN equals itself and
is greater than other numbers; a quotient is a float. Three-valued as in SQL: a row is kept when the
condition is true, not when it is null. A literal takes the type of the column that it is compared with,
so `day >= '2013-06-01'` works on dates; a time without an offset is in UTC. Division by zero is null, the
remainder has the sign of the dividend. There are no subqueries, aggregates and functions of dates.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import InvalidError
from drawstring.expressions.column_names import check_columns
from drawstring.expressions.evaluation import evaluated
from drawstring.expressions.literals import typed
from drawstring.expressions.plain_conditions import plain_condition
from drawstring.formats.conditions import where_columns

Where: TypeAlias = "str | pc.Expression | None"


def parse_where(where: Where, schema: pa.Schema, *, has_sides: bool = False) -> pc.Expression | None:
    """Return the condition as an expression that fits the columns.

    Args:
        where: SQL text, or an Arrow expression.
        schema: the table's columns.
        has_sides: whether these are columns of several tables, named `table.column`.

    Raises:
        InvalidError: an unknown column, a condition that does not parse, or a type that does not fit.
    """
    if where is None:
        return None
    if not isinstance(where, str | pc.Expression):
        raise InvalidError(f"a condition is a SQL text or a pyarrow expression, not {where!r}")
    expression = _condition(where, schema, has_sides) if isinstance(where, str) else where
    check_columns(where_columns(expression, schema), schema)
    try:
        schema.empty_table().filter(expression)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise InvalidError(f"{where!s} is not a condition on the table's rows: {error}") from error
    return expression


def parse_value(value: Any, schema: pa.Schema, column: pa.Field, *, has_sides: bool = False) -> pc.Expression:
    """Return what a column is set to as an expression of a type that goes into the column.

    Args:
        value: SQL text, an Arrow expression, or any other Python value, which stands for itself.
        schema: the columns that it may look at.
        column: the column that is set.
        has_sides: as in `parse_where`.

    Raises:
        InvalidError: an unknown column, a text that does not parse, or a type that does not go into
            the column.
    """
    try:
        expression = _value(value, schema, column.type, has_sides)
        found = evaluated(schema.empty_table(), [expression], ["value"]).schema.field("value").type
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise InvalidError(f"column {column.name} cannot be set to {value!s}: {error}") from error
    except InvalidError as error:
        raise InvalidError(f"column {column.name} cannot be set to {value!s}: {error.message}") from error
    if not _goes_into(found, column.type):
        raise InvalidError(
            f"column {column.name} is {column.type} and is set to {value!s}, which is {found}: cast it"
        )
    return expression


def _goes_into(kind: pa.DataType, column: pa.DataType) -> bool:
    """Tell whether values of a type may stand in a column; each is cast, and refused if it does not fit."""
    if kind == column or pa.types.is_null(kind):
        return True
    if _is_number(kind) and _is_number(column):
        return True
    if pa.types.is_timestamp(kind) and pa.types.is_timestamp(column):
        return bool((kind.tz is None) == (column.tz is None))
    return bool(pa.types.is_nested(kind) and pa.types.is_nested(column) and kind.id == column.id)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _value(value: Any, schema: pa.Schema, kind: pa.DataType, has_sides: bool) -> pc.Expression:
    if isinstance(value, pc.Expression):
        check_columns(where_columns(pc.field(schema.names[0]).is_null() & value.is_null(), schema), schema)
        return value
    if isinstance(value, str):
        from drawstring.expressions.sql_condition import value_of

        return value_of(value, schema, kind, has_sides=has_sides)
    return pc.scalar(pa.scalar(None, kind) if value is None else typed(value, kind))


def _condition(text: str, schema: pa.Schema, has_sides: bool) -> pc.Expression:
    plain = None if has_sides else plain_condition(text, schema)
    if plain is not None:
        return plain
    from drawstring.expressions.sql_condition import expression_of

    return expression_of(text, schema, has_sides=has_sides)
