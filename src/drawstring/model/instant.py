"""Define instants, the actions on the timeline and their states (specification: Transaction Log).

A requested time is text of 17 digits, `yyyyMMddHHmmssSSS` (14 in old tables), compared as text. Completed
instants of table versions 8 and 9 carry a completion time of the same form.

An `InstantStatus` adds to an instant what a rollback or restore undid, and whether a process works on it. A
`Hold` is the position of a reader, which cleaning and archiving respect.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Final


class Action(StrEnum):
    """The action of an instant; the values appear in file names on the timeline."""

    COMMIT = "commit"
    DELTA_COMMIT = "deltacommit"
    REPLACE_COMMIT = "replacecommit"
    COMPACTION = "compaction"
    LOG_COMPACTION = "logcompaction"
    CLUSTERING = "clustering"
    CLEAN = "clean"
    ROLLBACK = "rollback"
    RESTORE = "restore"
    SAVEPOINT = "savepoint"
    INDEXING = "indexing"

    @property
    def completed_action(self) -> Action:
        """The action in the name of the completed file, which for table services differs."""
        return _COMPLETED_AS.get(self, self)


_COMPLETED_AS = {
    Action.COMPACTION: Action.COMMIT,
    Action.LOG_COMPACTION: Action.DELTA_COMMIT,
    Action.CLUSTERING: Action.REPLACE_COMMIT,
}

WRITE_ACTIONS = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT})
"""Completed actions that add, change or replace data files."""

COMPACTION_ACTIONS = frozenset({Action.COMPACTION, Action.LOG_COMPACTION})
"""Actions of pending compactions: into base files, or into log files (log compaction)."""

PLANNED_ACTIONS = COMPACTION_ACTIONS | {Action.CLUSTERING}
"""Pending actions with a plan, which any process can run again."""

FILE_ACTIONS = WRITE_ACTIONS | PLANNED_ACTIONS
"""Actions that create data files, pending or completed."""


BUILD_TIME_PREFIX = "00000000000000"
"""How requested times of delta commits of a metadata table begin that build a partition, rather than belong
to a write: their file groups begin anew, maybe without a base file. In layout 1 that is so for new tables; of
others they begin with an instant of the table, and `_FIRST_BUILD_SUFFIX` or a later number follows."""

_TIME_DIGITS = 17
_FIRST_BUILD_SUFFIX = "010"


def is_build(requested: str) -> bool:
    """Return whether a requested time is that of a build of a partition of a metadata table."""
    suffix = requested[_TIME_DIGITS:]
    if not suffix:
        return requested.startswith(BUILD_TIME_PREFIX)
    return len(suffix) == len(_FIRST_BUILD_SUFFIX) and suffix >= _FIRST_BUILD_SUFFIX


def is_metadata_table_time(requested: str) -> bool:
    """Return whether a requested time is of what a metadata table does by itself, as far as times show it.

    In layout 1 it does everything by itself at the time of an instant with a suffix.
    """
    return requested.startswith(BUILD_TIME_PREFIX) or len(requested) > _TIME_DIGITS


class State(IntEnum):
    """The state of an instant; states are ordered."""

    REQUESTED = 0
    INFLIGHT = 1
    COMPLETED = 2

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True, order=True)
class Instant:
    """One action on the timeline, at its latest state.

    Attributes:
        requested: requested time, which identifies the instant.
        action: the action in the file name of this state (a completed compaction is a `commit`).
        state: the latest state on the timeline.
        completed: completion time; None while pending and in table version 6.
    """

    requested: str
    action: Action
    state: State
    completed: str | None = None

    @property
    def is_completed(self) -> bool:
        """Whether the action took effect."""
        return self.state is State.COMPLETED

    @property
    def is_write(self) -> bool:
        """Whether this is a completed action that changed data files."""
        return self.is_completed and self.action in WRITE_ACTIONS


def time_of(instant: Instant) -> str:
    """Return the completion time of an instant, or its requested time if it has no completion time.

    Ranges of instants use these times. Instants of table version 6 have no completion times.
    """
    return instant.completed or instant.requested


@dataclass(frozen=True, slots=True)
class InstantStatus:
    """An instant of the timeline for people who look for what became of a write.

    Attributes:
        instant: the instant.
        rolled_back: requested times of what a rollback or restore undoes or undid, by its plan.
        is_worked_on: whether a live process works on it while it is pending; None once it is completed, and
            for actions that are done under the table lock.
    """

    instant: Instant
    rolled_back: tuple[str, ...] = ()
    is_worked_on: bool | None = None


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
