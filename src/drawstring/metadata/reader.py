"""Read the records of a file slice of the metadata table: unmerged, merged, or from the cache.

`read_rows` returns the rows of the base file and then those of the log blocks in merge order, unmerged.

`merged_parts` merges a slice in bounded memory; all files are sorted by key:

    base file ──> blocks ──┐
    log block ──> blocks ──┼── up to a common fence (`sorted_runs`) ── newest or combined ──> records
    log block ──> blocks ──┘

Where only the newest version of a key counts, the merge copies records as they are encoded.

`DecodedRecordCache` is the cache of this process; the files never change. A writer reads the list of files
for each of its commits, and only the log file of the last commit is new each time. Between two commits the
merged list stays the same too. Keys are looked up in the record index when a write begins, again when it
commits, and for queries of a few keys: the cache decodes a small file of the index once for all of them.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, Final, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base import limits
from drawstring.base.errors import REPAIR, CorruptTableError
from drawstring.base.resources import ONE_THREAD_BYTES_MAX
from drawstring.config.table_config import TableConfig
from drawstring.filegroups.log_scanner import (
    PlacedBlock,
    blocks_to_merge,
    check_whole,
    log_error_context,
    open_log,
    open_logs,
    scan_log,
)
from drawstring.filegroups.read_task import InstantRange, LogReading
from drawstring.filegroups.sorted_merge import (
    WINDOWS_IN_MEMORY_MAX,
    SortedRun,
    in_few_windows,
    merge_by_fences,
)
from drawstring.formats.errors import about_file
from drawstring.formats.hfile import HFileReader, read_hfile_records
from drawstring.formats.log_files import block_deletes, log_blocks
from drawstring.formats.log_inline import BlockType, LogBlock, read_content
from drawstring.formats.log_native import NativeBlock
from drawstring.merge.record_version import combined_chunks
from drawstring.metadata.column_stats_record import combined, with_cuts
from drawstring.metadata.log_format import VALUE, encoded_records
from drawstring.metadata.merging import newest, removed_keys
from drawstring.metadata.table import IS_REMOVED, KEY, Kind, Lookup, record_schema
from drawstring.model.files import FileSlice, FileStatus, LogFile
from drawstring.schema.evolution import conform
from drawstring.storage.protocol import Storage

BYTES_MAX: Final = 64 << 20
"""Bytes of records that a process remembers."""

_JUST_WRITTEN: Final = -1

FileKey = tuple[str, FileStatus]
"""Address of the metadata table, and a file of it."""

Key = FileKey | tuple[str, FileSlice] | tuple[str, tuple[FileSlice, ...], InstantRange]
"""A file; or of merged records their metadata table and slice, or slices and the instants that count."""


class Sized(Protocol):
    """Records of a file, or of a part of it."""

    @property
    def nbytes(self) -> int: ...


T = TypeVar("T", bound=Sized)


@dataclass(slots=True)
class DecodedRecordCache:
    """Records by the file that they are stored in; those that were not asked for longest are forgotten.

    Attributes:
        bytes_max: bytes of records to remember.
        base_bytes_max: size of a base file up to which all its records are decoded, to be remembered, when
            some are looked up.
    """

    bytes_max: int = BYTES_MAX
    base_bytes_max: int = 0
    _known: OrderedDict[Key, Sequence[Any]] = field(default_factory=OrderedDict)
    _bytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, key: Key, decode: Callable[[], Sequence[T]]) -> Sequence[T]:
        """Return the records of a file, or merged ones.

        Args:
            key: the file, or what was merged.
            decode: reads and decodes them if they are not known.
        """
        with self._lock:
            known = self._known.pop(key, None)
            if known is None and (written := _written(key)) is not None:
                known = self._known.pop(written, None)
            if known is not None:
                self._known[key] = known
                return known
        found = decode()
        self._keep(key, found)
        return found

    def known(self, key: Key) -> Sequence[Any] | None:
        """Return records that are known, None for others."""
        with self._lock:
            found = self._known.get(key)
            if found is not None:
                self._known.move_to_end(key)
            return found

    def remember(self, key: FileKey, records: Sequence[Sized]) -> None:
        """Remember the records of a file that this process wrote; its modification time is not known."""
        self._keep((key[0], replace(key[1], modified_ms=_JUST_WRITTEN)), records)

    def _keep(self, key: Key, records: Sequence[Sized]) -> None:
        with self._lock:
            if key not in self._known:
                self._known[key] = records
                self._bytes += _bytes_of(records)
            while self._bytes > self.bytes_max:
                _, forgotten = self._known.popitem(last=False)
                self._bytes -= _bytes_of(forgotten)


def _written(key: Key) -> Key | None:
    """Return the key of a file that this process has just written; None for merged records."""
    return (key[0], replace(key[1], modified_ms=_JUST_WRITTEN)) if isinstance(key[1], FileStatus) else None


def _bytes_of(records: Sequence[Sized]) -> int:
    return sum(each.nbytes for each in records)


FILE_LISTS: Final = DecodedRecordCache()
"""What this process knows of the partition `files` of all tables."""

SMALL_INDEX_CACHE: Final = DecodedRecordCache(16 << 20, ONE_THREAD_BYTES_MAX)
"""What this process knows of small file groups of record indexes."""


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
    decoded: DecodedRecordCache | None = None

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
        with log_error_context(placed.file, placed.instant):
            yield from self._read_block(placed.block, file, self.lookup)

    def _of_decoded_logs(self, decoded: DecodedRecordCache) -> Iterator[pa.RecordBatch]:
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
        with log_error_context(log, placed.instant):
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


_COMBINED: Final = (Kind.STATISTICS, Kind.EXPRESSION_INDEX)
_UNSORTED: Final = f"An HFile is damaged (its keys are not in order). To repair the table, {REPAIR}."
_Run = SortedRun[pa.Table]


def merged_parts(table: MetadataFiles, file_slice: FileSlice, kind: Kind) -> Iterator[pa.Table]:
    """Yield the merged records of a slice, part by part, by ascending keys.

    Args:
        table: the metadata table.
        file_slice: one of its slices, not of `files`.
        kind: what its records hold.

    Returns:
        The columns of `record_schema`, or of `ENCODED`.

    Raises:
        CorruptTableError: a file is missing, damaged or not sorted.
    """
    merge, schema = _merge_of(kind)
    with _opened_slice(SliceRows(table, file_slice, schema, None)) as runs:
        for base, *logs in merge_by_fences(runs):
            if any(logs):
                yield merge(pa.concat_tables([*base, *(window for run in logs for window in run)]))
            else:
                yield from (window.drop_columns([IS_REMOVED]) for window in base)


def logged_parts(
    table: MetadataFiles, file_slice: FileSlice, kind: Kind
) -> Iterator[tuple[pa.Table, pa.Array]]:
    """Yield what the log files of a slice say, part by part, by ascending keys: records and removed keys.

    A removal comes before the record of the same key.

    Args:
        table: the metadata table.
        file_slice: one of its slices, not of `files`.
        kind: what its records hold.

    Raises:
        CorruptTableError: a file is missing, damaged or not sorted.
    """
    merge, schema = _merge_of(kind)
    with _opened_slice(SliceRows(table, replace(file_slice, base=None), schema, None)) as runs:
        for windows in merge_by_fences(runs):
            rows = pa.concat_tables([window for run in windows for window in run])
            rows = with_cuts(rows) if kind in _COMBINED else rows
            yield merge(rows), removed_keys(rows)


def _merge_of(kind: Kind) -> tuple[Callable[[pa.Table], pa.Table], pa.Schema]:
    return (combined, record_schema(kind)) if kind in _COMBINED else (newest, ENCODED)


@contextmanager
def _opened_slice(rows: SliceRows) -> Iterator[Sequence[_Run]]:
    """Open the base file and the blocks of log files that count, in the order of merging."""
    with open_logs(rows.reading, rows.file_slice) as logs:
        base = rows.file_slice.base
        windows = in_few_windows(rows.of_base(), _keys, limits.in_force.base_window_bytes)
        runs = [_run(windows, "" if base is None else base.status.path, 1)]
        for placed in logs.blocks_to_merge(rows.table.instants):
            windows = map(_one, rows.of_block(placed, logs.files[placed.file]))
            in_order = map(_sorted, windows) if placed.block.kind is BlockType.DELETE else windows
            runs.append(_run(in_order, placed.file.status.path, WINDOWS_IN_MEMORY_MAX))
        yield runs


def _run(windows: Iterator[pa.Table], path: str, held: int) -> _Run:
    return SortedRun([(path, windows)], _keys, held, _UNSORTED, once=True)


def _keys(rows: pa.Table | pa.RecordBatch) -> pa.Array:
    return combined_chunks(rows.column(KEY))


def _one(batch: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches([batch])


def _sorted(removed: pa.Table) -> pa.Table:
    """Return the entries of a delete block in the order of their keys."""
    return removed.sort_by(KEY)
