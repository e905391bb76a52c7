"""Log compaction of one file slice: merges its log blocks into one new log file.

The header `COMPACTED_BLOCK_TIMES` of the new blocks lists the instants whose blocks they replace; readers
skip those. The old log files stay until the slice is compacted and cleaned, because queries as of an earlier
time need them. Records keep their meta columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.bounds import BATCH_ROWS
from drawstring.base.clock import Stopwatch
from drawstring.base.errors import UnsupportedError
from drawstring.config.table.config import TableConfig
from drawstring.filegroups.read.log_records import (
    LogReading,
    LogRecords,
    merged_records,
    open_logs,
)
from drawstring.filegroups.read.tasks import InstantRange, nullable
from drawstring.filegroups.write.log_writer import data_block, log_stat, next_log, ordering_values
from drawstring.filegroups.write.markers import Markers
from drawstring.filegroups.write.settings import FileSettings
from drawstring.formats.log_inline.blocks import BlockType, HeaderKey, encode_block
from drawstring.formats.log_inline.deletes import encode_deletes
from drawstring.merge.record_mergers import merger_of
from drawstring.merge.versions import Versions, flat, ordering_fields
from drawstring.model.commit import WriteStat
from drawstring.model.files import FileSlice, join_path
from drawstring.storage.protocol import Storage


@dataclass(frozen=True, slots=True)
class LogBlockStats:
    """Block counts of the log files of a slice.

    Attributes:
        blocks: number of data and delete blocks that a reader merges.
        writes: number of writes that wrote them.
        is_partial: whether one of them has only some of the columns.
    """

    blocks: int
    writes: int
    is_partial: bool


def log_block_stats(
    storage: Storage, config: TableConfig, target: FileSlice, instants: InstantRange
) -> LogBlockStats:
    """Return the block counts of a slice from the headers of its log blocks."""
    with open_logs(LogReading(storage, config, pa.schema([]), instants), target) as logs:
        blocks = logs.blocks_to_merge(instants)
    is_partial = any(each.block.is_partial for each in blocks)
    return LogBlockStats(len(blocks), len({each.instant for each in blocks}), is_partial)


def check_rewritable(config: TableConfig) -> None:
    """Check that merging the log blocks of the table among themselves does not change their meaning.

    Raises:
        UnsupportedError: it would change; the message has the reason.
    """
    reasons = [
        (
            config.payload_rule is not None or not merger_of(config).can_merge_logs_alone,
            "merges records column by column or by a class of its own",
        ),
        (not config.populate_meta_fields, "has no meta columns (hoodie.populate.meta.fields)"),
    ]
    for refused, reason in reasons:
        if refused:
            raise UnsupportedError(
                f"Log compaction of a table that {reason} is not supported by this release. Compact the"
                " table instead."
            )


def rewrite_logs(
    settings: FileSettings, storage: Storage, target: FileSlice, instants: InstantRange, write_token: str
) -> WriteStat:
    """Write the merged log records of a slice as a new log file.

    Args:
        settings: settings of the log compaction.
        storage: storage of the table.
        target: the slice.
        instants: the visible instants.
        write_token: write token of the task attempt.

    Returns:
        The statistics of the new file.

    Raises:
        CorruptTableError: a log file is missing or damaged.
    """
    watch = Stopwatch()
    schema = nullable(settings.full_schema, tuple(settings.full_schema.names))
    reading = LogReading(storage, settings.config, schema, instants)
    with open_logs(reading, target) as logs:
        blocks = logs.blocks_to_merge(instants)
        merged = merged_records(reading, [logs.read(each) for each in blocks])
    times = sorted({each.instant for each in blocks})
    content = _encoded(settings, target, merged, times)
    name, version = next_log(settings, target, write_token)
    path = join_path(target.partition, name)
    io_type = settings.config.rules.log_marker
    markers = Markers(storage, settings.instant)
    markers.create(path, io_type)
    storage.put(path, content)
    markers.confirm(path, io_type)
    deletes = int(np.count_nonzero(merged.versions.is_delete))
    return replace(
        log_stat(target, name, version, len(merged.versions.keys) - deletes, deletes),
        size_bytes=len(content),
        log_blocks=len(blocks),
        log_files_compacted=len(target.logs),
        log_size_compacted=sum(log.status.size_bytes for log in target.logs),
        seconds=watch.seconds(),
    )


def _encoded(settings: FileSettings, target: FileSlice, merged: LogRecords, times: list[str]) -> bytes:
    header = {
        HeaderKey.INSTANT_TIME: settings.instant,
        HeaderKey.SCHEMA: settings.avro_schema,
        HeaderKey.COMPACTED_BLOCK_TIMES: ",".join(times),
    }
    versions = merged.versions
    parts = []
    records = versions.rows.filter(pa.array(~versions.is_delete))
    if records.num_rows:
        rows = records.select(settings.log_schema.names).combine_chunks()
        parts.append(data_block(settings, header, rows.to_batches(max_chunksize=BATCH_ROWS)))
    deleted = np.flatnonzero(versions.is_delete)
    if len(deleted):
        deletes = versions.take(deleted)
        content = encode_deletes(deletes.keys, target.partition, _delete_ordering(settings.config, deletes))
        parts.append(encode_block(BlockType.DELETE, header, content))
    return b"".join(parts)


def _delete_ordering(config: TableConfig, gone: Versions) -> pa.Array | None:
    """Return the ordering values of deletes, null for those that win over all earlier versions."""
    names = [name for name in ordering_fields(config) if name in gone.rows.column_names]
    if not names:
        return None
    wins = pa.array(gone.is_commit_time_ordering_delete)
    columns = [flat(gone.rows.column(name)) for name in names]
    return ordering_values([pc.if_else(wins, pa.nulls(len(wins), each.type), each) for each in columns])
