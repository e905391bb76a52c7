"""Savepoints, restore plans and completed restores, as stored on the timeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from drawstring.model.plans import RollbackMetadata


@dataclass(frozen=True, slots=True)
class Savepoint:
    """The files of a commit that are retained until the savepoint is deleted (HoodieSavepointMetadata).

    Attributes:
        by: the user who created it.
        at_ms: time of creation, milliseconds since the epoch.
        comments: the user's comment.
        files: names of the retained data files, by partition.
    """

    by: str
    at_ms: int
    comments: str
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """A restore as requested on the timeline (HoodieRestorePlan, version 2).

    Attributes:
        instants: the instants to roll back, newest first, as requested time and action.
        savepoint: requested time to which the table is restored, None in plans of older writers.
    """

    instants: tuple[tuple[str, str], ...]
    savepoint: str | None


@dataclass(frozen=True, slots=True)
class RestoreMetadata:
    """A completed restore (HoodieRestoreMetadata).

    Attributes:
        started: the restore's requested time.
        millis: duration in milliseconds.
        instants: the instants rolled back, newest first, as requested time and action.
        rollbacks: metadata of their rollbacks, by requested time.
    """

    started: str
    millis: int
    instants: tuple[tuple[str, str], ...]
    rollbacks: Mapping[str, tuple[RollbackMetadata, ...]] = field(default_factory=dict)
