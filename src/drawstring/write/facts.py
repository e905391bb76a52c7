"""What a write finds."""

from __future__ import annotations

from dataclasses import dataclass

from drawstring.timeline.timeline import Timeline
from drawstring.txn.transaction import LockedTable


@dataclass(frozen=True, slots=True)
class WriteFacts:
    """The table before a write.

    Attributes:
        session: the table, locked.
        timeline: as it is before the write.
        time: requested time that the write is going to have.
    """

    session: LockedTable
    timeline: Timeline
    time: str
