"""Compare, cast and parse dates and times as Spark 4 does in a session in UTC.

Comparisons:

    compared                     in the type             the other value becomes
    date, timestamp              timestamp               midnight in UTC
    date, timestamp_ntz          timestamp_ntz           midnight
    timestamp, timestamp_ntz     timestamp               a time in UTC
    text, any of these           that of the other one   the date or time in the text

A timestamp is cast to the number of its seconds, and a number of seconds to a timestamp. Nothing else can be
compared with a date or a time, or cast to one.

Texts:

    text                          in ISO 8601, by one substitution    time
    01/31/2024                    2024-01-31 00:00:00                 2024-01-31 00:00:00
    02/30/2024                    2024-02-30 00:00:00                 null
    any other                     -- 00:00:00                         null

A text is a time by a cast, or by a date pattern of Java, strictly: Spark's time parser policy `CORRECTED`.
All steps are kernels of Arrow, for columns as well as for expressions. A text that is not a time gives null,
where Spark in ANSI mode fails.

Unsupported texts: times in years before 0 and after 9999; and, in casts to a timestamp, times without a date,
and times with a zone that is no offset in hours and minutes. Columns with such a text are refused. In
conditions it is null as a date, and a failure as a timestamp.

Patterns have fields of digits only (`yyyy`, `yy`, `M`, `d`, `H`, `m`, `s`, `S`): RE2 cannot express Java's
rules for names, zones and fields that run into each other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.base.java_compat import Token, parse_pattern
from drawstring.expressions.numbers import Term, is_number

Texts = TypeVar("Texts", pa.Array, pc.Expression)

_LENGTHS: Final = {"y": (2, 4), **dict.fromkeys("MdHms", (1, 2)), "S": tuple(range(1, 10))}
_LETTERS: Final = frozenset(_LENGTHS)
_ABSENT: Final = {"y": "1970", "M": "01", "d": "01", **dict.fromkeys("Hms", "00")}
_REFUSED: Final = re.compile(r"[\[\]{}#0-9']")
"""Literals that mean something else to Java, or that run into the digits of a field."""

_BLANK: Final = r"[\x00-\x20\x7f]*"
_REST: Final = "(?s:.*)"
_FOUR_DIGITS: Final = "([0-9]{4})"
_SIGNED: Final = r"\+[0-9]{5,19}|-[0-9]{4,19}"
"""Other years in texts by a pattern with yyyy."""

_OFFSET: Final = "([+-](?:0[0-9]|1[0-7]))(?::?([0-5][0-9]))?"
"""An offset from UTC, in hours and minutes."""

_ISO: Final = (
    r"\A(?P<time>(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    r"|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
    r"|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
    r" (?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9])\z"
)
"""Times of days that exist."""

_ABSENT_DAY: Final = (r"-0\b", "-01")
_ABSENT_HOUR: Final = (r"\b0\b", "00")
_LONG: Final = (r"\b0([0-9]{2})\b", r"\1")
"""Substitutions after a zero was put before fields of no, one or two digits."""


@dataclass(frozen=True, slots=True)
class TimeForm:
    """How times are written in texts. All patterns are those of RE2.

    Attributes:
        fields: matches texts with known fields, which are its groups.
        iso: what replaces it.
        then: further substitutions.
        others: matches these texts, and those that may be times which this module does not know.
        fraction: what replaces a text by the digits of its fraction of a second; empty if it has none.
        offset: what replaces a text by the hours of its offset from UTC, with a sign, and by the minutes;
            None if it has none.
    """

    fields: str
    iso: str
    then: tuple[tuple[str, str], ...]
    others: str
    fraction: str = ""
    offset: tuple[str, str] | None = None

    @property
    def pattern(self) -> str:
        """Matches every text, with its fields if they are known."""
        return rf"\A(?:{self.fields}|{_REST})\z"

    def is_unknown(self, texts: Texts) -> Texts:
        """Return whether a text may be a time that this module does not know."""
        has_fields = pc.match_substring_regex(texts, rf"\A(?:{self.fields})\z")
        return pc.and_not(pc.match_substring_regex(texts, rf"\A(?:{self.others})\z"), has_fields)


AS_DATE: Final = TimeForm(
    rf"{_BLANK}\+?0{{0,3}}([0-9]{{4}})(?:-([0-9]{{1,2}})(?:-([0-9]{{1,2}})(?:[ T]{_REST})?)?)?{_BLANK}",
    r"\1-0\2-0\3 00:00:00",
    (_ABSENT_DAY, _LONG),
    rf"{_BLANK}[+-]?[0-9]{{4,7}}(?:-[0-9]{{1,2}}(?:-[0-9]{{1,2}}(?:[ T]{_REST})?)?)?{_BLANK}",
)
"""The texts of dates that Spark casts to a date."""

AS_TIME: Final = TimeForm(
    rf"{_BLANK}\+?0{{0,2}}([0-9]{{4}})(?:-([0-9]{{1,2}})(?:-([0-9]{{1,2}})(?:[ T]([0-9]{{1,2}})"
    rf"(?::([0-9]{{1,2}})(?::([0-9]{{1,2}})(?:\.([0-9]*))?(?:Z|{_OFFSET})?)?)?)?)?)?{_BLANK}",
    r"\1-0\2-0\3 0\4:0\5:0\6",
    (_ABSENT_DAY, _ABSENT_HOUR, _LONG),
    rf"{_BLANK}(?:[+-]?[0-9]{{4,6}}(?:-[0-9]{{1,2}}(?:-[0-9]{{1,2}}(?:[ T][0-9]{{1,2}}"
    rf"(?::[0-9]{{1,2}}(?::[0-9]{{1,2}}{_REST})?)?)?)?)?|T?[0-9]{{1,2}}:{_REST}|T[0-9]{{1,2}}){_BLANK}",
    r"\7",
    (r"\8", r"\9"),
)
"""The texts of times that Spark casts to a timestamp."""


@cache
def by_pattern(pattern: str) -> TimeForm:
    """Return the form of the texts that Spark parses by a date pattern.

    Raises:
        InvalidError: it is not a date pattern.
        UnsupportedError: Spark may parse texts by it in another way than this module.
    """
    tokens = parse_pattern(pattern, _LETTERS)
    letters = [each.letter for each in tokens if each.letter]
    is_known = all(each.length in _LENGTHS[each.letter] for each in tokens if each.letter)
    runs_on = any(one.is_number and _has_any_length(two) for one, two in pairwise(tokens)) or any(
        one.letter == "S" and two.is_number for one, two in pairwise(tokens)
    )
    odd = any(_REFUSED.search(each.text) for each in tokens)
    if not letters or len({*letters}) < len(letters) or not is_known or runs_on or odd:
        raise UnsupportedError(
            f"The date pattern {pattern!r} may parse texts in another way than in Spark. Use yyyy or yy, M,"
            " d, H, m or s once or twice, S up to nine times, each field at most once; no digits, quotes or"
            " brackets between fields; and a separator before a field of one letter or of S."
        )
    groups = {letter: rf"\{number}" for number, letter in enumerate(letters, 1)}
    at = {letter: groups.get(letter, absent) for letter, absent in _ABSENT.items()}
    for each in tokens:
        if each.letter and each.letter != "S" and each.length == 1:
            at[each.letter] = "0" + at[each.letter]
        elif (each.letter, each.length) == ("y", 2):
            at["y"] = "20" + at["y"]
    fields = "".join(map(_matching, tokens))
    return TimeForm(
        fields,
        f"{at['y']}-{at['M']}-{at['d']} {at['H']}:{at['m']}:{at['s']}",
        (_LONG,) if any(each.length == 1 for each in tokens) else (),
        fields.replace(_FOUR_DIGITS, rf"(?:{_FOUR_DIGITS}|{_SIGNED})"),
        groups.get("S", ""),
    )


def _has_any_length(token: Token) -> bool:
    return token.is_number and (token.length == 1 or token.letter == "S")


def _matching(token: Token) -> str:
    """Return the pattern of a field or a literal."""
    if not token.letter:
        return f"(?i:{re.escape(token.text)})"
    if token.letter == "S":
        return f"([0-9]{{1,{token.length}}})"
    return "0{0,17}([0-9]{1,2})" if token.length == 1 else f"([0-9]{{{token.length}}})"


def parse_times(texts: Texts, form: TimeForm, *, fails: bool = False) -> Texts:
    """Return the times in texts, in whole seconds without a zone; null for texts that are not times.

    Args:
        texts: the texts.
        form: how times are written in them.
        fails: whether a text fails that may be a time which this module does not know; otherwise it gives
            null.
    """
    found = texts
    for pattern, replacement in ((form.pattern, form.iso), *form.then):
        found = pc.replace_substring_regex(found, pattern, replacement)
    found = pc.struct_field(pc.extract_regex(found, _ISO), [0])
    if fails:
        found = pc.if_else(form.is_unknown(texts), texts, found)  # which cannot be cast
    return found.cast(pa.timestamp("s"))


def parse_timestamps(texts: Texts, form: TimeForm, *, has_zone: bool = True, fails: bool = False) -> Texts:
    """Return the times in texts, as timestamps in UTC; null for texts that are not times.

    Args:
        texts: the texts.
        form: how times are written in them.
        has_zone: whether a time with an offset is the moment in UTC, and not what the clock shows there.
        fails: as of `parse_times`.
    """
    moments = parse_times(texts, form, fails=fails).cast(pa.timestamp("us", "UTC"))
    if form.fraction:
        digits = pc.replace_substring_regex(texts, form.pattern, form.fraction)
        fraction = pc.utf8_slice_codeunits(pc.utf8_rpad(digits, 6, "0"), 0, 6).cast(pa.int64())
        moments = pc.add(moments, fraction.cast(pa.duration("us")))
    if form.offset and has_zone:
        hours, minutes = (pc.replace_substring_regex(texts, form.pattern, each) for each in form.offset)
        minutes = pc.add(pc.multiply(_digits(hours), 60), _digits(minutes))
        seconds = pc.multiply(minutes, 60)
        ahead = pc.if_else(pc.starts_with(hours, "-"), pc.negate(seconds), seconds)
        moments = pc.subtract(moments, ahead.cast(pa.duration("s")).cast(pa.duration("us")))
    return moments


def _digits(texts: Texts) -> Texts:
    """Return two digits behind a sign, or none, as a number."""
    return pc.utf8_lpad(pc.utf8_ltrim(texts, "+-"), 2, "0").cast(pa.int64())


def parse_supported_timestamps(texts: pa.Array, form: TimeForm) -> pa.Array:
    """Return the times in texts, as timestamps in UTC; null for texts that are not times.

    Raises:
        InvalidError: a text may be a time that this module does not know.
    """
    encoded = texts.dictionary_encode()
    distinct = encoded.dictionary
    unknown = distinct.filter(form.is_unknown(distinct))
    if len(unknown):
        raise InvalidError(
            f"The time {unknown[0].as_py()!r} has a zone, no date, or a year before 0 or after 9999."
        )
    return parse_timestamps(distinct, form).take(encoded.indices)


_MICROS: Final = 1_000_000


def is_time(kind: pa.DataType) -> bool:
    """Return whether a type is that of dates or timestamps."""
    return bool(pt.is_date32(kind) or pt.is_timestamp(kind))


def compared_kind(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """Return the type in which two values are compared, one of which is a date or a time.

    Returns:
        None if they cannot be compared.
    """
    text = next((kind for kind in (left, right) if pt.is_string(kind)), None)
    if text is None and not (is_time(left) and is_time(right)):
        return None
    zones = [kind.tz for kind in (left, right) if pt.is_timestamp(kind)]
    if not zones:
        return pa.date32()
    return pa.timestamp("us", next((zone for zone in zones if zone), None))


def has_value(kind: pa.DataType, value: object) -> bool:
    """Return whether a literal is a date or time that a type of dates and times has, too."""
    if not (is_time(kind) and isinstance(value, pa.Scalar) and is_time(value.type)):
        return False
    clock = value.cast(pa.timestamp("us"))
    try:
        held = clock.cast(kind) if pt.is_timestamp(kind) else value.cast(kind)
    except pa.ArrowInvalid:
        return False  # it has a finer fraction of a second
    return bool(held.cast(pa.timestamp("us")) == clock)


def incomparable_error(comparison: str, left: pa.DataType, right: pa.DataType) -> InvalidError:
    """Return the error for values that cannot be compared.

    Args:
        comparison: the comparison in SQL.
        left, right: the types of its values.
    """
    return InvalidError(
        f"The SQL contains {comparison}, which compares a value of type {left} with one of type {right}."
        " Dates and times can be compared with each other and with texts. Write date '2024-01-31' or"
        " timestamp '2024-01-31 12:00:00', or cast one of the two values."
    )


def as_time(value: pc.Expression, kind: pa.DataType, to: pa.DataType) -> pc.Expression:
    """Return the cast of a text, a date or a time to a date or a time.

    A text that is not a date or a time gives null. One that may be a time which only Spark knows fails on its
    row; see `dates_in_texts`.

    Args:
        value: the text, date or time.
        kind: its type.
        to: the type to cast it to.
    """
    if kind == to:
        return value
    if pt.is_string(kind):
        if pt.is_date32(to):
            return parse_times(value, AS_DATE).cast(to)
        return parse_timestamps(value, AS_TIME, has_zone=to.tz is not None, fails=True).cast(to)
    if pt.is_date32(kind):
        value = value.cast(pa.timestamp("us"))  # Arrow has no cast to one with a zone
    return value.cast(to)


def time_of_number(term: Term, to: pa.DataType) -> pc.Expression | None:
    """Return the time of a number of seconds since 1970; None if the cast is not supported."""
    if not (pt.is_integer(term.kind) and pt.is_timestamp(to) and to.tz):
        return None
    return pc.multiply_checked(term.to(pa.int64()), pc.scalar(_MICROS)).cast(to)


def number_of_time(value: pc.Expression, kind: pa.DataType, to: pa.DataType) -> pc.Expression | None:
    """Return the seconds of a time since 1970; None if the cast is not supported."""
    if not (pt.is_timestamp(kind) and kind.tz and is_number(to)) or pt.is_decimal(to):
        return None
    if pt.is_floating(to):
        micros = value.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
        return pc.divide(micros.cast(pa.float64()), pc.scalar(float(_MICROS))).cast(to)
    return pc.floor_temporal(value, unit="second").cast(pa.timestamp("s", kind.tz)).cast(pa.int64()).cast(to)
