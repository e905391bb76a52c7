"""Scan log files that are too large for memory: find the surviving records by key, then read only these.

    blocks in merge order ── keys, ordering, delete columns ──> rows ── winners ──> one row number per key
    blocks in merge order ── the columns needed, batch by batch ──> the rows with these numbers

The scanner reads the log files twice and has one block in memory at a time. This requires a record merger
that keeps the winning version as a whole; if versions are merged column by column, all of them are in memory.
A map on disk, as Hudi has it, would write and read every record once more, at random places.

In sorted files the first pass may find that only few blocks have survivors: where the same keys are written
again and again, most records have a newer version. The scanner makes this pass from eight blocks and eight
other columns on, if the bloom filters of the newest files have a sample of earlier keys. Deletes, partial
updates and reads of some keys need all blocks.

Cache of merged log records (`MERGED_LOG_CACHE`):
The merged log records of a slice, and which base rows they replace, stay the same until the slice gets
another log file. A process caches them, in bounded memory, for the slices that it read last:

    first query    log files ── decoded, merged ──> log records ┐        keys of the base file
                                            both are cached     ├ ─────> compared: base rows replaced
    next queries   the columns that they need are there? ───────┘ no log file is opened, no key is decoded

A cache entry serves a query that sees the same blocks of the same files with the same schema and table
properties. Columns that the entry lacks are read from the log files and added to it. Services, writes and
queries of a few keys cache nothing. Neither do reads of tables in memory (`memory://`), where a file name may
be used again. Only the first query notices that somebody deleted a log file.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.filegroups.log_scanner import LogPiece, OpenLogs, PlacedBlock, delete_columns, open_logs
from drawstring.filegroups.read.log_records import LogRecords, merged_records
from drawstring.filegroups.read_task import InstantRange, LogReading, ReadTask
from drawstring.formats.bloom_footer import FILTER
from drawstring.formats.filter import LogRowSelection
from drawstring.formats.log_inline import BlockType
from drawstring.formats.log_native import NativeBlock
from drawstring.merge.record_merger import merger_of
from drawstring.merge.record_version import Array, combined_chunks, ordering_columns
from drawstring.model.files import FileSlice
from drawstring.schema.fields import RECORD_KEY

_NUMBER: Final = "_number"

_BLOCKS_MIN: Final = 8
_OTHER_COLUMNS_MIN: Final = 8
"""Blocks, and columns that decide nothing, from which on it is asked which blocks have survivors."""

_KEYS_ASKED: Final = 16
_BLOCKS_ASKED: Final = 32
"""How many keys of one block are looked for in how many later ones."""


@dataclass(frozen=True, slots=True)
class StreamedRecords(LogRecords):
    """The surviving log record of each key; only keys and ordering columns are in memory.

    Attributes:
        reading: settings for reading the other columns.
        file_slice: the slice with the log files.
    """

    reading: LogReading
    file_slice: FileSlice

    def order(self, alive: Array) -> Array:
        """Return the numbers of some of the records in the order of the log files."""
        selected = np.flatnonzero(alive)
        return selected[np.argsort(self.versions.rows.column(_NUMBER).to_numpy()[selected])]

    def rows(self, alive: Array, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield some of the records, in the order of the log files; see `LogRecords`."""
        numbers = self.versions.rows.column(_NUMBER).to_numpy()[alive]
        if not len(numbers):
            return
        is_selected = np.zeros(int(numbers.max()) + 1, dtype=bool)
        is_selected[numbers] = True
        with open_logs(self.reading, self.file_slice) as logs:
            first = 0
            for placed in logs.blocks_to_merge(self.reading.instants):
                if placed.block.kind is BlockType.DELETE:
                    first += logs.read(placed).rows.num_rows
                    continue
                for batch in logs.rows(placed):
                    chosen = np.zeros(batch.num_rows, dtype=bool)
                    part = is_selected[first : first + batch.num_rows]
                    chosen[: len(part)] = part
                    first += batch.num_rows
                    if chosen.any():
                        yield batch.select(list(names)).filter(pa.array(chosen))


def can_scan_twice(reading: LogReading, file_slice: FileSlice) -> bool:
    """Return whether the large log files of a slice can be read twice, so as not to hold their records.

    Args:
        reading: settings for reading them.
        file_slice: the slice.
    """
    if not merger_of(reading.config).chooses_whole_records:
        return False
    if len(_deciding_columns(reading)) == len(reading.schema):
        return False
    with open_logs(reading, file_slice) as logs:
        return not any(placed.block.is_partial for placed in logs.placed)


def stream_log_records(reading: LogReading, file_slice: FileSlice) -> StreamedRecords:
    """Determine the surviving log record of each key without loading the records.

    Args:
        reading: settings for reading the log files.
        file_slice: the slice; see `can_scan_twice`.

    Raises:
        CorruptTableError: a log file is missing, or a complete block in it is damaged.
        UnsupportedError: this release cannot read a block.
    """
    narrow = replace(reading, schema=_deciding_columns(reading))
    with open_logs(narrow, file_slice) as logs:
        pieces = list(_numbered(logs.read(each) for each in logs.blocks_to_merge(reading.instants)))
    numbered = narrow.schema.append(pa.field(_NUMBER, pa.int64()))
    merged = merged_records(replace(narrow, schema=numbered), pieces)
    return StreamedRecords(
        merged.versions, merged.merger, None, reading, file_slice, replaces=merged.replaces
    )


def _numbered(pieces: Iterator[LogPiece]) -> Iterator[LogPiece]:
    """Number the records of all blocks."""
    first = 0
    for piece in pieces:
        count = piece.rows.num_rows
        numbers = pa.array(np.arange(first, first + count))
        first += count
        yield replace(piece, rows=piece.rows.append_column(_NUMBER, numbers))


def _deciding_columns(reading: LogReading) -> pa.Schema:
    """Return the columns that determine which version of a record wins."""
    config, schema = reading.config, reading.schema
    keys = [RECORD_KEY] if config.populate_meta_fields else config.record_key_fields
    names = {*keys, *ordering_columns(config, schema), *delete_columns(config, schema)}
    return pa.schema([field for field in schema if field.name in names])


def blocks_with_survivors(logs: OpenLogs, placed: Sequence[PlacedBlock]) -> Sequence[PlacedBlock]:
    """Return the blocks with a record that survives; all, unless later ones seem to have all of their keys.

    Where the same records are written again and again, most log files have nothing left that counts, and of
    those no more than the deciding columns are decoded. Deletes bar it: what they do depends on the records
    between them.

    Args:
        logs: the open log files.
        placed: their blocks to merge, in merge order.
    """
    reading = logs.reading
    columns = _deciding_columns(reading)
    others = len(reading.schema) - len(columns)
    if others < _OTHER_COLUMNS_MIN or len(placed) < _BLOCKS_MIN or not _are_whole_records(logs, placed):
        return placed
    narrow = replace(logs, reading=replace(reading, schema=columns))
    if not _may_have_repeated_keys(narrow, placed):
        return placed
    pieces = narrow.read_all(placed)
    if any(piece.is_delete.any() for piece in pieces):
        return placed
    merged = merged_records(narrow.reading, [_with_place(piece, at) for at, piece in enumerate(pieces)])
    survivors = pc.unique(merged.versions.rows.column(_NUMBER)).to_pylist()
    return [placed[at] for at in sorted(survivors)]


def _are_whole_records(logs: OpenLogs, placed: Sequence[PlacedBlock]) -> bool:
    """Return whether one of the records of a key is chosen, and all of them are to be read."""
    reading = logs.reading
    if reading.keys is not None or reading.key_range is not None:
        return False
    is_plain = all(each.block.kind.is_data and not each.block.is_partial for each in placed)
    return is_plain and merger_of(reading.config).chooses_whole_records


def _may_have_repeated_keys(narrow: OpenLogs, placed: Sequence[PlacedBlock]) -> bool:
    """Return whether the bloom filters of the newest files have a sample of the keys in one before them."""
    at = len(placed) * 3 // 4
    blocks = (each.block for each in placed[at + 1 : at + 1 + _BLOCKS_ASKED])
    later = [block for block in blocks if isinstance(block, NativeBlock) and _has_filter(block)]
    keys = combined_chunks(narrow.read(placed[at]).keys)
    if not len(keys):
        return False
    sample = np.unique(np.linspace(0, len(keys) - 1, _KEYS_ASKED).astype(np.int64))
    asked = (LogRowSelection(keys=keys.slice(int(at), 1)) for at in sample)
    return all(any(not block.excludes(each) for block in later) for each in asked)


def _has_filter(block: NativeBlock) -> bool:
    return block.footer is not None and FILTER in block.footer.entries


def _with_place(piece: LogPiece, at: int) -> LogPiece:
    numbers = pa.array(np.full(piece.rows.num_rows, at, dtype=np.int64))
    return replace(piece, rows=piece.rows.append_column(_NUMBER, numbers))


CACHE_BYTES_MAX: Final = 64 << 20
"""Bytes that a process keeps of all slices."""

_PARTS_MIN: Final = 4
"""Number of slices for which there is room, whatever their size; those that take more are not kept."""

_DECISION_BYTES: Final = 16
"""Bytes of a decision for each log record."""


@dataclass(frozen=True, slots=True)
class Decision:
    """How the rows of a row group and their log records were merged.

    Attributes:
        replaced: numbers of the rows whose log record won, ascending.
        lost: numbers of the log records that lost against a row.
    """

    replaced: Array
    lost: Array


NO_DECISION: Final = Decision(np.zeros(0, np.int32), np.zeros(0, np.int64))
"""Of rows without log records."""

Decisions: TypeAlias = dict[int, Decision]
"""By number of the row group, those that were compared as a whole."""


@dataclass(frozen=True, slots=True)
class CachedSlice:
    """What is known of a slice.

    Attributes:
        task: the task that it was read for.
        log: its log records, with the columns that were needed so far.
        decisions: the row groups of its base file that were merged; later merges add to them.
    """

    task: ReadTask
    log: LogRecords
    decisions: Decisions = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        """Bytes that are kept."""
        versions = self.log.versions
        texts: int = versions.keys.nbytes
        columns: int = versions.rows.nbytes
        return columns + texts + _DECISION_BYTES * len(versions.keys)

    def has(self, columns: Iterable[str]) -> bool:
        """Return whether the log records have those of some columns that the table has."""
        present, known = {*self.log.versions.rows.column_names}, {*self.task.schema.names}
        return all(name in present or name not in known for name in columns)

    def is_of(self, task: ReadTask) -> bool:
        """Return whether a task sees the same records in the same way."""
        own = self.task
        return (
            own.file_slice == task.file_slice
            and own.by_position == task.by_position
            and self._sees_the_same(task.instants)
            and (own.schema is task.schema or own.schema.equals(task.schema))
            and (own.config is task.config or own.config == task.config)
        )

    def _sees_the_same(self, instants: InstantRange) -> bool:
        own = self.task.instants
        seen = self.log.instants or ()
        return own is instants or all(own.admits(each) == instants.admits(each) for each in seen)


class MergedLogCache:
    """Keeps what is known of the slices that were read last.

    Args:
        bytes_max: bytes that are kept of all slices.
    """

    def __init__(self, bytes_max: int = CACHE_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._lock = Lock()
        self._known: OrderedDict[tuple[str, str, str], tuple[CachedSlice, int]] = OrderedDict()
        self._size_bytes = 0

    def recall(self, task: ReadTask) -> CachedSlice | None:
        """Return what is known of a task's slice; None if nothing is, or it is of no use to the task."""
        place = _place(task)
        with self._lock:
            kept = self._known.get(place)
            if kept is not None:
                self._known.move_to_end(place)
        return kept[0] if kept is not None and kept[0].is_of(task) else None

    def keep(self, known: CachedSlice) -> None:
        """Keep what was learnt of a slice, in place of what was known of it."""
        size_bytes, place = known.size_bytes, _place(known.task)
        with self._lock:
            self._size_bytes -= self._known.pop(place, (known, 0))[1]
            if size_bytes * _PARTS_MIN > self._bytes_max:
                return
            self._known[place] = known, size_bytes
            self._size_bytes += size_bytes
            while self._size_bytes > self._bytes_max:
                _, (_, dropped) = self._known.popitem(last=False)
                self._size_bytes -= dropped

    def forget(self) -> None:
        """Keep nothing any more."""
        with self._lock:
            self._known.clear()
            self._size_bytes = 0


def _place(task: ReadTask) -> tuple[str, str, str]:
    file_slice: FileSlice = task.file_slice
    return task.storage.uri, file_slice.partition, file_slice.file_id


def with_columns_of(log: LogRecords, other: LogRecords) -> LogRecords:
    """Return log records with the columns that the same ones have elsewhere, too."""
    rows = log.versions.rows
    for field_, column in zip(other.versions.rows.schema, other.versions.rows.columns, strict=True):
        if field_.name not in rows.column_names:
            rows = rows.append_column(field_, column)
    return replace(log, versions=replace(log.versions, rows=rows))


MERGED_LOG_CACHE: Final = MergedLogCache()
