"""Writer of log files: one log file per delta commit and slice, with data blocks and delete blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.clock import Stopwatch
from drawstring.base.disk_errors import TABLE_DISK, disk_errors
from drawstring.filegroups.write.changes import ACTION, Changes, RowAction
from drawstring.filegroups.write.cliques import next_index
from drawstring.filegroups.write.markers import Markers
from drawstring.filegroups.write.meta_columns import MetaColumnWriter
from drawstring.filegroups.write.settings import FileSettings
from drawstring.formats.avro.blocks import encode_datums
from drawstring.formats.log_index import LogKeys, encode_log_index
from drawstring.formats.log_inline.blocks import BlockType, HeaderKey, encode_block
from drawstring.formats.log_inline.deletes import encode_deletes
from drawstring.formats.parquet import encode_parquet_block
from drawstring.formats.parquet.summaries import RowSummaries
from drawstring.merge.versions import flat
from drawstring.model.commit import Held, WriteStat
from drawstring.model.files import FileSlice, LogFile, TaskContext, join_path
from drawstring.schema.meta import RECORD_KEY
from drawstring.storage.protocol import Storage
from drawstring.timeline.instants import noted_in

Header: TypeAlias = Mapping[HeaderKey, str]
BlockRows: TypeAlias = tuple[FileSettings, list[pa.RecordBatch]]


def append_log(
    settings: FileSettings,
    storage: Storage,
    target: FileSlice,
    changes: Iterable[Changes],
    meta_columns: MetaColumnWriter,
    context: TaskContext,
) -> WriteStat:
    """Write the changes of one file group as a new log file.

    Args:
        settings: settings of the write.
        storage: storage of the table.
        target: the slice that the changes belong to.
        changes: one record or delete per key, in one or several pieces.
        meta_columns: writes the meta columns.
        context: the task attempt.

    Returns:
        The statistics; the file is in the partition of the slice.
    """
    watch = Stopwatch()
    name, version = next_log(settings, target, context.write_token)
    path = join_path(target.partition, name)
    io_type = settings.config.rules.log_marker
    markers = Markers(storage, settings.instant)
    markers.create(path, io_type)
    pieces = _with_index(settings, storage, target, changes, name)
    summaries = _summaries(settings)
    parts = _encoded(settings, target, pieces, partial(_data, settings, target, meta_columns, summaries))
    size_bytes, records, deletes = _put(storage, path, parts)
    markers.confirm(path, io_type, may_be_planned=lambda: _may_be_planned(settings, storage))
    stat = log_stat(target, name, version, records, deletes)
    if settings.logs_named_by:
        stat = replace(
            stat, prev_commit=settings.instant
        )  # marks a dual-write copy: `filegroups.view.missing_files`
    held = None if summaries is None else Held(summaries.finished())
    return replace(stat, size_bytes=size_bytes, seconds=watch.seconds(), held=held)


def _summaries(settings: FileSettings) -> RowSummaries | None:
    """Return what makes the summaries of a log file; None if it gets no statistics."""
    if settings.partial or not settings.summarized:
        return None
    return RowSummaries(settings.summarized, settings.log_schema)


def _may_be_planned(settings: FileSettings, storage: Storage) -> bool:
    """Return whether a compaction may need a log file of a write that others rolled back.

    In version 6 a rolled back log file stays, beside a command block, and a plan may include it.
    """
    if not settings.config.rules.names_logs_by_slice:
        return False
    listed = storage.list_files(settings.config.timeline_folder)
    return settings.instant in noted_in(status.name for status in listed)


def log_stat(target: FileSlice, name: str, version: int, records: int, deletes: int) -> WriteStat:
    """Return the statistics of a new log file, without size and duration.

    Args:
        target: the slice of the file.
        name: name of the file.
        version: log version in the name.
        records: number of records in it.
        deletes: number of deletes in it.
    """
    return WriteStat(
        partition=target.partition,
        file_id=target.file_id,
        path=join_path(target.partition, name),
        prev_commit=target.base_instant,
        num_writes=records,
        num_updates=records,
        num_deletes=deletes,
        base_file=target.base.status.name if target.base else "",
        log_version=version,
        log_files=(*(log.status.name for log in target.logs), name),
    )


def _put(storage: Storage, path: str, parts: Iterator[tuple[bytes, int, int]]) -> tuple[int, int, int]:
    """Write a file: a single part at once, several parts as a stream.

    Args:
        storage: the table's.
        path: path of the file.
        parts: content, number of records and number of deletes of each part; at least one part.

    Returns:
        The total numbers of bytes, records and deletes.
    """
    first = next(parts)
    second = next(parts, None)
    if second is None:
        storage.put(path, first[0])
        return len(first[0]), first[1], first[2]
    size_bytes = records = deletes = 0
    with disk_errors(TABLE_DISK, path), storage.create(path) as file:
        for content, *counts in chain((first, second), parts):
            file.write(content)
            size_bytes += len(content)
            records += counts[0]
            deletes += counts[1]
    return size_bytes, records, deletes


def next_log(settings: FileSettings, target: FileSlice, write_token: str) -> tuple[str, int]:
    """Return the name and the log version of the next log file of a slice.

    A name without the instant of the write gets its time of day (HHmmssSSS) as the stage of the write token:
    a writer that stalled, and resumes after others went on, must not overwrite a log file of theirs.
    """
    if not settings.config.rules.names_logs_by_slice and not settings.logs_named_by:
        return LogFile.name_of(target.file_id, settings.instant, 1, write_token), 1
    instant = settings.logs_named_by or target.base_instant
    version = max((log.version for log in target.logs if log.instant == instant), default=0) + 1
    task, _, attempt = write_token.split("-")
    own_token = f"{task}-{int(settings.instant[-9:])}-{attempt}"
    return LogFile.name_of(target.file_id, instant, version, own_token), version


def _with_index(
    settings: FileSettings, storage: Storage, target: FileSlice, changes: Iterable[Changes], name: str
) -> Iterator[tuple[Changes, Mapping[str, str] | None]]:
    """Yield the pieces; the last one with the index for the footer, if log files carry one."""
    if not settings.clique_files:
        yield from ((each, None) for each in changes)
        return
    keys = LogKeys()
    waiting: Changes | None = None
    for each in changes:
        if waiting is not None:
            yield waiting, None
        keys.add(flat(each.records.column(RECORD_KEY)).cast(pa.string()))
        keys.add(each.delete_keys)
        waiting = each
    if waiting is not None:
        index = next_index(storage, target.logs, name, keys.summary(), settings.clique_files)
        yield waiting, encode_log_index(index)


def _encoded(
    settings: FileSettings,
    target: FileSlice,
    pieces: Iterable[tuple[Changes, Mapping[str, str] | None]],
    data_of: Callable[[Changes], list[BlockRows]],
) -> Iterator[tuple[bytes, int, int]]:
    """Yield the content of each piece, and its numbers of records and deletes."""
    for each, entries in pieces:
        blocks = _blocks(settings, target, each, data_of(each), entries)
        yield b"".join(blocks), each.records.num_rows, len(each.delete_keys)


def _data(
    settings: FileSettings,
    target: FileSlice,
    meta_columns: MetaColumnWriter,
    summaries: RowSummaries | None,
    changes: Changes,
) -> list[BlockRows]:
    """Return the rows of each data block of a piece, with meta columns, and tell them to summaries."""
    records = changes.records.sort_by(RECORD_KEY) if settings.clique_files else changes.records
    data = [
        (
            part,
            [
                meta_columns.apply(each, target.file_id).select(part.log_schema.names)
                for each in rows.to_batches()
            ],
        )
        for part, rows in _parts(settings, records)
        if rows.num_rows
    ]
    if summaries is not None:
        for _, batches in data:
            summaries.add(batches)
    return data


def _blocks(
    settings: FileSettings,
    target: FileSlice,
    changes: Changes,
    data: list[BlockRows],
    entries: Mapping[str, str] | None,
) -> list[bytes]:
    """Return the encoded blocks of a piece.

    With an index, the file ends in a Parquet block, whose footer holds the index, and its records are sorted
    by key. No key is in both the records and the deletes, so the order of the blocks does not matter.
    """
    header = {HeaderKey.INSTANT_TIME: settings.instant, HeaderKey.SCHEMA: settings.avro_schema}
    deletes = []
    if len(changes.delete_keys):
        ordering = ordering_values(changes.delete_ordering)
        content = encode_deletes(changes.delete_keys, target.partition, ordering)
        deletes.append(encode_block(BlockType.DELETE, header, content))
    if entries is None:
        return [*(data_block(part, _data_header(part), batches) for part, batches in data), *deletes]
    last: BlockRows = (settings, [])
    if data and settings.log_format != "avro":
        last = data.pop()
    blocks = [data_block(part, _data_header(part), batches) for part, batches in data]
    return [*deletes, *blocks, _parquet_block(last[0], _data_header(last[0]), last[1], entries)]


def _parts(settings: FileSettings, records: pa.Table) -> list[tuple[FileSettings, pa.Table]]:
    """Return the records of each block: partial updates with only their columns, new records with all."""
    if not settings.partial or ACTION not in records.column_names:
        return [(settings, records)]
    is_new = pc.equal(records.column(ACTION), RowAction.INSERT)
    whole = replace(settings, partial=())
    return [(settings, records.filter(pc.invert(is_new))), (whole, records.filter(is_new))]


def _data_header(settings: FileSettings) -> Header:
    header = {HeaderKey.INSTANT_TIME: settings.instant, HeaderKey.SCHEMA: settings.log_avro_schema}
    return {**header, HeaderKey.IS_PARTIAL: "true"} if settings.partial else header


def ordering_values(columns: list[pa.Array] | None) -> pa.Array | None:
    """Return the ordering values as one column, a struct if there are several columns."""
    if columns is None or len(columns) == 1:
        return columns[0] if columns else None
    return pa.StructArray.from_arrays(columns, names=[str(number) for number in range(len(columns))])


def data_block(settings: FileSettings, header: Header, batches: list[pa.RecordBatch]) -> bytes:
    """Encode rows with their meta columns as a data block, in the format of the settings."""
    if settings.log_format != "avro":
        return _parquet_block(settings, header, batches)
    table = pa.Table.from_batches(batches).cast(settings.log_schema).combine_chunks()
    return encode_block(
        BlockType.AVRO_DATA, header, encode_datums(table.to_batches()[0], settings.log_avro_schema)
    )


def _parquet_block(
    settings: FileSettings,
    header: Header,
    batches: list[pa.RecordBatch],
    entries: Mapping[str, str] | None = None,
) -> bytes:
    content = encode_parquet_block(
        batches, settings.log_schema, settings.log_avro_schema, settings.compression, entries
    )
    return encode_block(BlockType.PARQUET_DATA, header, content)
