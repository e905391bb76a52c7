"""Text of SQL to the tree of one condition or value, as Spark 4 reads it.

A quote that stands twice inside a text is one quote: `'O''Brien'`. The parser's own reading is that of Spark
before version 4, two texts side by side, which would make `OBrien` of it.
"""

from __future__ import annotations

from typing import Any, Final

import sqlglot
from sqlglot.dialects.spark import Spark

from drawstring.base.errors import InvalidError

DIALECT: Final = "spark"


class _Tokenizer(Spark.Tokenizer):
    STRING_ESCAPES = [*Spark.Tokenizer.STRING_ESCAPES, "'", '"']  # noqa: RUF012  # the base class's own form


def parsed(text: str, what: str) -> Any:
    """Return the tree of a text.

    Args:
        text: one condition or value.
        what: what to call it in an error.

    Raises:
        InvalidError: it does not parse, or is more than one.
    """
    try:
        tokens = _Tokenizer(dialect=DIALECT).tokenize(text)
        trees = Spark().parser().parse(tokens, text)
    except sqlglot.errors.SqlglotError as error:
        raise InvalidError(f"the {what} {text!r} is no SQL {what}{_where(error)}") from error
    if len(trees) != 1 or trees[0] is None:
        raise InvalidError(f"the {what} {text!r} is no SQL {what}")
    return trees[0]


def _where(error: sqlglot.errors.SqlglotError) -> str:
    """Say where a text stops making sense, as far as the parser tells."""
    found = error.errors[0] if isinstance(error, sqlglot.errors.ParseError) and error.errors else {}
    return f": look at column {found['col']}, near {found['highlight']!r}" if found.get("highlight") else ""
