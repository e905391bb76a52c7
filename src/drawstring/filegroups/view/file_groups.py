"""The table's file groups at an instant: timeline and listing put together.

listing ── by file id ──> file groups ── timeline ──> slices ── replaced groups out ──> the view
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from drawstring.config.table.config import TableConfig
from drawstring.filegroups.view.listing import Listing, StorageListing
from drawstring.filegroups.view.presence import Presence
from drawstring.filegroups.view.slicing import (
    GroupFiles,
    Visibility,
    group_files,
    slicer_of,
)
from drawstring.formats.metadata.commit import clustering_groups, decode_compaction_plan
from drawstring.model.commit import CommitMetadata
from drawstring.model.files import FileGroup, FileSlice
from drawstring.model.instant import Action, Instant
from drawstring.storage.protocol import Storage
from drawstring.timeline.bootstrapped import BootstrapSources
from drawstring.timeline.timeline import Timeline


class MetadataReader(Protocol):
    """Reads what instants and a bootstrap's index say; the timeline store is one."""

    sources: BootstrapSources

    def commit_metadata(self, instant: Instant) -> CommitMetadata:
        """Return the metadata of a completed write."""
        ...

    def read_requested(self, instant: Instant) -> bytes:
        """Return the plan that an instant was requested with."""
        ...


class FileGroupView:
    """Which file groups and slices the table has.

    Args:
        timeline: what counts as committed.
        config: the table.
        listing: the files.
        reader: reads replace commits and plans.
    """

    def __init__(
        self, timeline: Timeline, config: TableConfig, listing: Listing, reader: MetadataReader
    ) -> None:
        self._timeline = timeline
        self._slice = slicer_of(config.rules.slicing)
        self._listing = listing
        self._reader = reader
        self._replaced: dict[tuple[str, str], str] | None = None
        self._compactions: dict[tuple[str, str], str] | None = None
        self._clusterings: dict[tuple[str, str], str] | None = None
        self._presence = Presence(timeline, reader) if listing.is_complete else None

    @property
    def listing(self) -> Listing:
        """Where the files come from."""
        return self._listing

    def partitions(self) -> list[str]:
        """Return all partition paths, sorted.

        Raises:
            CorruptTableError: a partition is not listed whose rows must be there.
        """
        found = self._listing.partitions()
        if self._presence is not None:
            self._presence.check_partitions(found, self._listing.files, self.replaced_groups())
        return found

    def replaceable_partitions(self) -> list[str]:
        """Return all partition paths, sorted, those too whose files are all missing.

        Raises:
            CorruptTableError: a partition is not listed although some of its files are there.
        """
        found = self._listing.partitions()
        if self._presence is None:
            return found
        lost = self._presence.lost_partitions(found, self._listing.files, self.replaced_groups())
        return sorted({*found, *lost})

    def replaceable(self, partition: str) -> list[str]:
        """Return the ids of the file groups that are not replaced, those too whose files are missing.

        Args:
            partition: partition path.
        """
        visible = Visibility(self._timeline.completion_of)
        listed = self._listing.files(partition)
        found = {
            file_id
            for file_id, files in group_files(listed).items()
            if self._slices_of(partition, file_id, files, visible)
        }
        if self._presence is not None:
            found |= self._presence.named(partition, {status.path for status in listed})
        return sorted(each for each in found if (partition, each) not in self.replaced_groups())

    def slices(self, partition: str, as_of: str | None = None) -> list[FileSlice]:
        """Return the latest slice of each file group, by file id.

        Args:
            partition: partition path.
            as_of: the latest requested time that counts; None for all.
        """
        return [group.slices[-1] for group in self.groups(partition, as_of)]

    def groups(self, partition: str, as_of: str | None = None) -> list[FileGroup]:
        """Return the file groups that are not replaced, by file id, with all their slices.

        Args:
            partition: partition path.
            as_of: the latest requested time that counts; None for all.

        Raises:
            CorruptTableError: a file is gone that has to be there.
        """
        visible = Visibility(self._timeline.completion_of, as_of)
        found = []
        for file_id, files in sorted(group_files(self._listing.files(partition)).items()):
            replaced_at = self.replaced_groups().get((partition, file_id))
            if replaced_at is not None and visible.reaches(replaced_at):
                continue
            if slices := self._slices_of(partition, file_id, files, visible):
                found.append(FileGroup(partition, file_id, tuple(slices)))
        if self._presence is not None:
            newest = (group.slices[-1] for group in found)
            replaced = [file_id for place, file_id in self.replaced_groups() if place == partition]
            listed = self._listing.files(partition)
            self._presence.check(partition, listed, newest, replaced=replaced, as_of=as_of)
        return found

    def stored_groups(self, partition: str) -> list[FileGroup]:
        """Return all file groups as they are stored, by file id: replaced ones too, CDC files among the logs.

        Whether files are missing is not looked at.

        Args:
            partition: partition path.
        """
        visible = Visibility(self._timeline.completion_of)
        listed = group_files(self._listing.files(partition), change_logs=True)
        found = (
            (file_id, self._slices_of(partition, file_id, files, visible))
            for file_id, files in sorted(listed.items())
        )
        return [FileGroup(partition, file_id, tuple(slices)) for file_id, slices in found if slices]

    def replaced_groups(self) -> dict[tuple[str, str], str]:
        """Return the file groups, as partition and file id, that were replaced, and the first time of it."""
        if self._replaced is None:
            # Whole before it is kept: several threads ask, and none may see a part of it.
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
        """Return the file groups, as partition and file id, in a pending compaction, and its time."""
        if self._compactions is None:
            self._compactions = self._planned(Action.COMPACTION, _compacted_groups)
        return self._compactions

    def pending_log_compactions(self) -> dict[tuple[str, str], str]:
        """Return the file groups in a pending log compaction, and its time."""
        return self._planned(Action.LOG_COMPACTION, _compacted_groups)

    def pending_clusterings(self) -> dict[tuple[str, str], str]:
        """Return the file groups that a pending clustering replaces, and its time."""
        if self._clusterings is None:
            self._clusterings = self._planned(Action.CLUSTERING, clustering_groups)
        return self._clusterings

    def in_services(self) -> set[tuple[str, str]]:
        """Return the file groups, as partition and file id, that a pending service is about."""
        return {*self.pending_clusterings(), *self.pending_compactions(), *self.pending_log_compactions()}

    def _slices_of(
        self, partition: str, file_id: str, files: GroupFiles, visible: Visibility
    ) -> list[FileSlice]:
        slices = self._slice(partition, file_id, files, visible, self.pending_compactions)
        return self._reader.sources.on(slices)

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
    """Return the view of all file groups of a table; nothing is listed yet.

    The one place that chooses where the view of a whole table gets its files from.

    Args:
        storage: the table's files.
        config: the table.
        timeline: what counts as committed.
        reader: reads replace commits and plans.
    """
    return FileGroupView(timeline, config, StorageListing(storage), reader)


def _compacted_groups(plan: bytes) -> list[tuple[str, str]]:
    return [(each.partition, each.file_id) for each in decode_compaction_plan(plan).operations]
