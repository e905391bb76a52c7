"""Open the log files of a slice: find the blocks to merge, read their records, find deletes and keys.

Blocks in merge order (specification: Log Format). All blocks, files in order, without

  - torn blocks, blocks of instants that are not visible
  - blocks that a rollback command block after them cancels
  - blocks that a log compaction rewrote; its block replaces the newest of them

Deletes (specification: Log Format, Deletes). A record is a delete if it is in a delete block, if
`_hoodie_is_deleted` is true, if its delete-key column holds the delete marker of the table, or if
`_hoodie_operation` is a delete.

`OpenLogs` reads the records of the blocks. At most `files_open_max` local log files are open at a
time (`base.limits`).

Log record of a base row:
Record keys are texts. Where all key columns are integers, `KeyNumbers` compares the columns themselves. It
parses the texts of the log records once and does not read the long texts of the base rows:

    log records   `l_orderkey:7,l_linenumber:1` ──> (7, 1) ──> hash ──┐
    base rows      l_orderkey   l_linenumber    ──> (7, 1) ──> hash ──┴── equal? ── equal numbers? ──> found

Most base rows have no log record. A table of flags, one for each value of the first bits of a hash, excludes
almost all of them, at a tenth of the cost of a hash lookup. Where one of several columns is almost a key, a
first flag table covers that column alone, and the other columns are read only for the rows that it leaves.
A text is parsed only if it is the text that the numbers make, so that both ways find the same rows.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.base import limits
from drawstring.base.errors import REPAIR, CorruptTableError, DrawstringError, MissingFileError
from drawstring.config.payload_classes import DELETE_FIELD, DELETE_MARKER
from drawstring.config.table_config import MergeMode, PayloadRule, TableConfig
from drawstring.config.table_types import KeyGeneratorType
from drawstring.filegroups.read_task import InstantRange, LogReading
from drawstring.formats.log_files import block_deletes, block_rows, log_blocks
from drawstring.formats.log_inline import BlockType, DeleteRecords, LogBlock
from drawstring.formats.log_native import FOOTER_CACHE, NativeBlock, native_deletes_windows
from drawstring.keygen.key_generator import KeyGenerator
from drawstring.merge.record_version import Array, combined_chunks, stored_ordering
from drawstring.model.files import FileSlice, LogFile
from drawstring.schema.evolution import conform
from drawstring.schema.fields import IS_DELETED_COLUMN, OPERATION_COLUMN, RECORD_KEY, columns_with, type_at
from drawstring.schema.internal_schema import stored_columns, with_query_names
from drawstring.storage.protocol import Storage
from drawstring.storage.streams import RangeFile

_DELETE_OPERATIONS = pa.array(["D", "-U"])


def marker_of(config: TableConfig) -> tuple[str, str] | None:
    """Return the column and the value that mark a delete; None if the table has no delete marker."""
    column = config.merge_properties.get(DELETE_FIELD)
    text = config.merge_properties.get(DELETE_MARKER)
    return (column, text) if column and text else None


def delete_columns(config: TableConfig, schema: pa.Schema) -> list[str]:
    """Return the columns of the table that can mark a delete."""
    marker = marker_of(config)
    names = [IS_DELETED_COLUMN, OPERATION_COLUMN, *([marker[0]] if marker else [])]
    return [name for name in names if name in schema.names]


def deleted(rows: pa.Table, config: TableConfig) -> pa.ChunkedArray | None:
    """Return for each row of a data block whether it deletes its key; None if no row does."""
    names, marks = frozenset(rows.column_names), []
    if IS_DELETED_COLUMN in names and pa.types.is_boolean(rows.schema.field(IS_DELETED_COLUMN).type):
        marks.append(rows.column(IS_DELETED_COLUMN))
    if OPERATION_COLUMN in names:
        marks.append(pc.is_in(rows.column(OPERATION_COLUMN), _DELETE_OPERATIONS))
    marker = marker_of(config)
    if marker is not None and marker[0] in names:
        marks.append(_equals(rows.column(marker[0]).cast(pa.string()), marker[1], config))
    result = None
    for mark in marks:
        mark = mark.fill_null(False)
        result = mark if result is None else pc.or_(result, mark)
    return result


def _equals(column: pa.ChunkedArray, text: str, config: TableConfig) -> pa.ChunkedArray:
    """Compare with the delete marker: payload classes ignore its case, table version 9 does not."""
    if config.payload_rule is None:
        return pc.equal(column, text)
    return pc.equal(pc.utf8_lower(column), text.lower())


def row_deletes(rows: pa.Table, config: TableConfig) -> tuple[Array, Array]:
    """Return for each row whether it deletes its key, and whether it wins over any earlier version."""
    marks = deleted(rows, config)
    if marks is None:
        nothing = np.zeros(rows.num_rows, dtype=bool)
        return nothing, nothing
    is_delete = marks.to_numpy()
    if row_deletes_always_win(config):
        return is_delete, is_delete
    return is_delete, is_delete & without_ordering(stored_ordering(rows, config), rows.num_rows)


def without_ordering(ordering: Sequence[pa.Array | pa.ChunkedArray], rows: int) -> Array:
    """Return which rows have no ordering value: all null, or the int 0, which Hudi uses for none."""
    absent = np.ones(rows, dtype=bool)
    for column in map(combined_chunks, ordering):
        is_none = pc.equal(column.fill_null(0), 0) if pa.types.is_int32(column.type) else pc.is_null(column)
        absent &= is_none.to_numpy(zero_copy_only=False)
    return absent


def block_deletes_always_win(config: TableConfig) -> bool:
    """Return whether delete blocks win whatever their ordering values are; Hudi's code does so."""
    return config.payload_rule is not None or config.merge_mode is MergeMode.CUSTOM


def row_deletes_always_win(config: TableConfig) -> bool:
    """Return whether rows that are marked as deletes win whatever their ordering values are."""
    return config.payload_rule is PayloadRule.LATE_STAMP or config.merge_mode is MergeMode.CUSTOM


@dataclass(frozen=True, slots=True)
class PlacedBlock:
    """A log block and its log file."""

    file: LogFile
    block: LogBlock

    @property
    def instant(self) -> str:
        """Requested time of the write that wrote the block."""
        return self.block.instant or self.file.instant

    @property
    def holds_records(self) -> bool:
        """Whether it is a data or delete block."""
        return self.block.kind.is_data or self.block.kind is BlockType.DELETE


def blocks_to_merge(blocks: Iterable[PlacedBlock], instants: InstantRange) -> list[PlacedBlock]:
    """Return the visible data and delete blocks, in merge order.

    Args:
        blocks: all blocks of a slice, file by file.
        instants: the visible instants.
    """
    return _with_log_compactions(_not_rolled_back(blocks, instants))


def final_instants(blocks: Iterable[PlacedBlock], instants: InstantRange) -> Mapping[str, str]:
    """Return, by instant with visible records, the instant whose blocks have them after all log compactions.

    Args:
        blocks: all blocks of a slice, file by file.
        instants: the visible instants.
    """
    alive = _not_rolled_back(blocks, instants)
    finals = _final_instants(alive, _rewritten_by(alive))
    return {placed.instant: final for placed, final in zip(alive, finals, strict=True)}


def _not_rolled_back(blocks: Iterable[PlacedBlock], instants: InstantRange) -> list[PlacedBlock]:
    """Return the visible data and delete blocks that no rollback took back, file by file.

    The block of a log compaction is left out if the records that it rewrote are not visible, as in an
    increment of later commits: nothing would tell its place among their blocks.
    """
    rolled_back: set[str] = set()
    alive: list[PlacedBlock] = []
    for placed in reversed(list(blocks)):
        target = placed.block.rolls_back
        if target is not None:
            rolled_back.add(target)
        elif placed.holds_records and placed.instant not in rolled_back and _is_visible(placed, instants):
            alive.append(placed)
    return alive[::-1]


def _is_visible(placed: PlacedBlock, instants: InstantRange) -> bool:
    rewritten = placed.block.compacted_instants
    return instants.admits(placed.instant) and (not rewritten or any(map(instants.admits, rewritten)))


def torn_blocks(blocks: Iterable[PlacedBlock]) -> list[PlacedBlock]:
    """Return the torn blocks that no later rollback command block cancels.

    Args:
        blocks: all blocks of a slice, file by file.
    """
    torn: list[PlacedBlock] = []
    for placed in blocks:
        if placed.block.rolls_back is not None:
            torn = []
        elif placed.block.kind is BlockType.CORRUPT:
            torn.append(placed)
    return torn


def check_whole(reading: LogReading, placed: Sequence[PlacedBlock]) -> None:
    """Check that no log file lost records of a committed write.

    In layout 1, the blocks of a failed write stay in the log files of the slice until the next write rolls
    them back; in layout 2, a visible file is complete because its only write was committed.

    Raises:
        CorruptTableError: a log file has a torn block and no failed write explains it.
    """
    torn = torn_blocks(placed)
    if torn and not (reading.config.rules.names_logs_by_slice and reading.instants.has_pending_write):
        raise CorruptTableError(
            f"A log file of a committed write is damaged at byte {torn[0].block.offset}: {REPAIR}.",
            instant=torn[0].file.instant,
            path=torn[0].file.status.path,
        )


def _with_log_compactions(blocks: list[PlacedBlock]) -> list[PlacedBlock]:
    """Move the blocks of log compactions to the place of the newest block that they rewrote."""
    rewritten_by = _rewritten_by(blocks)
    if not rewritten_by:
        return blocks
    finals = _final_instants(blocks, rewritten_by)
    newest_place = {final: place for place, final in enumerate(finals) if final != blocks[place].instant}
    by_instant: dict[str, list[PlacedBlock]] = {}
    for placed in blocks:
        by_instant.setdefault(placed.instant, []).append(placed)
    merged: list[PlacedBlock] = []
    for place, (placed, final) in enumerate(zip(blocks, finals, strict=True)):
        if newest_place.get(final) == place:
            merged += by_instant.get(final, ())
        elif final not in newest_place:
            merged.append(placed)
    return merged


def _rewritten_by(blocks: Sequence[PlacedBlock]) -> dict[str, str]:
    """Return, by instant, the log compaction that rewrote its blocks."""
    return {
        original: placed.instant
        for placed in reversed(blocks)
        for original in placed.block.compacted_instants
    }


def _final_instants(blocks: Sequence[PlacedBlock], rewritten_by: Mapping[str, str]) -> list[str]:
    """Return the instant whose blocks replace each block, through log compactions of log compactions."""
    known: dict[str, str] = {}
    for placed in blocks:
        instant: str | None = placed.instant
        path: dict[str, None] = {}
        while instant is not None and instant not in known and instant not in path:
            path[instant] = None
            instant = rewritten_by.get(instant)
        last = next(reversed(path), placed.instant)
        known |= dict.fromkeys(path, last if instant is None else known.get(instant, last))
    return [known[placed.instant] for placed in blocks]


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
        with log_error_context(placed.file, placed.instant):
            return _piece(self.reading, placed, self.files)

    def read_all(self, placed: Sequence[PlacedBlock]) -> list[LogPiece]:
        """Read the records of blocks that are wanted; files without any by their footers are not opened."""
        pieces = blocks_without_records(self.reading, placed)
        for at, each in enumerate(placed):
            if not _is_excluded(self.reading, each):
                pieces[at] = _of_keys(self.read(each), self.reading.keys)
        return pieces

    def windows(self, placed: PlacedBlock) -> Iterator[LogPiece]:
        """Yield the records of a native log file piece by piece; see `read`."""
        reading, block = self.reading, placed.block
        with log_error_context(placed.file, placed.instant):
            if isinstance(block, NativeBlock) and block.kind is BlockType.DELETE:
                for deletes in native_deletes_windows(self.files[placed.file], block, reading.wanted):
                    yield _of_keys(_delete_piece(reading, deletes), reading.keys)
                return
            batches = () if _is_excluded(reading, placed) else _stored_rows(reading, placed, self.files)
            for batch in batches:
                yield _of_keys(_records_piece(reading, block, [batch]), reading.keys)

    def rows(self, placed: PlacedBlock) -> Iterator[pa.RecordBatch]:
        """Yield the records of a data block, batch by batch."""
        with log_error_context(placed.file, placed.instant):
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
        if (
            len(self) >= limits.in_force.files_open_max
            and self._storage.local_path(log.status.path) is not None
        ):
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
    block = None if log.native is None else FOOTER_CACHE.recall(storage, log)
    return [] if block is None else [block]


def blocks_without_records(reading: LogReading, placed: Sequence[PlacedBlock]) -> list[LogPiece]:
    """Return blocks without their records: what decides how all records are merged."""
    nothing = np.zeros(0, dtype=bool)
    empty = LogPiece(empty_table(reading), pa.chunked_array([], pa.string()), nothing, nothing)
    return [
        replace(
            empty,
            is_delete_block=not each.block.kind.is_data,
            is_partial=each.block.is_partial,
            schema_json=each.block.schema_json if each.block.kind.is_data else None,
        )
        for each in placed
    ]


def empty_table(reading: LogReading) -> pa.Table:
    """Return a table without rows; `Schema.empty_table` takes 40 times as long, for it makes arrays."""
    return pa.Table.from_batches([], reading.schema)


def _is_excluded(reading: LogReading, placed: PlacedBlock) -> bool:
    """Return whether the footer of a native log file says that none of its records is wanted."""
    return isinstance(placed.block, NativeBlock) and placed.block.excludes(reading.wanted)


@contextmanager
def log_error_context(log: LogFile, instant: str | None = None) -> Iterator[None]:
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
    with log_error_context(log):
        return storage.open(log.status.path)


def scan_log(storage: Storage, log: LogFile, file: pa.NativeFile) -> list[LogBlock]:
    """Return the blocks of an open log file.

    Raises:
        CorruptTableError: the file is empty, or a block header is invalid.
    """
    with log_error_context(log):
        blocks = log_blocks(file, log, storage.local_path(log.status.path))
    if log.native is not None and isinstance(blocks[0], NativeBlock):
        FOOTER_CACHE.keep(storage, log, blocks[0])
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
        yield with_query_names(batch, renames)


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


_INTEGER: Final = "0|-?[1-9][0-9]*"
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_FLAGS_PER_KEY: Final = 32
_FLAG_BITS_MAX: Final = 20
"""The flags take up to a megabyte, so that they stay in the cache of a core."""
_REPEATED_MAX: Final = 2
"""How often the values of a column repeat, on average, that is looked at before the others."""
_BLOCK_ROWS: Final = 8_192
"""Rows that are hashed at once: their numbers stay in the cache of a core, and take no fresh memory."""
_OF_ANY_COLUMNS: Final = (KeyGeneratorType.AUTO, KeyGeneratorType.USER_PROVIDED)
_NAMED_SOMETIMES: Final = (KeyGeneratorType.COMPLEX, KeyGeneratorType.GLOBAL_DELETE)
"""Generators whose keys of one column are `field:value` or `value`, by the release that wrote them."""


@dataclass(frozen=True, slots=True)
class KeyNumbers:
    """Keys of integer columns as numbers.

    Attributes:
        columns: the key columns.
        numbers: for each of them, the values of the log records.
        hashes: one for each log record; they are distinct.
        flags: by the first bits of a hash, whether a log record has one that begins with them.
        telling: the place of a column whose values hardly repeat in the log records; None without one.
        flags_of_telling: like `flags`, of hashes of that column alone.
    """

    columns: Sequence[str]
    numbers: Sequence[Array]
    hashes: pa.Array
    flags: Array
    telling: int | None = None
    flags_of_telling: Array | None = None

    @staticmethod
    def of(columns: Sequence[str], numbers: Sequence[Array]) -> KeyNumbers | None:
        """Return the keys of log records; None if two of them have the same hash.

        Args:
            columns: the key columns.
            numbers: for each of them, the values of the log records.
        """
        hashes = _hashes(numbers)
        if _distinct(hashes) < len(hashes):
            return None
        known = KeyNumbers(columns, numbers, pa.array(hashes), _flags(hashes))
        counts = [_distinct(each) for each in numbers]
        telling = int(np.argmax(counts))
        if len(columns) == 1 or counts[telling] * _REPEATED_MAX < len(hashes):
            return known
        return replace(known, telling=telling, flags_of_telling=_flags(_hashes([numbers[telling]])))

    def find(self, rows: pa.RecordBatch) -> tuple[Array, Array]:
        """Return the base rows that have a log record, and the numbers of those log records."""
        stored = [rows.column(name) for name in self.columns]
        values = [_numbers(column) for column in stored]
        maybe, hashes = self._flagged(values)
        places = pc.index_in(pa.array(hashes), value_set=self.hashes)
        is_found = places.is_valid().to_numpy(zero_copy_only=False)
        found, records = maybe[is_found], places.drop_null().to_numpy(zero_copy_only=False)
        is_same = np.ones(len(found), dtype=bool)
        for column, own, logged in zip(stored, values, self.numbers, strict=True):
            is_same &= own[found] == logged[records]
            if column.null_count:
                is_same &= column.is_valid().to_numpy(zero_copy_only=False)[found]
        return found[is_same], records[is_same]

    def _flagged(self, values: Sequence[Array]) -> tuple[Array, Array]:
        """Return the base rows whose hash begins like one of a log record, and their hashes."""
        if self.telling is None or self.flags_of_telling is None:
            return _flagged(values, self.flags)
        maybe, _ = _flagged([values[self.telling]], self.flags_of_telling)
        left, hashes = _flagged([column[maybe] for column in values], self.flags)
        return maybe[left], hashes


def key_numbers(
    keys: pa.Array, config: TableConfig, stored: pa.Schema, others: Collection[str]
) -> KeyNumbers | None:
    """Return the keys of log records as numbers; None if texts are to be compared.

    Args:
        keys: the record keys of the log records, distinct.
        config: the table.
        stored: the columns of the base file.
        others: columns of the base rows that are read anyway.
    """
    fields = config.record_key_fields
    costs_more = RECORD_KEY in others and not all(field in others for field in fields)
    return None if costs_more or not _are_integers(config, stored) else _parsed_keys(keys, config)


def _are_integers(config: TableConfig, stored: pa.Schema) -> bool:
    """Return whether record keys are made of integer columns of a base file alone, always in one form."""
    fields, generator = config.record_key_fields, config.key_generator
    if not fields or generator in _OF_ANY_COLUMNS:
        return False
    if len(fields) == 1 and generator in _NAMED_SOMETIMES:
        return False
    return all(field in stored.names and pt.is_integer(stored.field(field).type) for field in fields)


def _parsed_keys(keys: pa.Array, config: TableConfig) -> KeyNumbers | None:
    """Return keys as numbers; None if a key is not the text of numbers, or two have the same hash."""
    fields = config.record_key_fields
    is_prefixed = KeyGenerator(config).is_prefixed()
    parts = [
        f"{re.escape(field) + ':' if is_prefixed else ''}(?P<n{at}>{_INTEGER})"
        for at, field in enumerate(fields)
    ]
    found = pc.extract_regex(keys, f"^{','.join(parts)}$")
    if found.null_count:
        return None
    try:
        numbers = [_numbers(part.cast(pa.int64())) for part in found.flatten()]
    except pa.ArrowInvalid:
        return None
    return KeyNumbers.of(fields, numbers)


def _numbers(column: pa.Array) -> Array:
    """Return integers as numpy has them, in place of null any."""
    filled = column.fill_null(0) if column.null_count else column
    numbers: Array = filled.to_numpy(zero_copy_only=False)
    return numbers


def _hashes(columns: Sequence[Array]) -> Array:
    """Return a hash of the numbers of each row (uint64)."""
    first, *others = (column.astype(np.int64, copy=False).view(np.uint64) for column in columns)
    hashes: Array = first * _FACTOR
    for column in others:
        hashes += column
        hashes *= _FACTOR
    return hashes


def _flags(hashes: Array) -> Array:
    """Return by the first bits of a hash whether one of some hashes begins with them."""
    bits = min(_FLAG_BITS_MAX, (len(hashes) * _FLAGS_PER_KEY).bit_length() or 1)
    flags = np.zeros(1 << bits, dtype=bool)
    flags[_first_bits(hashes, len(flags))] = True
    return flags


def _flagged(values: Sequence[Array], flags: Array) -> tuple[Array, Array]:
    """Return the rows whose hash begins like one that is flagged, and their hashes."""
    rows, hashes = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.uint64)]
    for start in range(0, len(values[0]), _BLOCK_ROWS):
        block = _hashes([column[start : start + _BLOCK_ROWS] for column in values])
        maybe = np.flatnonzero(flags.take(_first_bits(block, len(flags))))
        rows.append(maybe + start)
        hashes.append(block[maybe])
    return np.concatenate(rows), np.concatenate(hashes)


def _distinct(values: Array) -> int:
    """Return the number of distinct values."""
    ordered = np.sort(values)
    return int((ordered[1:] != ordered[:-1]).sum()) + 1 if len(ordered) else 0


def _first_bits(hashes: Array, values: int) -> Array:
    """Return the first bits of hashes, of which there are so many values."""
    return (hashes >> np.uint64(65 - values.bit_length())).view(np.int64)
