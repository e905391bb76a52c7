r"""Merge of a slice whose files are sorted by record key, in bounded memory (storage layout `lsm_tree`).

    base file ──> windows ──┐
    log file  ──> windows ──┼── up to a common fence (`sorted_runs`) ── merged as any slice ──> rows
    log file  ──> windows ──┘

All versions of a key are between the same two fences. So each part is merged by itself, by the rules of any
merge, and only as many windows are in memory as there are files.

Log files that fit into memory as a whole are merged first, at once. Their records, sorted, are one run then.

A query takes this way only where log records do not fit into memory, versions are combined, or rows are
needed in order; others are read in stages (`staged_merge`), and what they learn is kept (`merge_memory`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.bounds import BATCH_ROWS, VALUE_BYTES
from drawstring.base.errors import CorruptTableError
from drawstring.config.table.config import TableConfig
from drawstring.filegroups.read.key_order import AscendingKeys, sorted_by_key
from drawstring.filegroups.read.large_logs import blocks_with_survivors
from drawstring.filegroups.read.log_blocks import PlacedBlock
from drawstring.filegroups.read.log_records import LogRecords, merged_records
from drawstring.filegroups.read.open_logs import LogPiece, OpenLogs, open_logs, outlines, record_keys
from drawstring.filegroups.read.slice_merge import SliceMerge, base_rows, log_reading
from drawstring.filegroups.read.sorted_runs import (
    BASE_WINDOW_BYTES,
    UNSORTED,
    SortedRun,
    fenced,
    gathered,
    in_runs,
)
from drawstring.filegroups.read.tasks import LogReading, ReadTask
from drawstring.formats.base_footer import BaseFooter, has_footer
from drawstring.formats.log_native import NativeBlock
from drawstring.merge.order import Array
from drawstring.merge.versions import flat, ordering_of
from drawstring.model.files import FileSlice, NativeLog

WINDOWS_BYTES: Final = 64 << 20
"""Bytes that the windows of all log files of a slice may have together, as far as it can be estimated."""

_EXPANSION: Final = 8
"""Bytes in memory for a stored byte, where nothing tells."""

_WINDOW_ROWS_MIN: Final = 256
_MERGED: Final = frozenset((NativeLog.DATA, NativeLog.DELETES))
_NO_KEYS: Final = pa.array([], pa.string())
_Window: TypeAlias = "LogPiece | LogRecords | pa.Table"
_Run: TypeAlias = SortedRun["_Window"]


def has_sorted_runs(config: TableConfig, file_slice: FileSlice) -> bool:
    """Return whether the files of a slice are sorted: not if it has log files of an older format."""
    base = file_slice.base
    if not config.has_sorted_files or (base and (base.source or not has_footer(base.status.name))):
        return False
    return all(log.native in _MERGED and has_footer(log.status.name) for log in file_slice.logs)


@dataclass(frozen=True, slots=True)
class MergedPart:
    """The merged records between two fences.

    Attributes:
        rows: the live records.
        deleted: the keys that log files deleted, as of `SliceMerge.deleted_keys`.
        is_sorted: whether the rows are sorted by record key.
    """

    rows: list[pa.RecordBatch]
    deleted: pa.Array
    is_sorted: bool = True


def merged_parts(task: ReadTask, base: Iterator[pa.RecordBatch] | None = None) -> Iterator[MergedPart]:
    """Yield the merged records of a slice with log files, part by part, by ascending keys.

    Args:
        task: what to read; the slice fulfils `has_sorted_runs`. Rows have the columns that merging and the
            result need.
        base: rows of the base file, with the columns of `slice_merge.base_schema`; None to read them.

    Raises:
        CorruptTableError: a file is missing, damaged or not sorted.
    """
    with open_logs(log_reading(task), task.file_slice) as opened:
        placed = opened.blocks_to_merge(opened.reading.instants)
        runs = log_runs(placed)
        if _fit_into_memory(runs):
            yield from _merged_with_one_run(task, opened, placed, base)
            return
        logs = windowed(opened, runs)
        reading = logs.reading
        among = outlines(reading, placed)
        for parts in fenced([_base_run(task, base), *(_run_of(logs, each) for each in runs)]):
            yield _merged(task, reading, parts, among)


def small_log_records(task: ReadTask) -> LogRecords | None:
    """Return the surviving log record of each key of a slice, sorted; None if they may not fit into memory.

    Args:
        task: what to read; the slice fulfils `has_sorted_runs`.

    Raises:
        CorruptTableError: a log file is missing, damaged or not sorted.
    """
    with open_logs(log_reading(task), task.file_slice) as opened:
        placed = opened.blocks_to_merge(opened.reading.instants)
        if not _fit_into_memory([placed]):
            return None
        return replace(_sorted_records(opened, placed), instants=opened.instants)


def _base_run(task: ReadTask, rows: Iterator[pa.RecordBatch] | None) -> _Run:
    path = task.file_slice.base.status.path if task.file_slice.base else ""
    stored = base_rows(task, task.merged_among) if rows is None else rows
    windows = gathered(stored, partial(record_keys, config=task.config), BASE_WINDOW_BYTES)
    return SortedRun([(path, windows)], partial(_keys_of_rows, config=task.config), windows_held=1)


def _merged_with_one_run(
    task: ReadTask,
    opened: OpenLogs,
    placed: Sequence[PlacedBlock],
    base: Iterator[pa.RecordBatch] | None,
) -> Iterator[MergedPart]:
    """Yield the merged records of a slice whose log files fit into memory."""
    log = _sorted_records(opened, placed)
    records: _Run = SortedRun([("", iter((log,)))], _keys_of_logged, windows_held=1)
    for stored, logged in fenced([_base_run(task, base), records]):
        rows = [batch for table in stored if isinstance(table, pa.Table) for batch in table.to_batches()]
        found = [each for each in logged if isinstance(each, LogRecords)]
        yield _part(task, rows, found[0]) if found else MergedPart(rows, _NO_KEYS)


def _sorted_records(opened: OpenLogs, placed: Sequence[PlacedBlock]) -> LogRecords:
    """Return the surviving log record of each key, by ascending keys."""
    read = blocks_with_survivors(opened, placed)
    pieces = opened.read_all(read)
    for each, piece in zip(read, pieces, strict=True):
        if not AscendingKeys().go_on(flat(piece.keys)):
            raise CorruptTableError(UNSORTED, path=each.file.status.path)
    return merged_records(opened.reading, pieces, outlines(opened.reading, placed), in_order=True)


def _merged(
    task: ReadTask,
    reading: LogReading,
    parts: Sequence[Sequence[_Window]],
    among: Sequence[LogPiece],
) -> MergedPart:
    rows = [batch for table in parts[0] if isinstance(table, pa.Table) for batch in table.to_batches()]
    pieces = _pieces(parts)
    if not pieces:
        return MergedPart(rows, _NO_KEYS)
    return _part(task, rows, merged_records(reading, pieces, among, in_order=True))


def _part(task: ReadTask, rows: Sequence[pa.RecordBatch], log: LogRecords) -> MergedPart:
    if rows and log.merger.chooses_whole_records:
        return _merged_in_order(task, rows, log)
    merge = SliceMerge(task, log, rows)
    merged = [each for each in merge.batches() if each.num_rows]
    return MergedPart(merged, merge.deleted_keys(), is_sorted=False)


def _merged_in_order(task: ReadTask, rows: Sequence[pa.RecordBatch], log: LogRecords) -> MergedPart:
    """Merge as `SliceMerge` does, but in the order of keys, into which all columns are copied at once.

    Args:
        task: what to read.
        rows: base rows, sorted.
        log: log records, sorted, whole ones of which are chosen.
    """
    base, versions = pa.Table.from_batches(rows), log.versions
    stored = flat(record_keys(base, task.config))
    places = pc.index_in(stored, value_set=versions.keys)
    found = np.flatnonzero(places.is_valid().to_numpy(zero_copy_only=False))
    records = places.drop_null().to_numpy(zero_copy_only=False)
    wins = log.beats(ordering_of(base, task.config, found), records)
    has_won = np.ones(len(versions.keys), dtype=bool)
    has_won[records[~wins]] = False
    alive = has_won & ~versions.is_delete
    source, new = _sources(len(stored), found[wins], records[wins], alive)
    if len(new):
        source = np.concatenate([source, new])
        keys = pa.concat_arrays([stored, versions.keys]).take(pa.array(source))
        source = source[pc.sort_indices(keys).to_numpy()]
    both = pa.concat_tables([base, versions.rows.select(base.column_names)]).combine_chunks()
    merged = both.take(pa.array(source)).to_batches(max_chunksize=BATCH_ROWS)
    return MergedPart(merged, versions.keys.filter(pa.array(has_won & versions.is_delete)))


def _sources(count: int, found: Array, records: Array, alive: Array) -> tuple[Array, Array]:
    """Return where the rows of a merge come from: the number of a base row, or of a log record after these.

    Args:
        count: number of base rows.
        found: base rows that lost against a log record, ascending.
        records: their log records, ascending; several rows may have the same one.
        alive: which log records are in the result.

    Returns:
        The sources in the order of base rows, each with the log record in its place; and those of further
        log records.
    """
    is_placed = alive[records]
    is_placed[1:] &= records[1:] != records[:-1]
    kept, source, is_new = np.ones(count, dtype=bool), np.arange(count), alive.copy()
    kept[found[~is_placed]] = False
    source[found[is_placed]] = count + records[is_placed]
    is_new[records] = False
    return source[kept], count + np.flatnonzero(is_new)


def merged_log_records(
    reading: LogReading, logs: OpenLogs, placed: Sequence[PlacedBlock]
) -> Iterator[LogRecords]:
    """Yield the surviving log record of each key, part by part, by ascending keys.

    Args:
        reading: settings with which the log files were opened.
        logs: the open log files.
        placed: the blocks to merge.
    """
    among = outlines(reading, placed)
    runs = log_runs(placed)
    windows = windowed(logs, runs)
    for parts in fenced([_run_of(windows, each) for each in runs]):
        yield merged_records(reading, _pieces(parts), among, in_order=True)


def in_order(parts: Iterator[MergedPart]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of parts sorted by record key."""
    for part in parts:
        yield from part.rows if part.is_sorted else sorted_by_key(part.rows)


def log_runs(placed: Sequence[PlacedBlock]) -> list[list[PlacedBlock]]:
    """Divide the log files of a slice into runs (`sorted_runs.in_runs`).

    Args:
        placed: the blocks to merge, in merge order.
    """
    return in_runs(placed, _key_bounds)


def _key_bounds(placed: PlacedBlock) -> tuple[str, str] | None:
    """Return the lowest and the highest record key of a log file, if its footer tells."""
    footer = _footer(placed)
    return None if footer is None else footer.key_bounds()


def _footer(placed: PlacedBlock) -> BaseFooter | None:
    return placed.block.footer if isinstance(placed.block, NativeBlock) else None


def windowed(logs: OpenLogs, runs: Sequence[Sequence[PlacedBlock]]) -> OpenLogs:
    """Return open log files whose windows all fit into memory: whole files if these do, or of a row group."""
    if _fit_into_memory(runs):
        return logs
    blocks = [placed for run in runs for placed in run]
    row_bytes = max(map(_row_bytes, blocks))
    rows = WINDOWS_BYTES // (4 * len(runs) * row_bytes)
    batch_rows = min(BATCH_ROWS, max(_WINDOW_ROWS_MIN, rows))
    return replace(logs, reading=replace(logs.reading, batch_rows=batch_rows, ahead_bytes=0))


def _fit_into_memory(runs: Sequence[Sequence[PlacedBlock]]) -> bool:
    return sum(_decoded_bytes(placed) for run in runs for placed in run) <= WINDOWS_BYTES


def _row_bytes(placed: PlacedBlock) -> int:
    """Return about how much memory a record of a block takes; blocks that do not tell count as small."""
    footer = _footer(placed)
    return max(VALUE_BYTES, footer.decoded_bytes() // max(1, footer.rows)) if footer else VALUE_BYTES


def _decoded_bytes(placed: PlacedBlock) -> int:
    """Return about how much memory the records of a block take."""
    footer = _footer(placed)
    return footer.decoded_bytes() if footer else _EXPANSION * placed.block.content_bytes


def _pieces(parts: Sequence[Sequence[_Window]]) -> list[LogPiece]:
    return [each for part in parts for each in part if isinstance(each, LogPiece)]


def _run_of(logs: OpenLogs, run: Sequence[PlacedBlock]) -> _Run:
    windows = ((each.file.status.path, logs.windows(each)) for each in run)
    return SortedRun(windows, _keys_of_logged, splits_keys=True)


def _keys_of_rows(rows: pa.Table, config: TableConfig) -> pa.Array:
    return flat(record_keys(rows, config))


def _keys_of_logged(window: _Window) -> pa.Array:
    """Return the record keys of a window of log records."""
    if isinstance(window, LogPiece):
        return flat(window.keys)
    assert isinstance(window, LogRecords)
    return window.versions.keys
