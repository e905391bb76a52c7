"""Writer of inline log files: a file of a write has a data block and a delete block for each piece of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import pyarrow as pa

from drawstring.base.clock import Stopwatch
from drawstring.base.disk_errors import TABLE_DISK, disk_errors
from drawstring.filegroups.write.cliques import next_index
from drawstring.filegroups.write.log_content import (
    LogContent,
    LogPart,
    LogTarget,
    log_name,
    log_stat,
    row_summaries,
    with_records,
)
from drawstring.filegroups.write.settings import FileSettings
from drawstring.formats.avro.blocks import encode_datums
from drawstring.formats.log_index import LogKeys, encode_log_index
from drawstring.formats.log_inline import BlockType, HeaderKey, encode_block, encode_deletes
from drawstring.formats.parquet import encode_parquet_block
from drawstring.formats.parquet.summaries import RowSummaries
from drawstring.formats.record_positions import encode_bitmap
from drawstring.merge.order import Array
from drawstring.model.commit import Held, WriteStat
from drawstring.model.files import join_path
from drawstring.schema.evolve import conform_table
from drawstring.storage.protocol import Storage
from drawstring.timeline.instants import noted_in


@dataclass(frozen=True, slots=True)
class _Counts:
    """Bytes and records of a part of a file, or of all of it."""

    size_bytes: int = 0
    records: int = 0
    deletes: int = 0
    inserts: int | None = None

    def plus(self, other: _Counts) -> _Counts:
        known = [each.inserts for each in (self, other) if each.inserts is not None]
        return _Counts(
            self.size_bytes + other.size_bytes,
            self.records + other.records,
            self.deletes + other.deletes,
            sum(known) if known else None,
        )


def write_inline_log(target: LogTarget, pieces: Iterator[LogContent]) -> list[WriteStat]:
    """Write an inline log file.

    Args:
        target: where it is written.
        pieces: its records and deletes, in one or several pieces.

    Returns:
        The statistics of the file.
    """
    watch = Stopwatch()
    name, version = log_name(target)
    path = join_path(target.file_slice.partition, name)
    io_type = target.settings.config.rules.log_marker
    markers = target.settings.markers(target.storage)
    markers.create(path, io_type)
    summaries = row_summaries(target.settings)
    parts = (_part(target, *each) for each in _with_index(target, _noted(pieces, summaries), name))
    counts = _put(target.storage, path, parts)
    markers.confirm(path, io_type, may_be_planned=lambda: _may_be_planned(target))
    stat = with_records(log_stat(target, name, version), counts.records, counts.inserts)
    held = None if summaries is None else Held(summaries.finished())
    stat = replace(stat, num_deletes=counts.deletes, size_bytes=counts.size_bytes, held=held)
    return [replace(stat, seconds=watch.seconds())]


def _noted(pieces: Iterator[LogContent], summaries: RowSummaries | None) -> Iterator[LogContent]:
    """Yield the pieces, and tell their records to summaries."""
    for each in pieces:
        if summaries is not None:
            for part in each.parts:
                summaries.add(part.batches)
        yield each


def _may_be_planned(target: LogTarget) -> bool:
    """Return whether a compaction may need a log file of a write that others rolled back.

    In version 6 a rolled back log file stays, beside a command block, and a plan may include it.
    """
    config = target.settings.config
    if not target.may_be_planned or not config.rules.names_logs_by_slice:
        return False
    listed = target.storage.list_files(config.timeline_folder)
    return target.settings.instant in noted_in(status.name for status in listed)


def _put(storage: Storage, path: str, parts: Iterator[tuple[bytes, _Counts]]) -> _Counts:
    """Write a file: a single part at once, several parts as a stream."""
    first = next(parts)
    second = next(parts, None)
    if second is None:
        storage.put(path, first[0])
        return first[1]
    total = _Counts()
    with disk_errors(TABLE_DISK, path), storage.create(path) as file:
        for content, counts in chain((first, second), parts):
            file.write(content)
            total = total.plus(counts)
    return total


def _part(target: LogTarget, content: LogContent, entries: Mapping[str, str] | None) -> tuple[bytes, _Counts]:
    data = b"".join(_blocks(target, content, entries))
    known = [part.inserts for part in content.parts if part.inserts is not None]
    records = sum(part.rows for part in content.parts)
    return data, _Counts(len(data), records, len(content.delete_keys), sum(known) if known else None)


def _with_index(
    target: LogTarget, pieces: Iterator[LogContent], name: str
) -> Iterator[tuple[LogContent, Mapping[str, str] | None]]:
    """Yield the pieces; the last one with the index for the footer, if log files carry one."""
    settings = target.settings
    if not settings.clique_files:
        yield from ((each, None) for each in pieces)
        return
    keys = LogKeys()
    waiting: LogContent | None = None
    for each in pieces:
        if waiting is not None:
            yield waiting, None
        keys.add(each.record_keys)
        keys.add(each.delete_keys)
        waiting = each
    if waiting is not None:
        logs = target.file_slice.logs
        index = next_index(target.storage, logs, name, keys.summary(), settings.clique_files)
        yield waiting, encode_log_index(index)


def _blocks(target: LogTarget, content: LogContent, entries: Mapping[str, str] | None) -> list[bytes]:
    """Return the encoded blocks of a piece.

    With an index, the file ends in a Parquet block, whose footer holds the index. In a log compaction deletes
    come first, since a record of the same key came after its delete; else no key is in both.
    """
    settings, parts = target.settings, list(content.parts)
    deletes = []
    if len(content.delete_keys):
        ordering = _ordering_values(content.delete_ordering)
        encoded = encode_deletes(content.delete_keys, target.file_slice.partition, ordering)
        header = _positioned(target, target.block_header, content.delete_positions)
        deletes.append(encode_block(BlockType.DELETE, header, encoded))
    if entries is None:
        records = [_data_block(target, part) for part in parts]
        is_compaction = HeaderKey.COMPACTED_BLOCK_TIMES in target.header
        return [*deletes, *records] if is_compaction else [*records, *deletes]
    last = LogPart(settings, [])
    if parts and settings.log_format != "avro":
        last = parts.pop()
    blocks = [_data_block(target, part) for part in parts]
    return [*deletes, *blocks, _parquet_block(last.settings, target.data_header(last), last.batches, entries)]


def _positioned(
    target: LogTarget, header: dict[HeaderKey, str], positions: Array | None
) -> dict[HeaderKey, str]:
    """Add the positions of records to the headers of a block; they ascend."""
    return header if positions is None else header | target.position_header(encode_bitmap(positions))


def _ordering_values(columns: Sequence[pa.Array] | None) -> pa.Array | None:
    """Return the ordering values as one column, a struct if there are several columns."""
    if columns is None or len(columns) == 1:
        return columns[0] if columns else None
    return pa.StructArray.from_arrays(columns, names=[str(number) for number in range(len(columns))])


def _data_block(target: LogTarget, part: LogPart) -> bytes:
    """Encode records as a data block, in the format of the settings."""
    settings, header = part.settings, _positioned(target, target.data_header(part), part.positions)
    if settings.log_format != "avro":
        return _parquet_block(settings, header, part.batches)
    table = conform_table(pa.Table.from_batches(part.batches), settings.log_schema).combine_chunks()
    content = encode_datums(table.to_batches()[0], settings.log_avro_schema)
    return encode_block(BlockType.AVRO_DATA, header, content)


def _parquet_block(
    settings: FileSettings,
    header: Mapping[HeaderKey, str],
    batches: list[pa.RecordBatch],
    entries: Mapping[str, str] | None = None,
) -> bytes:
    schema = settings.log_schema
    content = encode_parquet_block(
        batches,
        schema,
        settings.log_avro_schema,
        settings.compression,
        entries,
        shared=settings.log_encodings(schema),
    )
    return encode_block(BlockType.PARQUET_DATA, header, content)
