"""Partition paths of the TIMESTAMP key generator: conversion of numbers or texts to formatted dates.

As in Hudi, null means 1 in the unit of the numbers, or one millisecond after the start of 1970.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.base.date_patterns import READ, WRITTEN, Token, parse_pattern
from drawstring.base.errors import InvalidError
from drawstring.config.table.key_settings import TimestampSettings, TimestampType
from drawstring.keygen.date_parsing import parse_dates
from drawstring.keygen.date_texts import date_texts
from drawstring.keygen.texts import is_moment, milliseconds
from drawstring.keygen.zones import UTC, Numbers, Zone, zone_of
from drawstring.schema.normal import normal_type

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
            tuple(parse_pattern(pattern, READ) for pattern in settings.inputs),
            parse_pattern(settings.output, WRITTEN),
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
            values = _numbers(values, column, self.settings.kind)
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


def _numbers(values: pa.Array, column: str, kind: TimestampType) -> pa.Array:
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
