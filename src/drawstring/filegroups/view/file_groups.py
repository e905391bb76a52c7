"""File groups and file slices of a table at an instant, from timeline and listing.

listing ── by file id ──> file groups ── timeline ──> slices ── replaced groups out ──> the view

From the files of a file group to its slices (specification: File Layout Hierarchy). Pure.

    layout 1   a log file's name holds the base instant of its slice:
               base(10)  log(10).1  log(10).2 | base(20)  log(20).1

    layout 2   a log file's name holds the delta commit that wrote it; it belongs to the newest base
               file requested before that delta commit completed:
               base(10)  log(12)  log(15, completed 22) | base(20, requested 20) ...
               log(15) belongs to base(20): the compaction at 20 did not see it

While a compaction is pending, writers of layout 1 already name their log files by its instant; until it
completes, these log files belong to the previous slice. So do log files of layout 2 in a table that was
downgraded, because no base file has their instant.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from drawstring.config.table.config import TableConfig
from drawstring.filegroups.view.listing import Listing, StorageListing
from drawstring.filegroups.view.missing_files import MissingFileCheck
from drawstring.formats.metadata.commit import clustering_groups, compacted_groups
from drawstring.model.commit import CommitMetadata
from drawstring.model.files import BaseFile, FileGroup, FileSlice, FileStatus, LogFile
from drawstring.model.instant import Action, Instant
from drawstring.model.table_version import LogFileAssignment
from drawstring.storage.protocol import Storage
from drawstring.timeline.archive.completion_times import ArchivedCompletionTimes
from drawstring.timeline.bootstrapped import BootstrapSources
from drawstring.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Visibility:
    """The instants whose files are visible.

    Attributes:
        completion_of: returns the completion time for a requested time; None for an invisible instant.
        as_of: the latest visible requested time; None for no bound.
        archived_completion_of: see `ArchivedCompletionTimes.of`; None to take the requested time.
    """

    completion_of: Callable[[str], str | None]
    as_of: str | None = None
    archived_completion_of: Callable[[str, str], str] | None = None

    def sees(self, requested: str) -> bool:
        """Return whether the files of an instant are visible."""
        return self.reaches(requested) and self.completion_of(requested) is not None

    def reaches(self, requested: str) -> bool:
        """Return whether an instant is not after `as_of`."""
        return self.as_of is None or requested <= self.as_of


@dataclass(slots=True)
class GroupFiles:
    """The files of one file group as listed."""

    bases: list[BaseFile]
    logs: list[LogFile]


def group_files(statuses: Iterable[FileStatus], *, change_logs: bool = False) -> dict[str, GroupFiles]:
    """Group data files by file id; skip other files.

    Args:
        statuses: listed files.
        change_logs: whether to include CDC files among the log files.
    """
    groups: dict[str, GroupFiles] = defaultdict(lambda: GroupFiles([], []))
    for status in statuses:
        if base := BaseFile.parse(status):
            groups[base.file_id].bases.append(base)
        elif (log := LogFile.parse(status)) and (change_logs or not log.is_cdc):
            groups[log.file_id].logs.append(log)
    return groups


Compactions: TypeAlias = Callable[[], Mapping[tuple[str, str], str]]
"""Returns the requested time of the pending compaction by file group (partition path, file id)."""

Slicer: TypeAlias = Callable[[str, str, GroupFiles, Visibility, Compactions], list[FileSlice]]
"""Builds slices, oldest first, from partition path, file id, files, visibility and pending compactions."""


def slicer_of(assignment: LogFileAssignment) -> Slicer:
    """Return the function that builds the slices of a file group; it serves all groups of a table."""
    return _SLICERS[assignment]


def slices_by_name(
    partition: str, file_id: str, files: GroupFiles, visible: Visibility, pending_compaction: str | None
) -> list[FileSlice]:
    """Return the slices of a file group of layout 1, oldest first.

    Args:
        partition: partition path.
        file_id: the file group.
        files: its files.
        visible: the visible instants.
        pending_compaction: requested time of the pending compaction that the group is part of.
    """
    bases = _visible_bases(files, visible)
    logs: dict[str, list[LogFile]] = defaultdict(list)
    for log in files.logs:
        is_planned = log.instant == pending_compaction and visible.reaches(log.instant)
        if is_planned or visible.sees(log.instant):
            logs[log.instant].append(log)
    slices: list[FileSlice] = []
    for instant in sorted({*bases, *logs}):
        piece = FileSlice(partition, file_id, instant, bases.get(instant), _ordered(logs[instant]))
        if piece.base is None and slices:
            before = slices.pop()
            piece = FileSlice(
                partition, file_id, before.base_instant, before.base, _ordered((*before.logs, *piece.logs))
            )
        slices.append(piece)
    return slices


def slices_by_completion(
    partition: str, file_id: str, files: GroupFiles, visible: Visibility
) -> list[FileSlice]:
    """Return the slices of a file group of layout 2, oldest first.

    Args:
        partition: partition path.
        file_id: the file group.
        files: its files.
        visible: the visible instants.
    """
    bases = _visible_bases(files, visible)
    logs: dict[str, list[LogFile]] = {instant: [] for instant in bases}
    for log in sorted(files.logs, key=lambda log: log.order):
        if not visible.sees(log.instant):
            continue
        completed = _completion_of(log, bases, visible)
        slice_instant = max((instant for instant in logs if instant <= completed), default=log.instant)
        logs.setdefault(slice_instant, []).append(log)
    return [
        FileSlice(partition, file_id, instant, bases.get(instant), tuple(logs[instant]))
        for instant in sorted(logs)
    ]


def _completion_of(log: LogFile, bases: Iterable[str], visible: Visibility) -> str:
    """Return when the write of a log file completed; `bases` are the requested times of base files."""
    completed = visible.completion_of(log.instant) or log.instant
    if completed != log.instant or visible.archived_completion_of is None:
        return completed
    later = min((instant for instant in bases if instant > log.instant), default=None)
    return completed if later is None else visible.archived_completion_of(log.instant, later)


def _by_name(
    partition: str, file_id: str, files: GroupFiles, visible: Visibility, compactions: Compactions
) -> list[FileSlice]:
    pending = compactions().get((partition, file_id)) if files.logs else None
    return slices_by_name(partition, file_id, files, visible, pending)


def _by_completion(
    partition: str, file_id: str, files: GroupFiles, visible: Visibility, _compactions: Compactions
) -> list[FileSlice]:
    return slices_by_completion(partition, file_id, files, visible)


_SLICERS: Final[Mapping[LogFileAssignment, Slicer]] = {
    LogFileAssignment.BY_LOG_NAME: _by_name,
    LogFileAssignment.BY_COMPLETION: _by_completion,
}


def _visible_bases(files: GroupFiles, visible: Visibility) -> Mapping[str, BaseFile]:
    ordered = sorted(files.bases, key=lambda base: (base.instant, base.write_token))
    return {base.instant: base for base in ordered if visible.sees(base.instant)}


def _ordered(logs: Iterable[LogFile]) -> tuple[LogFile, ...]:
    return tuple(sorted(logs, key=lambda log: log.order))


class MetadataReader(Protocol):
    """Reads the metadata of instants and the bootstrap index; the timeline store implements it."""

    @property
    def sources(self) -> BootstrapSources:
        """The source files of bootstrapped base files."""

    @property
    def archived_completion_times(self) -> ArchivedCompletionTimes:
        """The completion times of archived writes."""

    def commit_metadata(self, instant: Instant) -> CommitMetadata:
        """Return the metadata of a completed write."""
        ...

    def read_requested(self, instant: Instant) -> bytes:
        """Return the plan that an instant was requested with."""
        ...


class FileGroupView:
    """The file groups and file slices of a table.

    Args:
        timeline: the committed instants.
        config: the table.
        listing: the files.
        reader: reads replace commits and plans.
    """

    def __init__(
        self, timeline: Timeline, config: TableConfig, listing: Listing, reader: MetadataReader
    ) -> None:
        self._timeline = timeline
        self._slice = slicer_of(config.rules.log_file_assignment)
        self._listing = listing
        self._reader = reader
        self._is_bootstrapped = config.is_bootstrapped
        self._replaced: dict[tuple[str, str], str] | None = None
        self._compactions: dict[tuple[str, str], str] | None = None
        self._clusterings: dict[tuple[str, str], str] | None = None
        self._missing_files = MissingFileCheck(timeline, reader) if listing.is_complete else None

    @property
    def listing(self) -> Listing:
        """The listing that the view is built from."""
        return self._listing

    def partitions(self) -> list[str]:
        """Return all partition paths, sorted.

        Raises:
            CorruptTableError: a partition with live files is not listed.
        """
        partitions = self._listing.partitions()
        if self._missing_files is not None:
            self._missing_files.check_partitions(partitions, self._listing.files, self.replaced_groups())
        return partitions

    def partitions_including_lost(self) -> list[str]:
        """Return all partition paths, sorted, including partitions whose files are all missing.

        Raises:
            CorruptTableError: a partition has files but no partition metadata file.
        """
        partitions = self._listing.partitions()
        if self._missing_files is None:
            return partitions
        lost = self._missing_files.lost_partitions(partitions, self._listing.files, self.replaced_groups())
        return sorted({*partitions, *lost})

    def file_ids_including_lost(self, partition: str) -> list[str]:
        """Return the ids of the file groups that are not replaced, including groups whose files are missing.

        Args:
            partition: partition path.
        """
        visible = self._visible()
        listed = self._listing.files(partition)
        file_ids = {
            file_id
            for file_id, files in group_files(listed).items()
            if self._slices_of(partition, file_id, files, visible)
        }
        if self._missing_files is not None:
            file_ids |= self._missing_files.named(partition, {status.path for status in listed})
        return sorted(each for each in file_ids if (partition, each) not in self.replaced_groups())

    def slices(self, partition: str, as_of: str | None = None) -> list[FileSlice]:
        """Return the latest slice of each file group, by file id.

        Args:
            partition: partition path.
            as_of: the latest requested time that counts; None for all.
        """
        return [group.slices[-1] for group in self.groups(partition, as_of)]

    def groups(self, partition: str, as_of: str | None = None) -> list[FileGroup]:
        """Return the file groups that are not replaced, sorted by file id, with all their slices.

        Args:
            partition: partition path.
            as_of: the latest requested time that counts; None for all.

        Raises:
            CorruptTableError: a file of a committed write is missing.
        """
        visible = self._visible(as_of)
        groups = []
        for file_id, files in sorted(group_files(self._listing.files(partition)).items()):
            replaced_at = self.replaced_groups().get((partition, file_id))
            if replaced_at is not None and visible.reaches(replaced_at):
                continue
            if slices := self._slices_of(partition, file_id, files, visible):
                groups.append(FileGroup(partition, file_id, tuple(slices)))
        if self._missing_files is not None:
            newest = (group.slices[-1] for group in groups)
            replaced = [file_id for place, file_id in self.replaced_groups() if place == partition]
            listed = self._listing.files(partition)
            self._missing_files.check(partition, listed, newest, replaced=replaced, as_of=as_of)
        return groups

    def stored_groups(self, partition: str) -> list[FileGroup]:
        """Return all stored file groups, sorted by file id, including replaced ones; logs include CDC files.

        Does not check for missing files.

        Args:
            partition: partition path.
        """
        visible = self._visible()
        listed = group_files(self._listing.files(partition), change_logs=True)
        slices_by_id = (
            (file_id, self._slices_of(partition, file_id, files, visible))
            for file_id, files in sorted(listed.items())
        )
        return [FileGroup(partition, file_id, tuple(slices)) for file_id, slices in slices_by_id if slices]

    def replaced_groups(self) -> dict[tuple[str, str], str]:
        """Return the requested time of the first replacement by file group (partition path, file id)."""
        if self._replaced is None:
            # Assign the complete map at once: several threads read it, and none may see a part of it.
            replaced: dict[tuple[str, str], str] = {}
            for instant in self._timeline.writes():
                if instant.action is not Action.REPLACE_COMMIT:
                    continue
                for partition, file_ids in self._reader.commit_metadata(instant).replaced.items():
                    for file_id in file_ids:
                        replaced.setdefault((partition, file_id), instant.requested)
            self._replaced = replaced
        return self._replaced

    def pending_compactions(self) -> dict[tuple[str, str], str]:
        """Return the requested time of the pending compaction by file group (partition path, file id)."""
        if self._compactions is None:
            self._compactions = self._planned(Action.COMPACTION, compacted_groups)
        return self._compactions

    def pending_log_compactions(self) -> dict[tuple[str, str], str]:
        """Return the requested time of the pending log compaction by file group."""
        return self._planned(Action.LOG_COMPACTION, compacted_groups)

    def pending_clusterings(self) -> dict[tuple[str, str], str]:
        """Return the requested time of the pending clustering that replaces each file group."""
        if self._clusterings is None:
            self._clusterings = self._planned(Action.CLUSTERING, clustering_groups)
        return self._clusterings

    def in_services(self) -> set[tuple[str, str]]:
        """Return the file groups (partition path, file id) that are part of a pending table service."""
        return {*self.pending_clusterings(), *self.pending_compactions(), *self.pending_log_compactions()}

    def _visible(self, as_of: str | None = None) -> Visibility:
        return Visibility(self._timeline.completion_of, as_of, self._archived_completion_of)

    def _archived_completion_of(self, requested: str, since: str) -> str:
        return self._reader.archived_completion_times.of(requested, since)

    def _slices_of(
        self, partition: str, file_id: str, files: GroupFiles, visible: Visibility
    ) -> list[FileSlice]:
        slices = self._slice(partition, file_id, files, visible, self.pending_compactions)
        return self._reader.sources.on(slices) if self._is_bootstrapped else slices

    def _planned(
        self, action: Action, groups_of: Callable[[bytes], list[tuple[str, str]]]
    ) -> dict[tuple[str, str], str]:
        return {
            group: instant.requested
            for instant in self._timeline.pending()
            if instant.action is action
            for group in groups_of(self._reader.read_requested(instant))
        }


def table_view(
    storage: Storage, config: TableConfig, timeline: Timeline, reader: MetadataReader
) -> FileGroupView:
    """Return the view of all file groups of a table; it lists no files yet.

    This is the one place that chooses the listing for the view of a whole table.

    Args:
        storage: the table's files.
        config: the table.
        timeline: the committed instants.
        reader: reads replace commits and plans.
    """
    return FileGroupView(timeline, config, StorageListing(storage), reader)
