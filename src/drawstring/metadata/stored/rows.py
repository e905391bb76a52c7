"""The rows of a file slice of the metadata table: base file, then log blocks in merge order, unmerged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import REPAIR, CorruptTableError
from drawstring.config.table.config import TableConfig
from drawstring.filegroups.read.log_blocks import PlacedBlock
from drawstring.filegroups.read.log_records import LogReading, about_log, open_logs
from drawstring.filegroups.read.tasks import InstantRange
from drawstring.formats.file_errors import about_file
from drawstring.formats.hfile import HFileReader, read_hfile_records
from drawstring.formats.log_inline import BlockType, LogBlock, decode_deletes, read_content
from drawstring.metadata.lookups import Lookup
from drawstring.metadata.partitions import IS_REMOVED, KEY, Kind, record_schema
from drawstring.metadata.stored.decoded import FILE_LISTS, DecodedRecords
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
    decoded = FILE_LISTS if kind is Kind.FILES else None
    rows = SliceRows(table, file_slice, record_schema(kind), lookup, decoded)
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
    """Reads a slice of the metadata table; see `read_rows`.

    Attributes:
        table: the metadata table.
        file_slice: one of its slices.
        schema: the columns to read.
        lookup: the keys to read; None for all.
        decoded: remembers what was decoded, of partitions that are read again and again; None for others.
    """

    table: MetadataFiles
    file_slice: FileSlice
    schema: pa.Schema
    lookup: Lookup | None
    decoded: DecodedRecords | None = None

    def of_base(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the base file, if there is one."""
        if self.file_slice.base is None:
            return
        status = self.file_slice.base.status
        if self.decoded is None or self.lookup is not None:
            yield from self._read_base(status.path, self.lookup)
            return
        key = (self.table.storage.spec.uri, status, 0)
        yield from self.decoded.get(key, lambda: [*self._read_base(status.path, None)])

    def _read_base(self, path: str, lookup: Lookup | None) -> Iterator[pa.RecordBatch]:
        with about_file(path, "HFile"), self.table.storage.open(path) as file:
            yield from self._of_hfile(HFileReader(file, file.size()), lookup)

    def of_logs(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the log blocks that count, in merge order."""
        reading = LogReading(self.table.storage, self.table.config, self.schema, self.table.instants)
        with open_logs(reading, self.file_slice) as logs:
            for placed in logs.blocks_to_merge(self.table.instants):
                with about_log(placed.file, placed.instant):
                    yield from self._of_block(placed, logs.files[placed.file])

    def _of_block(self, placed: PlacedBlock, file: pa.NativeFile) -> Iterator[pa.RecordBatch]:
        if self.decoded is None:
            yield from self._read_block(placed.block, file, self.lookup)
            return
        key = (self.table.storage.spec.uri, placed.file.status, placed.block.offset)
        batches = self.decoded.get(key, lambda: [*self._read_block(placed.block, file, None)])
        if self.lookup is None or self.lookup.keys is None:
            yield from batches
            return
        for batch in batches:
            yield batch.filter(pc.is_in(batch.column(KEY), value_set=self.lookup.keys))

    def _read_block(
        self, block: LogBlock, file: pa.NativeFile, lookup: Lookup | None
    ) -> Iterator[pa.RecordBatch]:
        content = read_content(file, block)
        if block.kind is BlockType.DELETE:
            yield _removed(content, self.schema)
        elif block.kind is BlockType.HFILE_DATA:
            reader = HFileReader(pa.BufferReader(content), len(content))
            yield from self._of_hfile(reader, lookup, block.schema_json)
        else:
            raise CorruptTableError(f"A log block is of type {block.kind.name}: {REPAIR}.")

    def _of_hfile(
        self, reader: HFileReader, lookup: Lookup | None, schema_json: str | None = None
    ) -> Iterator[pa.RecordBatch]:
        schema_json = schema_json or reader.schema_json
        if schema_json is None:
            raise CorruptTableError(f"An HFile has no record schema: {REPAIR}.")
        entries = reader.scan() if lookup is None else lookup.entries(reader)
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
