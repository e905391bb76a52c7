r"""Read one file slice: stream the base file and merge the log records into it.

A slice without log files is a plain read of its base file, with `where` pushed down to it.

If a task reads only the files that a range of commits wrote, partial log blocks do not hold whole rows. The
reader then opens the whole slice and reads from it the records that such blocks touch:

    log files of the range ──> records ── touched by a partial block? ── no ──> yield, if of the range
                                                                       \─ yes: the key
    base file, log files up to the range's end ── of these keys ── merged ──> yield

`ReadKeys` reads the record keys of a slice, for indexes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import DrawstringError
from drawstring.config.table_config import TableConfig
from drawstring.filegroups.large_log_scanner import MERGED_LOG_CACHE, CachedSlice, Decisions, with_columns_of
from drawstring.filegroups.late_materialization import can_stage, may_stage, staged_rows
from drawstring.filegroups.log_merge import (
    SliceMerge,
    base_rows,
    finished,
    log_reading,
    result_columns,
    slice_records,
)
from drawstring.filegroups.log_scanner import record_keys
from drawstring.filegroups.positions import POSITION, has_positions
from drawstring.filegroups.read.bootstrap_reader import base_rows_of, with_values
from drawstring.filegroups.read.log_records import LogRecords, read_log_records
from drawstring.filegroups.read_task import ComposedTask, InstantRange, ReadTask
from drawstring.filegroups.sorted_merge import (
    has_sorted_runs,
    in_order,
    merged_parts,
    small_log_records,
    sorted_by_key,
)
from drawstring.formats.data_file import Selection
from drawstring.merge.record_merger import merger_of
from drawstring.model.files import FileSlice
from drawstring.schema.evolution import conform
from drawstring.schema.fields import RECORD_KEY, constants_of
from drawstring.storage import open_spec
from drawstring.storage.protocol import Storage, StorageSpec
from drawstring.timeline.change_detection import since

__all__ = ["ReadTask", "read_slice"]

L = TypeVar("L", bound=LogRecords | None)


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
    if task.file_slice.logs and _merges_in_order(task):
        yield from _read_sorted(task)
        return
    if task.in_order and not has_sorted_runs(task.config, task.file_slice):
        yield from sorted_by_key(_read(replace(task, in_order=False)))
        return
    if task.file_slice.logs:
        yield from _read_merged(task)
        return
    if task.base_renames is None:
        yield from _read_base(open_spec(task.storage), task)
        return
    for batch in base_rows(task, task.in_range):
        yield from finished(batch, task)


def _merges_in_order(task: ReadTask) -> bool:
    is_candidate = task.config.has_sorted_files and task.whole_slice is None
    return is_candidate and has_sorted_runs(task.config, task.file_slice)


def _read_sorted(task: ReadTask) -> Iterator[pa.RecordBatch]:
    """Read sorted files: in stages if the log records fit into memory, or else window by window."""
    log, decisions = _cached_log_records(task, small_log_records) if _may_stage_sorted(task) else (None, None)
    if log is not None and can_stage(task, log):
        yield from staged_rows(task, log, decisions)
        return
    parts = merged_parts(task)
    for batch in in_order(parts) if task.in_order else (each for part in parts for each in part.rows):
        yield from finished(batch, task)


def _may_stage_sorted(task: ReadTask) -> bool:
    is_candidate = not task.in_order and may_stage(task)
    return is_candidate and merger_of(task.config).chooses_whole_records


def _read_merged(task: ReadTask) -> Iterator[pa.RecordBatch]:
    """Read a slice with log files; read the records that partial blocks touch from the whole slice."""
    log, decisions = _cached_log_records(task, slice_records)
    if can_stage(task, log):
        yield from staged_rows(task, log, decisions)
        return
    merge = SliceMerge(task, log)
    touched = None if task.whole_slice is None else merge.partial_keys
    for batch in merge.batches():
        if touched is not None:
            batch = batch.filter(pc.invert(pc.is_in(batch.column(RECORD_KEY), value_set=touched)))
        yield from finished(batch, task)
    if task.whole_slice is not None and touched is not None:
        yield from _rows_of_keys(task.whole_slice, touched)


def _cached_log_records(
    task: ReadTask, read: Callable[[ReadTask], L]
) -> tuple[L | LogRecords, Decisions | None]:
    """Return the log records of a task's slice, from memory if they are there, and what was merged before.

    Args:
        task: what to read.
        read: reads the log records. Those of a slice come in the same order, whatever the columns.

    Returns:
        The records with the columns that the task needs; what `read` returns if they are not in memory. With
        them the row groups that were merged, None if nothing is kept of the slice.
    """
    if not task.remembers or not may_stage(task) or task.keys is not None or task.key_range is not None:
        return read(task), None
    known = MERGED_LOG_CACHE.recall(task)
    if known is not None and known.has(result_columns(task)):
        return known.log, known.decisions
    log = read(task)
    if log is None or log.instants is None or not log.merger.chooses_whole_records:
        return log, None
    learnt = CachedSlice(task, log) if known is None else replace(known, log=with_columns_of(log, known.log))
    MERGED_LOG_CACHE.keep(learnt)
    return learnt.log, learnt.decisions


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
        constants_of(task.partition_values, task.schema),
        task.keys,
    )
    for batch in base_rows_of(storage, base, selection, task.schema, task.config):
        yield conform(with_values(batch, task.partition_values, output), output)


def merge_base_rows(
    log: LogRecords, base: Iterable[pa.RecordBatch], task: ReadTask
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task: log records merged into the base rows of the same slice."""
    for batch in SliceMerge(task, log, base).batches():
        yield from finished(batch, task)


@dataclass(frozen=True, slots=True)
class ReadKeys:
    """Yields record key, partition path, file id and deletion flag of every record of a slice.

    Only log files delete keys; all records of a base file are live. If the position is among the columns, it
    is the number of the row in the base file that a record is a version of.

    Attributes:
        storage: opens the table.
        config: the table.
        schema: the table's columns with meta columns.
        instants: the visible instants of log blocks.
        output: schema of the four columns, maybe the position, and the columns of `more`.
        more: further columns of the table to yield; null for deleted keys.
    """

    storage: StorageSpec
    config: TableConfig
    schema: pa.Schema
    instants: InstantRange
    output: pa.Schema
    more: tuple[str, ...] = ()

    def __call__(self, file_slice: FileSlice) -> Iterator[pa.RecordBatch]:
        """Read one slice."""
        config, task = self.config, self.task(file_slice)
        if not file_slice.logs:
            first = 0
            for batch in read_slice(task):
                numbers = pa.array(np.arange(first, first + len(batch))) if self._numbers else None
                yield self._located(file_slice, batch, numbers)
                first += len(batch)
            return
        if has_sorted_runs(config, file_slice):
            for part in merged_parts(task):
                yield from (self._located(file_slice, each) for each in part.rows)
                yield self._gone(file_slice, part.deleted)
            return
        merge = SliceMerge(task)
        if not self._numbers:
            yield from (self._located(file_slice, each) for each in merge.batches())
            yield self._gone(file_slice, merge.deleted_keys())
            return
        yield from (self._located(file_slice, *each) for each in merge.numbered())
        yield self._gone(file_slice, merge.deleted_keys(), merge.deleted_rows())

    def task(self, file_slice: FileSlice) -> ReadTask:
        """Return the task that reads the columns of keys, and those of `more`."""
        config = self.config
        key_columns = (RECORD_KEY,) if config.populate_meta_fields else config.record_key_fields
        columns = tuple(dict.fromkeys((*key_columns, *self.more)))
        return ReadTask(self.storage, config, file_slice, self.schema, columns, instants=self.instants)

    @property
    def _numbers(self) -> bool:
        return POSITION in self.output.names

    def _gone(
        self, file_slice: FileSlice, keys: pa.Array, positions: pa.Array | None = None
    ) -> pa.RecordBatch:
        gone = [pa.nulls(len(keys), self.schema.field(name).type) for name in self.more]
        return self._placed(file_slice, keys, positions, gone, is_deleted=True)

    def _located(
        self, file_slice: FileSlice, rows: pa.RecordBatch, positions: pa.Array | None = None
    ) -> pa.RecordBatch:
        more = [rows.column(name) for name in self.more]
        return self._placed(file_slice, record_keys(rows, self.config), positions, more)

    def _placed(
        self,
        file_slice: FileSlice,
        keys: pa.Array,
        positions: pa.Array | None,
        more: list[pa.Array],
        *,
        is_deleted: bool = False,
    ) -> pa.RecordBatch:
        constants = (file_slice.partition, file_slice.file_id, is_deleted)
        columns = [keys, *(pa.repeat(value, len(keys)) for value in constants)]
        if self._numbers:
            known = positions is not None and has_positions(file_slice)
            columns.append(positions if known else pa.nulls(len(keys), pa.int64()))
        return pa.RecordBatch.from_arrays([*columns, *more], schema=self.output)
