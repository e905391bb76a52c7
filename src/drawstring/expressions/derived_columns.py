"""Conditions with expressions of columns as columns of their own, for what is known of the expressions.

upper(name) = 'A' AND id > 3        with upper(name) as column "e"        e = 'A' AND id > 3
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import InvalidError, UnsupportedError


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
        None if the condition does not have the expression, or says more of it than a column can be compared
        with.
    """
    if not re.search(rf"\b{re.escape(derived.function)}\b", text, re.IGNORECASE):
        return None
    from drawstring.expressions.sql_condition import expression_of_tree  # sqlglot loads slowly

    wanted = _plain(_tree(derived.sql))
    tree = _tree(text)
    whole = pa.schema([*schema, derived.column])
    replaced = tree.transform(lambda node: _column(derived.column.name) if _plain(node) == wanted else node)
    if replaced == tree:
        return None
    try:
        return expression_of_tree(replaced, whole), whole
    except (InvalidError, UnsupportedError):
        return None  # such as a literal that does not fit the values, or a date pattern of another expression


def _tree(text: str) -> Any:
    from drawstring.expressions.sql_parser import parsed

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
