"""A clustering as it stands on the timeline before it is run (HoodieClusteringPlan)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from drawstring.model.files import BaseFile, FileSlice, FileStatus, LogFile, join_path


@dataclass(frozen=True, slots=True)
class ClusteringSlice:
    """One file slice whose rows move (HoodieSliceInfo).

    Attributes:
        partition: partition path.
        file_id: the file group, replaced when the clustering completes.
        base_file: name of its base file; empty for none.
        log_files: names of its log files.
        bootstrap_file: where a bootstrapped file group has its columns from; empty for none.
    """

    partition: str
    file_id: str
    base_file: str
    log_files: tuple[str, ...] = ()
    bootstrap_file: str | None = ""

    @staticmethod
    def of(file_slice: FileSlice) -> ClusteringSlice:
        """Return what a plan says of a slice."""
        return ClusteringSlice(
            file_slice.partition,
            file_slice.file_id,
            file_slice.base.status.name if file_slice.base else "",
            tuple(log.status.name for log in file_slice.logs),
            (file_slice.base.source or "") if file_slice.base else "",
        )

    def located(self, files: Mapping[str, FileStatus]) -> FileSlice:
        """Return the slice, files that went missing included.

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
    """Slices whose rows come together in new file groups (HoodieClusteringGroup).

    Attributes:
        slices: what is read, all of one partition.
        metrics: sizes by Hudi's metric names.
        outputs: how many file groups are meant to come out.
        extra: what a plan strategy adds; of a bucket resizing the new nodes. None for nothing.
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
        groups: what comes together.
        strategy: class of Hudi that runs it.
        parameters: of the strategy: the sort columns for instance.
        extra: what else the plan says.
        keeps_commit_times: whether rows keep their meta columns.
        missing_partitions: partitions that the next plan has to look at; None where nobody keeps count.
    """

    groups: tuple[ClusteringGroup, ...]
    strategy: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)
    keeps_commit_times: bool = True
    missing_partitions: tuple[str, ...] | None = ()

    @property
    def inputs(self) -> frozenset[tuple[str, str]]:
        """The file groups, as partition and file id, that it replaces."""
        return frozenset((each.partition, each.file_id) for group in self.groups for each in group.slices)
