"""Build the file groups and file slices of a table at an instant, from its timeline and a file listing.

    listing ── by file id ──> file groups ── timeline ──> slices ── replaced groups out ──> the view

`FileGroupView` reads a `Listing` of the partitions and files; `StorageListing` lists the storage itself.

`SliceLookup` finds the slices that a write builds on, one partition at a time. The driver makes one lookup
from the timeline as loaded when the write began and sends it to the workers. Each worker lists only the
partitions of its own rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

from drawstring.base.clock import SystemClock
from drawstring.base.errors import PendingClusteringError, RivalError
from drawstring.base.resources import map_in_threads, worker_threads
from drawstring.config.table_config import TableConfig
from drawstring.filegroups.columnar_view import FileColumns, LatestSlices, SliceRules, latest_in_columns
from drawstring.filegroups.view.missing_files import MissingFileCheck
from drawstring.filegroups.view.slicing import (
    GroupFiles,
    Visibility,
    goes_by_completion,
    group_files,
    slicer_of,
)
from drawstring.filegroups.write.markers import Markers
from drawstring.formats.metadata.commit import clustering_groups, compacted_groups
from drawstring.model.commit import CommitMetadata
from drawstring.model.files import (
    HOODIE_FOLDER,
    PARTITION_METADATA,
    FileGroup,
    FileSlice,
    FileStatus,
    join_path,
)
from drawstring.model.instant import Action, Instant
from drawstring.storage import is_object_store, open_spec
from drawstring.storage.protocol import Storage, StorageSpec
from drawstring.timeline.archive.reader import ArchivedCompletionTimes
from drawstring.timeline.migration import BootstrapSources
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline

_FEW: Final = 16
"""Number of local folders that one thread lists faster than several threads start."""


class Listing(Protocol):
    """Partitions and their files."""

    @property
    def is_complete(self) -> bool:
        """Whether it lists all that is stored, so that a file it lacks is missing from the table."""
        ...

    def partitions(self) -> list[str]:
        """Return all partition paths, sorted; an unpartitioned table has the empty path."""
        ...

    def files(self, partition: str) -> list[FileStatus]:
        """Return the files of a partition."""
        ...

    def columns(self, partitions: Sequence[str]) -> FileColumns | None:
        """Return the files of many partitions at once; None if these are few, or not known in columns."""
        ...


class StorageListing:
    """Lists the storage, each folder once; a partition is a folder with a partition metadata file.

    Args:
        storage: the table's files.
    """

    is_complete = True

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._files: dict[str, list[FileStatus]] = {}
        self._partitions: list[str] | None = None

    def partitions(self) -> list[str]:
        if self._partitions is None:
            self._partitions = self._list_all()
        return self._partitions

    def files(self, partition: str) -> list[FileStatus]:
        if partition not in self._files:
            self._files[partition] = self._storage.list_files(partition)
        return self._files[partition]

    def columns(self, partitions: Sequence[str]) -> FileColumns | None:
        return None

    def _list_all(self) -> list[str]:
        folders = [path for path in self._storage.list_folders("") if path != HOODIE_FOLDER]
        is_near = len(folders) <= _FEW and not is_object_store(self._storage.spec.uri)
        trees = map_in_threads(self._storage.list_tree, folders, 1 if is_near else worker_threads())
        by_folder: dict[str, list[FileStatus]] = defaultdict(list)
        for status in [*self._storage.list_files(""), *(status for tree in trees for status in tree)]:
            by_folder[status.folder].append(status)
        partitions = sorted(folder for folder, files in by_folder.items() if _is_partition(files))
        self._files |= {folder: by_folder[folder] for folder in partitions}
        return partitions


class FixedListing:
    """A listing of given files.

    Args:
        files: the files, of any number of partitions.
    """

    is_complete = False

    def __init__(self, files: Iterable[FileStatus]) -> None:
        by_folder: dict[str, list[FileStatus]] = defaultdict(list)
        for status in files:
            by_folder[status.folder].append(status)
        self._files: Mapping[str, list[FileStatus]] = by_folder

    def partitions(self) -> list[str]:
        return sorted(self._files)

    def files(self, partition: str) -> list[FileStatus]:
        return self._files.get(partition, [])

    def columns(self, partitions: Sequence[str]) -> FileColumns | None:
        return None


def _is_partition(files: Iterable[FileStatus]) -> bool:
    return any(status.name.startswith(PARTITION_METADATA) for status in files)


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
    return FileGroupView(timeline, config, listing or storage_listing(storage), reader)


def storage_listing(storage: Storage) -> Listing:
    """Return what lists the storage of a table; this is the one place that does."""
    return StorageListing(storage)


class SliceLookup:
    """Latest slices by partition; picklable. Listings are cached per process and not pickled.

    Args:
        storage: opens the table.
        config: the table.
        timeline: the committed instants.
        allows_updates: whether a write may update file groups in a pending clustering.
        cancellable: requested times of clusterings whose file groups a write may always update.
        rivals: requested times of pending writes to whose file groups a write gives way.
        listing: the files of the table, picklable; None to list the storage.

    Attributes:
        timeline: the committed instants.
    """

    def __init__(
        self,
        storage: StorageSpec,
        config: TableConfig,
        timeline: Timeline,
        *,
        allows_updates: bool = False,
        cancellable: frozenset[str] = frozenset(),
        rivals: tuple[str, ...] = (),
        listing: Listing | None = None,
    ) -> None:
        self._rivals = rivals
        self._listing = listing
        self._storage = storage
        self._cancellable = cancellable
        self._allows_updates = allows_updates
        self._config = config
        self.timeline = timeline
        self._view: FileGroupView | None = None
        self._begun: Mapping[str, frozenset[tuple[str, str]]] | None = None
        self._known: dict[str, Sequence[FileSlice]] = {}

    def __getstate__(self) -> tuple[Any, ...]:
        plain = (self._storage, self._config, self.timeline)
        return *plain, self._allows_updates, self._cancellable, self._rivals, self._listing

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        storage, config, timeline, allows_updates, cancellable, rivals, listing = state
        self.__init__(  # type: ignore[misc]
            storage,
            config,
            timeline,
            allows_updates=allows_updates,
            cancellable=cancellable,
            rivals=rivals,
            listing=listing,
        )

    def partitions(self) -> list[str]:
        """Return all partition paths, sorted."""
        return self.view().partitions()

    def slices(self, partition: str) -> Sequence[FileSlice]:
        """Return the latest slice of each file group that a write appends to.

        In layout 1, writes to a group in a pending compaction go to the slice that the compaction will
        create: their log files carry the instant of the compaction.
        """
        if partition not in self._known:
            slices = self.view().slices(partition)
            if self._config.rules.names_logs_by_slice:
                pending = self.view().pending_compactions()
                slices = [_with_base_instant(s, pending.get((partition, s.file_id))) for s in slices]
            self._known[partition] = slices
        return self._known[partition]

    def partitions_including_lost(self) -> list[str]:
        """Return all partition paths, sorted, including partitions whose files are all missing."""
        return self.view().partitions_including_lost()

    def file_ids_including_lost(self, partition: str) -> list[str]:
        """Return the ids of the visible file groups, including groups whose files are missing."""
        return self.view().file_ids_including_lost(partition)

    def was_replaced(self, partition: str, file_id: str) -> bool:
        """Return whether a file group was replaced, so that its id cannot be used again."""
        return (partition, file_id) in self.view().replaced_groups()

    def refuse_pending_clustering(self, partition: str, file_id: str) -> None:
        """Check that no pending clustering forbids writes to a file group.

        Args:
            partition: partition path.
            file_id: the file group.

        Raises:
            PendingClusteringError: a pending clustering will replace the file group.
        """
        if self._allows_updates:
            return
        clustering = self.view().pending_clusterings().get((partition, file_id))
        if clustering is not None and clustering not in self._cancellable:
            place = f" of partition {partition}" if partition else ""
            raise PendingClusteringError(
                f"File group {file_id}{place} is part of a pending clustering. Run that clustering"
                f" (cluster), roll it back (rollback of {clustering}), or allow such writes with"
                " hoodie.clustering.updates.strategy=SparkAllowUpdateStrategy. Then write again.",
                instant=clustering,
            )

    def refuse_rivals(self, partition: str, file_id: str) -> None:
        """Check that no rival has begun a file of a file group, by its markers as they were looked at last.

        Args:
            partition: partition path.
            file_id: the file group.

        Raises:
            RivalError: one has.
        """
        for rival, begun in self._begun_by_rivals().items():
            if (partition, file_id) in begun:
                raise RivalError(
                    f"Another writer is at work on file group {join_path(partition, file_id)} and was first."
                    " Nothing of this write was committed. Write again when the other one is done.",
                    instant=rival,
                    path=partition,
                )

    def reload_rival_markers(self) -> None:
        """Have the markers of rivals read again for the file groups that are checked from now on."""
        self._begun = None

    def _begun_by_rivals(self) -> Mapping[str, frozenset[tuple[str, str]]]:
        """Return the file groups of which rivals have begun files."""
        begun = self._begun
        if begun is None:  # another thread may have them read again at any time
            storage = open_spec(self._storage)
            begun = self._begun = {rival: Markers(storage, rival).groups() for rival in self._rivals}
        return begun

    def view(self) -> FileGroupView:
        """Return the view of file groups that the lookup reads."""
        if self._view is None:
            storage = open_spec(self._storage)
            store = TimelineStore(storage, self._config, SystemClock())
            self._view = table_view(storage, self._config, self.timeline, store, self._listing)
        return self._view


def _with_base_instant(file_slice: FileSlice, compaction: str | None) -> FileSlice:
    return file_slice if compaction is None else replace(file_slice, base_instant=compaction)
