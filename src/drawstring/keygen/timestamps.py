"""Convert numbers or texts to formatted dates: the partition paths of the TIMESTAMP key generator.

    numbers ───────────────────────────────────────────────────┐
    texts ──┬─ of fixed width: by position (`read_layout`) ────┼──> times ──> `date_texts` ──> paths
            └─ others: by a regular expression ────────────────┘

As in Hudi, null means 1 in the unit of the numbers, or one millisecond after the start of 1970.

Parsing (`parse_dates`): the first pattern that matches a text parses it. Joda-Time reads as many digits as a
field may have and does not backtrack; therefore, of adjacent numeric fields, all but the last must have their
full number of digits.

Fixed width: a text fits the layout of a pattern if each field has its digits exactly below the pattern's
letters.

    yyyy-MM-dd'T'HH:mm:ss.SSSZ
    2024-01-31T10:00:00.000+02:00      an offset can only come last: its length is not fixed

Texts without leading zeros or with month names do not fit. Position and regular expression give the same
result for a text that fits.

Formatting (`date_texts`): times are first truncated to the smallest field of the pattern, since there are few
distinct days, and each distinct text is formatted once.

Time zones have Java's names: `Asia/Tokyo`, `GMT+8:00`, and old short names such as `PST`. Unknown names raise
an error, while Java silently uses UTC.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.base.errors import InvalidError
from drawstring.base.java_compat import (
    AM_PM,
    FORMATTED_LETTERS,
    MONTHS,
    PARSED_LETTERS,
    WEEKDAYS,
    Token,
    parse_pattern,
)
from drawstring.config.table.key_settings import TimestampSettings, TimestampType
from drawstring.keygen.texts import is_moment, milliseconds
from drawstring.schema.evolution import normal_type

Numbers: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"

_UTC_NAMES: Final = frozenset({"UTC", "GMT", "UT", "Z", "Zulu", "Universal", "Etc/UTC", "Etc/GMT"})
_FIXED: Final = re.compile(r"GMT([+-])(\d{1,2})(?::?(\d{2}))?")
_OLD_NAMES: Final = {
    "AST": "America/Anchorage", "PST": "America/Los_Angeles", "MST": "America/Denver",
    "PNT": "America/Phoenix", "CST": "America/Chicago", "EST": "America/New_York",
    "IET": "America/Indiana/Indianapolis", "PRT": "America/Puerto_Rico", "CNT": "America/St_Johns",
    "AGT": "America/Argentina/Buenos_Aires", "BET": "America/Sao_Paulo", "ART": "Africa/Cairo",
    "CAT": "Africa/Harare", "EAT": "Africa/Addis_Ababa", "NET": "Asia/Yerevan", "PLT": "Asia/Karachi",
    "IST": "Asia/Kolkata", "BST": "Asia/Dhaka", "VST": "Asia/Ho_Chi_Minh", "CTT": "Asia/Shanghai",
    "JST": "Asia/Tokyo", "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "SST": "Pacific/Guadalcanal",
    "NST": "Pacific/Auckland", "MIT": "Pacific/Apia", "HST": "Pacific/Honolulu", "ECT": "CET",
}  # fmt: skip
_HOUR_MS: Final = 3_600_000
_MINUTE_MS: Final = 60_000
_NAMED_FROM_MS: Final = -62_135_596_800_000
_NAMED_TO_MS: Final = 253_402_300_800_000
"""Years 1 to 9999, the range of Arrow's time zone rules."""


@dataclass(frozen=True, slots=True)
class Zone:
    """A time zone.

    Attributes:
        name: name in the time zone database, empty for a fixed offset.
        offset_ms: offset from UTC in milliseconds of a zone without a name.
    """

    name: str = ""
    offset_ms: int = 0

    def to_local(self, utc: Numbers) -> Numbers:
        """Convert times in UTC to wall-clock times, both in milliseconds since 1970.

        Raises:
            InvalidError: a time is outside the range of the zone's rules.
        """
        if not self.name:
            return np.asarray(utc + self.offset_ms)
        self._check(utc)
        zoned = pa.array(utc, pa.int64()).cast(pa.timestamp("ms", self.name))
        return _numbers(pc.local_timestamp(zoned))

    def to_utc(self, local: Numbers) -> Numbers:
        """Convert wall-clock times to UTC; ambiguous ones to the earlier time.

        Raises:
            InvalidError: a time was skipped by the clock, or is outside the range of the zone's rules.
        """
        if not self.name:
            return np.asarray(local - self.offset_ms)
        self._check(local)
        times = pa.array(local, pa.int64()).cast(pa.timestamp("ms"))
        try:
            return _numbers(pc.assume_timezone(times, self.name, ambiguous="earliest", nonexistent="raise"))
        except pa.ArrowInvalid as error:
            raise InvalidError(
                f"A date does not exist in the time zone {self.name} ({error}). Correct the rows."
            ) from error

    def _check(self, times: Numbers) -> None:
        if len(times) and not (times.min() >= _NAMED_FROM_MS and times.max() < _NAMED_TO_MS):
            raise InvalidError(
                f"A date is outside the years 1 to 9999, the range of the time zone {self.name}."
                " Correct the rows."
            )


UTC: Final = Zone()


def zone_of(name: str) -> Zone:
    """Return the time zone with a name.

    Raises:
        InvalidError: the name is unknown.
    """
    if name in _UTC_NAMES:
        return UTC
    if match := _FIXED.fullmatch(name):
        hours, minutes = int(match[2]), int(match[3] or 0)
        if hours < 24 and minutes < 60:
            sign = -1 if match[1] == "-" else 1
            return Zone(offset_ms=sign * (hours * _HOUR_MS + minutes * _MINUTE_MS))
    zone = Zone(_OLD_NAMES.get(name, name))
    if not _is_known(zone.name):
        raise InvalidError(
            f"There is no time zone {name!r}. Give a name such as America/New_York, GMT+8:00 or UTC."
        )
    return zone


def _is_known(name: str) -> bool:
    """Return whether the time zone database has a name; bare offsets, which Java refuses, do not count."""
    if not name[:1].isalpha():
        return False
    try:
        pc.local_timestamp(pa.array([0], pa.timestamp("ms", name)))
    except (pa.ArrowInvalid, pa.ArrowKeyError):
        return False
    return True


def _numbers(times: pa.Array) -> Numbers:
    return np.asarray(times.cast(pa.int64()))


DAY_MS: Final = 86_400_000
HOUR_MS: Final = 3_600_000
MINUTE_MS: Final = 60_000
SECOND_MS: Final = 1_000

_TRUNCATIONS: Final = (("S", 1), ("s", SECOND_MS), ("m", MINUTE_MS), ("HkhKa", HOUR_MS))
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
    cut = local - local % _truncation_ms(tokens)
    if not any(token.letter == "Z" for token in tokens):
        encoded = pc.dictionary_encode(pa.array(cut))
        distinct = np.asarray(encoded.dictionary)
        texts = pa.array(_joined(distinct, np.zeros_like(distinct), tokens), pa.string())
        return texts.take(encoded.indices)
    pairs, positions = np.unique(np.stack([cut, offsets]), axis=1, return_inverse=True)
    return pa.array(_joined(pairs[0], pairs[1], tokens), pa.string()).take(pa.array(positions.ravel()))


def _truncation_ms(tokens: Sequence[Token]) -> int:
    """Return the length in milliseconds of the smallest unit of a pattern, a day at most."""
    letters = {token.letter for token in tokens} - {""}
    return next((length for shown, length in _TRUNCATIONS if letters & set(shown)), DAY_MS)


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
            return _names(AM_PM, self._hours // 12 + 1, None)
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


_DIGITS: Final = {"D": 3, **dict.fromkeys("dHkhKmsM", 2)}
_YEAR_DIGITS: Final = 4
OFFSET: Final = r"[Zz]|[+-][0-9]{2}(?::?[0-9]{2}(?::?[0-9]{2})?)?"


@dataclass(frozen=True, slots=True)
class Layout:
    """The fixed positions of the fields of a pattern.

    Attributes:
        width: bytes before the time zone offset.
        fields: by letter, the first byte and the number of digits.
        literals: first byte and text of each literal part.
        has_offset: whether a time zone offset follows.
    """

    width: int
    fields: Mapping[str, tuple[int, int]]
    literals: tuple[tuple[int, bytes], ...]
    has_offset: bool


@dataclass(frozen=True, slots=True)
class FixedWidthFields:
    """The fields of texts that fit a layout.

    Attributes:
        fits: which of the texts fit the layout.
        fields: by letter, the numbers in the texts that fit.
        offsets: the time zone offsets in the texts that fit, dictionary-encoded; None if there are none.
    """

    fits: np.ndarray[Any, np.dtype[np.bool_]]
    fields: Mapping[str, Numbers]
    offsets: pa.DictionaryArray | None


def layout_of(pattern: tuple[Token, ...]) -> Layout | None:
    """Return the layout of a pattern, None if its fields have no fixed positions."""
    fields: dict[str, tuple[int, int]] = {}
    literals: list[tuple[int, bytes]] = []
    at = 0
    for token, following in zip(pattern, (*pattern[1:], None), strict=True):
        if token.letter == "Z" and following is None:
            return Layout(at, fields, tuple(literals), has_offset=True)
        if token.letter:
            count = _digits(token, following is not None and following.is_number)
            if not count:
                return None
            fields[token.letter] = at, count
            at += count
        elif token.text.isascii():
            literals.append((at, token.text.encode()))
            at += len(token.text)
        else:
            return None
    return Layout(at, fields, tuple(literals), has_offset=False)


def _digits(token: Token, is_before_number: bool) -> int:
    if not token.is_number:
        return 0
    if token.letter in "yY":
        return token.length if is_before_number else _YEAR_DIGITS
    return token.length if token.letter == "S" else _DIGITS.get(token.letter, 0)


def read_layout(texts: pa.StringArray, layout: Layout) -> FixedWidthFields:
    """Parse the texts that fit a layout.

    Args:
        texts: texts without nulls.
        layout: the layout of a pattern.
    """
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, np.int32, len(texts) + 1, texts.offset * 4)
    lengths = np.diff(bounds) - layout.width
    fits = lengths > 0 if layout.has_offset else lengths == 0
    if not fits.any() or not layout.width:
        return FixedWidthFields(np.zeros(len(texts), bool), {}, None)
    windows = np.lib.stride_tricks.sliding_window_view(np.frombuffer(data, np.uint8), layout.width)
    characters = np.ascontiguousarray(windows[bounds[:-1][fits]].T)
    is_valid = np.ones(characters.shape[1], bool)
    for at, text in layout.literals:
        for position, byte in enumerate(text, at):
            is_valid &= characters[position] == byte
    digits = characters - ord("0")
    for at, count in layout.fields.values():
        is_valid &= (digits[at : at + count] <= 9).all(axis=0)
    zone_offsets = _offsets(texts.filter(pa.array(fits)), layout) if layout.has_offset else None
    if zone_offsets is not None:
        is_valid &= _is_offset(zone_offsets)
        zone_offsets = zone_offsets.filter(pa.array(is_valid))
    all_valid = is_valid.all()
    fields = {
        letter: _number(digits[at : at + count] if all_valid else digits[at : at + count, is_valid])
        for letter, (at, count) in layout.fields.items()
    }
    fits[fits] = is_valid
    return FixedWidthFields(fits, fields, zone_offsets)


def _number(digits: np.ndarray[Any, np.dtype[np.uint8]]) -> Numbers:
    value = digits[0].astype(np.int64)
    for digit in digits[1:]:
        value = value * 10 + digit
    return np.asarray(value)


def _offsets(texts: pa.StringArray, layout: Layout) -> pa.DictionaryArray:
    return pc.dictionary_encode(pc.utf8_slice_codeunits(texts, layout.width))


def _is_offset(offsets: pa.DictionaryArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
    matches = [re.fullmatch(OFFSET, text) is not None for text in offsets.dictionary.to_pylist()]
    return np.asarray(np.array(matches, bool)[offsets.indices.to_numpy(zero_copy_only=False)])


Flags: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"
Parts: TypeAlias = "Mapping[str, pa.Array | Numbers]"
FieldParser: TypeAlias = "Callable[[pa.Array, tuple[Token, ...]], tuple[Flags, Parts]]"


_PARSED_YEAR_DIGITS: Final = 9
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
    for parse, pattern in _parsers(patterns):
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


def _parsers(patterns: Sequence[tuple[Token, ...]]) -> Iterator[tuple[FieldParser, tuple[Token, ...]]]:
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
        parts.append(f"(?P<{token.letter}>{_parsed_digits(token, is_before_number)})")
    return f"(?i)^{''.join(parts)}$"


def _parsed_digits(token: Token, is_before_number: bool) -> str:
    if token.letter == "Z":
        return OFFSET
    if token.letter == "a":
        return "|".join(AM_PM)
    if not token.is_number:
        return "|".join(f"{name[:3]}(?:{name[3:]})?" for name in MONTHS)
    if token.letter in "yY":
        most = token.length if is_before_number else _PARSED_YEAR_DIGITS
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
        first = _first_day_of_week(months)
        self._check(day, (1, _first_day_of_week(months + count) - first))
        return np.asarray(first + day - 1)

    def _hours(self) -> Numbers:
        if "H" in self._parts:
            return self._number("H", 0)
        if "k" in self._parts:
            return self._number("k", 24) % 24
        hours = self._number("h" if "h" in self._parts else "K", 0) % 12
        if "a" in self._parts:
            hours += 12 * np.asarray(pc.equal(pc.ascii_upper(self._parts["a"]), AM_PM[1]).cast(pa.int64()))
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


def _first_day_of_week(months: Numbers) -> Numbers:
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


_MILLISECONDS: Final = {
    "MILLISECONDS": 1,
    "SECONDS": 1_000,
    "MINUTES": 60_000,
    "HOURS": 3_600_000,
    "DAYS": 86_400_000,
}
_IN_A_MILLISECOND: Final = {"NANOSECONDS": 1_000_000, "MICROSECONDS": 1_000}
_DEFAULT: Final = 1
_LONG_TEXT: Final = "^-?([0-9]{1,18}|[1-8][0-9]{18})$"
"""Texts of integers that certainly fit 64 bits: nearly all of these."""
_LONG: Final = np.iinfo(np.int64)
_LONG_FLOATS: Final = (-(2.0**63), 2.0**63)


@dataclass(frozen=True, slots=True)
class TimestampTexts:
    """Formats the values of a partition column as dates.

    Attributes:
        settings: the table's settings.
        inputs: patterns of input texts.
        output: pattern of the path.
        input_zone, output_zone: time zones, None if the table sets none.
        knows_timestamps: whether timestamps are moments, instead of numbers in the unit of the settings.
    """

    settings: TimestampSettings
    inputs: tuple[tuple[Token, ...], ...]
    output: tuple[Token, ...]
    input_zone: Zone | None
    output_zone: Zone | None
    knows_timestamps: bool = False

    @staticmethod
    def of(settings: TimestampSettings, *, knows_timestamps: bool = False) -> TimestampTexts:
        """Parse the patterns and look up the time zones of settings.

        Raises:
            InvalidError: a pattern or a time zone is not valid.
            UnsupportedError: a pattern has letters that are not supported.
        """
        return TimestampTexts(
            settings,
            tuple(parse_pattern(pattern, PARSED_LETTERS) for pattern in settings.inputs),
            parse_pattern(settings.output, FORMATTED_LETTERS),
            zone_of(settings.input_zone) if settings.input_zone else None,
            zone_of(settings.output_zone) if settings.output_zone else None,
            knows_timestamps,
        )

    def check_type(self, kind: pa.DataType, column: str, *, number_texts: bool = False) -> None:
        """Check that values of a type can be formatted.

        Args:
            kind: the type.
            column: name of the column, for errors.
            number_texts: whether texts are accepted instead of numbers.

        Raises:
            InvalidError: they cannot.
        """
        kind = normal_type(kind, column)
        if self.knows_timestamps and is_moment(kind):
            return
        is_text = pt.is_string(kind)
        fits = is_text if self.settings.kind.is_text else _is_numeric(kind) or (number_texts and is_text)
        if not fits and not pt.is_null(kind):
            raise InvalidError(
                f"The partition column {column} is {kind}, which does not fit"
                f" hoodie.keygen.timebased.timestamp.type={self.settings.kind}. Cast the column, or choose"
                " another timestamp type."
            )

    def texts(self, values: pa.Array, column: str) -> pa.Array:
        """Return the text of each value, none of them null.

        Texts are accepted instead of numbers: an UPDATE or DELETE of Spark SQL in Hudi turns a column of
        numbers into one of texts.

        Args:
            values: a column.
            column: its name, for errors.

        Raises:
            InvalidError: a value is not a date.
        """
        self.check_type(values.type, column, number_texts=True)
        if self.knows_timestamps and is_moment(values.type):
            utc = np.asarray(milliseconds(values).fill_null(_DEFAULT))
            return self._formatted(utc, (self.output_zone or UTC).to_local(utc))
        if self.settings.kind.is_text:
            return self._of_texts(values.cast(pa.string()))
        if pt.is_string(normal_type(values.type, column)):
            values = _epoch_numbers(values, column, self.settings.kind)
        utc = self._milliseconds(values)
        return self._formatted(utc, (self.output_zone or UTC).to_local(utc))

    def _of_texts(self, values: pa.Array) -> pa.Array:
        encoded = pc.dictionary_encode(values.fill_null(self._default_text()))
        parsed = parse_dates(encoded.dictionary, self.inputs, self.input_zone)
        local = parsed.local if self.output_zone is None else self.output_zone.to_local(parsed.utc)
        return self._formatted(parsed.utc, local).take(encoded.indices)

    def _formatted(self, utc: Numbers, local: Numbers) -> pa.Array:
        return date_texts(local, np.asarray(local - utc), self.output)

    def _default_text(self) -> str:
        utc = np.array([_DEFAULT], np.int64)
        local = (self.input_zone or self.output_zone or UTC).to_local(utc)
        return str(date_texts(local, np.asarray(local - utc), self.inputs[0])[0].as_py())

    def _milliseconds(self, values: pa.Array) -> Numbers:
        """Convert numbers to milliseconds like Java: truncated towards zero, saturated at 64 bits."""
        numbers = _whole(values)
        unit = self.settings.unit
        if unit in _IN_A_MILLISECOND:
            count = _IN_A_MILLISECOND[unit]
            return np.asarray((numbers - np.fmod(numbers, count)) // count)
        length = _MILLISECONDS[unit]
        most = _LONG.max // length
        clipped = np.clip(numbers, -most, most) * length
        return np.where(numbers > most, _LONG.max, np.where(numbers < -most, _LONG.min, clipped))


def _epoch_numbers(values: pa.Array, column: str, kind: TimestampType) -> pa.Array:
    """Parse texts as integers."""
    texts = values.cast(pa.string())
    is_long = pc.fill_null(pc.match_substring_regex(texts, _LONG_TEXT), True)
    if not pc.all(is_long).as_py():
        wrong = texts.filter(pc.invert(is_long))[0].as_py()
        raise InvalidError(
            f"The partition column {column} has the value {wrong!r}, which is not an integer. Give it as"
            f" {kind}, the table's hoodie.keygen.timebased.timestamp.type."
        )
    return texts.cast(pa.int64())


def _is_numeric(kind: pa.DataType) -> bool:
    tests = (pt.is_integer, pt.is_floating, pt.is_decimal, pt.is_date32, pt.is_timestamp)
    return any(test(kind) for test in tests)


def _whole(values: pa.Array) -> Numbers:
    kind = values.type
    if pt.is_floating(kind):
        filled = np.asarray(values.cast(pa.float64()).fill_null(_DEFAULT))
        cut = np.trunc(np.nan_to_num(filled, nan=0.0, posinf=_LONG_FLOATS[1], neginf=_LONG_FLOATS[0]))
        safe = np.where((cut < _LONG_FLOATS[1]) & (cut > _LONG_FLOATS[0]), cut, 0).astype(np.int64)
        return np.where(cut >= _LONG_FLOATS[1], _LONG.max, np.where(cut <= _LONG_FLOATS[0], _LONG.min, safe))
    if pt.is_decimal(kind):
        values = pc.trunc(values)
    if pt.is_date(kind):
        values = values.cast(pa.date32()).cast(pa.int32())
    return np.asarray(values.cast(pa.int64()).fill_null(_DEFAULT))
