"""Texts as moments by date patterns: columns of digits, taken out by one regular expression a pattern.

Joda-Time reads as many digits as a field may have and never goes back, so of fields without anything
between them all but the last one have all their digits. A text goes to the first pattern that it fits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import InvalidError
from drawstring.keygen.date_patterns import HALVES, MONTHS, Token
from drawstring.keygen.date_texts import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from drawstring.keygen.zones import UTC, Numbers, Zone

_DIGITS: Final = {"D": 3, **dict.fromkeys("dHkhKmsM", 2)}
_YEAR_DIGITS: Final = 9
_MILLISECOND_DIGITS: Final = 3
_RANGES: Final = {
    "M": (1, 12), "H": (0, 23), "k": (1, 24), "h": (1, 12), "K": (0, 11), "m": (0, 59), "s": (0, 59),
}  # fmt: skip
_YEAR_OF_TIMES: Final = 1970
_YEAR_OF_DAYS: Final = 2000
_OFFSET: Final = r"[Zz]|[+-][0-9]{2}(?::?[0-9]{2}(?::?[0-9]{2})?)?"
_OFFSET_PARTS: Final = r"^(?P<s>[+-])(?P<h>..):?(?P<m>..)?:?(?P<x>..)?$"


@dataclass(frozen=True, slots=True)
class Parsed:
    """Moments that texts stand for.

    Attributes:
        utc: milliseconds since 1970.
        local: the same on the clock of the text's own offset, or of the zone it was read in.
    """

    utc: Numbers
    local: Numbers


def parse_dates(texts: pa.Array, patterns: Sequence[tuple[Token, ...]], zone: Zone | None) -> Parsed:
    """Return the moment of each text.

    Args:
        texts: no nulls.
        patterns: in the order of trying.
        zone: of texts without an offset; None for UTC.

    Raises:
        InvalidError: a text that fits no pattern, or a date that is none.
    """
    utc, local = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.int64)
    left = np.arange(len(texts))
    for pattern in patterns:
        fields = pc.extract_regex(texts.take(pa.array(left)), _expression(pattern))
        fits = fields.is_valid().to_numpy(zero_copy_only=False)
        found = _Reading(fields.filter(pa.array(fits)), pattern, texts.take(pa.array(left[fits])))
        utc[left[fits]], local[left[fits]] = found.moments(zone)
        left = left[~fits]
        if not len(left):
            break
    if len(left):
        raise InvalidError(
            f"{texts[int(left[0])].as_py()!r} in a partition column is no date of the table's"
            " hoodie.keygen.timebased.input.dateformat: correct the rows, or the format"
        )
    return Parsed(utc, local)


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
        return _OFFSET
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


class _Reading:
    """Texts that fit a pattern.

    Args:
        fields: text of each field, a struct.
        pattern: its parts.
        texts: as they were given, for errors.
    """

    def __init__(self, fields: pa.StructArray, pattern: tuple[Token, ...], texts: pa.Array) -> None:
        self._texts = texts
        self._tokens = {token.letter: token for token in pattern if token.letter}
        names = [field.name for field in fields.type]
        self._parts = dict(zip(names, fields.flatten(), strict=True))

    def moments(self, zone: Zone | None) -> tuple[Numbers, Numbers]:
        """Return the moments in UTC and on the clock where they were written."""
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
        """Return the days since 1970 of a day in a stretch of months that begins with one."""
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
        padded = pc.utf8_rpad(texts, _MILLISECOND_DIGITS, "0")
        return np.asarray(pc.utf8_slice_codeunits(padded, 0, _MILLISECOND_DIGITS).cast(pa.int64()))

    def _number(self, letter: str, default: int) -> Numbers:
        texts = self._parts.get(letter)
        if texts is None:
            return np.full(len(self._texts), default, np.int64)
        if letter == "M" and not self._tokens["M"].is_number:
            short = pc.utf8_slice_codeunits(pc.ascii_lower(texts), 0, 3)
            names = pa.array([name[:3].lower() for name in MONTHS])
            return np.asarray(pc.index_in(short, value_set=names).cast(pa.int64())) + 1
        numbers = np.asarray(pc.utf8_ltrim(texts, "+").cast(pa.int64()))
        if letter in _RANGES:
            self._check(numbers, _RANGES[letter])
        return numbers

    def _check(self, numbers: Numbers, bounds: tuple[int, Numbers | int]) -> None:
        wrong = np.flatnonzero((numbers < bounds[0]) | (numbers > bounds[1]))
        if len(wrong):
            raise InvalidError(
                f"{self._texts[int(wrong[0])].as_py()!r} in a partition column is no date: correct the rows"
            )


def _first_day(months: Numbers) -> Numbers:
    return np.asarray(months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64))


def _offset_ms(texts: pa.Array) -> Numbers:
    """Return the milliseconds of offsets such as `+02:00` and `Z`."""
    plain = pc.if_else(pc.equal(pc.ascii_upper(texts), "Z"), "+00:00", texts)
    parts = pc.extract_regex(plain, _OFFSET_PARTS)
    sign, *digits = parts.flatten()
    filled = [pc.replace_substring_regex(each.fill_null(""), "^$", "0") for each in digits]
    hours, minutes, seconds = (np.asarray(each.cast(pa.int64())) for each in filled)
    size = hours * HOUR_MS + minutes * MINUTE_MS + seconds * SECOND_MS
    return np.asarray(np.where(np.asarray(pc.equal(sign, "-")), -size, size))
