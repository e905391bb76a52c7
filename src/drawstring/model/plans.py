"""Plans that stand on the timeline before they are run (compaction, rollback)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class CompactionOperation:
    """One file slice to compact (HoodieCompactionOperation).

    Attributes:
        partition: partition path.
        file_id: the file group.
        base_instant: base instant of the slice.
        base_file: name of its base file, None when it has log files only.
        log_files: names of its log files, ascending.
        metrics: sizes by Hudi's metric names (`TOTAL_LOG_FILES`, ...).
        logs_only: whether its log files become one log file, rather than a base file with the old one.
        source: address of the file that the base file stands for, as `BaseFile.source`.
    """

    partition: str
    file_id: str
    base_instant: str
    base_file: str | None
    log_files: tuple[str, ...]
    metrics: Mapping[str, float] = field(default_factory=dict)
    logs_only: bool = False
    source: str | None = None


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """A compaction or log compaction as requested on the timeline (HoodieCompactionPlan, version 2).

    Attributes:
        operations: what to do, one for each file group.
    """

    operations: tuple[CompactionOperation, ...]


@dataclass(frozen=True, slots=True)
class RollbackRequest:
    """What a rollback does to one file group (HoodieRollbackRequest).

    Attributes:
        partition: partition path.
        file_id: the file group; empty when only files are deleted.
        base_instant: base instant of the slice (version 6 command blocks).
        files_to_delete: paths relative to the table.
        log_blocks: log files with blocks of the failed instant, relative path to size in bytes.
    """

    partition: str
    file_id: str = ""
    base_instant: str = ""
    files_to_delete: tuple[str, ...] = ()
    log_blocks: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RollbackPlan:
    """A rollback as requested on the timeline (HoodieRollbackPlan)."""

    instant: str
    action: str
    requests: tuple[RollbackRequest, ...]

    def paths(self) -> list[str]:
        """Return the paths of the files that it deletes, or adds a command to, sorted."""
        return sorted(path for each in self.requests for path in (*each.files_to_delete, *each.log_blocks))


@dataclass(frozen=True, slots=True)
class RollbackStat:
    """What a rollback did in one partition (HoodieRollbackPartitionMetadata)."""

    partition: str
    deleted: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    command_files: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RollbackMetadata:
    """A completed rollback (HoodieRollbackMetadata)."""

    started: str
    seconds: float
    instant: str
    action: str
    stats: tuple[RollbackStat, ...]
