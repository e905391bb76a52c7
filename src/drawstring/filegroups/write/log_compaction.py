"""Log compaction of one file slice: merges its log blocks into one block of records and one of deletes.

The header `COMPACTED_BLOCK_TIMES` of the new blocks lists the instants whose blocks they replace; readers
skip those. The old log files stay until the slice is compacted and cleaned, because queries as of an earlier
time need them. Records keep their meta columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.clock import Stopwatch
from drawstring.base.errors import UnsupportedError
from drawstring.base.resources import BATCH_ROWS
from drawstring.config.table_config import TableConfig
from drawstring.filegroups.append_handle import LOG_WRITERS, LogContent, LogPart, LogTarget
from drawstring.filegroups.base_file_writer import FileSettings
from drawstring.filegroups.log_scanner import final_instants, open_logs
from drawstring.filegroups.read.log_records import LogRecords, merged_records
from drawstring.filegroups.read_task import InstantRange, LogReading, nullable
from drawstring.filegroups.sorted_merge import (
    AscendingKeys,
    has_sorted_runs,
    merged_log_records,
    sorted_deletes,
)
from drawstring.formats.log_inline import HeaderKey, LogBlock
from drawstring.merge.record_merger import merger_of
from drawstring.merge.record_version import Versions, combined_chunks, stored_ordering
from drawstring.model.commit import WriteStat
from drawstring.model.files import FileSlice
from drawstring.schema.fields import RECORD_KEY
from drawstring.storage.protocol import Storage


@dataclass(frozen=True, slots=True)
class LogRun:
    """What one write or log compaction left in the log files of a slice; a run of the LSM tree.

    Attributes:
        instant: of the write, or of the log compaction.
        files: names of its log files, and of those whose records it replaced.
        blocks: number of its data and delete blocks.
        size_bytes: bytes of these.
        is_partial: whether one of them has only some of the columns.
    """

    instant: str
    files: tuple[str, ...]
    blocks: int
    size_bytes: int
    is_partial: bool


def log_runs(
    storage: Storage, config: TableConfig, target: FileSlice, instants: InstantRange
) -> list[LogRun]:
    """Return the runs of a slice that a reader merges, in merge order, from the headers of its log blocks."""
    with open_logs(LogReading(storage, config, pa.schema([]), instants), target) as logs:
        merged = logs.blocks_to_merge(instants)
        finals = final_instants(logs.placed, instants)
        placed = logs.placed
    names: dict[str, dict[str, None]] = {}
    for each in placed:
        names.setdefault(finals.get(each.instant, ""), {})[each.file.status.name] = None
    blocks: dict[str, list[LogBlock]] = {}
    for each in merged:
        blocks.setdefault(each.instant, []).append(each.block)
    return [
        LogRun(
            instant,
            tuple(names[instant]),
            len(of_instant),
            sum(each.content_bytes for each in of_instant),
            any(each.is_partial for each in of_instant),
        )
        for instant, of_instant in blocks.items()
    ]


def reason_not_rewritable(config: TableConfig) -> str | None:
    """Return why merging the log blocks of the table among themselves would change their meaning, if so."""
    reasons = [
        (
            config.payload_rule is not None or not merger_of(config).can_merge_logs_alone,
            "merges records column by column or by a class of its own",
        ),
        (not config.populate_meta_fields, "has no meta columns (hoodie.populate.meta.fields)"),
    ]
    return next((reason for is_refused, reason in reasons if is_refused), None)


def check_rewritable(config: TableConfig) -> None:
    """Check that merging the log blocks of the table among themselves does not change their meaning.

    Raises:
        UnsupportedError: it would change; the message has the reason.
    """
    reason = reason_not_rewritable(config)
    if reason is not None:
        raise UnsupportedError(
            f"Log compaction of a table that {reason} is not supported by this release. Compact the table"
            " instead."
        )


def rewrite_logs(
    settings: FileSettings, storage: Storage, target: FileSlice, instants: InstantRange, write_token: str
) -> list[WriteStat]:
    """Write the merged log records of a slice as new log files.

    Args:
        settings: settings of the log compaction.
        storage: storage of the table.
        target: the slice.
        instants: the visible instants.
        write_token: write token of the task attempt.

    Returns:
        The statistics of each new file; those of the first tell what was merged.

    Raises:
        CorruptTableError: a log file is missing or damaged.
    """
    watch = Stopwatch()
    schema = nullable(settings.full_schema, tuple(settings.full_schema.names))
    write = LOG_WRITERS[settings.config.rules.log_format]
    with open_logs(LogReading(storage, settings.config, schema, instants), target) as logs:
        reading = logs.reading
        blocks = logs.blocks_to_merge(instants)
        times = sorted({each.instant for each in blocks})
        header = {HeaderKey.COMPACTED_BLOCK_TIMES: ",".join(times)}
        place = LogTarget(settings, storage, target, write_token, header)
        if has_sorted_runs(settings.config, target):
            merged = merged_log_records(reading, logs, blocks)
        else:
            merged = iter([merged_records(reading, [logs.read(each) for each in blocks])])
        first, *others = write(place, (_content(settings, each) for each in merged))
    first = replace(
        first,
        log_blocks=len(blocks),
        log_files_compacted=len(target.logs),
        log_size_compacted=sum(log.status.size_bytes for log in target.logs),
        seconds=watch.seconds(),
    )
    return [first, *others]


def _content(settings: FileSettings, merged: LogRecords) -> LogContent:
    versions = merged.versions
    records = versions.rows.filter(pa.array(~versions.is_delete))
    is_sorted = settings.config.has_sorted_files
    rows = records.select(settings.log_schema.names).combine_chunks()
    if is_sorted and not AscendingKeys().go_on(combined_chunks(rows.column(RECORD_KEY))):
        rows = rows.sort_by(RECORD_KEY)
    part = LogPart(settings, rows.to_batches(max_chunksize=BATCH_ROWS))
    # A record that came after a delete without ordering value is stored after that delete.
    numbers = np.flatnonzero(versions.is_delete | (merged.replaces & bool(versions.ordering)))
    deletes = replace(versions.take(numbers), is_commit_time_ordering_delete=merged.replaces[numbers])
    ordering: Sequence[pa.Array] | None = _delete_ordering(settings.config, deletes)
    keys, gone = combined_chunks(rows.column(RECORD_KEY)).cast(pa.string()), deletes.keys
    if is_sorted:
        gone, ordering = sorted_deletes(gone, ordering)
    return LogContent((part,) if part.rows else (), keys, gone, ordering)


def _delete_ordering(config: TableConfig, gone: Versions) -> list[pa.Array] | None:
    """Return the ordering values of deletes, null for those that win over all earlier versions."""
    columns = stored_ordering(gone.rows, config)
    if not columns:
        return None
    wins = pa.array(gone.is_commit_time_ordering_delete)
    return [pc.if_else(wins, pa.nulls(len(wins), each.type), each) for each in columns]
