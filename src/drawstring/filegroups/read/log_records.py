"""Log records of a file slice, merged to one record per key.

blocks in merge order ── read the columns needed ──> rows, oldest first ── winners ──> one per key
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.bounds import BATCH_ROWS
from drawstring.base.errors import REPAIR, CorruptTableError, DrawstringError, MissingFileError
from drawstring.config.table.config import TableConfig
from drawstring.filegroups.positions import logged_positions, positions_among
from drawstring.filegroups.read.log_blocks import (
    PlacedBlock,
    block_deletes_always_win,
    blocks_to_merge,
    check_whole,
    row_deletes,
)
from drawstring.filegroups.read.tasks import InstantRange, LogReading
from drawstring.formats.log_files import block_deletes, block_rows, log_blocks
from drawstring.formats.log_inline import BlockType, DeleteRecords, LogBlock
from drawstring.formats.log_native import NativeBlock, native_deletes_windows
from drawstring.keygen.keys import KeyGenerator
from drawstring.merge.order import Array, number_keys, repeated_deletes, wins_over
from drawstring.merge.record_mergers import merger_of
from drawstring.merge.versions import Merger, Versions, flat, ordering_of
from drawstring.model.files import FileSlice, LogFile
from drawstring.schema.evolve import conform
from drawstring.schema.meta import RECORD_KEY
from drawstring.schema.schema_on_read import in_requested_columns
from drawstring.storage.protocol import Storage


@dataclass(frozen=True, slots=True)
class LogRecords:
    """The surviving log record of each key.

    Attributes:
        versions: one version per key.
        merger: merged the versions, and merges them with the base records.
        partial_keys: the keys that partial blocks (with some of the columns) touch, maybe repeated; None
            without such blocks.
        instants: all instants whose visibility decided which blocks were merged; None if that is not known.
        positions: the row of the base file that each version belongs to; None unless all are known.
    """

    versions: Versions
    merger: Merger
    partial_keys: pa.Array | None
    instants: frozenset[str] | None = field(default=None, kw_only=True)
    positions: Array | None = field(default=None, kw_only=True)

    def rows(self, alive: Array, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield selected records.

        Args:
            alive: for each record, whether to yield it.
            names: the columns to yield.
        """
        rows = self.versions.rows.select(names)
        rows = rows if alive.all() else rows.filter(pa.array(alive))
        yield from rows.to_batches(max_chunksize=BATCH_ROWS)

    def order(self, alive: Array) -> Array:
        """Return the numbers of selected records in the order in which `rows` yields them."""
        return np.flatnonzero(alive)

    def slice(self, offset: int, length: int) -> LogRecords:
        """Return some of the records, without a copy."""
        return replace(self, versions=self.versions.slice(offset, length), positions=None)

    def beats(self, base_ordering: Sequence[pa.Array], numbers: Array) -> Array:
        """Return whether log records win as a whole over base records of the same keys.

        Args:
            base_ordering: ordering columns of the base records.
            numbers: row number of the log record for each base record.
        """
        if not self.versions.ordering:
            return np.ones(len(numbers), dtype=bool)
        taken = pa.array(numbers)
        wins = wins_over([column.take(taken) for column in self.versions.ordering], base_ordering)
        return np.asarray(wins | self.versions.is_commit_time_ordering_delete[numbers])


def read_log_records(reading: LogReading, file_slice: FileSlice) -> LogRecords:
    """Read and merge the log files of a slice.

    Raises:
        CorruptTableError: a log file is missing, or a complete block in it is damaged.
        UnsupportedError: this release cannot read a block.
    """
    with open_logs(reading, file_slice) as logs:
        blocks = logs.blocks_to_merge(reading.instants)
        pieces = [_of_keys(logs.read(block), reading.keys) for block in blocks]
        instants = logs.instants
    merged = replace(merged_records(reading, pieces), instants=instants)
    if reading.positions_of is None:
        return merged
    numbered = logged_positions(blocks, [piece.keys for piece in pieces], reading.positions_of)
    return replace(merged, positions=positions_among(merged.versions.keys, numbered))


def _of_keys(piece: LogPiece, keys: pa.Array | None) -> LogPiece:
    if keys is None:
        return piece
    numbers = np.flatnonzero(pc.is_in(piece.keys, value_set=keys).to_numpy())
    return piece.take(numbers) if len(numbers) else piece.slice(0, 0)


def merged_records(
    reading: LogReading,
    pieces: Sequence[LogPiece],
    among: Sequence[LogPiece] | None = None,
    *,
    in_order: bool = False,
) -> LogRecords:
    """Merge the records of blocks.

    Args:
        reading: settings with which they were read.
        pieces: the records of each block, in merge order.
        among: all blocks, which determine the merger, if `pieces` has only some of their records.
        in_order: whether the merged records are sorted by key.
    """
    rows = pa.concat_tables([piece.rows for piece in pieces] or [reading.schema.empty_table()])
    keys = flat(pa.chunked_array([key for piece in pieces for key in piece.keys.chunks], pa.string()))
    codes, distinct = number_keys(keys, in_order=in_order)
    is_commit_time_ordering_delete = _joined([piece.is_commit_time_ordering_delete for piece in pieces])
    is_of_block = _joined([np.full(piece.rows.num_rows, piece.is_delete_block) for piece in pieces])
    versions = Versions(
        rows,
        keys,
        ordering_of(rows, reading.config),
        _joined([piece.is_delete for piece in pieces]),
        is_commit_time_ordering_delete | repeated_deletes(codes, is_of_block, is_commit_time_ordering_delete),
        _unset(pieces),
    )
    among = pieces if among is None else among
    schemas = [piece.schema_json for piece in among if piece.schema_json]
    merger = merger_of(
        reading.config,
        is_partial=any(piece.is_partial for piece in among),
        schema_json=schemas[-1] if schemas else None,
    )
    partial_keys = [key for piece in pieces if piece.is_partial for key in piece.keys.chunks]
    merged = merger.merge(versions, codes, distinct)
    return LogRecords(merged, merger, pa.concat_arrays(partial_keys) if partial_keys else None)


def _unset(pieces: Sequence[LogPiece]) -> dict[str, Array]:
    """Return, by column that some blocks lack, which rows do not set it."""
    names = {name for piece in pieces for name in piece.unset}
    return {
        name: _joined([np.full(piece.rows.num_rows, name in piece.unset) for piece in pieces])
        for name in sorted(names)
    }


def record_keys(rows: pa.Table | pa.RecordBatch, config: TableConfig) -> pa.ChunkedArray | pa.Array:
    """Return the record keys of rows: the meta column, or generated from the key columns."""
    if config.populate_meta_fields:
        return rows.column(RECORD_KEY)
    generator = KeyGenerator(config)
    if isinstance(rows, pa.RecordBatch):
        return generator.record_keys(rows)
    return pa.chunked_array([generator.record_keys(batch) for batch in rows.to_batches()], pa.string())


@dataclass(frozen=True, slots=True)
class LogPiece:
    """The records of one block.

    Attributes:
        unset: columns that a partial block lacks.
        schema_json: Avro schema of the data block.
    """

    rows: pa.Table
    keys: pa.ChunkedArray
    is_delete: Array
    is_commit_time_ordering_delete: Array
    is_delete_block: bool = False
    is_partial: bool = False
    unset: frozenset[str] = frozenset()
    schema_json: str | None = None

    def slice(self, offset: int, length: int) -> LogPiece:
        """Return some of the records, without a copy."""
        end = offset + length
        return replace(
            self,
            rows=self.rows.slice(offset, length),
            keys=self.keys.slice(offset, length),
            is_delete=self.is_delete[offset:end],
            is_commit_time_ordering_delete=self.is_commit_time_ordering_delete[offset:end],
        )

    def take(self, numbers: Array) -> LogPiece:
        """Return the records with the given row numbers."""
        taken = pa.array(numbers)
        return replace(
            self,
            rows=self.rows.take(taken),
            keys=self.keys.take(taken),
            is_delete=self.is_delete[numbers],
            is_commit_time_ordering_delete=self.is_commit_time_ordering_delete[numbers],
        )


def _joined(parts: list[Array]) -> Array:
    return np.concatenate([np.zeros(0, dtype=bool), *parts])


@dataclass(frozen=True, slots=True)
class OpenLogs:
    """The open log files of a slice.

    Attributes:
        placed: all their blocks, file by file.
    """

    reading: LogReading
    placed: Sequence[PlacedBlock]
    files: Mapping[LogFile, pa.NativeFile]

    def blocks_to_merge(self, instants: InstantRange) -> list[PlacedBlock]:
        """Return the visible blocks, in merge order."""
        return blocks_to_merge(self.placed, instants)

    @property
    def instants(self) -> frozenset[str] | None:
        """All instants of blocks; None if one is torn, so that the files may be repaired."""
        if any(each.block.kind is BlockType.CORRUPT for each in self.placed):
            return None
        return frozenset(
            instant for each in self.placed for instant in (each.instant, *each.block.compacted_instants)
        )

    def read(self, placed: PlacedBlock) -> LogPiece:
        """Read the records of a block."""
        with about_log(placed.file, placed.instant):
            return _piece(self.reading, placed, self.files[placed.file])

    def windows(self, placed: PlacedBlock) -> Iterator[LogPiece]:
        """Yield the records of a native log file piece by piece; see `read`."""
        reading, block, file = self.reading, placed.block, self.files[placed.file]
        with about_log(placed.file, placed.instant):
            if isinstance(block, NativeBlock) and block.kind is BlockType.DELETE:
                for deletes in native_deletes_windows(file, block, reading.wanted):
                    yield _of_keys(_delete_piece(reading, deletes), reading.keys)
                return
            for batch in _stored_rows(reading, placed, file):
                yield _of_keys(_records_piece(reading, block, [batch]), reading.keys)

    def rows(self, placed: PlacedBlock) -> Iterator[pa.RecordBatch]:
        """Yield the records of a data block, batch by batch."""
        with about_log(placed.file, placed.instant):
            for batch in _stored_rows(self.reading, placed, self.files[placed.file]):
                yield conform(batch, self.reading.schema)


@contextmanager
def open_logs(reading: LogReading, file_slice: FileSlice) -> Iterator[OpenLogs]:
    """Open the log files of a slice and find their blocks.

    Raises:
        CorruptTableError: a log file is missing, or a complete block in it is damaged.
    """
    with ExitStack() as files:
        opened = {log: files.enter_context(open_log(reading.storage, log)) for log in file_slice.logs}
        placed = [
            PlacedBlock(log, block)
            for log, file in opened.items()
            for block in scan_log(reading.storage, log, file)
        ]
        check_whole(reading, placed)
        yield OpenLogs(reading, placed, opened)


@contextmanager
def about_log(log: LogFile, instant: str | None = None) -> Iterator[None]:
    """Add the log file to errors, and the instant: by default the one in the file name."""
    try:
        yield
    except FileNotFoundError as error:
        raise MissingFileError(
            f"A log file of the table is missing: {REPAIR}.",
            instant=log.instant,
            path=log.status.path,
        ) from error
    except DrawstringError as error:
        raise error.at(instant=instant or log.instant, path=log.status.path) from error


def open_log(storage: Storage, log: LogFile) -> pa.NativeFile:
    """Open a log file.

    Raises:
        CorruptTableError: the file is missing.
    """
    with about_log(log):
        return storage.open(log.status.path)


def scan_log(storage: Storage, log: LogFile, file: pa.NativeFile) -> list[LogBlock]:
    """Return the blocks of an open log file.

    Raises:
        CorruptTableError: the file is empty, or a block header is invalid.
    """
    with about_log(log):
        return log_blocks(file, log, storage.local_path(log.status.path))


def _piece(reading: LogReading, placed: PlacedBlock, file: pa.NativeFile) -> LogPiece:
    block = placed.block
    if block.kind is BlockType.DELETE:
        return _delete_piece(reading, block_deletes(file, block))
    return _records_piece(reading, block, list(_stored_rows(reading, placed, file)))


def _records_piece(reading: LogReading, block: LogBlock, batches: Sequence[pa.RecordBatch]) -> LogPiece:
    rows = pa.Table.from_batches([conform(batch, reading.schema) for batch in batches], reading.schema)
    piece = replace(_data_piece(reading, rows), schema_json=block.schema_json)
    if not block.is_partial:
        return piece
    given = {name for batch in batches for name in batch.schema.names}
    return replace(piece, is_partial=True, unset=frozenset(reading.schema.names) - given)


def _stored_rows(reading: LogReading, placed: PlacedBlock, file: pa.NativeFile) -> Iterator[pa.RecordBatch]:
    """Yield the records of a data block with its columns under their current names."""
    renames = reading.config.renames(placed.instant)
    names = reading.schema.names
    if renames is None:
        yield from block_rows(file, placed.block, names, reading.wanted)
        return
    stored = renames.stored_names(names)
    for batch in block_rows(file, placed.block, stored, reading.wanted):
        yield in_requested_columns(batch, renames)


def _data_piece(reading: LogReading, rows: pa.Table) -> LogPiece:
    keys = record_keys(rows, reading.config)
    if keys.null_count:
        raise CorruptTableError(
            f"{keys.null_count} records of a log block have no record key. Restore the file from a backup, or"
            " roll back the write."
        )
    return LogPiece(rows, keys, *row_deletes(rows, reading.config))


def _delete_piece(reading: LogReading, deletes: DeleteRecords) -> LogPiece:
    count = len(deletes.keys)
    columns = {RECORD_KEY: deletes.keys}
    is_commit_time_ordering_delete = deletes.is_commit_time.to_numpy(zero_copy_only=False)
    if block_deletes_always_win(reading.config):
        is_commit_time_ordering_delete = np.ones(count, dtype=bool)
    elif deletes.ordering is not None and reading.ordering_fields:
        columns |= zip(reading.ordering_fields, _delete_ordering(reading, deletes.ordering), strict=True)
    rows = pa.table(
        [
            columns[field.name] if field.name in columns else pa.nulls(count, field.type)
            for field in reading.schema
        ],
        schema=reading.schema,
    )
    keys, is_delete = pa.chunked_array([deletes.keys]), np.ones(count, dtype=bool)
    return LogPiece(rows, keys, is_delete, is_commit_time_ordering_delete, is_delete_block=True)


def _delete_ordering(reading: LogReading, ordering: pa.Array) -> list[pa.Array]:
    """Return the ordering values of deletes with the types of the table's columns."""
    is_several = pa.types.is_struct(ordering.type)
    columns = ordering.flatten() if is_several else [ordering]
    types = [reading.schema.field(name).type for name in reading.ordering_fields]
    if len(columns) != len(types):
        raise CorruptTableError(
            f"The deletes of a log block have {len(columns)} ordering values, but the table has {len(types)}"
            f" ordering fields: {REPAIR}."
        )
    return [column.cast(kind, safe=False) for column, kind in zip(columns, types, strict=True)]
