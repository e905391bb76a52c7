r"""Reader of one file slice: streams the base file and merges the log records into it.

    log files ──> one record per key, in memory (only the keys of large log files, see below)
    base file ──> batch ── rows whose log record wins out ──> yield
                                                   at the end: the log records that won ──> yield

A slice without log files is a plain read of its base file, with `where` pushed down to it.

If a task reads only the files that a range of commits wrote, partial log blocks do not hold whole rows. The
records that such blocks touch are read from the whole slice instead, which is opened only then:

    log files of the range ──> records ── touched by a partial block? ── no ──> yield, if of the range
                                                                       \─ yes: the key
    base file, log files up to the range's end ── of these keys ── merged ──> yield

Log files that are too large for memory are merged by key first, then read block by block:

    blocks in merge order ── keys, ordering, delete columns ──> rows ── winners ──> one row number per key
    blocks in merge order ── the columns needed, batch by batch ──> the rows with these numbers

So the log files are read twice, and one block is in memory at a time. This requires a merger that keeps the
winning version as a whole; if versions are merged column by column, all of them are in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import DrawstringError
from drawstring.config.table.config import MergeMode
from drawstring.filegroups.read.bootstrap_reader import base_rows_of, with_values
from drawstring.filegroups.read.log_blocks import delete_columns
from drawstring.filegroups.read.log_records import (
    LogPiece,
    LogReading,
    LogRecords,
    merged_records,
    open_logs,
    read_log_records,
    record_keys,
)
from drawstring.filegroups.read.staged_merge import can_stage, finished, staged_rows
from drawstring.filegroups.read.tasks import ComposedTask, ReadTask, nullable
from drawstring.formats.base_files import Selection
from drawstring.formats.conditions import where_columns
from drawstring.formats.log_inline import BlockType
from drawstring.formats.partition_match import typed
from drawstring.merge.order import Array
from drawstring.merge.record_mergers import check_mergeable, merger_of
from drawstring.merge.versions import Versions, ordering_fields, ordering_of
from drawstring.model.files import FileSlice
from drawstring.schema.evolve import conform
from drawstring.schema.meta import RECORD_KEY
from drawstring.storage import open_spec
from drawstring.storage.protocol import Storage
from drawstring.timeline.change_detection import since

HELD_BYTES_MAX: Final = 256 << 20
"""Total size of the log files, in bytes, up to which their records are held in memory."""

_NUMBER: Final = "_number"


@dataclass(frozen=True, slots=True)
class StreamedRecords(LogRecords):
    """The surviving log record of each key; only keys and ordering columns are in memory.

    Attributes:
        reading: settings for reading the other columns.
        file_slice: the slice with the log files.
    """

    reading: LogReading
    file_slice: FileSlice

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


def streams(reading: LogReading, file_slice: FileSlice) -> bool:
    """Return whether to read the log files of a slice twice rather than hold their records.

    Args:
        reading: settings for reading them.
        file_slice: the slice.
    """
    size_bytes = sum(log.status.size_bytes for log in file_slice.logs)
    if size_bytes <= HELD_BYTES_MAX or not merger_of(reading.config).chooses_whole_records:
        return False
    if len(_deciding_columns(reading)) == len(reading.schema):
        return False
    with open_logs(reading, file_slice) as logs:
        return not any(placed.block.is_partial for placed in logs.placed)


def stream_log_records(reading: LogReading, file_slice: FileSlice) -> StreamedRecords:
    """Determine the surviving log record of each key without loading the records.

    Args:
        reading: settings for reading the log files.
        file_slice: the slice; see `streams`.

    Raises:
        CorruptTableError: a log file is missing, or a complete block in it is damaged.
        UnsupportedError: this release cannot read a block.
    """
    narrow = replace(reading, schema=_deciding_columns(reading))
    with open_logs(narrow, file_slice) as logs:
        pieces = list(_numbered(logs.read(each) for each in logs.blocks_to_merge(reading.instants)))
    numbered = narrow.schema.append(pa.field(_NUMBER, pa.int64()))
    merged = merged_records(replace(narrow, schema=numbered), pieces)
    return StreamedRecords(merged.versions, merged.merger, None, reading, file_slice)


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
    names = {*keys, *reading.ordering_fields, *delete_columns(config, schema)}
    return pa.schema([field for field in schema if field.name in names])


__all__ = ["ReadTask", "read_slice"]


def read_slice(task: ReadTask) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file slice as of the task's instants.

    Args:
        task: what to read.

    Raises:
        CorruptTableError: a file is missing or damaged.
        InvalidError: the task's condition fails on a row.
        UnsupportedError: this release cannot read a file.
    """
    try:
        yield from _read(task)
    except DrawstringError as error:
        worded = error if task.wording is None else task.wording.of(error)
        raise worded.at(table=task.storage.uri) from error.__cause__


def read_task(task: ReadTask | ComposedTask) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task of any query.

    Raises:
        DrawstringError: as of `read_slice`; `FilesCleanedError` if a file was deleted since the plan.
    """
    with since(task.storage, task.timeline_digest):
        yield from read_slice(task) if isinstance(task, ReadTask) else task.rows()


def _read(task: ReadTask) -> Iterator[pa.RecordBatch]:
    if task.file_slice.logs:
        yield from _read_merged(task)
        return
    if task.base_renames is None:
        yield from _read_base(open_spec(task.storage), task)
        return
    for batch in base_rows(task, task.in_range):
        yield from finished(batch, task)


def _read_merged(task: ReadTask) -> Iterator[pa.RecordBatch]:
    """Read a slice with log files; read the records that partial blocks touch from the whole slice."""
    log = _records(task)
    if can_stage(task, log):
        yield from staged_rows(task, log)
        return
    merge = SliceMerge(task, log)
    touched = None if task.whole_slice is None else merge.partial_keys
    for batch in merge.batches():
        if touched is not None:
            batch = batch.filter(pc.invert(pc.is_in(batch.column(RECORD_KEY), value_set=touched)))
        yield from finished(batch, task)
    if task.whole_slice is not None and touched is not None:
        yield from _rows_of_keys(task.whole_slice, touched)


def _rows_of_keys(task: ReadTask, keys: pa.Array) -> Iterator[pa.RecordBatch]:
    """Read the rows of a slice with the given record keys."""
    log = read_log_records(replace(log_reading(task), keys=keys), task.file_slice)
    yield from merge_base_rows(log, base_rows(task, pc.field(RECORD_KEY).isin(keys)), task)


def _read_base(storage: Storage, task: ReadTask) -> Iterator[pa.RecordBatch]:
    """Read a slice that has only a base file."""
    base = task.file_slice.base
    if base is None:
        return
    output = task.output_schema
    selection = Selection(
        [name for name in task.columns if name not in task.partition_values],
        task.condition,
        task.schema,
        typed(task.partition_values, task.schema),
        task.keys,
    )
    for batch in base_rows_of(storage, base, selection, task.schema, task.config):
        yield conform(with_values(batch, task.partition_values, output), output)


def _base_rows(
    storage: Storage, task: ReadTask, schema: pa.Schema, among: pc.Expression | None
) -> Iterator[pa.RecordBatch]:
    """Yield rows of the base file with the given columns; no rows without a base file."""
    base, renames = task.file_slice.base, task.base_renames
    if base is None:
        return
    names = schema.names if renames is None else renames.stored_names(schema.names)
    selection = Selection(names, among, keys=None if among is None else task.base_keys)
    for batch in base_rows_of(storage, base, selection, task.schema, task.config):
        yield conform(batch if renames is None else renames.applied(batch), schema)


def _needed(task: ReadTask) -> list[str]:
    """Return the columns that merging, filtering and the result need."""
    config = task.config
    condition = task.condition
    if config.merge_mode is MergeMode.CUSTOM and task.file_slice.logs:
        return list(task.schema.names)
    names = [
        *task.columns,
        *([] if condition is None else where_columns(condition, task.schema)),
        *([RECORD_KEY] if config.populate_meta_fields else config.record_key_fields),
        *ordering_fields(config),
    ]
    return [name for name in dict.fromkeys(names) if name in task.schema.names]


def log_reading(task: ReadTask) -> LogReading:
    """Return the settings for reading the log files of a task's slice.

    Raises:
        UnsupportedError: the merge mode of the table is unknown.
    """
    check_mergeable(task.config)
    needed = _needed(task)
    more = [name for name in delete_columns(task.config, task.schema) if name not in needed]
    schema = nullable(task.schema, (*needed, *more))
    keys = None if task.keys is None else pa.array(task.keys, pa.string())
    return LogReading(open_spec(task.storage), task.config, schema, task.instants, task.history, keys)


def base_schema(task: ReadTask) -> pa.Schema:
    """Return the columns to read from the base file for merging and for the result."""
    return nullable(task.schema, tuple(_needed(task)))


def base_rows(task: ReadTask, among: pc.Expression | None) -> Iterator[pa.RecordBatch]:
    """Yield rows of the base file of a task's slice with the columns of `base_schema`.

    Args:
        task: what to read.
        among: condition on meta columns that selects the rows; None for all.
    """
    return _base_rows(open_spec(task.storage), task, base_schema(task), among)


def merge_base_rows(
    log: LogRecords, base: Iterable[pa.RecordBatch], task: ReadTask
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task: log records merged into the base rows of the same slice."""
    for batch in SliceMerge(task, log, base).batches():
        yield from finished(batch, task)


class SliceMerge:
    """Merge of a slice with log files; streams the base rows.

    Args:
        task: what to read.
        log: log records of the slice; None to read them.
        base: base rows of the slice; None to read them.

    Raises:
        UnsupportedError: the merge mode of the table is unknown.
    """

    def __init__(
        self, task: ReadTask, log: LogRecords | None = None, base: Iterable[pa.RecordBatch] | None = None
    ) -> None:
        self._task = task
        self._base = base
        self._log = _records(task) if log is None else log
        self._won = np.ones(len(self._log.versions.keys), dtype=bool)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the merged rows with the columns that merging and the result need."""
        versions, names = self._log.versions, _needed(self._task)
        merge = _choose if self._log.merger.chooses_whole_records else _patch
        for batch in base_rows(self._task, self._task.merged_among) if self._base is None else self._base:
            merged, done = merge(batch, self._log, self._task)
            self._won[done] = False
            yield from merged
        alive = self._won & ~versions.is_delete
        yield from self._log.rows(alive, names)

    @property
    def log_keys(self) -> pa.Array:
        """The distinct record keys that the log files write or delete."""
        return self._log.versions.keys

    @property
    def partial_keys(self) -> pa.Array | None:
        """The record keys that partial blocks touch, maybe repeated; None without such blocks."""
        return self._log.partial_keys

    def deleted_keys(self) -> pa.Array:
        """Return the record keys that the log files deleted; call it after `batches` is exhausted."""
        versions = self._log.versions
        return versions.keys.filter(pa.array(self._won & versions.is_delete))


def _records(task: ReadTask) -> LogRecords:
    """Read the log files of a task's slice; only the keys if the records are too large for memory."""
    reading = log_reading(task)
    if streams(reading, task.file_slice):
        return stream_log_records(reading, task.file_slice)
    return read_log_records(reading, task.file_slice)


def _choose(batch: pa.RecordBatch, log: LogRecords, task: ReadTask) -> tuple[list[pa.RecordBatch], Any]:
    """Return the base rows that remain, and the numbers of the log records that lost against them."""
    rows, numbers = _matches(batch, log, task)
    if not len(rows):
        return [batch], []
    wins = log.beats(ordering_of(batch, task.config, rows), numbers)
    keep = np.ones(batch.num_rows, dtype=bool)
    keep[rows[wins]] = False
    return [batch.filter(pa.array(keep))], numbers[~wins]


def _patch(batch: pa.RecordBatch, log: LogRecords, task: ReadTask) -> tuple[list[pa.RecordBatch], Any]:
    """Return the base rows merged with log records, and the numbers of the log records used up."""
    rows, numbers = _matches(batch, log, task)
    count = len(rows)
    if not count:
        return [batch], []
    matched = pa.Table.from_batches([batch.take(pa.array(rows))])
    nothing = np.zeros(count, dtype=bool)
    newer = log.versions.take(numbers)
    older = Versions(matched, newer.keys, ordering_of(matched, task.config), nothing, nothing)
    codes = np.tile(np.arange(count, dtype=np.int64), 2)
    merged = log.merger.merge(older.followed_by(newer), codes, count)
    keep = np.ones(batch.num_rows, dtype=bool)
    keep[rows] = False
    patched = merged.rows.filter(pa.array(~merged.is_delete)).combine_chunks()
    done = numbers[~(merged.is_delete & newer.is_delete)]
    return [batch.filter(pa.array(keep)), *patched.to_batches()], done


def _matches(batch: pa.RecordBatch, log: LogRecords, task: ReadTask) -> tuple[Array, Array]:
    """Return the base rows that have a log record, and the numbers of those log records."""
    places = pc.index_in(record_keys(batch, task.config), value_set=log.versions.keys)
    rows = np.flatnonzero(places.is_valid().to_numpy(zero_copy_only=False))
    return rows, places.drop_null().to_numpy(zero_copy_only=False)
