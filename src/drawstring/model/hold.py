"""Holds: positions of readers that cleaning and archiving respect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

HOLD_HOURS: Final = 24.0
"""Default lifetime of a hold, in hours."""


@dataclass(frozen=True, slots=True)
class Hold:
    """The position of a reader, who needs the table as of that position and everything written later.

    Attributes:
        name: name of the reader.
        position: a completion time; a requested time in table version 6.
        held_ms: when the hold was last placed or advanced, milliseconds since the epoch.
        until_ms: when the hold expires, milliseconds since the epoch.
        released: whether the reader released the hold.
        is_scan: whether the reader is a scan; a scan uses the timeline of its start, so archiving waits.
    """

    name: str
    position: str
    held_ms: int
    until_ms: int
    released: bool = False
    is_scan: bool = False

    def is_over(self, now_ms: int) -> bool:
        """Return whether the hold is released or expired."""
        return self.released or self.until_ms < now_ms
