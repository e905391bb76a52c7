"""The functions of expression indexes, under the names and with the settings that Apache Hudi 1.2.0 has.

    of texts       upper, lower, trim, ltrim, rtrim, length, substring, regexp_replace, regexp_extract
    of dates       year, month, day, date_format, unix_timestamp, to_date, to_timestamp, date_add, date_sub
    of times       the same, hour
    of seconds     from_unixtime
    of all         identity

Values are those of Spark 4 in a session in UTC. Functions of dates and times have texts as well: they parse
them by their setting `format`, or cast them, and give null for a text that is neither.

An index has no time zone in its definition, so conditions skip nothing by values that depend on one. A
function whose values could not be made equal to Spark's, such as `split`, is not supported: a writer removes
such an index of Hudi's, because it would lose rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.base.errors import UnsupportedError
from drawstring.base.java_patterns import linear_pattern
from drawstring.expressions.dates_in_texts import AS_DATE, AS_TIME, by_pattern, known_times
from drawstring.keygen.texts import map_distinct
from drawstring.metadata.expressions.dates import SECONDS_PATTERN, formatted, tokens_of

Settings: TypeAlias = Mapping[str, str]
Values: TypeAlias = Callable[[pa.Array, Settings], pa.Array]

_GROUP: Final = re.compile(r"\\(.)|\$(\d)", re.DOTALL)
_BETWEEN: Final = re.compile(r"\$|\\[bBzZG]")
"""What matches between characters, other than the beginning of a text."""

_MOMENT: Final = pa.timestamp("us", "UTC")


@dataclass(frozen=True, slots=True)
class IndexFunction:
    """A function of one column.

    Attributes:
        values: computes it for values of a column.
        takes: whether values of a type can be computed.
        needs: settings that it has to have.
        may_have: other settings.
        sql: its arguments in SQL behind the column; conditions in SQL cannot have other settings.
    """

    values: Values
    takes: Callable[[pa.DataType], bool]
    needs: tuple[str, ...] = ()
    may_have: tuple[str, ...] = ()
    sql: tuple[str, ...] = ()


def _upper(texts: pa.Array, settings: Settings) -> pa.Array:
    return _cased(texts, str.upper, pc.ascii_upper)


def _lower(texts: pa.Array, settings: Settings) -> pa.Array:
    return _cased(texts, str.lower, pc.ascii_lower)


def _cased(
    texts: pa.Array, by_text: Callable[[str], str], of_ascii: Callable[[pa.Array], pa.Array]
) -> pa.Array:
    """Change the case as Java does: a letter may become several, which Arrow's kernels do not do."""
    is_ascii = pc.all(pc.string_is_ascii(texts)).as_py()
    return map_distinct(texts, by_text) if is_ascii is False else of_ascii(texts)


def _trimmed(trim: Callable[..., pa.Array]) -> Values:
    return lambda texts, settings: trim(texts, characters=settings.get("trimString", " "))


def _substring(texts: pa.Array, settings: Settings) -> pa.Array:
    start = max(int(settings["pos"]) - 1, 0)
    return pc.utf8_slice_codeunits(texts, start, start + max(int(settings["len"]), 0))


def _replaced(texts: pa.Array, settings: Settings) -> pa.Array:
    pattern = _pattern(settings)
    if pc.match_substring_regex(pa.array([""]), pattern)[0].as_py():
        raise UnsupportedError(
            f"The pattern {settings['pattern']!r} of an index matches the empty text. Change it."
        )
    return pc.replace_substring_regex(texts, pattern, _replacement(settings["replacement"]))


def _pattern(settings: Settings) -> str:
    """Return the pattern of a function as RE2 has it.

    Raises:
        UnsupportedError: parts of a text that Java and RE2 match by it may differ.
    """
    pattern = settings["pattern"]
    if _BETWEEN.search(pattern):
        raise UnsupportedError(
            f"The pattern {pattern!r} of an index has $, \\b or \\B, which drawstring cannot compute as Java"
            " does. Change it."
        )
    return linear_pattern(pattern)


def _replacement(text: str) -> str:
    r"""Return a replacement of Java, with `$1` for a group, as RE2 has it, with `\1`."""

    def converted(match: re.Match[str]) -> str:
        literal, group = match.groups()
        return f"\\{group}" if group else ("\\\\" if literal == "\\" else literal)

    return _GROUP.sub(converted, text)


def _extracted(texts: pa.Array, settings: Settings) -> pa.Array:
    """Return a group of the first match, the empty text without one."""
    pattern, group = _pattern(settings), int(settings["idx"])
    around = rf"\A(?s:.*?)({pattern})(?s:.*)\z"
    found = pc.replace_substring_regex(texts, around, f"\\{group + 1}")
    return pc.if_else(pc.match_substring_regex(texts, pattern), found, "")


def _of_days(part: Callable[[pa.Array], pa.Array]) -> Values:
    return lambda days, settings: part(_dates(days)).cast(pa.int32())


def _dates(values: pa.Array) -> pa.Array:
    """Cast to dates."""
    return (known_times(values, AS_DATE) if pt.is_string(values.type) else values).cast(pa.date32())


def _times(values: pa.Array) -> pa.Array:
    """Cast to timestamps."""
    if pt.is_string(values.type):
        return known_times(values, AS_TIME)
    return values.cast(pa.timestamp("us")).cast(_MOMENT) if pt.is_date32(values.type) else values


def _parsed(values: pa.Array, pattern: str) -> pa.Array:
    """Return timestamps, of texts by a date pattern."""
    return known_times(values, by_pattern(pattern)) if pt.is_string(values.type) else _times(values)


def _to_date(values: pa.Array, settings: Settings) -> pa.Array:
    return _dates(_parsed(values, settings["format"]) if "format" in settings else values)


def _to_timestamp(values: pa.Array, settings: Settings) -> pa.Array:
    return _parsed(values, settings["format"]) if "format" in settings else _times(values)


def _hour(times: pa.Array, settings: Settings) -> pa.Array:
    return pc.hour(_times(times)).cast(pa.int32())


def _moved(sign: int) -> Values:
    def values(dates: pa.Array, settings: Settings) -> pa.Array:
        moved = pa.scalar(sign * int(settings["days"]), pa.int32())
        return pc.add_checked(_dates(dates).cast(pa.int32()), moved).cast(pa.date32())

    return values


def _of_seconds(seconds: pa.Array, settings: Settings) -> pa.Array:
    millis = pc.multiply_checked(seconds.cast(pa.int64()), 1000)
    return formatted(millis, tokens_of(settings.get("format", SECONDS_PATTERN)))


def _date_format(values: pa.Array, settings: Settings) -> pa.Array:
    times = _times(values)
    millis = pc.floor_temporal(times, unit="millisecond").cast(pa.timestamp("ms", times.type.tz))
    return formatted(millis.cast(pa.int64()), tokens_of(settings["format"]))


def _seconds(values: pa.Array, settings: Settings) -> pa.Array:
    times = _parsed(values, settings.get("format", SECONDS_PATTERN))
    return pc.divide(times.cast(pa.int64()), 1_000_000)  # towards zero, as Spark: also before 1970


def _same(values: pa.Array, settings: Settings) -> pa.Array:
    return values


def _is_time(kind: pa.DataType) -> bool:
    return bool(pt.is_timestamp(kind)) and kind.unit == "us" and kind.tz in (None, "UTC")


def _has_time(kind: pa.DataType) -> bool:
    return bool(pt.is_string(kind)) or _is_time(kind)


def _has_date(kind: pa.DataType) -> bool:
    return bool(pt.is_date32(kind)) or _has_time(kind)


def _has_moment(kind: pa.DataType) -> bool:
    return bool(pt.is_string(kind)) or bool(pt.is_date32(kind)) or kind == _MOMENT


FUNCTIONS: Final[dict[str, IndexFunction]] = {
    "identity": IndexFunction(_same, lambda kind: not pt.is_nested(kind)),
    "upper": IndexFunction(_upper, pt.is_string),
    "lower": IndexFunction(_lower, pt.is_string),
    "trim": IndexFunction(_trimmed(pc.utf8_trim), pt.is_string, may_have=("trimString",)),
    "ltrim": IndexFunction(_trimmed(pc.utf8_ltrim), pt.is_string, may_have=("trimString",)),
    "rtrim": IndexFunction(_trimmed(pc.utf8_rtrim), pt.is_string, may_have=("trimString",)),
    "length": IndexFunction(lambda texts, _: pc.utf8_length(texts).cast(pa.int32()), pt.is_string),
    "substring": IndexFunction(_substring, pt.is_string, ("pos", "len"), sql=("pos", "len")),
    "regexp_replace": IndexFunction(_replaced, pt.is_string, ("pattern", "replacement")),
    "regexp_extract": IndexFunction(_extracted, pt.is_string, ("pattern", "idx")),
    "year": IndexFunction(_of_days(pc.year), _has_date),
    "month": IndexFunction(_of_days(pc.month), _has_date),
    "day": IndexFunction(_of_days(pc.day), _has_date),
    "hour": IndexFunction(_hour, _has_time),
    "date_format": IndexFunction(_date_format, _has_date, ("format",)),
    "from_unixtime": IndexFunction(_of_seconds, pt.is_signed_integer, may_have=("format",)),
    "unix_timestamp": IndexFunction(_seconds, _has_date, may_have=("format",)),
    "to_date": IndexFunction(_to_date, _has_date, may_have=("format",), sql=("format",)),
    "to_timestamp": IndexFunction(_to_timestamp, _has_moment, may_have=("format",)),
    "date_add": IndexFunction(_moved(1), _has_date, ("days",), sql=("days",)),
    "date_sub": IndexFunction(_moved(-1), _has_date, ("days",), sql=("days",)),
}
"""The functions by Hudi's names."""
