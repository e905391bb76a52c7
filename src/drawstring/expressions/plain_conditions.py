"""The plainest conditions without a parser: comparisons of columns with literals, joined by AND.

    city = 'delhi' and fare > 30

A parser of SQL takes longer to load than such a query takes. What is taken here means just what
`sql_condition` makes of it; any other text is left to it.
"""

from __future__ import annotations

import re
from decimal import Decimal
from operator import and_
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.expressions.comparisons import FLOAT_COMPARISONS, PLAIN_COMPARISONS, in_pairs
from drawstring.expressions.literals import typed

_COMPARISON: Final = re.compile(
    r"""\s*([A-Za-z_][A-Za-z0-9_]*)\s*(<>|!=|<=|>=|=|<|>)\s*"""
    r"""(?:'([^'"\\]*)'|"([^'"\\]*)"|(-?\d{1,18}(?:\.\d{1,18})?))(?:\s+|\Z)""",
    re.ASCII,
)
_AND: Final = re.compile(r"and\b", re.ASCII | re.IGNORECASE)


def plain_condition(text: str, schema: pa.Schema) -> pc.Expression | None:
    """Return the expression of a plain condition, None for any other text.

    Args:
        text: the condition.
        schema: the table's columns.

    Raises:
        InvalidError: a literal does not fit its column.
    """
    comparisons, place = [], 0
    while True:
        match = _COMPARISON.match(text, place)
        if match is None or match[1] not in schema.names:
            return None
        comparisons.append(match)
        place = match.end()
        if place == len(text):
            return in_pairs([_compared(each, schema) for each in comparisons], and_)
        joint = _AND.match(text, place)
        if joint is None:
            return None
        place = joint.end()


def _compared(match: re.Match[str], schema: pa.Schema) -> pc.Expression:
    name, operator, *texts, number = match.groups()
    kind = schema.field(name).type
    text = next((each for each in texts if each is not None), None)
    value = text if text is not None else Decimal(number) if "." in number else int(number)
    kinds = FLOAT_COMPARISONS if pa.types.is_floating(kind) else PLAIN_COMPARISONS
    compared = kinds["<>" if operator == "!=" else operator]
    return compared(pc.field(name), pc.scalar(typed(value, kind)))
