"""Instant times: from a clock, and from a user's input.

An instant time is `yyyyMMddHHmmssSSS` in the table's time zone; instant times compare as strings.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from math import inf

from drawstring.base.errors import CorruptTableError, InvalidError
from drawstring.model.files import FULL_BOOTSTRAP, METADATA_BOOTSTRAP

EARLIEST = "000"
"""A time before every instant."""

_DIGITS = re.compile(r"(\d{14}|\d{17})", re.ASCII)
_ZEROS = re.compile(r"0+")
_TIME_DIGITS = 17
_LEGACY_PAD = "999"


def as_instant_time(value: object, timezone: str = "UTC") -> str:
    """Return the instant time for a user's input.

    Args:
        value: 17 or 14 digits (kept as they are; may be a number), `yyyy-MM-dd[ HH:mm:ss[.SSS]]`,
            other ISO 8601 forms, `earliest`, zeros, a date (its midnight) or a datetime. Values
            with an offset are converted to the table's time zone; others are taken to be in it.
        timezone: `hoodie.table.timeline.timezone` of the table, `UTC` or `LOCAL`.

    Raises:
        InvalidError: the value has none of these forms.
    """
    if isinstance(value, datetime):
        return _text(_to_zone(value, timezone))
    if isinstance(value, date):
        return _text(datetime.combine(value, time()))
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise _unreadable(value)
    text = str(value).strip()
    if text.lower() == "earliest" or _ZEROS.fullmatch(text):
        return EARLIEST
    if _DIGITS.fullmatch(text):
        if text not in (METADATA_BOOTSTRAP, FULL_BOOTSTRAP):
            _check_digits(text)
        return text
    return _text(_to_zone(_parse_iso(text), timezone))


def instant_time(epoch_ms: int, timezone: str) -> str:
    """Return the instant time of a point in time.

    Args:
        epoch_ms: milliseconds since the epoch, UTC.
        timezone: `UTC` or `LOCAL`.
    """
    moment = datetime.fromtimestamp(epoch_ms // 1000, UTC) + timedelta(milliseconds=epoch_ms % 1000)
    return _text(_to_zone(moment, timezone))


def next_time(last: str | None, now: str) -> str:
    """Return `now`, or the least time after `last` if the clock has not passed it yet.

    Raises:
        CorruptTableError: `last` is in the future and not a date.
    """
    if last is None or now > last:
        return now
    padded = (last + _LEGACY_PAD)[:_TIME_DIGITS]
    try:
        return _text(_parse_digits(padded) + timedelta(milliseconds=1))
    except (ValueError, OverflowError):
        raise CorruptTableError(
            "The timeline has a time that is not a date. Remove that instant's files.", instant=last
        ) from None


def time_before(time: str) -> str:
    """Return the greatest time before another one; that time itself if it is not a date."""
    try:
        return _text(_parse_digits(time) - timedelta(milliseconds=1))
    except (ValueError, OverflowError):
        return time


def epoch_ms_of(time: str, timezone: str) -> int | None:
    """Return the point in time of an instant time in epoch milliseconds; None if it is not a date.

    Args:
        time: of 17 or 14 digits.
        timezone: of `time`, `UTC` or `LOCAL`.
    """
    try:
        moment = _parse_digits(time)
        return round((moment if timezone == "LOCAL" else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


def seconds_between(earlier: str, later: str) -> float:
    """Return the seconds between two instant times; infinity if one of them is not a date."""
    try:
        return (_parse_digits(later) - _parse_digits(earlier)).total_seconds()
    except ValueError:
        return inf


def day_of(instant: str) -> date:
    """Return the day of an instant time, in the table's time zone."""
    return _parse_digits(instant).date()


def _text(moment: datetime) -> str:
    return f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 1000:03d}".rjust(_TIME_DIGITS, "0")


def _to_zone(moment: datetime, timezone: str) -> datetime:
    if moment.tzinfo is None:
        return moment
    return moment.astimezone(None if timezone == "LOCAL" else UTC)


def _parse_digits(text: str) -> datetime:
    whole = datetime.strptime(text[:14], "%Y%m%d%H%M%S")
    return whole + timedelta(milliseconds=int(text[14:] or 0))


def _check_digits(text: str) -> None:
    try:
        _parse_digits(text)
    except ValueError:
        raise _unreadable(text) from None


def _parse_iso(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise _unreadable(text) from None


def _unreadable(value: object) -> InvalidError:
    return InvalidError(
        f"{value!r} is not a time. Write 17 digits such as 20240131100000000, "
        "or a date such as 2024-01-31 or 2024-01-31 10:00:00.000."
    )
