"""Time zones by Java's names: `Asia/Tokyo`, `GMT+8:00`, and old short names such as `PST`.

Unknown names raise an error, while Java silently uses UTC.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import InvalidError

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
