"""Parse one SQL condition or value in the dialect of Spark 4, and read the literals in its syntax tree.

A doubled quote inside a string is one quote: `'O''Brien'`. The dialect of the parser library follows Spark
before version 4, which reads two adjacent strings and yields `OBrien`. The parser keeps the date pattern of
`to_date` as it is written; the library translates it to one of Python, which is the same for several
patterns.

`prefix_bounds` returns the range of texts that begin with a prefix, so that statistics can decide
`LIKE 'ab%'`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from sqlglot import expressions as sql
from sqlglot.dialects.spark import Spark

from drawstring.base.errors import InvalidError
from drawstring.expressions.columns import typed
from drawstring.expressions.numbers import Term, cast_literal, is_number
from drawstring.expressions.sql_functions import KNOWN, cast_type

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


_KNOWN: Final[dict[type[sql.Expression], frozenset[str]]] = {
    sql.In: frozenset({"this", "expressions", "query"}),
    sql.Between: frozenset({"this", "low", "high"}),
    sql.Like: frozenset({"this", "expression", "negate"}),
    sql.ILike: frozenset({"this", "expression", "negate"}),
    sql.Column: frozenset({"this", "table", "db", "catalog"}),
    sql.Div: frozenset({"this", "expression", "safe"}),
    sql.Literal: frozenset({"this", "is_string"}),
    **KNOWN,
}
"""Supported arguments of parser nodes that have more than one or two operands.

A new version of the parser may add arguments, such as the negation of LIKE, that must not be ignored.
"""

_OPERANDS: Final = frozenset({"this", "expression"})


def check_supported(node: Any) -> None:
    """Refuse a node with arguments that are not translated.

    Raises:
        InvalidError: it has one.
    """
    supported = _KNOWN.get(type(node), _OPERANDS)
    if any(value and name not in supported for name, value in node.args.items()):
        raise unsupported_error(node)


def unsupported_error(node: Any) -> InvalidError:
    """Return the error for syntax that is not supported."""
    return InvalidError(
        f"The SQL contains {sql_of(node)}, which is not supported. Use comparisons, and, or, not, in,"
        " between, like, ilike, rlike, is null, + - * / %, ||, case, if, cast and the functions abs,"
        " coalesce, concat, date_add, date_sub, day, length, lower, ltrim, month, nullif, rtrim, substring,"
        " to_date, trim, upper, year, or pass a pyarrow expression."
    )


def sql_of(*parts: Any) -> str:
    """Return the quoted SQL of nodes with what is between them, for error messages."""
    return repr(" ".join(each if isinstance(each, str) else each.sql(dialect=DIALECT) for each in parts))


def plain_value(node: sql.Expression) -> Any:
    """Return the value of a literal.

    Raises:
        InvalidError: the node is no literal.
    """
    value = literal(node)
    if value is None:
        raise InvalidError(f"The SQL contains {sql_of(node)} where it needs a plain value. Write a literal.")
    return value


def literal(node: sql.Expression) -> Any:
    """Return the value of a literal, as a scalar if a cast gives it its type; None for other nodes."""
    check_supported(node)
    if isinstance(node, sql.Paren):
        return literal(node.this)
    if isinstance(node, sql.Neg):
        return _negative(literal(node.this))
    if isinstance(node, sql.Boolean):
        return bool(node.this)
    if isinstance(node, sql.Cast) and (value := literal(node.this)) is not None:
        check_supported(node.to)
        return _cast(value, cast_type(node.to))
    if isinstance(node, sql.RawString):
        return str(node.this)
    if isinstance(node, sql.Concat):
        return _concatenated(node.expressions)
    if not isinstance(node, sql.Literal):
        return None
    if node.is_string:
        return str(node.this)
    text = str(node.this)
    if text.isdigit():
        return int(text)
    return float(text) if "e" in text.lower() else Decimal(text)


def _negative(value: Any) -> Any:
    if isinstance(value, pa.Scalar):
        return cast_literal(_negative(value.as_py()), value.type) if is_number(value.type) else None
    if isinstance(value, Decimal):
        return value.copy_negate()  # the operator rounds to 28 digits
    return -value if isinstance(value, int | float) else None


def _cast(value: Any, kind: pa.DataType | None) -> pa.Scalar | None:
    """Return the cast of a literal, None for casts that are left to Arrow."""
    if isinstance(value, pa.Scalar) and is_number(value.type):
        value = value.as_py()
    if kind is None or isinstance(value, bool):
        return None
    if not isinstance(value, int | float | Decimal):
        return typed(value, kind)
    if is_number(kind):
        return cast_literal(value, kind)
    return None if pa.types.is_string(kind) or pa.types.is_temporal(kind) else typed(value, kind)


def number(node: sql.Expression) -> Term | None:
    """Return a number literal with its type, None for other nodes.

    Raises:
        InvalidError: it has more than 38 digits.
    """
    value = literal(node)
    if isinstance(value, pa.Scalar):
        return Term.of(value.as_py(), value.type) if is_number(value.type) else None
    is_plain = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return Term.of(value) if is_plain else None


def _concatenated(nodes: list[Any]) -> str | None:
    """Return the concatenation of string literals, None if a node is not a string literal."""
    values = [literal(node) for node in nodes]
    return "".join(values) if all(isinstance(value, str) for value in values) else None


_LITERAL: Final = re.compile(r"[^%_\\]*")
_LAST: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)


def prefix_bounds(text: pc.Expression, pattern: str) -> Iterator[pc.Expression]:
    """Yield conditions that every text fulfils that matches a LIKE pattern; none if it begins with any.

    Args:
        text: the text that is matched.
        pattern: the pattern, with `%`, `_` and backslashes.
    """
    match = _LITERAL.match(pattern)
    prefix = match[0] if match else ""
    if prefix:
        yield text >= prefix
        after = after_prefix(prefix)
        if after is not None:
            yield text < after


def after_prefix(prefix: str) -> str | None:
    """Return the least text that is greater than all texts with a prefix; None if there is none."""
    kept = prefix.rstrip(chr(_LAST))
    if not kept:
        return None
    following = ord(kept[-1]) + 1
    return kept[:-1] + chr(_SURROGATES.stop if following in _SURROGATES else following)
