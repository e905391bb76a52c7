"""File groups and file slices of a table at an instant, from timeline and listing.

listing ── by file id ──> file groups ── timeline ──> slices ── replaced groups out ──> the view
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from drawstring.config.table.config import TableConfig
from drawstring.filegroups.view.listing import Listing, StorageListing
from drawstring.filegroups.view.missing_files import MissingFileCheck
from drawstring.filegroups.view.slice_columns import LatestSlices, SliceRules, latest_in_columns
from drawstring.filegroups.view.slicing import (
    GroupFiles,
    Visibility,
    goes_by_completion,
    group_files,
    slicer_of,
)
from drawstring.formats.metadata.commit import clustering_groups, compacted_groups
from drawstring.model.commit import CommitMetadata
from drawstring.model.files import FileGroup, FileSlice
from drawstring.model.instant import Action, Instant
from drawstring.storage.protocol import Storage
from drawstring.timeline.archive.completion_times import ArchivedCompletionTimes
from drawstring.timeline.bootstrapped import BootstrapSources
from drawstring.timeline.timeline import Timeline


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
        self._by_completion = goes_by_completion(config.rules.log_file_assignment)
        self._listing = listing
        self._reader = reader
        self._is_bootstrapped = config.is_bootstrapped
        self._replaced: dict[tuple[str, str], str] | None = None
        self._compactions: dict[tuple[str, str], str] | None = None
        self._clusterings: dict[tuple[str, str], str] | None = None
        self._missing: MissingFileCheck | None = None

    @property
    def listing(self) -> Listing:
        """The listing that the view is built from."""
        return self._listing

    @property
    def _missing_files(self) -> MissingFileCheck | None:
        """The check for missing files; None if that is not for the listing to tell."""
        if not self._listing.is_complete:
            return None
        if self._missing is None:
            self._missing = MissingFileCheck(self._timeline, self._reader)
        return self._missing

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

    def all_slices(self) -> Iterator[FileSlice]:
        """Yield the latest slice of each file group of the table, one partition after the other."""
        for partition in self.partitions():
            yield from self.slices(partition)

    def latest(self, partitions: Sequence[str], as_of: str | None = None) -> Sequence[FileSlice]:
        """Return the latest slices of some partitions; `LatestSlices` if these are known in columns.

        Args:
            partitions: partition paths.
            as_of: the latest requested time that counts; None for all.
        """
        files = None
        if self._missing_files is None and not self._is_bootstrapped:
            files = self._listing.columns(partitions)
        if files is None:
            return [each for partition in partitions for each in self.slices(partition, as_of)]
        visible = self._visible(as_of)
        rules = SliceRules(
            visible,
            self._by_completion,
            {group for group, time in self.replaced_groups().items() if visible.reaches(time)},
            lambda partition, file_id, files: self._slices_of(partition, file_id, files, visible),
        )
        return LatestSlices(latest_in_columns(files, rules))

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
    storage: Storage,
    config: TableConfig,
    timeline: Timeline,
    reader: MetadataReader,
    listing: Listing | None = None,
) -> FileGroupView:
    """Return the view of all file groups of a table; it lists no files yet.

    Args:
        storage: the table's files.
        config: the table.
        timeline: the committed instants.
        reader: reads replace commits and plans.
        listing: the files; None to list the storage.
    """
    return FileGroupView(timeline, config, listing or listing_of(storage), reader)


def listing_of(storage: Storage) -> Listing:
    """Return what lists the storage of a table; this is the one place that does."""
    return StorageListing(storage)
