"""Log compaction of the metadata table: one or two log files in place of many, between two compactions.

    log files of a file group ──> merged, part by part ──> a delete block and a data block for each part,
                                                           or a native file of deletes and one of records
                                                           header: the instants whose blocks they replace

It is a delta commit with a plan, as in Hudi: `logcompaction.requested`, `logcompaction.inflight`,
`deltacommit`. The log files that it replaces stay as long as their slice. Its records take the place of the
newest of them, so none of another delta commit may be in between: it waits where a compaction waits.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from drawstring.base.disk_errors import TABLE_DISK, disk_errors
from drawstring.filegroups.write.log_compaction import LogRun, log_runs
from drawstring.formats.hfile.writer import Sink
from drawstring.formats.log_inline import HeaderKey
from drawstring.formats.metadata.commit import encode_compaction_plan
from drawstring.metadata.compaction.base_files import has_to_wait, later_delta_commits, operation_of
from drawstring.metadata.layouts.log_formats import LOG_SINKS, LogTarget
from drawstring.metadata.layouts.log_places import LogPlaces
from drawstring.metadata.layouts.own_times import Suffix, service_time
from drawstring.metadata.maintained.files import rows_of
from drawstring.metadata.merging import mentioned_files, removed_keys
from drawstring.metadata.metadata_table import MetadataTable
from drawstring.metadata.partitions import Kind, kind_of
from drawstring.metadata.stored.merged import logged_parts
from drawstring.metadata.stored.rows import read_rows
from drawstring.metadata.writer import MetadataWriter
from drawstring.model.commit import WriteOperation, WriteStat
from drawstring.model.files import FileSlice, join_path
from drawstring.model.instant import Action, time_of
from drawstring.model.plans import CompactionPlan
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline

_BLOCK_BYTES: Final = 32 << 20
"""Bytes of records from which on a block ends."""

_log = logging.getLogger("drawstring")

_Part = tuple[pa.Table, pa.Array]


def is_log_compaction_due(store: TimelineStore, blocks: int) -> bool:
    """Return whether enough delta commits followed the last compaction and the last log compaction.

    Args:
        store: timeline of the metadata table, which is loaded.
        blocks: number of delta commits that are enough.
    """
    later = sorted(later_delta_commits(store.loaded), key=time_of)
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
    places: LogPlaces

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
        if held_bytes >= _BLOCK_BYTES:
            yield _joined(held)
            held, held_bytes = [], 0
    if held:
        yield _joined(held)


def _joined(parts: list[_Part]) -> _Part:
    keys = pa.concat_arrays([removed for _, removed in parts])
    return pa.concat_tables([rows for rows, _ in parts]), keys
