"""Translate Spark's pushed predicates to Arrow conditions, where both have the same semantics.

Spark evaluates every predicate itself too, so a predicate without a translation only costs time.

Dates in texts: Spark has no predicate of data sources for comparisons of dates in texts by a pattern. The
Java class `ParsedDates` finds them in Spark's optimized plans and returns predicates that `conditions` reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import reduce
from operator import and_, or_
from typing import Any, Final, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.expressions.numbers import FLOAT_COMPARISONS, PLAIN_COMPARISONS

_T = TypeVar("_T")
Facts: TypeAlias = Mapping[str, Any]
"""A Spark expression as a tree; see `planner.described`."""

_SPELLED_OUT_MAX: Final = 64
_NAMES: Final[dict[pa.DataType, str]] = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamp",
    pa.timestamp("us"): "timestamp_ntz",
}
"""Types that Spark compares as Arrow does, with Spark's names for the types of literals."""


def conditions(predicates: Sequence[Facts], schema: pa.Schema) -> pc.Expression | None:
    """Return the conjunction of the predicates that can be translated, None if none can.

    Args:
        predicates: Spark's predicates, as `planner.described` returns them.
        schema: the columns with the core's types.
    """
    translated = (_condition(predicate, schema) for predicate in predicates)
    terms = [condition for condition in translated if condition is not None]
    return reduce(and_, terms) if terms else None


def sql_conditions(predicates: Sequence[Facts], schema: pa.Schema) -> str | None:
    """Return the predicates on functions of a column, as SQL; None if there are none.

    They are those that expression indexes answer. The text is for skipping of files, not for rows.

    Args:
        predicates: Spark's predicates, as `planner.described` returns them.
        schema: the columns with the core's types.
    """
    texts = (_sql(predicate, schema) for predicate in predicates)
    return " and ".join(f"({text})" for text in texts if text is not None) or None


def _sql(predicate: Facts, schema: pa.Schema) -> str | None:
    name, children = predicate.get("name"), predicate.get("of", ())
    if name in ("AND", "OR"):
        sides = _known(name, [_sql(child, schema) for child in children])
        return f" {name} ".join(f"({side})" for side in sides) or None
    function = _sql_function(children[0], schema) if children else None
    values = [_sql_literal(child) for child in children[1:]]
    if function is None or not 0 < len(values) <= _SPELLED_OUT_MAX or None in values:
        return None
    if name == "IN":
        return f"{function} in ({', '.join(map(str, values))})"
    return f"{function} {name} {values[0]}" if name in PLAIN_COMPARISONS else None


def _known(name: str, sides: Sequence[_T | None]) -> list[_T]:
    """Return the sides of a connective that have a translation; none of an OR if one side has none."""
    known = [side for side in sides if side is not None]
    return known if name == "AND" or len(known) == len(sides) else []


def _sql_function(expression: Facts, schema: pa.Schema) -> str | None:
    """Return a function of one column and literals; None for other expressions."""
    name, children = _FUNCTIONS.get(expression.get("name", "")), expression.get("of", ())
    if expression.get("name") == _CAST:
        name = "to_date" if expression.get("to") == "date" else None
    elif name in _OF_DATES and children and children[0].get("name") == _CAST:
        casts = children[0].get("to") == "date"
        children = [*children[0].get("of", ()), *children[1:]] if casts else ()
    field = _column(children[0], schema) if name and children else None
    others = [_sql_literal(child) for child in children[1:]]
    if field is None or field.name not in schema.names or None in others or "`" in field.name:
        return None
    if name in _OF_DATES and not (pa.types.is_date(field.type) or pa.types.is_string(field.type)):
        return None  # of a timestamp the value depends on the time zone of the session
    return f"{name}({', '.join([f'`{field.name}`', *map(str, others)])})"


def _sql_literal(expression: Facts) -> str | None:
    """Return a literal in SQL, None for other expressions and for texts that need escapes."""
    text, kind = expression.get("value"), expression.get("type")
    if text is None or kind not in ("string", "int", "date"):
        return None
    if kind != "string":
        return str(text) if kind == "int" else _sql_date(int(text))
    return "'" + text.replace("'", "''") + "'" if text.isprintable() and "\\" not in text else None


def _sql_date(days: int) -> str | None:
    """Return the literal of a date; None for years that SQL conditions cannot have."""
    if not _FIRST_DAY <= days <= _LAST_DAY:
        return None
    return f"date '{date.fromordinal(_EPOCH + days).isoformat()}'"


def _condition(predicate: Facts, schema: pa.Schema) -> pc.Expression | None:
    """Translate a predicate, None if the semantics might differ."""
    name, children = predicate.get("name"), predicate.get("of", ())
    if name in ("AND", "OR"):
        sides = _known(name, [_condition(child, schema) for child in children])
        return reduce(and_ if name == "AND" else or_, sides) if sides else None
    field = _column(children[0], schema) if children else None
    if field is None:
        return None
    column = pc.field(*children[0]["column"])
    if name in ("IS_NULL", "IS_NOT_NULL"):
        return column.is_null() if name == "IS_NULL" else column.is_valid()
    values = [_value(child, field.type) for child in children[1:]]
    if not values or any(value is None for value in values):
        return None
    comparisons = FLOAT_COMPARISONS if pa.types.is_floating(field.type) else PLAIN_COMPARISONS
    if name == "IN":
        return _is_in(column, values, comparisons["="])
    return comparisons[name](column, pc.scalar(values[0])) if name in comparisons else None


def _is_in(
    column: pc.Expression,
    values: list[pa.Scalar],
    equal: Callable[[pc.Expression, pc.Expression], pc.Expression],
) -> pc.Expression | None:
    """Return the condition that a column has one of some values, in a form that can prune row groups."""
    if len(values) > _SPELLED_OUT_MAX:
        return None
    return reduce(or_, [equal(column, pc.scalar(value)) for value in values])


def _column(expression: Facts, schema: pa.Schema) -> pa.Field | None:
    """Return the column, or field of structs, of an expression; None for others and for types that differ."""
    kind: pa.DataType = pa.struct(list(schema))
    names = expression.get("column", ())
    for name in names:
        if not pa.types.is_struct(kind) or kind.get_field_index(name) < 0:
            return None
        kind = kind.field(name).type
    return pa.field(".".join(names), kind) if names and kind in _NAMES else None


def _value(expression: Facts, kind: pa.DataType) -> pa.Scalar | None:
    """Return the value of a literal of a column's type, None for other expressions and for null."""
    text = expression.get("value")
    if text is None or expression["type"] != _NAMES[kind]:
        return None
    return pa.scalar(_READ.get(kind, int)(text), _STORED.get(kind, kind)).cast(kind)


_FUNCTIONS: Final = {
    "UPPER": "upper",
    "LOWER": "lower",
    "TRIM": "trim",
    "LTRIM": "ltrim",
    "RTRIM": "rtrim",
    "SUBSTRING": "substring",
    "CHAR_LENGTH": "length",
    "LENGTH": "length",
    "YEAR": "year",
    "MONTH": "month",
    "DAY": "day",
    "TO_DATE": "to_date",
    "DATE_ADD": "date_add",
    "DATE_SUB": "date_sub",
}
"""Functions of SQL by the names that Spark pushes them down with."""

_CAST: Final = "CAST"
_OF_DATES: Final = ("year", "month", "day", "to_date", "date_add", "date_sub")
_EPOCH: Final = date(1970, 1, 1).toordinal()
_FIRST_DAY: Final = date.min.toordinal() - _EPOCH
_LAST_DAY: Final = date.max.toordinal() - _EPOCH

_READ: Final[dict[pa.DataType, Callable[[str], Any]]] = {
    pa.bool_(): "true".__eq__,
    pa.float32(): float,
    pa.float64(): float,
    pa.string(): str,
}
"""Parsers of values from Java's string form; other types are integers."""

_STORED: Final[dict[pa.DataType, pa.DataType]] = {
    pa.date32(): pa.int32(),
    pa.timestamp("us", "UTC"): pa.int64(),
    pa.timestamp("us"): pa.int64(),
}
"""Types whose values Spark stores as integers."""
