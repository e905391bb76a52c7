"""Fast parser for simple conditions: comparisons of columns with literals, joined by AND.

    city = 'delhi' and fare > 30

Loading a full SQL parser takes longer than such a query. Conditions that this parser accepts have the same
meaning as in `sql_condition`, which parses all others.
"""

from __future__ import annotations

import re
from decimal import Decimal
from operator import and_
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.expressions.columns import typed
from drawstring.expressions.numbers import (
    FLOAT_COMPARISONS,
    PLAIN_COMPARISONS,
    Term,
    compared,
    in_pairs,
    is_number,
)

_COMPARISON: Final = re.compile(
    r"""\s*([A-Za-z_][A-Za-z0-9_]*)\s*(<>|!=|<=|>=|=|<|>)\s*"""
    r"""(?:'([^'"\\]*)'|"([^'"\\]*)"|(-?\d{1,18}(?:\.\d{1,18})?))(?:\s+|\Z)""",
    re.ASCII,
)
_AND: Final = re.compile(r"and\b", re.ASCII | re.IGNORECASE)


def plain_condition(text: str, schema: pa.Schema) -> pc.Expression | None:
    """Return the expression of a simple condition, None for any other text.

    Args:
        text: the condition.
        schema: the table's columns.

    Raises:
        InvalidError: a literal does not fit its column.
    """
    matches = _comparisons(text)
    if matches is None or any(match[1] not in schema.names for match in matches):
        return None
    if any(match[5] and pa.types.is_temporal(schema.field(match[1]).type) for match in matches):
        return None  # a number, of which the other parser says what is wrong
    return in_pairs([_comparison(match, schema) for match in matches], and_)


def is_plain(text: str) -> bool:
    """Return whether a condition is simple; its columns may not exist."""
    return _comparisons(text) is not None


def _comparisons(text: str) -> list[re.Match[str]] | None:
    matches, offset = [], 0
    while True:
        match = _COMPARISON.match(text, offset)
        if match is None:
            return None
        matches.append(match)
        offset = match.end()
        if offset == len(text):
            return matches
        conjunction = _AND.match(text, offset)
        if conjunction is None:
            return None
        offset = conjunction.end()


def _comparison(match: re.Match[str], schema: pa.Schema) -> pc.Expression:
    name, operator, *texts, number = match.groups()
    kind = schema.field(name).type
    operator = "<>" if operator == "!=" else operator
    text = next((quoted for quoted in texts if quoted is not None), None)
    value = text if text is not None else Decimal(number) if "." in number else int(number)
    if not isinstance(value, str) and is_number(kind):
        return compared(operator, Term(kind, pc.field(name)), Term.of(value))
    comparisons = FLOAT_COMPARISONS if pa.types.is_floating(kind) else PLAIN_COMPARISONS
    return comparisons[operator](pc.field(name), pc.scalar(typed(value, kind)))
