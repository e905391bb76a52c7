"""Compaction and cleaning of the metadata table, by the writer whose delta commit made them due.

    plans ──┬── clean the slices before the last two ──┬── completed files
            └── a base file for each file group ───────┘

Both go together, so that a flush serves both. It is due after ten delta commits, as in Hudi. A delta commit
whose instant is pending in the table does not count, and must not get into a base file; one that is pending
itself may have claimed an earlier completion time. So there is no compaction while there is one. The caller
holds the table lock, so what is pending in the metadata table belongs to a dead or stalled process: it is
fenced and taken back. The lock is checked again once the compaction is on the timeline: delta commits of
others then complete after the compaction was requested, and belong to the slices that it makes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import ClassVar, Final, Protocol

from drawstring.base.disk_errors import TABLE_DISK, disk_errors
from drawstring.base.told import level_of
from drawstring.filegroups.view.file_groups import table_view
from drawstring.formats.metadata.clean import encode_clean, encode_clean_plan
from drawstring.formats.metadata.commit import encode_compaction_plan
from drawstring.metadata.encoding import encode_base_file, write_base_file
from drawstring.metadata.layouts.own_times import Suffix, last_delta_commit, service_time
from drawstring.metadata.listed import listed_in, remember_listed
from drawstring.metadata.maintained.files import rows_of
from drawstring.metadata.metadata_table import MetadataTable
from drawstring.metadata.partitions import Kind, kind_of
from drawstring.metadata.stored.merged import merged_parts
from drawstring.metadata.writer import MetadataWriter
from drawstring.model.clean import CleanedPartition, CleanMetadata, CleanPlan, CleanPolicy
from drawstring.model.commit import WriteStat
from drawstring.model.files import HFILE, BaseFile, FileSlice, FileStatus, join_path
from drawstring.model.instant import WRITE_ACTIONS, Action, Instant, time_of
from drawstring.model.plans import CompactionOperation, CompactionPlan, slice_metrics
from drawstring.timeline.timeline import Timeline

_SLICES_KEPT: Final = 2
"""Number of slices of a file group that a clean leaves; readers may still read the older one."""

_END_OF_TIME: Final = "9"

_log = logging.getLogger("drawstring")


def later_delta_commits(own: Timeline) -> list[Instant]:
    """Return the delta commits after the last compaction.

    Args:
        own: timeline of the metadata table.
    """
    last = max((each.requested for each in own.completed_of(Action.COMMIT)), default="")
    return [each for each in own.completed_of(Action.DELTA_COMMIT) if time_of(each) > last]


def compact(
    writer: MetadataWriter, table: MetadataTable, timeline: Timeline, check: Callable[[], None]
) -> str | None:
    """Clean and compact the metadata table.

    Args:
        writer: of the metadata table, under the table lock.
        table: the metadata table as it is now.
        timeline: timeline of the table.
        check: makes sure that the table lock is still held.

    Returns:
        The requested time of the compaction; None if it has to wait.

    Raises:
        ConflictError: the table lock was lost.
    """
    if has_to_wait(table, timeline):
        return None
    writer.take_back_services(table.own_timeline)
    cleaning, compaction = _Cleaning.of(writer, table), _Compaction.of(writer, table)
    services: list[_Service] = [each for each in (cleaning, compaction) if each is not None]
    if not services:
        return None
    plans = [(each.action, each.requested, each.plan()) for each in services]
    with ExitStack() as ends:
        ends.callback(_staged(writer, [plan for _, _, plan in plans]))
        begun = [writer.begin(*each, is_flushed=False) for each in plans]
        writer.store.flush()
        check()
        done = [each.run() for each in services]
        lists = [file for each in done for file in each.lists.items()]
        ends.callback(_staged(writer, [each.content for each in done], lists))
        for path, content in lists:
            writer.storage.put(path, content)
        writer.storage.sync({folder for each in done for folder in each.folders})
        later: list[Callable[[], None]] = []
        for instant, each in zip(begun, done, strict=True):
            writer.store.complete(instant, each.content, defer=later.append)
        for task in later:
            task()
    if compaction is None:
        return None
    _log.info("Compacted the metadata table at %s.", compaction.requested)
    return compaction.requested


def _staged(
    writer: MetadataWriter, instants: Sequence[bytes], files: Sequence[tuple[str, bytes]] = ()
) -> Callable[[], None]:
    """Flush the contents of files that are put soon at the same time; return what drops those that are not.

    Args:
        writer: of the metadata table.
        instants: contents of files of its timeline.
        files: paths and contents of others.
    """
    folder = writer.config.timeline_folder
    others = [(path.rpartition("/")[0], content) for path, content in files]
    return writer.storage.stage([*((folder, content) for content in instants), *others])


def has_to_wait(table: MetadataTable, timeline: Timeline) -> bool:
    """Return whether a delta commit is to come, or may have to go, that a compaction could not have.

    In layout 1 they come after all delta commits with earlier times. Otherwise they belong to a slice by
    their completion time, and one whose process stands still may have claimed a time before the compaction.
    """
    own, pending = table.own_timeline, {instant.requested for instant in timeline.pending()}
    if table.config.layout.suffixes_times:
        return min(pending, default=_END_OF_TIME) <= last_delta_commit(own)
    written = (*own.completed_of(*WRITE_ACTIONS), *own.pending_of(Action.DELTA_COMMIT))
    return any(instant.requested in pending for instant in written)


def tell_waiting(table: MetadataTable, timeline: Timeline, delta_commits: int) -> None:
    """Warn, once for each pending action, that a compaction waits for it.

    Hudi fails the write then. It is committed when the compaction is due, and failing would finish nothing.

    Args:
        table: the metadata table.
        timeline: timeline of the table.
        delta_commits: number from which on there is a warning.
    """
    count = len(later_delta_commits(table.own_timeline))
    if count < delta_commits or not has_to_wait(table, timeline):
        return
    uri, oldest = table.storage.spec.uri, min(timeline.pending(), key=lambda each: each.requested)
    _log.log(
        level_of(uri, str(oldest.action), oldest.requested),
        "The metadata table %s has %d delta commits since its last compaction, which waits for the %s %s, and"
        " readers open a log file for each. Finish that action, or roll it back (`drawstring rollback`).",
        uri,
        count,
        oldest.action,
        oldest.requested,
    )


@dataclass(frozen=True, slots=True)
class _Done:
    """What a service did, before it completes.

    Attributes:
        content: of its completed file.
        folders: where it wrote or deleted files.
        lists: base files that are still to be put, small ones; their contents by path.
    """

    content: bytes
    folders: Collection[str]
    lists: Mapping[str, bytes] = field(default_factory=dict)


class _Service(Protocol):
    """A service of the metadata table that is due."""

    action: ClassVar[Action]

    @property
    def requested(self) -> str:
        """Its requested time."""

    def plan(self) -> bytes:
        """Content of its requested file."""

    def run(self) -> _Done:
        """Write or delete its files."""


@dataclass(frozen=True, slots=True)
class _Compaction:
    writer: MetadataWriter
    table: MetadataTable
    requested: str
    slices: Sequence[FileSlice]

    action: ClassVar[Action] = Action.COMPACTION

    @staticmethod
    def of(writer: MetadataWriter, table: MetadataTable) -> _Compaction | None:
        slices = [each for partition in table.ready for each in table.slices(partition) if each.logs]
        if not slices:
            return None
        requested = service_time(writer.store, writer.config.layout, Suffix.COMPACTION)
        return _Compaction(writer, table, requested, slices)

    def plan(self) -> bytes:
        return encode_compaction_plan(CompactionPlan(tuple(map(operation_of, self.slices))))

    def run(self) -> _Done:
        lists: dict[str, bytes] = {}
        stats = [self._rewrite(file_slice, lists) for file_slice in self.slices]
        content = self.writer.encoded_commit(self.action, stats, {})
        return _Done(content, {each.partition for each in self.slices}, lists)

    def _rewrite(self, file_slice: FileSlice, lists: dict[str, bytes]) -> WriteStat:
        name = BaseFile.name_of(file_slice.file_id, self.writer.new_token(), self.requested, HFILE)
        path = join_path(file_slice.partition, name)
        if kind_of(file_slice.partition) is Kind.FILES:
            records, lists[path] = self._encode_list(file_slice, path, name)
            size_bytes = len(lists[path])
        else:
            records, size_bytes = self._write_merged(file_slice, path, name)
        return WriteStat(
            partition=file_slice.partition,
            file_id=file_slice.file_id,
            path=path,
            prev_commit=file_slice.base_instant,
            num_writes=records,
            size_bytes=size_bytes,
            prev_base_file=file_slice.base.status.name if file_slice.base else None,
            log_files_compacted=len(file_slice.logs),
            log_size_compacted=sum(log.status.size_bytes for log in file_slice.logs),
        )

    def _encode_list(self, file_slice: FileSlice, path: str, name: str) -> tuple[int, bytes]:
        """Encode the base file of the list of files; return the number of its records and its content."""
        listed = listed_in(self.table, file_slice)
        rows = rows_of(listed)
        content = encode_base_file(rows, name, self.writer.clock.now_ms())
        remember_listed(self.writer.storage, FileStatus(path, len(content)), listed)
        return rows.num_rows, content

    def _write_merged(self, file_slice: FileSlice, path: str, name: str) -> tuple[int, int]:
        """Write the base file of another file group, of which it holds a few windows at a time."""
        parts = merged_parts(self.table, file_slice, kind_of(file_slice.partition))
        with disk_errors(TABLE_DISK, path), self.writer.storage.create(path) as file:
            return write_base_file(file, parts, name, self.writer.clock.now_ms())


def operation_of(file_slice: FileSlice) -> CompactionOperation:
    """Return the operation of a plan that compacts a slice."""
    return CompactionOperation(
        partition=file_slice.partition,
        file_id=file_slice.file_id,
        base_instant=file_slice.base_instant,
        base_file=file_slice.base.status.name if file_slice.base else None,
        log_files=tuple(log.status.name for log in file_slice.logs),
        metrics=slice_metrics(file_slice),  # Hudi cannot run a plan without them, if this process dies
    )


@dataclass(frozen=True, slots=True)
class _Cleaning:
    """Deletes the slices that compactions before the last but one replaced."""

    writer: MetadataWriter
    requested: str
    last: str
    doomed: Mapping[str, Sequence[str]]

    action: ClassVar[Action] = Action.CLEAN

    @staticmethod
    def of(writer: MetadataWriter, table: MetadataTable) -> _Cleaning | None:
        doomed = {partition: _old_files(writer, table, partition) for partition in table.ready}
        doomed = {partition: paths for partition, paths in doomed.items() if paths}
        if not doomed:
            return None
        requested = service_time(writer.store, writer.config.layout, Suffix.CLEAN)
        return _Cleaning(writer, requested, writer.store.loaded.writes()[-1].requested, doomed)

    def plan(self) -> bytes:
        files = {path: tuple(files) for path, files in self.doomed.items()}
        return encode_clean_plan(CleanPlan(CleanPolicy.VERSIONS, None, self.last, files), self.writer.root)

    def run(self) -> _Done:
        self.writer.storage.delete([path for paths in self.doomed.values() for path in paths])
        partitions = {
            path: CleanedPartition(tuple(each.rpartition("/")[2] for each in files))
            for path, files in self.doomed.items()
        }
        metadata = CleanMetadata(self.requested, 0, CleanPolicy.VERSIONS, "", self.last, partitions)
        return _Done(encode_clean(metadata), self.doomed)


def _old_files(writer: MetadataWriter, table: MetadataTable, partition: str) -> list[str]:
    view = table_view(writer.storage, writer.config, table.own_timeline, writer.store)
    # Old slices are not read any more, so nobody has to know whether they are whole.
    old = [each for group in view.stored_groups(partition) for each in group.slices[:-_SLICES_KEPT]]
    bases = [each.base.status.path for each in old if each.base]
    return bases + [log.status.path for each in old for log in each.logs]
