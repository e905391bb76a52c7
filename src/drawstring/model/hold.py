"""What a reader asks to be kept."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hold:
    """A position of a reader, which needs what was written after it and the table as it was then.

    Attributes:
        name: of the reader.
        position: a completion time; a requested time in table version 6.
        held_ms: when the hold was last placed or moved on, milliseconds since the epoch.
        until_ms: when it ends by itself.
        released: whether its reader gave it up.
        is_scan: whether the reader is a scan, which plans by the timeline as it was when it began: archiving
            waits for it.
    """

    name: str
    position: str
    held_ms: int
    until_ms: int
    released: bool = False
    is_scan: bool = False

    def is_over(self, now_ms: int) -> bool:
        """Tell whether nothing is kept for it any more."""
        return self.released or self.until_ms < now_ms
