"""SQL functions as Arrow expressions, with Spark's semantics: null in, null out, unless documented."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import expressions as sql

from drawstring.base.errors import DrawstringError, InvalidError
from drawstring.base.java_compat import linear_pattern
from drawstring.expressions.datetime import (
    AS_DATE,
    TimeForm,
    as_time,
    by_pattern,
    is_time,
    number_of_time,
    parse_times,
    time_of_number,
)
from drawstring.expressions.numbers import DIGITS_MAX, Term, is_number, remainder


class Translator(Protocol):
    """Translates the parts of a function call to expressions."""

    def of(self, node: Any) -> pc.Expression:
        """Translate a condition or a value."""
        ...

    def value(self, node: Any, kind: pa.DataType | None) -> pc.Expression:
        """Translate a value; literals are converted to the given type."""
        ...

    def column_type(self, node: Any) -> pa.DataType | None:
        """Return the type of a node that is a column, None for other nodes."""
        ...

    def plain_value(self, node: Any) -> Any:
        """Return the value of a literal; raise InvalidError for other nodes."""
        ...

    def type_of(self, expression: pc.Expression) -> pa.DataType:
        """Return the type of an expression's values."""
        ...

    def term(self, node: Any, kind: pa.DataType | None = None) -> Term | None:
        """Translate a number; return None if the value is something else."""
        ...

    def branches(
        self, nodes: list[Any], kind: pa.DataType | None
    ) -> tuple[list[pc.Expression], pa.DataType | None]:
        """Translate values of which one is chosen; return them in one type, and the type if it is known."""
        ...


FunctionTranslator = Callable[[Translator, Any, "pa.DataType | None"], pc.Expression]


def _coalesce(translator: Translator, node: Any, kind: pa.DataType | None) -> pc.Expression:
    return pc.coalesce(*translator.branches([node.this, *node.expressions], kind)[0])


def _case(translator: Translator, node: Any, kind: pa.DataType | None) -> pc.Expression:
    """Translate CASE, with or without a value to compare, and IF, which has the same parts."""
    whens = node.args["ifs"] if isinstance(node, sql.Case) else [node]
    last = node.args.get("default" if isinstance(node, sql.Case) else "false")
    nodes = [when.args["true"] for when in whens] + ([last] if last is not None else [])
    results, kind = translator.branches(nodes, kind)
    result = pc.scalar(pa.scalar(None, kind)) if last is None else results[-1]
    for when, chosen in reversed(list(zip(whens, results, strict=False))):
        test = (
            when.this if node is when or node.this is None else sql.EQ(this=node.this, expression=when.this)
        )
        holds = pc.coalesce(translator.of(test), pc.scalar(False))
        result = pc.if_else(holds, chosen, result)
    return result


def _nullif(translator: Translator, node: Any, kind: pa.DataType | None) -> pc.Expression:
    [value], kind = translator.branches([node.this], translator.column_type(node.this) or kind)
    same = pc.coalesce(translator.of(sql.EQ(this=node.this, expression=node.expression)), pc.scalar(False))
    return pc.if_else(same, pc.scalar(pa.scalar(None, kind)), value)


def _concat(translator: Translator, node: Any, kind: pa.DataType | None) -> pc.Expression:
    parts = node.expressions if isinstance(node, sql.Concat) else [node.this, node.expression]
    texts = [translator.value(part, pa.string()).cast(pa.string()) for part in parts]
    return pc.binary_join_element_wise(*texts, pc.scalar(""))


def _cast(translator: Translator, node: Any, kind: pa.DataType | None) -> pc.Expression:
    target = cast_type(node.to)
    if target is None:
        raise InvalidError(
            f"A cast to {node.to.sql(dialect='spark')} is not supported. Pass a pyarrow expression instead."
        )
    term = translator.term(node.this) if is_number(target) or is_time(target) else None
    if term is not None and (is_number(target) or term.is_null):
        return term.to(target)
    value = translator.value(node.this, None)
    try:
        kind = translator.type_of(value)
    except pa.ArrowException:
        return value.cast(target)  # the evaluation of the condition reports the error
    if is_time(target) or (is_time(kind) and is_number(target)):
        return _time_cast(value, kind, term, target, node)
    return value.cast(target)


def _time_cast(
    value: pc.Expression, kind: pa.DataType, term: Term | None, target: pa.DataType, node: Any
) -> pc.Expression:
    """Translate a cast of a date or a time, or to one."""
    if not is_time(target):
        found = number_of_time(value, kind, target)
    elif is_time(kind) or pa.types.is_string(kind):
        found = as_time(value, kind, target)
    else:
        found = None if term is None else time_of_number(term, target)
    if found is None:
        raise InvalidError(
            f"The SQL contains {node.sql(dialect='spark')!r}, a cast from {kind} to {target}, which is not"
            " supported. Cast dates and times to each other and to text, and timestamps to and from the whole"
            " number of their seconds."
        )
    return found


def cast_type(node: Any) -> pa.DataType | None:
    """Return the type that a cast names, None if it is not supported."""
    if node.this is not sql.DataType.Type.DECIMAL:
        return CASTS.get(node.this)
    precision, scale, *_ = [*(int(argument.name) for argument in node.expressions), 0, 0]
    if not node.expressions:
        precision = 10
    return pa.decimal128(precision, scale) if 0 <= scale <= precision <= DIGITS_MAX and precision else None


def _remainder(translator: Translator, node: Any, kind: pa.DataType | None) -> pc.Expression:
    null = pc.scalar(pa.scalar(None, pa.int64()))
    left, right = (
        null if isinstance(operand, sql.Null) else translator.of(operand)
        for operand in (node.this, node.expression)
    )
    for operand_type in (translator.type_of(left), translator.type_of(right)):
        if not pa.types.is_integer(operand_type):
            raise InvalidError(
                f"The SQL contains a remainder (%) of type {operand_type}. Use % on integers only."
            )
    return remainder(left, right)


def _matches(translator: Translator, node: Any, kind: pa.DataType | None) -> pc.Expression:
    """Translate RLIKE, with a Java regular expression, to an RE2 match."""
    pattern = translator.plain_value(node.expression)
    if not isinstance(pattern, str):
        raise InvalidError(
            f"The SQL contains rlike with {pattern!r}. Write the regular expression as a string."
        )
    try:
        expression = linear_pattern(pattern)
    except DrawstringError as error:
        raise InvalidError(f"The SQL contains the regular expression {pattern!r}: {error.message}") from error
    return pc.match_substring_regex(translator.value(node.this, pa.string()), expression)


def _trim(translator: Translator, node: Any, kind: pa.DataType | None) -> pc.Expression:
    trims = {"LEADING": pc.utf8_ltrim, "TRAILING": pc.utf8_rtrim}
    trim = trims.get(node.args.get("position"), pc.utf8_trim)
    return trim(translator.value(node.this, pa.string()), " ")


def _substring(translator: Translator, node: Any, kind: pa.DataType | None) -> pc.Expression:
    """Translate a substring that begins at a position from the left; 0 and 1 are the first character."""
    start, length = (translator.plain_value(node.args[name]) for name in ("start", "length"))
    if not (isinstance(start, int) and isinstance(length, int)) or start < 0:
        raise InvalidError(
            "The SQL contains substring with a position or a length that is negative or not a number. Write"
            " both as whole numbers."
        )
    first = max(start - 1, 0)
    return pc.utf8_slice_codeunits(translator.value(node.this, pa.string()), first, first + max(length, 0))


def _of_date(part: Callable[[pc.Expression], pc.Expression]) -> FunctionTranslator:
    def translate(translator: Translator, node: Any, kind: pa.DataType | None) -> pc.Expression:
        inner = node.this.this if isinstance(node.this, sql.TsOrDsToDate) else node.this
        return part(_date(translator, inner)).cast(pa.int32())

    return translate


def _date(translator: Translator, node: Any, form: TimeForm = AS_DATE) -> pc.Expression:
    """Translate a value that has a date; of a text, the date in it."""
    value = translator.of(node)
    found = translator.type_of(value)
    if pa.types.is_string(found):
        return parse_times(value, form).cast(pa.date32())
    if not (pa.types.is_date32(found) or pa.types.is_timestamp(found)):
        raise InvalidError(f"The SQL takes a date, or a part of one, from a value of type {found}. Cast it.")
    return value


def _to_date(translator: Translator, node: Any, kind: pa.DataType | None) -> pc.Expression:
    """Translate a cast to a date, of texts by a date pattern if one is given."""
    value, *others = node.expressions or [None]
    pattern = translator.plain_value(others[0]) if others else None
    if value is None or len(others) > 1 or not isinstance(pattern, str | None):
        raise InvalidError(
            "The SQL contains to_date without a value, or with more than a pattern. Correct it."
        )
    form = AS_DATE if pattern is None else by_pattern(pattern)
    return _date(translator, value, form).cast(pa.date32())


def _date_add(translator: Translator, node: Any, kind: pa.DataType | None) -> pc.Expression:
    """Translate date_add and date_sub."""
    if node.args["unit"].name != "DAY":
        raise InvalidError("The SQL adds to a date what is not a number of days. Use date_add or date_sub.")
    day = _date(translator, node.this).cast(pa.date32()).cast(pa.int32())
    days = translator.value(node.expression, pa.int32()).cast(pa.int32())
    return pc.add_checked(day, days).cast(pa.date32())


def _of_text(function: Callable[[pc.Expression], pc.Expression]) -> FunctionTranslator:
    return lambda translator, node, kind: function(translator.value(node.this, pa.string()))


def _of_number(function: Callable[[pc.Expression], pc.Expression]) -> FunctionTranslator:
    return lambda translator, node, kind: function(translator.branches([node.this], kind)[0][0])


CASTS: Final[dict[Any, pa.DataType]] = {
    sql.DataType.Type.DATE: pa.date32(),
    sql.DataType.Type.TIMESTAMP: pa.timestamp("us", "UTC"),
    sql.DataType.Type.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
    sql.DataType.Type.TIMESTAMPLTZ: pa.timestamp("us", "UTC"),
    sql.DataType.Type.TIMESTAMPNTZ: pa.timestamp("us"),
    sql.DataType.Type.BOOLEAN: pa.bool_(),
    sql.DataType.Type.TINYINT: pa.int8(),
    sql.DataType.Type.SMALLINT: pa.int16(),
    sql.DataType.Type.INT: pa.int32(),
    sql.DataType.Type.BIGINT: pa.int64(),
    sql.DataType.Type.FLOAT: pa.float32(),
    sql.DataType.Type.DOUBLE: pa.float64(),
    sql.DataType.Type.TEXT: pa.string(),
    sql.DataType.Type.VARCHAR: pa.string(),
}

FUNCTIONS: Final[dict[type[Any], FunctionTranslator]] = {
    sql.Coalesce: _coalesce,
    sql.Case: _case,
    sql.If: _case,
    sql.Nullif: _nullif,
    sql.Concat: _concat,
    sql.DPipe: _concat,
    sql.Cast: _cast,
    sql.TryCast: _cast,
    sql.Upper: _of_text(pc.utf8_upper),
    sql.Lower: _of_text(pc.utf8_lower),
    sql.Trim: _trim,
    sql.Substring: _substring,
    sql.Year: _of_date(pc.year),
    sql.Month: _of_date(pc.month),
    sql.Day: _of_date(pc.day),
    sql.TsOrDsAdd: _date_add,
    sql.DayOfMonth: _of_date(pc.day),
    sql.Length: _of_text(pc.utf8_length),
    sql.Abs: _of_number(pc.abs_checked),
    sql.Neg: _of_number(pc.negate_checked),
    sql.Mod: _remainder,
    sql.RegexpLike: _matches,
}
"""Translators by node type."""

_NAMED: Final[dict[str, FunctionTranslator]] = {"to_date": _to_date}
"""Translators of functions that the parser knows by name only."""


def function_of(node: Any) -> FunctionTranslator | None:
    """Return the translator of a function, None if it is not supported."""
    return _NAMED.get(node.name.lower()) if isinstance(node, sql.Anonymous) else FUNCTIONS.get(type(node))


KNOWN: Final[dict[type[Any], frozenset[str]]] = {
    sql.Anonymous: frozenset({"this", "expressions"}),
    sql.Coalesce: frozenset({"this", "expressions", "is_nvl"}),
    sql.Case: frozenset({"this", "ifs", "default"}),
    sql.If: frozenset({"this", "true", "false"}),
    sql.Concat: frozenset({"expressions", "safe", "coalesce"}),
    sql.DPipe: frozenset({"this", "expression", "safe"}),
    sql.Trim: frozenset({"this", "position"}),
    sql.Substring: frozenset({"this", "start", "length"}),
    sql.Length: frozenset({"this"}),
    sql.TsOrDsAdd: frozenset({"this", "expression", "unit"}),
    sql.Cast: frozenset({"this", "to"}),
    sql.TryCast: frozenset({"this", "to", "safe"}),
    sql.DataType: frozenset({"this", "expressions", "nested"}),
}
"""Supported arguments by node type; `sql_condition` rejects all others."""
