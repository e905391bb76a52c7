"""Settings of key generators beyond their columns.

Tables with a TIMESTAMP generator store them. With a CUSTOM generator Apache Hudi does not store them, so that
every write has to repeat them; drawstring stores them there, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.base.java_compat import linear_pattern, split_by
from drawstring.config.options.option import Kind, Option, Value, text_of

TIMEBASED: Final = "hoodie.keygen.timebased."
BARE_SINGLE_KEY: Final = "hoodie.write.complex.keygen.new.encoding"
SINGLE_KEY_ENCODING: Final = "hoodie.table.complex.keygen.encoding"
"""What Hudi's upgrade to version 9 records of existing keys: `FIELD_PREFIXED` or `VALUE_ONLY`."""

TEXTS_OF_TIMESTAMPS: Final = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"
SLASHED_DATES: Final = "hoodie.datasource.write.slash.separated.date.partitioning"

_TYPE: Final = TIMEBASED + "timestamp.type"
_UNIT: Final = TIMEBASED + "timestamp.scalar.time.unit"
_INPUT: Final = TIMEBASED + "input.dateformat"
_DELIMITER: Final = TIMEBASED + "input.dateformat.list.delimiter.regex"
_INPUT_ZONE: Final = TIMEBASED + "input.timezone"
_OUTPUT: Final = TIMEBASED + "output.dateformat"
_OUTPUT_ZONE: Final = TIMEBASED + "output.timezone"
_ZONE: Final = TIMEBASED + "timezone"


class TimestampType(StrEnum):
    """The kind of values of a timestamp-based partition column."""

    UNIX_TIMESTAMP = "UNIX_TIMESTAMP"
    DATE_STRING = "DATE_STRING"
    MIXED = "MIXED"
    EPOCHMILLISECONDS = "EPOCHMILLISECONDS"
    EPOCHMICROSECONDS = "EPOCHMICROSECONDS"
    SCALAR = "SCALAR"

    @property
    def is_text(self) -> bool:
        """Whether the values are texts."""
        return self in (TimestampType.DATE_STRING, TimestampType.MIXED)


_UNITS: Final = ("NANOSECONDS", "MICROSECONDS", "MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS")
_UNIT_OF_TYPE: Final = {
    TimestampType.UNIX_TIMESTAMP: "SECONDS",
    TimestampType.EPOCHMILLISECONDS: "MILLISECONDS",
    TimestampType.EPOCHMICROSECONDS: "MICROSECONDS",
}


def _timebased(key: str, doc: str, choices: tuple[str, ...] = ()) -> Option:
    old = key.replace("hoodie.keygen.", "hoodie.deltastreamer.keygen.")
    return Option(key, doc, alternatives=(old,), choices=choices, stored_as=key)


KEY_SETTINGS: Final[tuple[Option, ...]] = (
    _timebased(_TYPE, "Kind of values of a timestamp-based partition column.", tuple(TimestampType)),
    _timebased(_UNIT, "Unit of `SCALAR` numbers; seconds when not given.", _UNITS),
    _timebased(_INPUT, "Java date patterns of input texts, a list."),
    _timebased(_DELIMITER, "Regular expression that separates these patterns; a comma when not given."),
    _timebased(_INPUT_ZONE, "Time zone of input texts without an offset."),
    _timebased(_OUTPUT, "Java date pattern of the partition path."),
    _timebased(_OUTPUT_ZONE, "Time zone of the partition path."),
    _timebased(_ZONE, "Time zone of both."),
    Option(
        SLASHED_DATES,
        "Whether dates of a single partition column become yyyy/mm/dd folders.",
        kind=Kind.FLAG,
        stored_as=SLASHED_DATES,
    ),
    Option(
        BARE_SINGLE_KEY,
        "Whether a COMPLEX generator with one key column uses the value without the column name; below"
        " version 9.",
        kind=Kind.FLAG,
        stored_as=BARE_SINGLE_KEY,
    ),
    Option(
        TEXTS_OF_TIMESTAMPS,
        "Whether timestamps in record keys and partition paths are dates and times (in UTC, to the"
        " millisecond) instead of numbers; later writes follow the keys that a table has.",
        kind=Kind.FLAG,
        stored_as=TEXTS_OF_TIMESTAMPS,
    ),
)
"""Those that tables store."""


class PathTimestamps(StrEnum):
    """How partition paths show timestamps."""

    NUMBERS = "numbers"
    SECONDS = "dates and times in whole seconds"
    TEXTS = "dates and times with a fraction"


def settings_of_write(parsed: Mapping[Option, tuple[str, Value]]) -> dict[str, str]:
    """Return the settings among the parsed options of a write, by their keys."""
    options = [option for option in KEY_SETTINGS if option in parsed]
    return {option.stored_as or option.key: text_of(parsed[option][1]) or "" for option in options}


@dataclass(frozen=True, slots=True)
class TimestampSettings:
    """Settings of a timestamp-based partition column.

    Attributes:
        kind: the kind of values.
        unit: unit of numbers, empty for texts.
        inputs: date patterns of texts, tried in this order.
        output: date pattern of the path.
        input_zone, output_zone: names of time zones, empty for none.
    """

    kind: TimestampType
    unit: str
    inputs: tuple[str, ...]
    output: str
    input_zone: str
    output_zone: str


def timestamp_settings(properties: Mapping[str, str]) -> TimestampSettings:
    """Parse the settings in table properties.

    Raises:
        InvalidError: a setting is missing or not valid.
        UnsupportedError: the delimiter uses a feature that RE2 lacks.
    """
    kind = _kind(properties)
    output = properties.get(_OUTPUT, "")
    inputs = _patterns(properties) if kind.is_text else ()
    if not output or (kind.is_text and not inputs):
        missing = _INPUT if output else _OUTPUT
        raise InvalidError(
            f"{missing} is missing, which a timestamp-based partition column of type {kind} needs. Set it."
        )
    zone = properties.get(_ZONE)
    return TimestampSettings(
        kind=kind,
        unit="" if kind.is_text else _UNIT_OF_TYPE.get(kind) or _unit(properties),
        inputs=inputs,
        output=output,
        input_zone=(properties.get(_INPUT_ZONE, "") if zone is None else zone).strip(),
        output_zone=(properties.get(_OUTPUT_ZONE, "") if zone is None else zone).strip(),
    )


def _kind(properties: Mapping[str, str]) -> TimestampType:
    text = properties.get(_TYPE, "")
    if text not in tuple(TimestampType):
        problem = f"{_TYPE} is {text!r}" if text else f"A timestamp-based partition column needs {_TYPE}"
        raise InvalidError(f"{problem}. Set it to one of {', '.join(TimestampType)}.")
    return TimestampType(text)


def _unit(properties: Mapping[str, str]) -> str:
    unit = properties.get(_UNIT, "SECONDS").upper()
    if unit not in _UNITS:
        raise InvalidError(f"{_UNIT} is {unit!r}. Choose one of {', '.join(_UNITS)}.")
    return unit


def _patterns(properties: Mapping[str, str]) -> tuple[str, ...]:
    delimiter = properties.get(_DELIMITER) or ","
    try:
        parts = split_by(linear_pattern(delimiter), properties.get(_INPUT, ""))
    except (InvalidError, UnsupportedError) as error:
        raise type(error)(f"{_DELIMITER} is {delimiter[:100]!r}: {error.message}") from error
    return tuple(part.strip() for part in parts if part.strip())
