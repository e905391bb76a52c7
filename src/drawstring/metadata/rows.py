"""The rows of a file slice of the metadata table: base file, then log blocks in merge order, unmerged."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from drawstring.base.errors import REPAIR, CorruptTableError
from drawstring.filegroups.read.log_blocks import PlacedBlock
from drawstring.filegroups.read.log_records import LogReading, OpenLogs, about_log, open_logs
from drawstring.formats.base_files import Selection, read_base
from drawstring.formats.log_inline import BlockType, decode_deletes, read_content
from drawstring.metadata.metadata_table import MetadataTable
from drawstring.metadata.partitions import IS_REMOVED, KEY, Kind, record_schema
from drawstring.model.files import FileSlice
from drawstring.schema.evolve import conform


def read_rows(table: MetadataTable, file_slice: FileSlice, kind: Kind) -> pa.Table:
    """Return all rows of a slice, oldest first.

    Args:
        table: the metadata table.
        file_slice: one of its slices.
        kind: what its records hold.

    Returns:
        The columns of `record_schema`, and whether a row is an entry of a delete block.

    Raises:
        CorruptTableError: a file is missing or damaged.
    """
    schema = record_schema(kind)
    rows = [*_base_rows(table, file_slice, schema), *_log_rows(table, file_slice, schema)]
    return pa.Table.from_batches(rows, no_rows(kind).schema)


def no_rows(kind: Kind) -> pa.Table:
    """Return no rows, with the columns of `read_rows`."""
    return record_schema(kind).append(pa.field(IS_REMOVED, pa.bool_())).empty_table()


def _base_rows(table: MetadataTable, file_slice: FileSlice, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    if file_slice.base is not None:
        for batch in read_base(table.storage, file_slice.base.status.path, Selection(schema.names)):
            yield _live(batch, schema)


def _log_rows(table: MetadataTable, file_slice: FileSlice, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    reading = LogReading(table.storage, table.config, schema, table.instants)
    with open_logs(reading, file_slice) as logs:
        for placed in logs.blocks_to_merge(table.instants):
            with about_log(placed.file, placed.instant):
                if placed.block.kind is BlockType.DELETE:
                    yield _removed(read_content(logs.files[placed.file], placed.block), schema)
                else:
                    yield from _data_rows(logs, placed, schema)


def _data_rows(logs: OpenLogs, placed: PlacedBlock, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    if placed.block.kind is not BlockType.HFILE_DATA:
        raise CorruptTableError(
            f"A log block of the metadata table is of type {placed.block.kind.name}: {REPAIR}."
        )
    for batch in logs.rows(placed):
        yield _live(batch, schema)


def _live(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    rows = conform(batch, schema)
    return rows.append_column(IS_REMOVED, pa.repeat(pa.scalar(False), rows.num_rows))


def _removed(content: bytes, schema: pa.Schema) -> pa.RecordBatch:
    """Return the entries of a delete block as rows without content."""
    keys = decode_deletes(content).keys
    rows = conform(pa.record_batch({KEY: keys}), schema)
    return rows.append_column(IS_REMOVED, pa.repeat(pa.scalar(True), rows.num_rows))
