"""The rows of a file slice of the metadata table: base file, then log blocks in merge order, unmerged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import REPAIR, CorruptTableError
from drawstring.config.table.config import TableConfig
from drawstring.filegroups.read.log_blocks import PlacedBlock, blocks_to_merge, check_whole
from drawstring.filegroups.read.open_logs import about_log, open_log, open_logs, scan_log
from drawstring.filegroups.read.tasks import InstantRange, LogReading
from drawstring.formats.file_errors import about_file
from drawstring.formats.hfile import HFileReader, read_hfile_records
from drawstring.formats.log_files import block_deletes, log_blocks
from drawstring.formats.log_inline import BlockType, LogBlock, read_content
from drawstring.formats.log_native import NativeBlock
from drawstring.metadata.encoding import VALUE, encoded_records
from drawstring.metadata.lookups import Lookup
from drawstring.metadata.partitions import IS_REMOVED, KEY, Kind, record_schema
from drawstring.metadata.stored.decoded import FILE_LISTS, DecodedRecords
from drawstring.model.files import FileSlice, FileStatus, LogFile
from drawstring.schema.evolve import conform
from drawstring.storage.protocol import Storage

ENCODED: Final = pa.schema([(KEY, pa.string()), (VALUE, pa.binary())])
"""Columns of records that stay encoded; see `SliceRows`."""

_WHOLE_BYTES_MAX: Final = 4 << 20
"""Size up to which the content of a log block is read as a whole."""


def read_rows(
    table: MetadataFiles, file_slice: FileSlice, kind: Kind, lookup: Lookup | None = None
) -> pa.Table:
    """Return rows of a slice, oldest first.

    Args:
        table: the metadata table.
        file_slice: one of its slices.
        kind: what its records hold.
        lookup: the keys to read; None for all. Entries of inline delete blocks are read for all keys.

    Returns:
        The columns of `record_schema`, and whether a row is an entry of a delete block.

    Raises:
        CorruptTableError: a file is missing or damaged.
    """
    decoded = FILE_LISTS if kind is Kind.FILES else None
    rows = SliceRows(table, file_slice, record_schema(kind), lookup, decoded)
    return pa.Table.from_batches([*rows.of_base(), *rows.of_logs()], no_rows(kind).schema)


def remember_log(
    storage: Storage, log: FileStatus, content: bytes, rows: pa.Table, removed: pa.Array
) -> None:
    """Remember the records of a log file of the list of files that this process is about to put.

    Args:
        storage: files of the metadata table.
        log: the log file.
        content: its content.
        rows: the records of its data block, if it has one.
        removed: the keys of its delete block, if it has one.
    """

    def batches(kind: BlockType) -> tuple[pa.RecordBatch, ...]:
        if kind is BlockType.DELETE:
            return (_removed(removed, record_schema(Kind.FILES)),)
        return tuple(_live(batch, record_schema(Kind.FILES)) for batch in rows.combine_chunks().to_batches())

    (named,) = filter(None, [LogFile.parse(log)])
    blocks = log_blocks(pa.BufferReader(content), named)
    decoded = [DecodedBlock(block, batches(block.kind)) for block in blocks]
    FILE_LISTS.remember((storage.spec.uri, log), decoded)


@cache
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
class DecodedBlock:
    """A block of a log file and its records; none if it is a command or torn."""

    block: LogBlock
    batches: tuple[pa.RecordBatch, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of the records."""
        return sum(batch.nbytes for batch in self.batches)


@dataclass(frozen=True, slots=True)
class SliceRows:
    """Reads a slice of the metadata table; see `read_rows`.

    Attributes:
        table: the metadata table.
        file_slice: one of its slices.
        schema: the columns to read; `ENCODED` for the keys and the records as base files have them.
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
        base = self.file_slice.base.status
        if self.decoded is None or base.size_bytes > self.decoded.base_bytes_max:
            yield from self._read_base(base)
            return
        key, whole = (self.table.storage.spec.uri, base), replace(self, lookup=None)
        yield from map(self._wanted, self.decoded.get(key, lambda: list(whole._read_base(base))))

    def _read_base(self, base: FileStatus) -> Iterator[pa.RecordBatch]:
        with about_file(base.path, "HFile"), self.table.storage.open(base.path) as file:
            yield from self._decode_base(file)

    def _decode_base(self, file: pa.NativeFile) -> Iterator[pa.RecordBatch]:
        return self._of_hfile(HFileReader(file, file.size()), self.lookup)

    def _wanted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of a decoded batch that are looked up."""
        if self.lookup is None or self.lookup.keys is None:
            return batch
        return batch.filter(pc.is_in(batch.column(KEY), value_set=self.lookup.keys))

    def of_logs(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the log blocks that count, in merge order."""
        if self.decoded is not None:
            yield from self._of_decoded_logs(self.decoded)
            return
        with open_logs(self.reading, self.file_slice) as logs:
            for placed in logs.blocks_to_merge(self.table.instants):
                yield from self.of_block(placed, logs.files[placed.file])

    def of_block(self, placed: PlacedBlock, file: pa.NativeFile) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a log block, whose file is open: sorted by key, unless they are deletes."""
        with about_log(placed.file, placed.instant):
            yield from self._read_block(placed.block, file, self.lookup)

    def _of_decoded_logs(self, decoded: DecodedRecords) -> Iterator[pa.RecordBatch]:
        """Yield the rows that `of_logs` yields; a file that was decoded before is not even opened."""
        uri = self.table.storage.spec.uri
        found = [
            (PlacedBlock(log, each.block), each.batches)
            for log in self.file_slice.logs
            for each in decoded.get((uri, log.status), partial(self._decode_log, log))
        ]
        batches = {(placed.file.status.path, placed.block.offset): each for placed, each in found}
        placed_blocks = [placed for placed, _ in found]
        check_whole(self.reading, placed_blocks)
        for placed in blocks_to_merge(placed_blocks, self.table.instants):
            yield from map(self._wanted, batches[placed.file.status.path, placed.block.offset])

    def _decode_log(self, log: LogFile) -> list[DecodedBlock]:
        with open_log(self.table.storage, log) as file:
            return self._decode_blocks(log, file)

    def _decode_blocks(self, log: LogFile, file: pa.NativeFile) -> list[DecodedBlock]:
        return [
            DecodedBlock(block, self._decode_block(log, block, file))
            for block in scan_log(self.table.storage, log, file)
        ]

    def _decode_block(self, log: LogFile, block: LogBlock, file: pa.NativeFile) -> tuple[pa.RecordBatch, ...]:
        placed = PlacedBlock(log, block)
        if not placed.holds_records:
            return ()
        with about_log(log, placed.instant):
            return tuple(self._read_block(block, file, None))

    @property
    def reading(self) -> LogReading:
        """The settings with which log files are opened."""
        return LogReading(self.table.storage, self.table.config, self.schema, self.table.instants)

    def _read_block(
        self, block: LogBlock, file: pa.NativeFile, lookup: Lookup | None
    ) -> Iterator[pa.RecordBatch]:
        if block.kind is BlockType.DELETE and isinstance(block, NativeBlock):
            reader = HFileReader(file, block.content_bytes)
            for entries in reader.scan() if lookup is None else lookup.entries(reader):
                yield _removed(entries.keys, self.schema)
        elif block.kind is BlockType.DELETE:
            yield _removed(pc.unique(block_deletes(file, block).keys), self.schema)
        elif block.kind is BlockType.HFILE_DATA:
            yield from self._of_hfile(_opened(file, block), lookup, block.schema_json)
        else:
            raise CorruptTableError(f"A log block is of type {block.kind.name}: {REPAIR}.")

    def _of_hfile(
        self, reader: HFileReader, lookup: Lookup | None, schema_json: str | None = None
    ) -> Iterator[pa.RecordBatch]:
        schema_json = schema_json or reader.schema_json
        if schema_json is None:
            raise CorruptTableError(f"An HFile has no record schema: {REPAIR}.")
        entries = reader.scan() if lookup is None else lookup.entries(reader)
        if self.schema == ENCODED:
            batches = encoded_records(entries, schema_json)
        else:
            batches = read_hfile_records(entries, schema_json, self.schema.names)
        for batch in batches:
            yield _live(batch, self.schema)


def _opened(file: pa.NativeFile, block: LogBlock) -> HFileReader:
    """Open the HFile in a log block: one request reads a small one; of a large one, only what is needed."""
    if block.content_bytes > _WHOLE_BYTES_MAX:
        return HFileReader(file, block.content_bytes, block.content_offset)
    content = read_content(file, block)
    return HFileReader(pa.BufferReader(content), len(content))


def _live(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    rows = conform(batch, schema)
    return rows.append_column(IS_REMOVED, pa.repeat(pa.scalar(False), rows.num_rows))


def _removed(keys: pa.Array, schema: pa.Schema) -> pa.RecordBatch:
    """Return the entries of a delete block as rows without content."""
    rows = conform(pa.record_batch({KEY: keys}), schema)
    return rows.append_column(IS_REMOVED, pa.repeat(pa.scalar(True), rows.num_rows))
