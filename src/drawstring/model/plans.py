"""Define the plans and results of table services, rollbacks, savepoints and restores on the timeline.

compaction          CompactionPlan
clustering          ClusteringPlan; of a bucket resizing with the NodeChanges of its hash ring
clean               CleanPlan, CleanMetadata
indexing            IndexPlan: planned or built
rollback            RollbackPlan, RollbackMetadata
savepoint, restore  Savepoint, RestorePlan, RestoreMetadata
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from drawstring.model.files import BaseFile, FileSlice, FileStatus, LogFile, file_id_of, join_path

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


class CleanPolicy(StrEnum):
    """The rule by which a clean retains file slices (hoodie.clean.policy)."""

    COMMITS = "KEEP_LATEST_COMMITS"
    VERSIONS = "KEEP_LATEST_FILE_VERSIONS"
    HOURS = "KEEP_LATEST_BY_HOURS"


@dataclass(frozen=True, slots=True)
class EarliestRetained:
    """The first instant whose files a clean keeps (HoodieActionInstant)."""

    requested: str
    action: str
    state: str


@dataclass(frozen=True, slots=True)
class CleanPlan:
    """A clean as requested on the timeline (HoodieCleanerPlan, version 2).

    Attributes:
        policy: name of the policy.
        earliest: the first instant retained; None under `KEEP_LATEST_FILE_VERSIONS`.
        last_completed: requested time of the newest write when the clean was planned.
        files: paths to delete, relative to the table, by partition.
        partitions_to_delete: partitions that are deleted entirely.
        savepoints: requested times of the savepoints when the clean was planned.
        versions_retained: slices of a file group that stay under `KEEP_LATEST_FILE_VERSIONS`.
        uncleaned_from: requested time of the first write that replaced file groups of partitions which the
            clean leaves out; None for none.
        is_filtered: whether a filter left partitions out.
    """

    policy: str
    earliest: EarliestRetained | None
    last_completed: str
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    partitions_to_delete: tuple[str, ...] = ()
    savepoints: tuple[str, ...] = ()
    versions_retained: int | None = None
    uncleaned_from: str | None = None
    is_filtered: bool = False

    @property
    def file_count(self) -> int:
        """The number of files that the clean deletes."""
        return sum(len(paths) for paths in self.files.values())


@dataclass(frozen=True, slots=True)
class CleanedPartition:
    """The result of a clean in one partition (HoodieCleanPartitionMetadata); file names without folder."""

    deleted: tuple[str, ...]
    failed: tuple[str, ...] = ()
    is_gone: bool = False


@dataclass(frozen=True, slots=True)
class CleanMetadata:
    """A completed clean (HoodieCleanMetadata).

    Attributes:
        started: the clean's requested time.
        millis: duration in milliseconds.
        policy: name of the policy.
        earliest: requested time of the first instant retained, empty under `KEEP_LATEST_FILE_VERSIONS`.
        last_completed: requested time of the newest write when the clean was planned.
        partitions: results by partition.
        savepoints: requested times of the savepoints when the clean was planned.
        versions_retained: slices of a file group that stayed under `KEEP_LATEST_FILE_VERSIONS`; None if
            unknown, as in the cleans of other engines.
        uncleaned_from, is_filtered: as in `CleanPlan`.
    """

    started: str
    millis: int
    policy: str
    earliest: str
    last_completed: str
    partitions: Mapping[str, CleanedPartition] = field(default_factory=dict)
    savepoints: tuple[str, ...] = ()
    versions_retained: int | None = None
    uncleaned_from: str | None = None
    is_filtered: bool = False

    @property
    def took_something(self) -> bool:
        """Whether anything was deleted; empty cleans are recorded, too, so that the next one scans less."""
        return any(each.deleted or each.is_gone for each in self.partitions.values())


@dataclass(frozen=True, slots=True)
class ClusteringSlice:
    """One file slice that a clustering rewrites (HoodieSliceInfo).

    Attributes:
        partition: partition path.
        file_id: the file group, replaced when the clustering completes.
        base_file: name of its base file; empty for none.
        log_files: names of its log files.
        bootstrap_file: address of the bootstrap source file with the records' own columns; empty for none.
    """

    partition: str
    file_id: str
    base_file: str
    log_files: tuple[str, ...] = ()
    bootstrap_file: str | None = ""

    @staticmethod
    def of(file_slice: FileSlice) -> ClusteringSlice:
        """Return the entry of a slice in a plan."""
        return ClusteringSlice(
            file_slice.partition,
            file_slice.file_id,
            file_slice.base.status.name if file_slice.base else "",
            tuple(log.status.name for log in file_slice.logs),
            (file_slice.base.source or "") if file_slice.base else "",
        )

    def located(self, files: Mapping[str, FileStatus]) -> FileSlice:
        """Return the file slice with the status of its files; missing files have size 0.

        Args:
            files: the files of its partition by path.
        """

        def status(name: str) -> FileStatus:
            path = join_path(self.partition, name)
            return files.get(path) or FileStatus(path, 0)

        base = BaseFile.parse(status(self.base_file)) if self.base_file else None
        if base and self.bootstrap_file:
            base = replace(base, source=self.bootstrap_file)
        logs = [log for name in self.log_files if (log := LogFile.parse(status(name))) is not None]
        instant = base.instant if base else min((log.instant for log in logs), default="")
        return FileSlice(
            self.partition, self.file_id, instant, base, tuple(sorted(logs, key=lambda log: log.order))
        )


@dataclass(frozen=True, slots=True)
class ClusteringGroup:
    """File slices whose rows are rewritten together into new file groups (HoodieClusteringGroup).

    Attributes:
        slices: the input slices, all of one partition.
        metrics: sizes by Hudi's metric names.
        outputs: the intended number of new file groups.
        extra: extra metadata of the plan strategy, such as the new nodes of a bucket resizing; None for none.
    """

    slices: tuple[ClusteringSlice, ...]
    metrics: Mapping[str, float] = field(default_factory=dict)
    outputs: int = 1
    extra: Mapping[str, str] | None = None

    @property
    def partition(self) -> str:
        """Partition path of its slices."""
        return self.slices[0].partition


@dataclass(frozen=True, slots=True)
class ClusteringPlan:
    """A clustering as requested on the timeline.

    Attributes:
        groups: the clustering groups.
        strategy: Hudi's execution strategy class.
        parameters: parameters of the strategy, such as the sort columns.
        extra: extra metadata of the plan.
        keeps_commit_times: whether rows keep their meta columns.
        missing_partitions: partitions that this plan skipped and the next one has to consider; None if the
            planner does not record them.
    """

    groups: tuple[ClusteringGroup, ...]
    strategy: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)
    keeps_commit_times: bool = True
    missing_partitions: tuple[str, ...] | None = ()

    @property
    def inputs(self) -> frozenset[tuple[str, str]]:
        """The file groups, as partition and file id, that the clustering replaces."""
        return frozenset((info.partition, info.file_id) for group in self.groups for info in group.slices)


REPLACE: Final = "REPLACE"
DELETE: Final = "DELETE"

PARTITION_KEY: Final = "clustering.group.partition"
NODES_KEY: Final = "clustering.group.child.node"
SEQUENCE_KEY: Final = "clustering.group.sequence.no"

_NODE = """{{
  "value" : {value},
  "fileIdPrefix" : {prefix},
  "tag" : "{tag}"
}}"""


@dataclass(frozen=True, slots=True)
class NodeChange:
    """A node that a resizing adds to the hash ring or removes from it.

    Attributes:
        value: the largest hash of the node's range.
        prefix: prefix of the id of the node's file group; None for a removed node.
    """

    value: int
    prefix: str | None

    @property
    def file_id(self) -> str:
        """The file group id of an added node."""
        return file_id_of(str(self.prefix))


def encode_nodes(nodes: Iterable[NodeChange]) -> str:
    """Return the JSON text of nodes, as in the extra metadata of a clustering group."""
    texts = (
        _NODE.format(
            value=node.value,
            prefix=json.dumps(node.prefix),
            tag=DELETE if node.prefix is None else REPLACE,
        )
        for node in nodes
    )
    return f"[ {', '.join(texts)} ]"


def decode_nodes(text: str) -> tuple[NodeChange, ...]:
    """Return the nodes in the JSON text of a clustering group's extra metadata.

    Raises:
        ValueError: the text is not a list of nodes.
    """
    try:
        nodes = json.loads(text)
        return tuple(
            NodeChange(int(node["value"]), None if node["tag"] == DELETE else str(node["fileIdPrefix"]))
            for node in nodes
        )
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"a node lacks {error}") from error


def is_resizing(plan: ClusteringPlan) -> bool:
    """Return whether a clustering plan resizes the buckets of a consistent hashing index."""
    return any(NODES_KEY in (group.extra or {}) for group in plan.groups)


def nodes_of(group: ClusteringGroup) -> tuple[NodeChange, ...]:
    """Return the nodes that a clustering group of a resizing changes."""
    return decode_nodes((group.extra or {})[NODES_KEY])


@dataclass(frozen=True, slots=True)
class IndexedPartition:
    """A partition of the metadata table that is built.

    Attributes:
        name: of the partition.
        up_to: requested time of the last write that the partition is built of; writes after it add their own
            records.
        extra: further facts.
    """

    name: str
    up_to: str
    extra: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IndexPlan:
    """The partitions of an indexing action, planned or built.

    Attributes:
        partitions: at least one.
    """

    partitions: tuple[IndexedPartition, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The partitions of the metadata table."""
        return tuple(each.name for each in self.partitions)


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
