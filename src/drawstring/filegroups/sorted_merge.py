r"""Merge a slice whose files are sorted by record key, in bounded memory (storage layout `lsm_tree`).

    base file ──> windows ──┐
    log file  ──> windows ──┼── up to a common fence ── merged as any slice ──> rows
    log file  ──> windows ──┘

All versions of a key are between the same two fences. So each part is merged by itself, by the rules of any
merge, and only as many windows are in memory as there are files. Log files that fit into memory as a whole
are merged first, at once; their sorted records are then one run.

A query takes this way only where log records do not fit into memory, versions are combined, or rows are
needed in order. Other queries read in stages (`late_materialization`) and cache the merged records
(`large_log_scanner`).

Fences:
Each run is read window by window, one or two of them in memory. A fence is the smallest of the last keys in
memory of the runs that go on: no key up to it can come in a further window. (For a run that may have the rows
of one key in two windows it is the last key but one.) Arrow kernels merge all rows up to the fence at once;
then the next windows are read. Runs with similar key distributions advance by about a window with each
fence, because each has more than a window left. The run with most of the rows needs one window only, which
is used up as a whole.

    run 0   [a   d   f] [g   h]      ...   fence h: the parts up to h
    run 1   [b   e] [f   k]          ...   then the next fence, with [k] of run 1 and the windows after it
    run 2   [c   z]                        ends here, so z is no fence

Files that follow each other in merge order and have no keys in common are one run (`in_runs`), as the log
files of one large write are.

Order of record keys: ascending by their UTF-8 bytes. Files of drawstring have each key once. In files of
Apache Hudi a key may come several times in a row, because Hudi's Spark inserts and bulk inserts do not merge
rows of one key. Writers sort the rows of a file with `sorted_by_key`:

    rows of a file --- fit into memory ---> sorted there
                  \--- do not ------------> divided into ranges on disk, each sorted when it is read

`KeyOrder` checks the order as rows are written.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Final, Generic, Protocol, Self, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base import limits
from drawstring.base.errors import CorruptTableError, InternalError
from drawstring.base.resources import VALUE_BYTES
from drawstring.config.table_config import TableConfig
from drawstring.engine.grouping import first_batches
from drawstring.engine.spill import SortedRanges, sorted_order
from drawstring.filegroups.large_log_scanner import blocks_with_survivors
from drawstring.filegroups.log_merge import SliceMerge, base_rows, log_reading
from drawstring.filegroups.log_scanner import (
    LogPiece,
    OpenLogs,
    PlacedBlock,
    blocks_without_records,
    open_logs,
    record_keys,
)
from drawstring.filegroups.read.log_records import LogRecords, merged_records
from drawstring.filegroups.read_task import LogReading, ReadTask
from drawstring.formats.data_file import has_footer
from drawstring.formats.file_format import BaseFooter
from drawstring.formats.log_native import NativeBlock
from drawstring.merge.record_version import Array, combined_chunks, ordering_of
from drawstring.model.files import FileSlice, NativeLog
from drawstring.schema.fields import RECORD_KEY


class AscendingKeys:
    """Compares the keys of a stream, batch by batch.

    Args:
        once: whether a key that comes again is out of order, too.
    """

    def __init__(self, *, once: bool = False) -> None:
        self._compare = pc.less if once else pc.less_equal
        self._last: pa.Scalar | None = None

    def go_on(self, keys: pa.Array) -> bool:
        """Return whether no key is smaller than the one before it."""
        if not len(keys):
            return True
        keys = keys.cast(pa.string())
        last, self._last = self._last, keys[-1]
        if last is not None and not self._compare(last, keys[0]).as_py():
            return False
        return bool(pc.all(self._compare(keys[:-1], keys[1:]), min_count=0).as_py())


def is_key_order(columns: Sequence[str], record_key: Sequence[str]) -> bool:
    """Return whether rows sorted by columns are to be in the order of their record keys.

    Args:
        columns: sort columns that were asked for; none leaves the choice to the layout.
        record_key: key columns of the table.
    """
    return tuple(columns) in ((), tuple(record_key), (RECORD_KEY,))


def sorted_by_key(
    batches: Iterable[pa.RecordBatch], bytes_max: int | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield rows sorted by record key; rows with equal keys keep their order.

    Args:
        batches: the rows, all with the same columns.
        bytes_max: bytes of rows up to which they are sorted in memory; None for `Limits.sort_bytes_max`.
    """
    bytes_max = limits.in_force.sort_bytes_max if bytes_max is None else bytes_max
    rows = _uniform(batches)
    held, held_bytes = first_batches(rows, bytes_max)
    if held_bytes > bytes_max:
        yield from _sorted_on_disk(chain(held, rows), held[0].schema, bytes_max)
    elif held:
        table = pa.Table.from_batches(held)
        del held
        yield from table.take(sorted_order(table, (RECORD_KEY,))).to_batches(
            max_chunksize=limits.in_force.sorted_batch_rows
        )


def _sorted_on_disk(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, bytes_max: int
) -> Iterator[pa.RecordBatch]:
    ranges = SortedRanges(schema, (RECORD_KEY,), bytes_max, parts=1)
    try:
        ranges.take(batches)
        for part in ranges.parts():
            yield from part
    finally:
        ranges.close()


def _uniform(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches with one schema: those for a file may have dictionaries in different columns."""
    schema: pa.Schema | None = None
    for batch in batches:
        if schema is None:
            fields = [pa.field(field.name, _plain(field.type)) for field in batch.schema]
            schema = pa.schema(fields)
        columns = [batch.column(field.name) for field in schema]
        plain = [
            column if column.type == field.type else column.cast(field.type)
            for column, field in zip(columns, schema, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(plain, schema=schema)


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


WINDOWS_IN_MEMORY_MAX: Final = 2
"""Windows of a small run in memory: with one, the rest of a window would be the bound of its run."""


UNSORTED: Final = (
    "A file of the table is not sorted by record key, as hoodie.table.storage.layout=lsm_tree promises. Set"
    " the layout to default (drawstring versions set-storage-layout), then compact the table."
)


class Window(Protocol):
    """Rows of a run."""

    def slice(self, offset: int, length: int) -> Self:
        """Return some of the rows, without a copy."""
        ...


T = TypeVar("T")
W = TypeVar("W", bound=Window)


class SortedRun(Generic[W]):
    """A run, of which some windows are in memory.

    Args:
        files: path and windows of each file of the run, the one with the lowest keys first; windows without
            rows are left out.
        keys: returns the record keys of a window.
        windows_held: how many windows are in memory.
        unsorted: what to say if it is not sorted.
        once: whether no key may come again.
        splits_keys: whether rows of one key may be in several windows, which follow each other.
    """

    def __init__(
        self,
        files: Iterable[tuple[str, Iterator[W]]],
        keys: Callable[[W], pa.Array],
        windows_held: int = WINDOWS_IN_MEMORY_MAX,
        unsorted: str = UNSORTED,
        *,
        once: bool = False,
        splits_keys: bool = False,
    ) -> None:
        self._windows = ((path, window) for path, windows in files for window in windows)
        self._keys_of = keys
        self._windows_held = windows_held
        self._unsorted = unsorted
        self._order = AscendingKeys(once=once)
        self._splits_keys = splits_keys
        self._held: deque[tuple[W, pa.Array]] = deque()
        self._taken: str | None = None
        self._goes_on = True

    def fill(self) -> bool:
        """Read windows until as many are in memory as may be, with a bound; return whether there are any."""
        while self._goes_on and (len(self._held) < self._windows_held or self._last_whole() is None):
            read = self._read()
            if read is None:
                self._goes_on = False
            else:
                self._held.append(read)
        return bool(self._held)

    @property
    def bound(self) -> str | None:
        """The last key in memory of which no row can follow, if the run may go on after it."""
        return self._last_whole() if self._goes_on else None

    def _last_whole(self) -> str | None:
        """Return the last key in memory of which no row can follow; None if there is none."""
        last = str(self._held[-1][1][-1])
        if not self._splits_keys:
            return last
        counts = ((keys, bisect_left(keys, last, key=str)) for _, keys in reversed(self._held))
        return next((str(keys[count - 1]) for keys, count in counts if count), None)

    def take(self, fence: str | None) -> list[W]:
        """Take the rows with keys up to a fence, which is not beyond `bound`; all without a fence."""
        taken: list[W] = []
        self._taken = fence
        while self._held:
            window, keys = self._held.popleft()
            count = len(keys) if fence is None else bisect_right(keys, fence, key=str)
            if count:
                taken.append(window.slice(0, count))
            if count < len(keys):
                self._held.appendleft((window.slice(count, len(keys) - count), keys[count:]))
                break
        return taken

    def _read(self) -> tuple[W, pa.Array] | None:
        for path, window in self._windows:
            keys = self._keys_of(window).cast(pa.string())
            if not self._order.go_on(keys) or self._comes_late(keys):
                raise CorruptTableError(self._unsorted, path=path)
            if len(keys):
                return window, keys
        return None

    def _comes_late(self, keys: pa.Array) -> bool:
        """Tell whether a window begins with a key that was merged already, since the last one ended in it."""
        return self._taken is not None and len(keys) > 0 and str(keys[0]) <= self._taken


def merge_by_fences(runs: Sequence[SortedRun[W]]) -> Iterator[list[list[W]]]:
    """Yield, fence by fence, the rows of each run up to it.

    Args:
        runs: the runs, in the order in which their versions of a key are merged.
    """
    while True:
        has_rows = [run.fill() for run in runs]
        if not any(has_rows):
            return
        bounds = [run.bound for run in runs]
        fence = min((each for each in bounds if each is not None), default=None)
        yield [run.take(fence) for run in runs]


def in_runs(files: Sequence[T], bounds: Callable[[T], tuple[str, str] | None]) -> list[list[T]]:
    """Divide files into runs; those of a run are ordered by their keys, of which no two have one in common.

    Args:
        files: the files, in merge order.
        bounds: returns a lower bound of the keys in a file and an upper one; None if that is not known.
    """
    runs: list[list[T]] = []
    ranges: list[tuple[str, str]] = []  # of the last run, ascending
    for file in files:
        found = bounds(file)
        place = 0 if found is None else bisect_right(ranges, found)
        is_apart = (
            found is not None
            and bool(ranges)
            and (place == 0 or ranges[place - 1][1] < found[0])
            and (place == len(ranges) or found[1] < ranges[place][0])
        )
        if not is_apart:
            runs.append([])
            ranges, place = [], 0
        runs[-1].insert(place, file)
        if found is not None:
            ranges.insert(place, found)
    return runs


def in_few_windows(
    batches: Iterable[pa.RecordBatch], keys: Callable[[pa.RecordBatch], pa.Array], window_bytes: int
) -> Iterator[pa.Table]:
    """Yield batches in few windows, each of which costs a merge with all other runs.

    Args:
        batches: the rows of a run.
        keys: returns their record keys; those of one key are in one window.
        window_bytes: bytes from which on a window ends.
    """
    held: list[pa.RecordBatch] = []
    held_bytes = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        if held and held_bytes >= window_bytes and keys(held[-1])[-1] != keys(batch)[0]:
            yield pa.Table.from_batches(held)
            held, held_bytes = [], 0
        held.append(batch)
        held_bytes += batch.nbytes
    if held:
        yield pa.Table.from_batches(held)


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
        among = blocks_without_records(reading, placed)
        for parts in merge_by_fences([_base_run(task, base), *(_run_of(logs, each) for each in runs)]):
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
    windows = in_few_windows(
        stored, partial(record_keys, config=task.config), limits.in_force.base_window_bytes
    )
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
    for stored, logged in merge_by_fences([_base_run(task, base), records]):
        rows = [batch for table in stored if isinstance(table, pa.Table) for batch in table.to_batches()]
        found = [each for each in logged if isinstance(each, LogRecords)]
        yield _part(task, rows, found[0]) if found else MergedPart(rows, _NO_KEYS)


def _sorted_records(opened: OpenLogs, placed: Sequence[PlacedBlock]) -> LogRecords:
    """Return the surviving log record of each key, by ascending keys."""
    read = blocks_with_survivors(opened, placed)
    pieces = opened.read_all(read)
    for each, piece in zip(read, pieces, strict=True):
        if not AscendingKeys().go_on(combined_chunks(piece.keys)):
            raise CorruptTableError(UNSORTED, path=each.file.status.path)
    return merged_records(
        opened.reading, pieces, blocks_without_records(opened.reading, placed), in_order=True
    )


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
    stored = combined_chunks(record_keys(base, task.config))
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
    merged = both.take(pa.array(source)).to_batches(max_chunksize=limits.in_force.sorted_batch_rows)
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
    among = blocks_without_records(reading, placed)
    runs = log_runs(placed)
    windows = windowed(logs, runs)
    for parts in merge_by_fences([_run_of(windows, each) for each in runs]):
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
    rows = limits.in_force.windows_bytes // (4 * len(runs) * row_bytes)
    batch_rows = min(limits.in_force.sorted_batch_rows, max(_WINDOW_ROWS_MIN, rows))
    return replace(logs, reading=replace(logs.reading, batch_rows=batch_rows, ahead_bytes=0))


def _fit_into_memory(runs: Sequence[Sequence[PlacedBlock]]) -> bool:
    return sum(_decoded_bytes(placed) for run in runs for placed in run) <= limits.in_force.windows_bytes


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
    return combined_chunks(record_keys(rows, config))


def _keys_of_logged(window: _Window) -> pa.Array:
    """Return the record keys of a window of log records."""
    if isinstance(window, LogPiece):
        return combined_chunks(window.keys)
    assert isinstance(window, LogRecords)
    return window.versions.keys


class KeyOrder:
    """Checks that the rows written to a file are sorted by record key.

    Args:
        path: of the file, for the error.
        once: whether no key may come again. A base file keeps the rows of one key that Hudi left in the one
            before it.
    """

    def __init__(self, path: str, *, once: bool = False) -> None:
        self._path = path
        self._keys = AscendingKeys(once=once)

    def check(self, batch: pa.RecordBatch) -> None:
        """Check the next rows of the file.

        Raises:
            InternalError: a key is smaller than the one before it, or comes again and may not.
        """
        if not self._keys.go_on(batch.column(RECORD_KEY)):
            raise InternalError(
                "The rows for a file of a table with hoodie.table.storage.layout=lsm_tree are not sorted by"
                " record key. Nothing was committed. Report this, with the operation that failed.",
                path=self._path,
            )


def first_of_each_key(
    batches: Iterable[pa.RecordBatch], repeated: list[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the first row of each key of sorted rows.

    Args:
        batches: rows sorted by record key.
        repeated: receives the other rows, sorted as well.
    """
    last: pa.Scalar | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        keys = batch.column(RECORD_KEY).cast(pa.string())
        repeats = np.zeros(len(keys), dtype=bool)
        repeats[1:] = pc.equal(keys[:-1], keys[1:]).to_numpy(zero_copy_only=False)
        repeats[0] = last is not None and pc.equal(keys[0], last).as_py()
        last = keys[-1]
        if repeats.any():
            repeated.append(batch.filter(pa.array(repeats)))
            batch = batch.filter(pa.array(~repeats))
        yield batch


def whole_keys(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a stream in batches such that rows of one key that follow each other are in one.

    Args:
        batches: rows in which equal keys are contiguous.
    """
    held: list[pa.RecordBatch] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        keys = batch.column(RECORD_KEY)
        is_last = pc.equal(keys, keys[-1]).to_numpy(zero_copy_only=False)
        begins = len(keys) - int(np.argmin(is_last[::-1])) if not is_last.all() else 0
        if begins or (held and held[-1].column(RECORD_KEY)[-1] != keys[0]):
            yield pa.concat_batches([*held, batch.slice(0, begins)])
            held = []
        held.append(batch.slice(begins))
    if held:
        yield pa.concat_batches(held)


def sorted_deletes(
    keys: pa.Array, ordering: Sequence[pa.Array] | None
) -> tuple[pa.Array, Sequence[pa.Array] | None]:
    """Return deletes sorted by key, each key once; of several, the one without ordering values remains.

    Args:
        keys: the deleted keys.
        ordering: their ordering values by column; None if they have none.
    """
    columns = list(ordering or ())
    table = pa.table([keys, *columns], names=[RECORD_KEY, *map(str, range(len(columns)))])
    table = table.take(sorted_order(table, table.column_names)).combine_chunks()
    batches: list[pa.RecordBatch] = []
    first = pa.Table.from_batches(first_of_each_key(table.to_batches(), batches), table.schema)
    flat = [column.combine_chunks() for column in first.columns]
    return flat[0], (flat[1:] if columns else ordering)
