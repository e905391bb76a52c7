"""Results of writes and services (decision 46)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from drawstring.model.commit import WriteStat
from drawstring.model.instant import Instant


@dataclass(frozen=True, slots=True)
class Result:
    """What a call that may change a table returns; false when there was nothing to do."""

    @property
    def changed(self) -> bool:
        """Whether the call changed the table; a commit without rows is a change of its timeline."""
        raise NotImplementedError

    def __bool__(self) -> bool:
        return self.changed


@dataclass(frozen=True, slots=True)
class CommitResult(Result):
    """What a write, compaction, clustering or expiry of partitions committed.

    Attributes:
        instant: requested time; empty when there was nothing to do.
        completed: completion time; None in table version 6.
        operation: name of the operation.
        records_written: records in the new files, copied ones included.
        inserts, updates, deletes: records by what happened to them; a merge-on-read log counts all
            its records as updates, late ones too. An update by condition logs none that are late.
        files: files written.
        bytes_written: bytes of them.
        seconds: from begin to completion.
        partitions_dropped, groups_dropped: partitions that went away, and the file groups that were in them.
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
        """Records that moved to a new file as they were; none go into a log."""
        return max(0, self.records_written - self.inserts - self.updates)

    @staticmethod
    def nothing(operation: str) -> CommitResult:
        """Return the result of an operation that had nothing to do."""
        return CommitResult("", None, operation)

    @staticmethod
    def of(instant: Instant, operation: str, stats: Sequence[WriteStat], seconds: float) -> CommitResult:
        """Sum up the statistics of a commit."""
        return CommitResult(
            instant=instant.requested,
            completed=instant.completed,
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
    """Instants moved from the active timeline into the archived one.

    Attributes:
        instants: how many; 0 when there was nothing to archive.
        first, last: requested times of the oldest and the newest of them; empty when there are none.
        seconds: time that it took.
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
    """A table that changed its version, or had the one asked for already.

    Attributes:
        old, new: table versions, the same where nothing had to change.
        compacted: requested time of the compaction that folded its log files, None when it had none.
        instants: of the active timeline that were written anew.
        archived: of the archived timeline that were written anew.
        seconds: time that it took.
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
    """What a change of the table's version would do.

    Attributes:
        old, new: table versions.
        moves_timeline: whether the timeline gets another layout.
        properties: by key what is stored now and what then, None for nothing.
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
        restored_to: requested time of the write that is the newest one again.
        undone: requested times of what is gone, newest first.
        files: files deleted.
        seconds: time that it took.
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
    """What rolling a pending action back takes away.

    Attributes:
        instant: requested time of the action.
        action: its action.
        files: paths of what is deleted, or of log files whose blocks no longer count.
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
        files: files deleted, or log files whose blocks no longer count.
        seconds: time that it took.
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
        partitions: partitions that they lay in.
        partitions_deleted: partitions that nothing was left of.
        earliest_retained: requested time of the first write whose files stay; empty where versions
            are counted.
        seconds: time that it took.
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
