"""Clustering plans, as stored on the timeline (HoodieClusteringPlan)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from drawstring.model.files import BaseFile, FileSlice, FileStatus, LogFile, join_path


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
