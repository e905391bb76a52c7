"""The log side of a slice: what its log files say about each key, merged among themselves.

blocks in merge order ── read the columns needed ──> rows, oldest first ── winners ──> one a key
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import CorruptTableError, DrawstringError, UnsupportedError
from drawstring.config.table import MergeMode, TableConfig
from drawstring.filegroups.deletions import deleted
from drawstring.filegroups.log_blocks import PlacedBlock, blocks_to_merge, torn_blocks
from drawstring.filegroups.tasks import InstantRange
from drawstring.formats.avro import decode_datums
from drawstring.formats.hfile import HFileReader, read_hfile_records
from drawstring.formats.log_inline import BlockType, LogBlock, decode_deletes, read_content, scan_blocks
from drawstring.formats.parquet import read_parquet_bytes
from drawstring.keygen.keys import KeyGenerator
from drawstring.merge.order import Array, winners, wins_over
from drawstring.model.files import FileSlice, LogFile
from drawstring.schema.evolve import conform
from drawstring.schema.meta import RECORD_KEY
from drawstring.storage.protocol import Storage

KEY_COLUMN = RECORD_KEY


@dataclass(frozen=True, slots=True)
class LogRecords:
    """The surviving log record of each key.

    Attributes:
        rows: the columns read; null for deletes but for key and ordering columns.
        keys: record key of each row.
        ordering: ordering columns of the rows, empty for commit-time ordering.
        is_delete: whether a row deletes its key.
        is_commit_delete: whether it does so whatever the base record's ordering value.
    """

    rows: pa.Table
    keys: pa.Array
    ordering: tuple[pa.Array, ...]
    is_delete: Array
    is_commit_delete: Array

    def beats(self, base_ordering: Sequence[pa.Array], numbers: Array) -> Array:
        """Tell whether log records win over base records of the same keys.

        Args:
            base_ordering: ordering columns of the base records.
            numbers: the row here that goes with each.
        """
        if not self.ordering:
            return np.ones(len(numbers), dtype=bool)
        taken = pa.array(numbers)
        newer = [column.take(taken) for column in self.ordering]
        return np.asarray(wins_over(newer, base_ordering) | self.is_commit_delete[numbers])


@dataclass(frozen=True, slots=True)
class LogReading:
    """How to read log files.

    Attributes:
        storage: the table's files.
        config: the table.
        schema: columns to read, all nullable: those asked for, key, ordering and delete columns.
        instants: which blocks count.
    """

    storage: Storage
    config: TableConfig
    schema: pa.Schema
    instants: InstantRange

    @property
    def ordering_fields(self) -> tuple[str, ...]:
        """The columns that decide which version wins; none for commit-time ordering."""
        return ordering_fields(self.config)


def read_log_records(reading: LogReading, file_slice: FileSlice) -> LogRecords:
    """Read and merge the log files of a slice.

    Raises:
        CorruptTableError: a log file is missing or a whole block in it is damaged.
        UnsupportedError: a block that this release cannot read.
    """
    pieces = list(_pieces(reading, file_slice))
    rows = pa.concat_tables([piece.rows for piece in pieces] or [reading.schema.empty_table()])
    keys = pa.chunked_array([key for piece in pieces for key in piece.keys.chunks], pa.string())
    is_delete = _joined([piece.is_delete for piece in pieces])
    is_commit_delete = _joined([piece.is_commit_delete for piece in pieces])
    ordering = [rows.column(name) for name in reading.ordering_fields]
    kept = winners(keys, ordering, is_commit_delete)
    taken = pa.array(kept)
    merged = rows.take(taken)
    return LogRecords(
        merged,
        keys.take(taken).combine_chunks(),
        tuple(merged.column(name).combine_chunks() for name in reading.ordering_fields),
        is_delete[kept],
        is_commit_delete[kept],
    )


def ordering_fields(config: TableConfig) -> tuple[str, ...]:
    """Return the columns that decide which version of a record wins; none for commit-time ordering."""
    return config.ordering_fields if config.merge_mode is MergeMode.EVENT_TIME_ORDERING else ()


def record_keys(rows: pa.Table | pa.RecordBatch, config: TableConfig) -> pa.ChunkedArray | pa.Array:
    """Return the record keys of rows: the meta column, or made from the key columns."""
    if config.populate_meta_fields:
        return rows.column(KEY_COLUMN)
    generator = KeyGenerator(config)
    if isinstance(rows, pa.RecordBatch):
        return generator.record_keys(rows)
    return pa.chunked_array([generator.record_keys(batch) for batch in rows.to_batches()], pa.string())


@dataclass(frozen=True, slots=True)
class _Piece:
    """The records of one block."""

    rows: pa.Table
    keys: pa.ChunkedArray
    is_delete: Array
    is_commit_delete: Array


def _joined(parts: list[Array]) -> Array:
    return np.concatenate([np.zeros(0, dtype=bool), *parts])


def _pieces(reading: LogReading, file_slice: FileSlice) -> Iterator[_Piece]:
    with ExitStack() as files:
        opened = {log: files.enter_context(_open(reading.storage, log)) for log in file_slice.logs}
        placed = [PlacedBlock(log, block) for log, file in opened.items() for block in _scan(log, file)]
        _check_whole(reading, placed)
        for each in blocks_to_merge(placed, reading.instants):
            with _about(each.file, each.instant):
                yield _piece(reading, each.block, read_content(opened[each.file], each.block))


def _check_whole(reading: LogReading, placed: Sequence[PlacedBlock]) -> None:
    """Refuse log files that lost records of committed writes.

    In layout 1 the blocks of a write that died stand in the slice's log files until the next write
    takes them back; in layout 2 a visible file is whole, for its one write was committed.

    Raises:
        CorruptTableError: a torn stretch that no dead write explains.
    """
    torn = torn_blocks(placed)
    if torn and not (reading.config.layout == 1 and reading.instants.is_written):
        raise CorruptTableError(
            f"a log file of a committed write is cut off or damaged at byte {torn[0].block.offset}:"
            " restore it from a backup, or roll the write back",
            instant=torn[0].file.instant,
            path=torn[0].file.status.path,
        )


@contextmanager
def _about(log: LogFile, instant: str | None = None) -> Iterator[None]:
    """Say which file an error is about."""
    try:
        yield
    except FileNotFoundError as error:
        raise CorruptTableError(
            "a log file that the table refers to is missing: restore it from a backup",
            path=log.status.path,
        ) from error
    except DrawstringError as error:
        raise error.at(instant=instant, path=log.status.path) from error


def _open(storage: Storage, log: LogFile) -> pa.NativeFile:
    with _about(log):
        return storage.open(log.status.path)


def _scan(log: LogFile, file: pa.NativeFile) -> list[LogBlock]:
    with _about(log):
        size = file.size()
        if size == 0:
            raise CorruptTableError("a log file is empty: restore it from a backup, or roll the write back")
        return scan_blocks(file, size)


def _piece(reading: LogReading, block: LogBlock, content: bytes) -> _Piece:
    if block.is_partial:
        raise UnsupportedError(
            "log blocks with partial updates (MERGE INTO) cannot be read yet: compact first"
        )
    if block.kind is BlockType.DELETE:
        return _delete_piece(reading, content)
    return _data_piece(reading, pa.Table.from_batches(_rows(reading, block, content), reading.schema))


def _rows(reading: LogReading, block: LogBlock, content: bytes) -> list[pa.RecordBatch]:
    """Return the records of a data block, only the columns needed."""
    if block.kind is BlockType.PARQUET_DATA:
        batches: Iterable[pa.RecordBatch] = read_parquet_bytes(content, reading.schema.names)
    elif block.schema_json is None:
        raise CorruptTableError(f"the log block at byte {block.offset} has no schema: restore the file")
    elif block.kind is BlockType.AVRO_DATA:
        batches = decode_datums(content, block.schema_json, columns=reading.schema.names)
    else:
        entries = HFileReader(pa.BufferReader(content), len(content)).scan()
        batches = read_hfile_records(entries, block.schema_json, reading.schema.names)
    return [conform(batch, reading.schema) for batch in batches]


def _data_piece(reading: LogReading, rows: pa.Table) -> _Piece:
    keys = record_keys(rows, reading.config)
    if keys.null_count:
        raise CorruptTableError(
            f"{keys.null_count} records of a log block have no record key: restore the file, or roll the"
            " write back"
        )
    marks = deleted(rows, reading.config)
    if marks is None:
        nothing = np.zeros(rows.num_rows, dtype=bool)
        return _Piece(rows, keys, nothing, nothing)
    is_delete = marks.to_numpy()
    ordering = [rows.column(name) for name in reading.ordering_fields]
    return _Piece(rows, keys, is_delete, is_delete & without_ordering(ordering, rows.num_rows))


def _delete_piece(reading: LogReading, content: bytes) -> _Piece:
    deletes = decode_deletes(content)
    count = len(deletes.keys)
    columns = {KEY_COLUMN: deletes.keys}
    is_commit_delete = deletes.is_commit_time.to_numpy(zero_copy_only=False)
    if deletes.ordering is not None and reading.ordering_fields:
        columns |= zip(reading.ordering_fields, _delete_ordering(reading, deletes.ordering), strict=True)
    rows = pa.table(
        [
            columns[field.name] if field.name in columns else pa.nulls(count, field.type)
            for field in reading.schema
        ],
        schema=reading.schema,
    )
    return _Piece(rows, pa.chunked_array([deletes.keys]), np.ones(count, dtype=bool), is_commit_delete)


def _delete_ordering(reading: LogReading, ordering: pa.Array) -> list[pa.Array]:
    """Return the ordering values of deletes with the types of the table's columns."""
    is_several = pa.types.is_struct(ordering.type)
    columns = ordering.flatten() if is_several else [ordering]
    types = [reading.schema.field(name).type for name in reading.ordering_fields]
    if len(columns) != len(types):
        raise CorruptTableError(
            f"its deletes have {len(columns)} ordering values, the table has {len(types)} ordering columns"
        )
    return [column.cast(kind, safe=False) for column, kind in zip(columns, types, strict=True)]


def without_ordering(ordering: Sequence[pa.ChunkedArray], rows: int) -> Array:
    """Tell which rows have no ordering value: all null, or the int 0 that Hudi takes for none."""
    absent = np.ones(rows, dtype=bool)
    for column in ordering:
        values = column.fill_null(0) if pa.types.is_int32(column.type) else column
        is_none = pc.equal(values, 0) if pa.types.is_int32(column.type) else pc.is_null(values)
        absent &= is_none.to_numpy()
    return absent
