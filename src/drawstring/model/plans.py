"""Compaction and rollback plans, and completed rollbacks, as stored on the timeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from drawstring.model.files import FileSlice

_MEBIBYTE: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class CompactionOperation:
    """One file slice to compact (HoodieCompactionOperation).

    Attributes:
        partition: partition path.
        file_id: the file group.
        base_instant: base instant of the slice.
        base_file: name of its base file, None when it has only log files.
        log_files: names of its log files, ascending.
        metrics: sizes by Hudi's metric names (`TOTAL_LOG_FILES`, ...).
        logs_only: True for a log compaction, which merges the log files into one log file.
        source: address of the bootstrap source file, as `BaseFile.source`.
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
        operations: one operation for each file group.
    """

    operations: tuple[CompactionOperation, ...]


@dataclass(frozen=True, slots=True)
class RollbackRequest:
    """The changes of a rollback to one file group (HoodieRollbackRequest).

    Attributes:
        partition: partition path.
        file_id: the file group; empty when only files are deleted.
        base_instant: base instant of the slice (version 6 command blocks).
        files_to_delete: paths relative to the table.
        log_blocks: sizes in bytes of the log files with blocks of the failed instant, by relative path.
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
        """Return the sorted paths of the files that the rollback deletes or appends a command block to."""
        return sorted(
            path for request in self.requests for path in (*request.files_to_delete, *request.log_blocks)
        )


@dataclass(frozen=True, slots=True)
class RollbackStat:
    """The result of a rollback in one partition (HoodieRollbackPartitionMetadata)."""

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


def slice_metrics(file_slice: FileSlice) -> dict[str, float]:
    """Return the sizes of an operation under Hudi's metric names."""
    logs = sum(log.status.size_bytes for log in file_slice.logs)
    base = file_slice.base.status.size_bytes if file_slice.base else 0
    read = round((logs + base) / _MEBIBYTE, 3)
    written = round((base or logs) / _MEBIBYTE, 3)
    return {
        "TOTAL_LOG_FILES": float(len(file_slice.logs)),
        "TOTAL_LOG_FILES_SIZE": float(logs),
        "TOTAL_IO_READ_MB": read,
        "TOTAL_IO_WRITE_MB": written,
        "TOTAL_IO_MB": round(read + written, 3),
    }
