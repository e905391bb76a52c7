"""Savepoints and restores as they stand on the timeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from drawstring.model.plans import RollbackMetadata


@dataclass(frozen=True, slots=True)
class Savepoint:
    """The files of a commit that are kept until the savepoint is deleted (HoodieSavepointMetadata).

    Attributes:
        by: who made it.
        at_ms: when, milliseconds since the epoch.
        comments: why.
        files: names of data files, by partition.
    """

    by: str
    at_ms: int
    comments: str
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """A restore as requested on the timeline (HoodieRestorePlan, version 2).

    Attributes:
        instants: what is undone, newest first, as requested time and action.
        savepoint: requested time that the table goes back to, None where an older writer left it out.
    """

    instants: tuple[tuple[str, str], ...]
    savepoint: str | None


@dataclass(frozen=True, slots=True)
class RestoreMetadata:
    """A completed restore (HoodieRestoreMetadata).

    Attributes:
        started: the restore's requested time.
        millis: how long it took.
        instants: what was undone, newest first, as requested time and action.
        rollbacks: what was done for each of them, by requested time.
    """

    started: str
    millis: int
    instants: tuple[tuple[str, str], ...]
    rollbacks: Mapping[str, tuple[RollbackMetadata, ...]] = field(default_factory=dict)
