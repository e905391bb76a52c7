"""Row predicates: the text of a SQL condition, or an Arrow expression, checked against the columns.

    "month = 3 AND (carrier IN ('AA', 'DL') OR delay > 15.5) AND dest IS NOT NULL"

The dialect is Spark's, on both engines: double quotes make a text as single ones do, and names of
columns stand plain or in backticks; NaN equals itself and is greater than other numbers; a quotient
is a float. Three-valued as in SQL: a row is kept when the condition is true, not when it is null. A
literal takes the type of the column that it is compared with, so `day >= '2013-06-01'` works on
dates; a time without an offset is in UTC. Division by zero is null.
"""

from __future__ import annotations

from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import InvalidError
from drawstring.formats.conditions import where_columns
from drawstring.query.names import check_columns

Where: TypeAlias = "str | pc.Expression | None"


def parse_where(where: Where, schema: pa.Schema) -> pc.Expression | None:
    """Return the condition as an expression that fits the columns.

    Args:
        where: SQL text, or an Arrow expression.
        schema: the table's columns.

    Raises:
        InvalidError: an unknown column, a condition that does not parse, or a type that does not fit.
    """
    if where is None:
        return None
    if not isinstance(where, str | pc.Expression):
        raise InvalidError(f"a condition is a SQL text or a pyarrow expression, not {where!r}")
    expression = _parsed(where, schema) if isinstance(where, str) else where
    check_columns(where_columns(expression, schema), schema)
    try:
        schema.empty_table().filter(expression)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise InvalidError(f"{where!s} is not a condition on the table's rows: {error}") from error
    return expression


def _parsed(text: str, schema: pa.Schema) -> pc.Expression:
    from drawstring.query.sql_condition import expression_of

    return expression_of(text, schema)
