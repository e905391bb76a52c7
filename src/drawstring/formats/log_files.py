"""Log files of either format: their blocks, and what these hold.

    inline   a sequence of blocks; by the name, unless the content is a Parquet file    `log_inline`
    native   the file is one block                                                      `log_native`

Readers and services know blocks alone, and both formats may be in one file slice.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from drawstring.base import limits
from drawstring.base.errors import REPAIR, CorruptTableError
from drawstring.formats.avro.blocks import decode_datums, iter_datums
from drawstring.formats.filter import ALL_ROWS, LogRowSelection
from drawstring.formats.hfile import HFileReader, read_hfile_records
from drawstring.formats.log_inline import (
    BlockType,
    DeleteRecords,
    LogBlock,
    decode_deletes,
    read_content,
    scan_blocks,
)
from drawstring.formats.log_native import MAGIC, NativeBlock, native_block, native_deletes, native_rows
from drawstring.formats.parquet import ParquetQuery
from drawstring.formats.parquet.reader import read_parquet_part, read_part_of_keys
from drawstring.model.files import LogFile
from drawstring.schema.avro import avro_to_arrow
from drawstring.schema.evolution import conform
from drawstring.schema.fields import RECORD_KEY
from drawstring.schema.timestamp_units import has_millis, in_table_units

_PEEK_BYTES = 16 << 10


def log_blocks(file: pa.NativeFile, log: LogFile, local: str | None = None) -> list[LogBlock]:
    """Return the blocks of an open log file.

    Args:
        file: the file, open for random access.
        log: its name.
        local: its path on this machine; a file without one may be copied to a temporary one to be read.

    Raises:
        CorruptTableError: the file is empty, or a complete block or a native file is damaged.
        UnsupportedError: a block or the file has a format that this release does not know.
    """
    size = file.size()
    if size == 0:
        raise CorruptTableError(f"A log file is empty: {REPAIR}.")
    if log.native is not None:
        return [native_block(file, log, local)]
    head = bytes(file.read(_PEEK_BYTES))
    return [native_block(file, log)] if head.startswith(MAGIC) else scan_blocks(file, size, head)


def block_rows(
    file: pa.NativeFile,
    block: LogBlock,
    columns: pa.Schema,
    wanted: LogRowSelection = ALL_ROWS,
) -> Iterator[pa.RecordBatch]:
    """Yield the records of a data block with those of the given columns that it has.

    Args:
        file: the log file, open.
        block: one of its data blocks.
        columns: columns of the table, by their names in the file. The records may have other types, but they
            have the units of these.
        wanted: the records that are needed; others may be left out.

    Raises:
        CorruptTableError: the block is damaged.
    """
    names = columns.names
    if isinstance(block, NativeBlock):
        yield from native_rows(file, block, columns, wanted)
        return
    if block.kind is BlockType.PARQUET_DATA:
        query = ParquetQuery(names, types=columns)
        place = block.content_offset, block.content_bytes
        is_large = block.content_bytes > limits.in_force.part_whole_bytes_max
        if wanted.keys is None or RECORD_KEY not in names or is_large:
            yield from read_parquet_part(file, *place, query)
        else:
            yield from read_part_of_keys(file, *place, query, wanted.keys)
        return
    if block.schema_json is None:
        raise CorruptTableError(f"The log block at byte {block.offset} has no schema: {REPAIR}.")
    content = read_content(file, block)
    if block.kind is BlockType.AVRO_DATA:
        batches = iter_datums(content, block.schema_json, columns=names)
    else:
        entries = HFileReader(pa.BufferReader(content), len(content)).scan()
        batches = read_hfile_records(entries, block.schema_json, names)
    is_mixed = has_millis(columns)
    yield from (in_table_units(batch, columns) if is_mixed else batch for batch in batches)


def block_deletes(file: pa.NativeFile, block: LogBlock) -> DeleteRecords:
    """Return the records of a delete block.

    Args:
        file: the log file, open.
        block: one of its delete blocks.

    Raises:
        CorruptTableError: the block is damaged.
        UnsupportedError: the version of its content is not supported.
    """
    if isinstance(block, NativeBlock):
        return native_deletes(file, block)
    return decode_deletes(read_content(file, block))


def change_rows(file: pa.NativeFile, block: LogBlock) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a block of change images, with all their columns.

    Args:
        file: the CDC log file, open.
        block: one of its blocks, with a schema.

    Raises:
        CorruptTableError: the block is damaged.
    """
    if isinstance(block, NativeBlock):
        for batch in native_rows(file, block, None):
            yield conform(batch, avro_to_arrow(block.schema_json or ""))
    else:
        yield from decode_datums(read_content(file, block), block.schema_json or "")
