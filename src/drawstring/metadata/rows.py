"""The rows of a file slice of the metadata table: base file, then log blocks in merge order, unmerged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from drawstring.base.errors import REPAIR, CorruptTableError
from drawstring.config.table.config import TableConfig
from drawstring.filegroups.read.log_records import LogReading, about_log, open_logs
from drawstring.filegroups.read.tasks import InstantRange
from drawstring.formats.file_errors import about_file
from drawstring.formats.hfile import HFileReader, read_hfile_records
from drawstring.formats.log_inline import BlockType, LogBlock, decode_deletes, read_content
from drawstring.metadata.lookups import Lookup
from drawstring.metadata.partitions import IS_REMOVED, KEY, Kind, record_schema
from drawstring.model.files import FileSlice
from drawstring.schema.evolve import conform
from drawstring.storage.protocol import Storage


def read_rows(
    table: MetadataFiles, file_slice: FileSlice, kind: Kind, lookup: Lookup | None = None
) -> pa.Table:
    """Return rows of a slice, oldest first.

    Args:
        table: the metadata table.
        file_slice: one of its slices.
        kind: what its records hold.
        lookup: the keys to read; None for all. Entries of delete blocks are read for all keys.

    Returns:
        The columns of `record_schema`, and whether a row is an entry of a delete block.

    Raises:
        CorruptTableError: a file is missing or damaged.
    """
    rows = SliceRows(table, file_slice, record_schema(kind), lookup)
    return pa.Table.from_batches([*rows.of_base(), *rows.of_logs()], no_rows(kind).schema)


def no_rows(kind: Kind) -> pa.Table:
    """Return no rows, with the columns of `read_rows`."""
    return record_schema(kind).append(pa.field(IS_REMOVED, pa.bool_())).empty_table()


class MetadataFiles(Protocol):
    """What reading a slice needs of the metadata table: its files, settings and the instants that count."""

    @property
    def storage(self) -> Storage: ...

    @property
    def config(self) -> TableConfig: ...

    @property
    def instants(self) -> InstantRange: ...


@dataclass(frozen=True, slots=True)
class SliceRows:
    """Reads a slice of the metadata table; see `read_rows`."""

    table: MetadataFiles
    file_slice: FileSlice
    schema: pa.Schema
    lookup: Lookup | None

    def of_base(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the base file, if there is one."""
        if self.file_slice.base is None:
            return
        path = self.file_slice.base.status.path
        with about_file(path, "HFile"), self.table.storage.open(path) as file:
            yield from self._of_hfile(HFileReader(file, file.size()))

    def of_logs(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the log blocks that count, in merge order."""
        reading = LogReading(self.table.storage, self.table.config, self.schema, self.table.instants)
        with open_logs(reading, self.file_slice) as logs:
            for placed in logs.blocks_to_merge(self.table.instants):
                with about_log(placed.file, placed.instant):
                    content = read_content(logs.files[placed.file], placed.block)
                    yield from self._of_block(placed.block, content)

    def _of_block(self, block: LogBlock, content: bytes) -> Iterator[pa.RecordBatch]:
        if block.kind is BlockType.DELETE:
            yield _removed(content, self.schema)
        elif block.kind is BlockType.HFILE_DATA:
            reader = HFileReader(pa.BufferReader(content), len(content))
            yield from self._of_hfile(reader, block.schema_json)
        else:
            raise CorruptTableError(f"A log block is of type {block.kind.name}: {REPAIR}.")

    def _of_hfile(self, reader: HFileReader, schema_json: str | None = None) -> Iterator[pa.RecordBatch]:
        schema_json = schema_json or reader.schema_json
        if schema_json is None:
            raise CorruptTableError(f"An HFile has no record schema: {REPAIR}.")
        entries = reader.scan() if self.lookup is None else self.lookup.entries(reader)
        for batch in read_hfile_records(entries, schema_json, self.schema.names):
            yield _live(batch, self.schema)


def _live(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    rows = conform(batch, schema)
    return rows.append_column(IS_REMOVED, pa.repeat(pa.scalar(False), rows.num_rows))


def _removed(content: bytes, schema: pa.Schema) -> pa.RecordBatch:
    """Return the entries of a delete block as rows without content."""
    keys = decode_deletes(content).keys
    rows = conform(pa.record_batch({KEY: keys}), schema)
    return rows.append_column(IS_REMOVED, pa.repeat(pa.scalar(True), rows.num_rows))
