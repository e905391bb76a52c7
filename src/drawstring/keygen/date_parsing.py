"""Parsing of dates and times in texts by date patterns, on whole columns.

Each pattern parses fixed-width texts by position first, and the rest with a regular expression. A text is
parsed by the first pattern that matches it. Joda-Time reads as many digits as a field may have and does not
backtrack; therefore, of adjacent numeric fields, all but the last must have their full number of digits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.date_patterns import HALVES, MONTHS, Token
from drawstring.base.errors import InvalidError
from drawstring.keygen.date_layouts import OFFSET, layout_of, read_layout
from drawstring.keygen.date_texts import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from drawstring.keygen.zones import UTC, Numbers, Zone

Flags: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"
Parts: TypeAlias = "Mapping[str, pa.Array | Numbers]"
Way: TypeAlias = "Callable[[pa.Array, tuple[Token, ...]], tuple[Flags, Parts]]"

_DIGITS: Final = {"D": 3, **dict.fromkeys("dHkhKmsM", 2)}
_YEAR_DIGITS: Final = 9
_MILLISECOND_DIGITS: Final = 3
_RANGES: Final = {
    "M": (1, 12), "H": (0, 23), "k": (1, 24), "h": (1, 12), "K": (0, 11), "m": (0, 59), "s": (0, 59),
}  # fmt: skip
_YEAR_OF_TIMES: Final = 1970
_YEAR_OF_DAYS: Final = 2000
_OFFSET_PARTS: Final = r"^(?P<s>[+-])(?P<h>..):?(?P<m>..)?:?(?P<x>..)?$"


@dataclass(frozen=True, slots=True)
class Parsed:
    """Parsed times.

    Attributes:
        utc: milliseconds since 1970 in UTC.
        local: the wall-clock time, in milliseconds since 1970, at the text's own offset or in the input zone.
    """

    utc: Numbers
    local: Numbers


def parse_dates(texts: pa.Array, patterns: Sequence[tuple[Token, ...]], zone: Zone | None) -> Parsed:
    """Parse texts into times.

    Args:
        texts: texts without nulls.
        patterns: date patterns, tried in this order.
        zone: time zone of texts without an offset; None for UTC.

    Raises:
        InvalidError: a text matches no pattern, or a date does not exist.
    """
    utc, local = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.int64)
    remaining = np.arange(len(texts))
    for parse, pattern in _ways(patterns):
        if not len(remaining):
            break
        rest = texts if len(remaining) == len(texts) else texts.take(pa.array(remaining))
        fits, parts = parse(rest, pattern)
        if fits.any():
            matched = _MatchedTexts(parts, pattern, rest.filter(pa.array(fits)))
            utc[remaining[fits]], local[remaining[fits]] = matched.times(zone)
            remaining = remaining[~fits]
    if len(remaining):
        raise InvalidError(
            f"The value {texts[int(remaining[0])].as_py()!r} of a partition column does not match the table's"
            " hoodie.keygen.timebased.input.dateformat. Correct the rows, or the format."
        )
    return Parsed(utc, local)


def _ways(patterns: Sequence[tuple[Token, ...]]) -> Iterator[tuple[Way, tuple[Token, ...]]]:
    """Yield the parsers to try: for each pattern by position, then by a regular expression."""
    for pattern in patterns:
        yield _by_position, pattern
        yield _by_expression, pattern


def _by_position(texts: pa.Array, pattern: tuple[Token, ...]) -> tuple[Flags, Parts]:
    layout = layout_of(pattern)
    if layout is None:
        return np.zeros(len(texts), bool), {}
    parsed = read_layout(texts, layout)
    offsets = {} if parsed.offsets is None else {"Z": parsed.offsets}
    return parsed.fits, {**parsed.fields, **offsets}


def _by_expression(texts: pa.Array, pattern: tuple[Token, ...]) -> tuple[Flags, Parts]:
    fields = pc.extract_regex(texts, _expression(pattern))
    fits = fields.is_valid().to_numpy(zero_copy_only=False)
    matched = fields.filter(pa.array(fits))
    names = [field.name for field in fields.type]
    return fits, dict(zip(names, matched.flatten(), strict=True))


def _expression(tokens: tuple[Token, ...]) -> str:
    parts = []
    for number, token in enumerate(tokens):
        if not token.letter:
            parts.append(re.escape(token.text))
            continue
        is_before_number = number + 1 < len(tokens) and tokens[number + 1].is_number
        parts.append(f"(?P<{token.letter}>{_digits(token, is_before_number)})")
    return f"(?i)^{''.join(parts)}$"


def _digits(token: Token, is_before_number: bool) -> str:
    if token.letter == "Z":
        return OFFSET
    if token.letter == "a":
        return "|".join(HALVES)
    if not token.is_number:
        return "|".join(f"{name[:3]}(?:{name[3:]})?" for name in MONTHS)
    if token.letter in "yY":
        most = token.length if is_before_number else _YEAR_DIGITS
    else:
        most = token.length if token.letter == "S" else _DIGITS[token.letter]
    count = f"{{{most}}}" if is_before_number else f"{{1,{most}}}"
    return f"{'[+-]?' if token.letter in 'yY' else ''}[0-9]{count}"


class _MatchedTexts:
    """Texts that match a pattern, divided into fields.

    Args:
        parts: text or number of each field, by letter.
        pattern: the tokens of the pattern.
        texts: the input texts, for errors.
    """

    def __init__(self, parts: Parts, pattern: tuple[Token, ...], texts: pa.Array) -> None:
        self._texts = texts
        self._tokens = {token.letter: token for token in pattern if token.letter}
        self._parts = parts

    def times(self, zone: Zone | None) -> tuple[Numbers, Numbers]:
        """Return the times in UTC and as wall-clock times."""
        local = self._days() * DAY_MS + self._hours() * HOUR_MS
        local += self._number("m", 0) * MINUTE_MS + self._number("s", 0) * SECOND_MS + self._fraction()
        offset = self._parts.get("Z")
        if offset is None:
            return (zone or UTC).to_utc(local), local
        utc = local - _offset_ms(offset)
        return utc, local if zone is None else zone.to_local(utc)

    def _days(self) -> Numbers:
        has_day = not {"M", "d", "D"}.isdisjoint(self._parts)
        year = self._number("Y" if "Y" in self._parts else "y", _YEAR_OF_DAYS if has_day else _YEAR_OF_TIMES)
        if "D" in self._parts:
            return self._day_of(year * 12 - 1970 * 12, 12, self._number("D", 1))
        months = (year - 1970) * 12 + self._number("M", 1) - 1
        return self._day_of(months, 1, self._number("d", 1))

    def _day_of(self, months: Numbers, count: int, day: Numbers) -> Numbers:
        """Return days since 1970 of the n-th day of a period of `count` months, checking that it exists."""
        first = _first_day(months)
        self._check(day, (1, _first_day(months + count) - first))
        return np.asarray(first + day - 1)

    def _hours(self) -> Numbers:
        if "H" in self._parts:
            return self._number("H", 0)
        if "k" in self._parts:
            return self._number("k", 24) % 24
        hours = self._number("h" if "h" in self._parts else "K", 0) % 12
        if "a" in self._parts:
            hours += 12 * np.asarray(pc.equal(pc.ascii_upper(self._parts["a"]), HALVES[1]).cast(pa.int64()))
        return np.asarray(hours)

    def _fraction(self) -> Numbers | int:
        texts = self._parts.get("S")
        if texts is None:
            return 0
        if isinstance(texts, np.ndarray):
            digits = self._tokens["S"].length
            return np.asarray(texts * 10 ** max(0, 3 - digits) // 10 ** max(0, digits - 3))
        padded = pc.utf8_rpad(texts, _MILLISECOND_DIGITS, "0")
        return np.asarray(pc.utf8_slice_codeunits(padded, 0, _MILLISECOND_DIGITS).cast(pa.int64()))

    def _number(self, letter: str, default: int) -> Numbers:
        texts = self._parts.get(letter)
        if texts is None:
            return np.full(len(self._texts), default, np.int64)
        if isinstance(texts, np.ndarray):
            return self._in_range(letter, texts)
        if letter == "M" and not self._tokens["M"].is_number:
            short = pc.utf8_slice_codeunits(pc.ascii_lower(texts), 0, 3)
            names = pa.array([name[:3].lower() for name in MONTHS])
            return np.asarray(pc.index_in(short, value_set=names).cast(pa.int64())) + 1
        return self._in_range(letter, np.asarray(pc.utf8_ltrim(texts, "+").cast(pa.int64())))

    def _in_range(self, letter: str, numbers: Numbers) -> Numbers:
        if letter in _RANGES:
            self._check(numbers, _RANGES[letter])
        return numbers

    def _check(self, numbers: Numbers, bounds: tuple[int, Numbers | int]) -> None:
        wrong = np.flatnonzero((numbers < bounds[0]) | (numbers > bounds[1]))
        if len(wrong):
            raise InvalidError(
                f"The value {self._texts[int(wrong[0])].as_py()!r} of a partition column is not a valid date."
                " Correct the rows."
            )


def _first_day(months: Numbers) -> Numbers:
    return np.asarray(months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64))


def _offset_ms(texts: pa.Array) -> Numbers:
    """Return the milliseconds of offsets such as `+02:00` and `Z`."""
    if pa.types.is_dictionary(texts.type):
        return np.asarray(_offset_ms(texts.dictionary)[texts.indices.to_numpy(zero_copy_only=False)])
    plain = pc.if_else(pc.equal(pc.ascii_upper(texts), "Z"), "+00:00", texts)
    parts = pc.extract_regex(plain, _OFFSET_PARTS)
    sign, *digits = parts.flatten()
    filled = [pc.replace_substring_regex(part.fill_null(""), "^$", "0") for part in digits]
    hours, minutes, seconds = (np.asarray(part.cast(pa.int64())) for part in filled)
    size = hours * HOUR_MS + minutes * MINUTE_MS + seconds * SECOND_MS
    return np.asarray(np.where(np.asarray(pc.equal(sign, "-")), -size, size))
