"""Formatting of times by a date pattern, each distinct text once.

Times are first truncated to the smallest field of the pattern, since there are few distinct days.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.date_patterns import HALVES, MONTHS, WEEKDAYS, Token
from drawstring.keygen.zones import Numbers

DAY_MS: Final = 86_400_000
HOUR_MS: Final = 3_600_000
MINUTE_MS: Final = 60_000
SECOND_MS: Final = 1_000

_CUTS: Final = (("S", 1), ("s", SECOND_MS), ("m", MINUTE_MS), ("HkhKa", HOUR_MS))
_NAME_LETTERS: Final = 3
_FULL_WEEKDAY_FROM: Final = 4
_CENTURY: Final = 100


def date_texts(local: Numbers, offsets: Numbers, tokens: Sequence[Token]) -> pa.Array:
    """Return the text of each time.

    Args:
        local: wall-clock times, milliseconds since 1970.
        offsets: their offsets from UTC in milliseconds.
        tokens: tokens of the pattern.
    """
    cut = local - local % _cut_ms(tokens)
    if not any(token.letter == "Z" for token in tokens):
        encoded = pc.dictionary_encode(pa.array(cut))
        distinct = np.asarray(encoded.dictionary)
        texts = pa.array(_joined(distinct, np.zeros_like(distinct), tokens), pa.string())
        return texts.take(encoded.indices)
    pairs, positions = np.unique(np.stack([cut, offsets]), axis=1, return_inverse=True)
    return pa.array(_joined(pairs[0], pairs[1], tokens), pa.string()).take(pa.array(positions.ravel()))


def _cut_ms(tokens: Sequence[Token]) -> int:
    """Return the length in milliseconds of the smallest unit of a pattern, a day at most."""
    letters = {token.letter for token in tokens} - {""}
    return next((length for shown, length in _CUTS if letters & set(shown)), DAY_MS)


def _joined(local: Numbers, offsets: Numbers, tokens: Sequence[Token]) -> list[str]:
    fields = _Fields(local, offsets)
    parts = [fields.texts(token) if token.letter else [token.text] * len(local) for token in tokens]
    return ["".join(texts) for texts in zip(*parts, strict=True)] if len(local) else []


class _Fields:
    """The calendar fields of times.

    Args:
        local: wall-clock times, milliseconds since 1970.
        offsets: their offsets from UTC in milliseconds.
    """

    def __init__(self, local: Numbers, offsets: Numbers) -> None:
        days = local // DAY_MS
        months = days.astype("datetime64[D]").astype("datetime64[M]")
        number = months.astype(np.int64)
        self._time = local % DAY_MS
        self._offsets = offsets
        self._days = days
        self._year = number // 12 + 1970
        self._month = number % 12 + 1
        self._day = days - months.astype("datetime64[D]").astype(np.int64) + 1
        self._weekday = (days + 3) % 7 + 1

    def texts(self, token: Token) -> list[str]:
        """Return the text of a field at each time."""
        letter, length = token.letter, token.length
        if letter == "M" and not token.is_number:
            return _names(MONTHS, self._month, None if length > _NAME_LETTERS else _NAME_LETTERS)
        if letter == "E":
            return _names(WEEKDAYS, self._weekday, None if length >= _FULL_WEEKDAY_FROM else _NAME_LETTERS)
        if letter == "a":
            return _names(HALVES, self._hours // 12 + 1, None)
        if letter == "Z":
            return [_offset(int(value), ":" if length > 1 else "") for value in self._offsets]
        if letter == "S":
            return [f"{value:03d}".ljust(length, "0")[:length] for value in (self._time % SECOND_MS).tolist()]
        if letter in "yYx" and length == len("yy"):
            return _padded(np.abs(self._number(letter)) % _CENTURY, length)
        return _padded(self._number(letter), length)

    @property
    def _hours(self) -> Numbers:
        return np.asarray(self._time // HOUR_MS)

    def _number(self, letter: str) -> Numbers:
        hours = self._hours
        if letter in "wx":
            return self._week()[letter == "x"]
        numbers: dict[str, Numbers] = {
            "y": self._year,
            "Y": np.where(self._year > 0, self._year, 1 - self._year),
            "M": self._month,
            "d": self._day,
            "D": self._days - _first_day(self._year) + 1,
            "e": self._weekday,
            "H": hours,
            "k": np.where(hours == 0, 24, hours),
            "K": hours % 12,
            "h": np.where(hours % 12 == 0, 12, hours % 12),
            "m": self._time // MINUTE_MS % 60,
            "s": self._time // SECOND_MS % 60,
        }
        return numbers[letter]

    def _week(self) -> tuple[Numbers, Numbers]:
        """Return the ISO 8601 week and its year, which is the year of the week's Thursday."""
        thursday = self._days - self._weekday + 4
        year = thursday.astype("datetime64[D]").astype("datetime64[Y]").astype(np.int64) + 1970
        return np.asarray((thursday - _first_day(year)) // 7 + 1), np.asarray(year)


def _first_day(year: Numbers) -> Numbers:
    days = (year - 1970).astype("datetime64[Y]").astype("datetime64[D]").astype(np.int64)
    return np.asarray(days)


def _names(names: Sequence[str], numbers: Numbers, letters: int | None) -> list[str]:
    return [names[number - 1][:letters] for number in numbers.tolist()]


def _padded(numbers: Iterable[int], length: int) -> list[str]:
    return [f"{'-' if number < 0 else ''}{abs(number):0{length}d}" for number in map(int, numbers)]


def _offset(offset_ms: int, colon: str) -> str:
    minutes = abs(offset_ms) // MINUTE_MS
    return f"{'-' if offset_ms < 0 else '+'}{minutes // 60:02d}{colon}{minutes % 60:02d}"
