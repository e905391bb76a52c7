"""Compaction and cleaning of the metadata table, by the writer whose delta commit made them due.

    clean the slices before the last two ──> plan ──> a base file for each file group ──> completed file

It is due after ten delta commits, as in Hudi. A delta commit whose instant is pending in the table does not
count, and must not get into a base file; one that is pending itself may have claimed an earlier completion
time. So there is no compaction while there is one. The caller holds the table lock, so what is pending in the
metadata table belongs to a dead or stalled process: it is fenced and taken back. The lock is checked again
once the compaction is on the timeline: delta commits of others then complete after the compaction was
requested, and belong to the slices that it makes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

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
from drawstring.model.files import BaseFile, FileSlice, FileStatus, join_path
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
    _clean(writer, table)
    requested = service_time(writer.store, writer.config.layout, Suffix.COMPACTION)
    run = _Compaction(writer, table, requested, check)
    return run.requested if run.run() else None


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
class _Compaction:
    writer: MetadataWriter
    table: MetadataTable
    requested: str
    check: Callable[[], None]

    def run(self) -> bool:
        slices = [
            each for partition in self.table.ready for each in self.table.slices(partition) if each.logs
        ]
        if not slices:
            return False
        content = encode_compaction_plan(CompactionPlan(tuple(map(operation_of, slices))))
        instant = self.writer.begin(Action.COMPACTION, self.requested, content)
        self.check()
        stats = [self._rewrite(file_slice) for file_slice in slices]
        self.writer.storage.sync({each.partition for each in slices})
        self.writer.complete(instant, stats, {})
        _log.info("Compacted the metadata table at %s.", self.requested)
        return True

    def _rewrite(self, file_slice: FileSlice) -> WriteStat:
        name = BaseFile.name_of(file_slice.file_id, self.writer.new_token(), self.requested, ".hfile")
        path = join_path(file_slice.partition, name)
        write = self._write_list if kind_of(file_slice.partition) is Kind.FILES else self._write_merged
        records, size_bytes = write(file_slice, path, name)
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

    def _write_list(self, file_slice: FileSlice, path: str, name: str) -> tuple[int, int]:
        """Write the base file of the list of files; return the number of its records and its size."""
        listed = listed_in(self.table, file_slice)
        rows = rows_of(listed)
        content = encode_base_file(rows, name, self.writer.clock.now_ms())
        self.writer.storage.put(path, content)
        remember_listed(self.writer.storage, FileStatus(path, len(content)), listed)
        return rows.num_rows, len(content)

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


def _clean(writer: MetadataWriter, table: MetadataTable) -> None:
    """Delete the slices that compactions before the last but one replaced."""
    doomed = {partition: _old_files(writer, table, partition) for partition in table.ready}
    doomed = {partition: paths for partition, paths in doomed.items() if paths}
    if not doomed:
        return
    requested = service_time(writer.store, writer.config.layout, Suffix.CLEAN)
    last = writer.store.loaded.writes()[-1].requested
    plan = CleanPlan(CleanPolicy.VERSIONS, None, last, {path: tuple(files) for path, files in doomed.items()})
    content = encode_clean_plan(plan, writer.root)
    instant = writer.begin(Action.CLEAN, requested, content)
    writer.storage.delete([path for paths in doomed.values() for path in paths])
    writer.storage.sync(doomed)
    partitions = {
        path: CleanedPartition(tuple(each.rpartition("/")[2] for each in files))
        for path, files in doomed.items()
    }
    metadata = CleanMetadata(requested, 0, CleanPolicy.VERSIONS, "", last, partitions)
    writer.store.complete(instant, encode_clean(metadata))


def _old_files(writer: MetadataWriter, table: MetadataTable, partition: str) -> list[str]:
    view = table_view(writer.storage, writer.config, table.own_timeline, writer.store)
    # Old slices are not read any more, so nobody has to know whether they are whole.
    old = [each for group in view.stored_groups(partition) for each in group.slices[:-_SLICES_KEPT]]
    bases = [each.base.status.path for each in old if each.base]
    return bases + [log.status.path for each in old for log in each.logs]
