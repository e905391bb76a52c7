"""Results of writes and table services."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from drawstring.base.display import Grid, ShowsGrid
from drawstring.model.commit import WriteStat
from drawstring.model.instant import Instant, time_of


@dataclass(frozen=True, slots=True)
class Result(ShowsGrid):
    """What a call that may change a table returns; false when there was nothing to do.

    It shows itself as a table of what there was to do.
    """

    @property
    def changed(self) -> bool:
        """Whether the call changed the table; a commit without rows is a change of its timeline."""
        raise NotImplementedError

    def __bool__(self) -> bool:
        return self.changed

    def _grid(self) -> Grid:
        values = ((each.name.replace("_", " "), getattr(self, each.name)) for each in fields(self))
        rows = [
            (name, ", ".join(value) if isinstance(value, tuple) else value) for name, value in values if value
        ]
        return Grid(type(self).__name__, (), rows, "" if self.changed else "There was nothing to do.")


@dataclass(frozen=True, slots=True)
class CommitResult(Result):
    """What a write, compaction, clustering or expiry of partitions committed.

    Attributes:
        instant: requested time; empty when there was nothing to do.
        completed: completion time, from which incremental queries go on; in table version 6, which has none,
            the requested time. None when there was nothing to do.
        operation: name of the operation.
        records_written: records in the new files, including those copied unchanged.
        inserts, updates, deletes: records inserted, updated and deleted. A log file of a merge-on-read table
            counts all its records as updates, including those that lose against the stored record by event
            time, unless it begins a file group; an update by condition writes none of these.
        files: files written.
        bytes_written: bytes of the files written.
        seconds: duration of the action.
        partitions_dropped, groups_dropped: number of partitions dropped, and of the file groups in them.
    """

    instant: str
    completed: str | None
    operation: str
    records_written: int = 0
    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    files: int = 0
    bytes_written: int = 0
    seconds: float = 0.0
    partitions_dropped: int = 0
    groups_dropped: int = 0

    @property
    def changed(self) -> bool:
        """Whether there is a commit."""
        return bool(self.instant)

    @property
    def copied(self) -> int:
        """Records copied unchanged into a new base file; log files have none."""
        return max(0, self.records_written - self.inserts - self.updates)

    @staticmethod
    def nothing(operation: str, seconds: float = 0.0) -> CommitResult:
        """Return the result of an operation that had nothing to do."""
        return CommitResult("", None, operation, seconds=seconds)

    @staticmethod
    def of(instant: Instant, operation: str, stats: Sequence[WriteStat], seconds: float) -> CommitResult:
        """Return the result of a commit, with the sums of its write statistics."""
        return CommitResult(
            instant=instant.requested,
            completed=time_of(instant),
            operation=operation,
            records_written=sum(stat.num_writes for stat in stats),
            inserts=sum(stat.num_inserts for stat in stats),
            updates=sum(stat.num_updates for stat in stats),
            deletes=sum(stat.num_deletes for stat in stats),
            files=len(stats),
            bytes_written=sum(stat.size_bytes for stat in stats),
            seconds=round(seconds, 3),
        )


@dataclass(frozen=True, slots=True)
class ArchiveResult(Result):
    """The instants that an archiving moved from the active timeline into the archived one.

    Attributes:
        instants: number of instants moved; 0 when there was nothing to archive.
        first, last: requested times of the oldest and the newest of them; empty when there are none.
        seconds: duration.
    """

    instants: int = 0
    first: str = ""
    last: str = ""
    seconds: float = 0.0

    @property
    def changed(self) -> bool:
        """Whether an instant was moved."""
        return bool(self.instants)


@dataclass(frozen=True, slots=True)
class VersionResult(Result):
    """A completed change of the table version, or a table that had the requested version already.

    Attributes:
        old, new: table versions, equal if nothing had to change.
        compacted: requested time of the compaction that merged the log files, None if there were none.
        instants: number of instants of the active timeline that were rewritten.
        archived: number of instants of the archived timeline that were rewritten.
        seconds: duration.
    """

    old: int
    new: int
    compacted: str | None = None
    instants: int = 0
    archived: int = 0
    seconds: float = 0.0

    @property
    def changed(self) -> bool:
        """Whether the table has another version now, or leftovers of an interrupted change went."""
        return self.old != self.new or bool(self.instants)


@dataclass(frozen=True, slots=True)
class VersionPlan:
    """The changes that a new table version requires.

    Attributes:
        old, new: table versions.
        moves_timeline: whether the timeline changes its layout.
        properties: old and new value of each changed table property, by key; None for an absent one.
    """

    old: int
    new: int
    moves_timeline: bool
    properties: Mapping[str, tuple[str | None, str | None]]


@dataclass(frozen=True, slots=True)
class RestoreResult(Result):
    """A completed restore.

    Attributes:
        instant: requested time; empty when there was nothing to undo.
        completed: completion time; None in table version 6.
        restored_to: requested time of the write to which the table was restored.
        undone: requested times of the instants that were rolled back, newest first.
        files: files deleted.
        seconds: duration.
    """

    instant: str = ""
    completed: str | None = None
    restored_to: str = ""
    undone: tuple[str, ...] = ()
    files: int = 0
    seconds: float = 0.0

    @property
    def changed(self) -> bool:
        """Whether anything was undone."""
        return bool(self.instant)


@dataclass(frozen=True, slots=True)
class PlannedRollback:
    """The rollback of a pending action, before it runs.

    Attributes:
        instant: requested time of the action.
        action: its action.
        files: paths of the files to delete, and of log files whose blocks will be invalid.
    """

    instant: str
    action: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RollbackResult(Result):
    """A pending action that was rolled back.

    Attributes:
        instant: requested time of the action; empty when no write was pending.
        action: its action; empty when no write was pending.
        files: number of files deleted, and of log files whose blocks are invalid now.
        seconds: duration.
    """

    instant: str = ""
    action: str = ""
    files: int = 0
    seconds: float = 0.0

    @property
    def changed(self) -> bool:
        """Whether anything was rolled back."""
        return bool(self.instant)


@dataclass(frozen=True, slots=True)
class CleanResult(Result):
    """A completed clean.

    Attributes:
        instant: requested time; empty when there was nothing to clean.
        completed: completion time; None in table version 6.
        files: files deleted.
        partitions: partitions of these files.
        partitions_deleted: partitions deleted entirely.
        earliest_retained: requested time of the first write whose files are retained; empty under
            `KEEP_LATEST_FILE_VERSIONS`.
        seconds: duration.
    """

    instant: str = ""
    completed: str | None = None
    files: int = 0
    partitions: int = 0
    partitions_deleted: int = 0
    earliest_retained: str = ""
    seconds: float = 0.0

    @property
    def changed(self) -> bool:
        """Whether there is a commit of a clean."""
        return bool(self.instant)
