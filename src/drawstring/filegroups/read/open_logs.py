"""The log files of a slice, open: their blocks, and the records of these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import REPAIR, CorruptTableError, DrawstringError, MissingFileError
from drawstring.config.table.config import TableConfig
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
from drawstring.formats.log_native.footer_memory import FOOTERS
from drawstring.keygen.keys import KeyGenerator
from drawstring.merge.order import Array
from drawstring.model.files import FileSlice, LogFile
from drawstring.schema.evolve import conform
from drawstring.schema.fields import columns_with, type_at
from drawstring.schema.meta import RECORD_KEY
from drawstring.schema.schema_on_read import in_requested_columns, stored_columns
from drawstring.storage.protocol import Storage
from drawstring.storage.streams import RangeFile

FILES_OPEN_MAX: Final = 64
"""Log files of a slice that stay open; some systems give a process 256, of all its slices and threads."""


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
            return _piece(self.reading, placed, self.files)

    def read_all(self, placed: Sequence[PlacedBlock]) -> list[LogPiece]:
        """Read the records of blocks that are wanted; files without any by their footers are not opened."""
        pieces = outlines(self.reading, placed)
        for at, each in enumerate(placed):
            if not _is_excluded(self.reading, each):
                pieces[at] = _of_keys(self.read(each), self.reading.keys)
        return pieces

    def windows(self, placed: PlacedBlock) -> Iterator[LogPiece]:
        """Yield the records of a native log file piece by piece; see `read`."""
        reading, block = self.reading, placed.block
        with about_log(placed.file, placed.instant):
            if isinstance(block, NativeBlock) and block.kind is BlockType.DELETE:
                for deletes in native_deletes_windows(self.files[placed.file], block, reading.wanted):
                    yield _of_keys(_delete_piece(reading, deletes), reading.keys)
                return
            batches = () if _is_excluded(reading, placed) else _stored_rows(reading, placed, self.files)
            for batch in batches:
                yield _of_keys(_records_piece(reading, block, [batch]), reading.keys)

    def rows(self, placed: PlacedBlock) -> Iterator[pa.RecordBatch]:
        """Yield the records of a data block, batch by batch."""
        with about_log(placed.file, placed.instant):
            for batch in _stored_rows(self.reading, placed, self.files):
                yield conform(batch, self.reading.schema)


@contextmanager
def open_logs(reading: LogReading, file_slice: FileSlice) -> Iterator[OpenLogs]:
    """Open the log files of a slice and find their blocks.

    Raises:
        CorruptTableError: a log file is missing, or a complete block in it is damaged.
    """
    with ExitStack() as stack:
        files = _Files(reading.storage, stack)
        placed = [
            PlacedBlock(log, block)
            for log in file_slice.logs
            for block in _known_blocks(reading.storage, log) or scan_log(reading.storage, log, files[log])
        ]
        check_whole(reading, placed)
        yield OpenLogs(reading, placed, files)


class _Files(dict[LogFile, pa.NativeFile]):
    """Log files, each of which is opened when it is asked for first.

    A process may have few files open at once. So of many files those after the first ones are open only while
    a part of them is read.
    """

    def __init__(self, storage: Storage, stack: ExitStack) -> None:
        super().__init__()
        self._storage = storage
        self._stack = stack

    def __missing__(self, log: LogFile) -> pa.NativeFile:
        opened = open_log(self._storage, log)
        if len(self) >= FILES_OPEN_MAX and self._storage.local_path(log.status.path) is not None:
            with opened:
                opened = pa.PythonFile(RangeFile(partial(self._fetch, log), opened.size()), mode="r")
        file = self[log] = self._stack.enter_context(opened)
        return file

    def _fetch(self, log: LogFile, start: int, end: int) -> bytes:
        with open_log(self._storage, log) as file:
            file.seek(start)
            return bytes(file.read(end - start))


def _known_blocks(storage: Storage, log: LogFile) -> list[LogBlock]:
    """Return the block of a native log file whose footer this process has read; none of another file."""
    block = None if log.native is None else FOOTERS.recall(storage, log)
    return [] if block is None else [block]


def outlines(reading: LogReading, placed: Sequence[PlacedBlock]) -> list[LogPiece]:
    """Return blocks without their records: what decides how all records are merged."""
    nothing = np.zeros(0, dtype=bool)
    empty = LogPiece(no_rows(reading), pa.chunked_array([], pa.string()), nothing, nothing)
    return [
        replace(
            empty,
            is_delete_block=not each.block.kind.is_data,
            is_partial=each.block.is_partial,
            schema_json=each.block.schema_json if each.block.kind.is_data else None,
        )
        for each in placed
    ]


def no_rows(reading: LogReading) -> pa.Table:
    """Return a table without rows; `Schema.empty_table` takes 40 times as long, for it makes arrays."""
    return pa.Table.from_batches([], reading.schema)


def _is_excluded(reading: LogReading, placed: PlacedBlock) -> bool:
    """Return whether the footer of a native log file says that none of its records is wanted."""
    return isinstance(placed.block, NativeBlock) and placed.block.excludes(reading.wanted)


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
        blocks = log_blocks(file, log, storage.local_path(log.status.path))
    if log.native is not None and isinstance(blocks[0], NativeBlock):
        FOOTERS.keep(storage, log, blocks[0])
    return blocks


def _piece(reading: LogReading, placed: PlacedBlock, files: Mapping[LogFile, pa.NativeFile]) -> LogPiece:
    block = placed.block
    if block.kind is BlockType.DELETE:
        return _delete_piece(reading, block_deletes(files[placed.file], block))
    return _records_piece(reading, block, list(_stored_rows(reading, placed, files)))


def _records_piece(reading: LogReading, block: LogBlock, batches: Sequence[pa.RecordBatch]) -> LogPiece:
    rows = pa.Table.from_batches([conform(batch, reading.schema) for batch in batches], reading.schema)
    piece = replace(_data_piece(reading, rows), schema_json=block.schema_json)
    if not block.is_partial:
        return piece
    given = {name for batch in batches for name in batch.schema.names}
    return replace(piece, is_partial=True, unset=frozenset(reading.schema.names) - given)


def _stored_rows(
    reading: LogReading, placed: PlacedBlock, files: Mapping[LogFile, pa.NativeFile]
) -> Iterator[pa.RecordBatch]:
    """Yield the records of a data block with its columns under their current names."""
    file = files[placed.file]
    renames = reading.config.renames(placed.instant)
    if renames is None:
        yield from block_rows(file, placed.block, reading.schema, reading.wanted)
        return
    stored = stored_columns(reading.schema, renames)
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
        ordering = _delete_ordering(reading, deletes.ordering)
        columns |= columns_with(dict(zip(reading.ordering_fields, ordering, strict=True)), reading.schema)
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
    types = [type_at(name, reading.schema) for name in reading.ordering_fields]
    if len(columns) != len(types):
        raise CorruptTableError(
            f"The deletes of a log block have {len(columns)} ordering values, but the table has {len(types)}"
            f" ordering fields: {REPAIR}."
        )
    return [column.cast(kind, safe=False) for column, kind in zip(columns, types, strict=True)]


def _of_keys(piece: LogPiece, keys: pa.Array | None) -> LogPiece:
    if keys is None:
        return piece
    numbers = np.flatnonzero(pc.is_in(piece.keys, value_set=keys).to_numpy())
    return piece.take(numbers) if len(numbers) else piece.slice(0, 0)


def record_keys(rows: pa.Table | pa.RecordBatch, config: TableConfig) -> pa.ChunkedArray | pa.Array:
    """Return the record keys of rows: the meta column, or generated from the key columns."""
    if config.populate_meta_fields:
        return rows.column(RECORD_KEY)
    generator = KeyGenerator(config)
    if isinstance(rows, pa.RecordBatch):
        return generator.record_keys(rows)
    return pa.chunked_array([generator.record_keys(batch) for batch in rows.to_batches()], pa.string())
