"""Parser of one SQL condition or value in the dialect of Spark 4.

A doubled quote inside a string is one quote: `'O''Brien'`. The dialect of the parser library follows Spark
before version 4, which reads two adjacent strings and yields `OBrien`. The date pattern of `to_date` is
kept as it is written; the library translates it to one of Python, which several others would become as well.
"""

from __future__ import annotations

from typing import Any, Final

import sqlglot
from sqlglot import expressions as sql
from sqlglot.dialects.spark import Spark

from drawstring.base.errors import InvalidError

DIALECT: Final = "spark"


class _Tokenizer(Spark.Tokenizer):
    STRING_ESCAPES = [*Spark.Tokenizer.STRING_ESCAPES, "'", '"']  # noqa: RUF012  # the base class's own form


class _Parser(Spark.Parser):  # type: ignore[misc, valid-type]  # the dialect's class makes it
    FUNCTIONS = {  # noqa: RUF012  # the base class's own form
        **Spark.Parser.FUNCTIONS,
        "TO_DATE": lambda arguments: sql.Anonymous(this="to_date", expressions=arguments),
    }


def parsed(text: str, what: str) -> Any:
    """Parse a text and return its syntax tree.

    Args:
        text: one condition or value.
        what: `condition` or `value`, for error messages.

    Raises:
        InvalidError: a syntax error, more than one statement, or a text that is nested too deeply.
    """
    try:
        tokens = _Tokenizer(dialect=DIALECT).tokenize(text)
        trees = _Parser(dialect=DIALECT).parse(tokens, text)
    except sqlglot.errors.SqlglotError as error:
        raise InvalidError(f"The {what} {text!r} is not a SQL {what}.{_hint(error)}") from error
    except RecursionError:
        raise nested_too_deeply() from None
    if len(trees) != 1 or trees[0] is None:
        raise InvalidError(f"The {what} {text!r} is not a SQL {what}. Write one {what} only.")
    return trees[0]


def nested_too_deeply() -> InvalidError:
    """Return the error of a text whose nesting exhausts the stack."""
    return InvalidError("The SQL is nested too deeply. Remove parentheses, or use IN for many values.")


def _hint(error: sqlglot.errors.SqlglotError) -> str:
    """Return a sentence with the position of a syntax error, empty if the parser does not report it."""
    first = error.errors[0] if isinstance(error, sqlglot.errors.ParseError) and error.errors else {}
    return f" Look at column {first['col']}, near {first['highlight']!r}." if first.get("highlight") else ""
