"""An instant: one action on the timeline (specification: Transaction Log).

A requested time is text of 17 digits, `yyyyMMddHHmmssSSS` (14 in old tables), compared as text.
Completed instants of table versions 8 and 9 carry a completion time of the same form.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum


class Action(StrEnum):
    """What an instant does; values are the words used in file names."""

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
        """The action that this one is called once it is completed."""
        return _COMPLETED_AS.get(self, self)


_COMPLETED_AS = {
    Action.COMPACTION: Action.COMMIT,
    Action.LOG_COMPACTION: Action.DELTA_COMMIT,
    Action.CLUSTERING: Action.REPLACE_COMMIT,
}

WRITE_ACTIONS = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT})
"""Completed actions that add, change or replace data files."""

COMPACTION_ACTIONS = frozenset({Action.COMPACTION, Action.LOG_COMPACTION})
"""Pending compactions, of log files into base files or into log files."""

PLANNED_ACTIONS = COMPACTION_ACTIONS | {Action.CLUSTERING}
"""Pending actions with a plan, which somebody can run again."""

FILE_ACTIONS = WRITE_ACTIONS | PLANNED_ACTIONS
"""Actions that make data files, pending or completed."""


class State(IntEnum):
    """How far an instant is; ordered."""

    REQUESTED = 0
    INFLIGHT = 1
    COMPLETED = 2


@dataclass(frozen=True, slots=True, order=True)
class Instant:
    """One action at its furthest state.

    Attributes:
        requested: requested time, the instant's identity.
        action: as named in the file of this state (a completed compaction is a `commit`).
        state: the furthest state found.
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
        """Whether it is a completed action that changed data files."""
        return self.is_completed and self.action in WRITE_ACTIONS


def time_of(instant: Instant) -> str:
    """Return when an instant took effect: its completion time, its requested time where it has no other.

    Ranges of instants are in these times. Instants of table version 6 have no completion times.
    """
    return instant.completed or instant.requested
