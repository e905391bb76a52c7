"""Compact and clean the metadata table, by the writer whose delta commit made them due.

    plans ──┬── clean the slices before the last two ──┬── completed files
            └── a base file for each file group ───────┘

Compaction and clean run together, so that one flush serves both. They are due after ten delta commits, as
in Hudi.

A compaction waits while a delta commit is pending, or its instant is pending in the table. A delta commit
whose instant is pending in the table does not count, and must not get into a base file. A pending delta
commit may have claimed an earlier completion time.

The caller holds the table lock, so what is pending in the metadata table belongs to a dead or stalled
process: it is fenced and rolled back. The compaction checks the lock again once it is on the timeline.
Delta commits of others then complete after the compaction was requested, and belong to the slices that it
makes.

Log compaction puts one or two log files in place of many, between two compactions:

    log files of a file group ──> merged, part by part ──> a delete block and a data block for each part,
                                                           or a native file of deletes and one of records
                                                           header: the instants whose blocks they replace

A log compaction is a delta commit with a plan, as in Hudi: `logcompaction.requested`,
`logcompaction.inflight`, `deltacommit`. The log files that it replaces stay as long as their slice. Its
records take the place of the newest of these log files, so no other delta commit may be in between: it
waits where a compaction waits.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, Protocol

import pyarrow as pa

from drawstring.base import limits
from drawstring.base.errors import TABLE_DISK, disk_errors
from drawstring.base.text_format import log_level_of
from drawstring.filegroups.file_system_view import table_view
from drawstring.filegroups.write.log_compaction import LogRun, log_runs
from drawstring.formats.hfile.writer import Sink
from drawstring.formats.log_inline import HeaderKey
from drawstring.formats.metadata.commit import encode_compaction_plan
from drawstring.formats.metadata.plans import encode_clean, encode_clean_plan
from drawstring.metadata.instant_times import Suffix, last_delta_commit, service_time
from drawstring.metadata.log_format import encode_base_file, write_base_file
from drawstring.metadata.merging import mentioned_files, removed_keys
from drawstring.metadata.partitions.files import rows_of
from drawstring.metadata.reader import logged_parts, merged_parts, read_rows
from drawstring.metadata.record_tables import listed_in, remember_listed
from drawstring.metadata.table import Kind, MetadataTable, kind_of
from drawstring.metadata.writer import LOG_SINKS, LogFileLocator, LogTarget, MetadataWriter
from drawstring.model.commit import WriteOperation, WriteStat
from drawstring.model.files import HFILE, BaseFile, FileSlice, FileStatus, join_path
from drawstring.model.instant import WRITE_ACTIONS, Action, Instant, time_of
from drawstring.model.plans import (
    CleanedPartition,
    CleanMetadata,
    CleanPlan,
    CleanPolicy,
    CompactionOperation,
    CompactionPlan,
    slice_metrics,
)
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline

_SLICES_KEPT: Final = 2
"""Number of slices of a file group that a clean leaves; readers may still read the older one."""

_END_OF_TIME: Final = "9"

_log = logging.getLogger("drawstring")


def delta_commits_since_compaction(own: Timeline) -> list[Instant]:
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


def warn_of_waiting(table: MetadataTable, timeline: Timeline, delta_commits: int) -> None:
    """Warn, once for each pending action, that a compaction waits for it.

    Hudi fails the write then. It is committed when the compaction is due, and failing would finish nothing.

    Args:
        table: the metadata table.
        timeline: timeline of the table.
        delta_commits: number from which on there is a warning.
    """
    count = len(delta_commits_since_compaction(table.own_timeline))
    if count < delta_commits or not has_to_wait(table, timeline):
        return
    uri, oldest = table.storage.spec.uri, min(timeline.pending(), key=lambda each: each.requested)
    _log.log(
        log_level_of(uri, str(oldest.action), oldest.requested),
        "The metadata table %s has %d delta commits since its last compaction, which waits for the %s %s, and"
        " readers open a log file for each. Finish that action, or roll it back (`drawstring services"
        " rollback`).",
        uri,
        count,
        oldest.action,
        oldest.requested,
    )


@dataclass(frozen=True, slots=True)
class _ServiceResult:
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

    def run(self) -> _ServiceResult:
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

    def run(self) -> _ServiceResult:
        lists: dict[str, bytes] = {}
        stats = [self._rewrite(file_slice, lists) for file_slice in self.slices]
        content = self.writer.encoded_commit(self.action, stats, {})
        return _ServiceResult(content, {each.partition for each in self.slices}, lists)

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
    expired: Mapping[str, Sequence[str]]

    action: ClassVar[Action] = Action.CLEAN

    @staticmethod
    def of(writer: MetadataWriter, table: MetadataTable) -> _Cleaning | None:
        expired = {partition: _old_files(writer, table, partition) for partition in table.ready}
        expired = {partition: paths for partition, paths in expired.items() if paths}
        if not expired:
            return None
        requested = service_time(writer.store, writer.config.layout, Suffix.CLEAN)
        return _Cleaning(writer, requested, writer.store.loaded.writes()[-1].requested, expired)

    def plan(self) -> bytes:
        files = {path: tuple(files) for path, files in self.expired.items()}
        return encode_clean_plan(CleanPlan(CleanPolicy.VERSIONS, None, self.last, files), self.writer.root)

    def run(self) -> _ServiceResult:
        self.writer.storage.delete([path for paths in self.expired.values() for path in paths])
        partitions = {
            path: CleanedPartition(tuple(each.rpartition("/")[2] for each in files))
            for path, files in self.expired.items()
        }
        metadata = CleanMetadata(self.requested, 0, CleanPolicy.VERSIONS, "", self.last, partitions)
        return _ServiceResult(encode_clean(metadata), self.expired)


def _old_files(writer: MetadataWriter, table: MetadataTable, partition: str) -> list[str]:
    view = table_view(writer.storage, writer.config, table.own_timeline, writer.store)
    # Old slices are not read any more, so nobody has to know whether they are whole.
    old = [each for group in view.stored_groups(partition) for each in group.slices[:-_SLICES_KEPT]]
    bases = [each.base.status.path for each in old if each.base]
    return bases + [log.status.path for each in old for log in each.logs]


_Part = tuple[pa.Table, pa.Array]


def is_log_compaction_due(store: TimelineStore, blocks: int) -> bool:
    """Return whether enough delta commits followed the last compaction and the last log compaction.

    Args:
        store: timeline of the metadata table, which is loaded.
        blocks: number of delta commits that are enough.
    """
    later = sorted(delta_commits_since_compaction(store.loaded), key=time_of)
    newest = later[-blocks:]
    return len(later) >= blocks and not any(
        store.commit_metadata(each).operation == WriteOperation.LOG_COMPACT for each in newest
    )


def compact_logs(
    writer: MetadataWriter, table: MetadataTable, timeline: Timeline, blocks: int, check: Callable[[], None]
) -> str | None:
    """Compact the log files of the metadata table.

    Args:
        writer: of the metadata table, under the table lock.
        table: the metadata table as it is now.
        timeline: timeline of the table.
        blocks: number of delta commits with log blocks that make it due in a file group.
        check: makes sure that the table lock is still held.

    Returns:
        The requested time of the log compaction; None if there is nothing to do, or it has to wait.

    Raises:
        ConflictError: the table lock was lost.
    """
    if has_to_wait(table, timeline):
        return None
    writer.take_back_services(table.own_timeline)
    chosen = [(each, runs) for each, runs in _with_runs(table, blocks) if len(runs) >= blocks]
    if not chosen:
        return None
    requested = service_time(writer.store, writer.config.layout, Suffix.LOG_COMPACTION)
    plan = CompactionPlan(tuple(operation_of(each) for each, _ in chosen))
    content = encode_compaction_plan(plan, is_log_compaction=True)
    instant = writer.begin(Action.LOG_COMPACTION, requested, content)
    check()
    run = _LogCompaction(writer, table, requested, writer.places())
    stats = [stat for each, runs in chosen for stat in run.rewrite(each, runs)]
    writer.storage.sync({each.partition for each, _ in chosen})
    writer.complete(instant, stats, {})
    _log.info("Compacted the log files of the metadata table at %s.", requested)
    return requested


def _with_runs(table: MetadataTable, blocks: int) -> Iterator[tuple[FileSlice, list[LogRun]]]:
    """Yield the slices with many log files, and what each delta commit left in them."""
    for partition in table.ready:
        for each in table.slices(partition):
            if len(each.logs) >= blocks:
                yield each, log_runs(table.storage, table.config, each, table.instants)


@dataclass(frozen=True, slots=True)
class _LogCompaction:
    writer: MetadataWriter
    table: MetadataTable
    requested: str
    places: LogFileLocator

    def rewrite(self, file_slice: FileSlice, runs: list[LogRun]) -> list[WriteStat]:
        """Write the log files of a file group."""
        writer, partition, file_id = self.writer, file_slice.partition, file_slice.file_id
        place, now_ms = self.places.of(self.requested, partition, file_id), writer.clock.now_ms()
        header = {HeaderKey.COMPACTED_BLOCK_TIMES: ",".join(sorted(run.instant for run in runs))}
        target = LogTarget(partition, file_id, self.requested, place, writer.new_token(), now_ms, header)
        with ExitStack() as files:

            def create(name: str) -> Sink:
                path = join_path(partition, name)
                files.enter_context(disk_errors(TABLE_DISK, path))
                file: Sink = files.enter_context(writer.storage.create(path))
                return file

            sink = LOG_SINKS[writer.config.rules.log_format](target, create)
            for part in self._parts(file_slice):
                sink.add(*part)
            logs = sink.close()
        stats: list[WriteStat] = []
        for log in logs:
            stat = target.stat_of(log, [each.path.rpartition("/")[2] for each in stats])
            stats.append(_with_inputs(stat, file_slice, runs))
        return stats

    def _parts(self, file_slice: FileSlice) -> Iterator[_Part]:
        kind = kind_of(file_slice.partition)
        if kind is Kind.FILES:
            rows = read_rows(self.table, replace(file_slice, base=None), kind)
            yield rows_of(mentioned_files(rows)), removed_keys(rows)
        else:
            yield from _gathered(logged_parts(self.table, file_slice, kind))


def _with_inputs(stat: WriteStat, file_slice: FileSlice, runs: Sequence[LogRun]) -> WriteStat:
    """Return the statistics of a log file with what it was made of."""
    return replace(
        stat,
        log_blocks=sum(run.blocks for run in runs),
        log_files_compacted=len(file_slice.logs),
        log_size_compacted=sum(log.status.size_bytes for log in file_slice.logs),
    )


def _gathered(parts: Iterator[_Part]) -> Iterator[_Part]:
    """Yield parts in few larger ones."""
    held: list[_Part] = []
    held_bytes = 0
    for part in parts:
        held.append(part)
        held_bytes += part[0].nbytes + part[1].nbytes
        if held_bytes >= limits.in_force.metadata_block_bytes:
            yield _joined(held)
            held, held_bytes = [], 0
    if held:
        yield _joined(held)


def _joined(parts: list[_Part]) -> _Part:
    keys = pa.concat_arrays([removed for _, removed in parts])
    return pa.concat_tables([rows for rows, _ in parts]), keys
