"""Merge of the log files of a slice into its base file, with the log records in memory.

log files ──> one record per key, in memory (only the keys of large log files: `large_log_scanner`)
base file ──> batch ── rows whose log record wins out ──> yield
                                               at the end: the log records that won ──> yield
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base import limits
from drawstring.config.table_config import MergeMode, TableConfig
from drawstring.filegroups.large_log_scanner import can_scan_twice, stream_log_records
from drawstring.filegroups.log_scanner import delete_columns, record_keys
from drawstring.filegroups.positions import located_by_position
from drawstring.filegroups.read.bootstrap_reader import base_rows_of, with_values
from drawstring.filegroups.read.log_records import LogRecords, read_log_records
from drawstring.filegroups.read_task import LogReading, ReadTask, nullable
from drawstring.formats.data_file import Selection, read_base
from drawstring.formats.filter import matching_rows, where_columns
from drawstring.merge.record_merger import check_mergeable
from drawstring.merge.record_version import Array, Versions, ordering_columns, ordering_of
from drawstring.schema.evolution import conform
from drawstring.schema.fields import RECORD_KEY
from drawstring.schema.internal_schema import stored_columns, with_query_names
from drawstring.storage import open_spec
from drawstring.storage.protocol import Storage

_KEYS_PER_ROW: Final = 4
"""Log records for a base row up to which a batch is looked up alone: each look-up hashes all log keys."""

_HELD_BASE_BYTES: Final = 32 << 20
"""Bytes of base rows to look up at once."""


def _base_rows(
    storage: Storage, task: ReadTask, schema: pa.Schema, among: pc.Expression | None
) -> Iterator[pa.RecordBatch]:
    """Yield rows of the base file with the given columns; no rows without a base file."""
    base, renames = task.file_slice.base, task.base_renames
    if base is None:
        return
    stored = schema if renames is None else stored_columns(schema, renames)
    selection = Selection(stored.names, among, stored, keys=None if among is None else task.base_keys)
    if base.source is None:
        batches = read_base(storage, base.status.path, selection)
    else:
        batches = base_rows_of(storage, base, selection, task.schema, task.config)
    for batch in batches:
        yield conform(batch if renames is None else with_query_names(batch, renames), schema)


def _needed(task: ReadTask) -> list[str]:
    """Return the columns that merging, filtering and the result need."""
    config = task.config
    if config.merge_mode is MergeMode.CUSTOM and task.file_slice.logs:
        return list(task.schema.names)
    names = [
        *result_columns(task),
        *([RECORD_KEY] if config.populate_meta_fields else config.record_key_fields),
        *ordering_columns(config, task.schema),
    ]
    known = {*task.schema.names}
    return [name for name in dict.fromkeys(names) if name in known]


def result_columns(task: ReadTask) -> Sequence[str]:
    """Return the columns that the result of a task and its condition need; not all need be the table's."""
    condition = task.condition
    return task.columns if condition is None else (*task.columns, *where_columns(condition, task.schema))


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
    reading = LogReading(open_spec(task.storage), task.config, schema, task.instants, keys)
    base, is_whole = task.file_slice.base, keys is None and task.key_range is None
    positions_of = base.instant if task.by_position and is_whole and base is not None else None
    return replace(reading, key_range=task.key_range, positions_of=positions_of)


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


@dataclass(frozen=True, slots=True)
class KeyTexts:
    """Keys as texts.

    Attributes:
        keys: the record key of each log record.
        config: the table.
    """

    keys: pa.Array
    config: TableConfig

    @property
    def columns(self) -> Sequence[str]:
        """The meta column, or the columns that keys are made of."""
        return (RECORD_KEY,) if self.config.populate_meta_fields else self.config.record_key_fields

    def find(self, rows: pa.RecordBatch) -> tuple[Array, Array]:
        """Return the base rows that have a log record, and the numbers of those log records."""
        return _numbered(pc.index_in(record_keys(rows, self.config), value_set=self.keys))

    def located(self, batches: Iterable[pa.RecordBatch]) -> Iterator[_Located]:
        """Yield batches of base rows with what `find` returns; for many keys several are looked up at once.

        Args:
            batches: the rows, of which some of a bounded size are held.
        """
        for held in _portions(batches, len(self.keys) // _KEYS_PER_ROW):
            if len(held) == 1:
                yield held[0], self.find(held[0])
                continue
            keys = pa.concat_arrays([record_keys(each, self.config) for each in held])
            places, first = pc.index_in(keys, value_set=self.keys), 0
            for batch in held:
                yield batch, _numbered(places.slice(first, batch.num_rows))
                first += batch.num_rows


_Located: TypeAlias = tuple[pa.RecordBatch, tuple[Array, Array]]
_Numbered: TypeAlias = tuple[pa.RecordBatch, Array]


def _numbered(places: pa.Array) -> tuple[Array, Array]:
    found = np.flatnonzero(places.is_valid().to_numpy(zero_copy_only=False))
    return found, places.drop_null().to_numpy(zero_copy_only=False)


def _portions(batches: Iterable[pa.RecordBatch], rows_min: int) -> Iterator[list[pa.RecordBatch]]:
    """Yield batches in portions of at least some rows, if these have few bytes."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(map(len, held)) >= rows_min or sum(each.nbytes for each in held) >= _HELD_BASE_BYTES:
            yield held
            held = []
    if held:
        yield held


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
        self._log = slice_records(task) if log is None else log
        count = len(self._log.versions.keys)
        self._won = np.ones(count, dtype=bool)
        self._met = np.zeros(count, dtype=np.int64)
        self._met_at = np.zeros(count, dtype=np.int64)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the merged rows with the columns that merging and the result need."""
        yield from (rows for rows, _ in self._merged_base())
        yield from self._rest()

    def numbered(self) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
        """Yield the merged rows, and the numbers of the base rows, from 0, that they are versions of.

        A record without a base row, or with several, has none.
        """
        yield from ((rows, pa.array(numbers)) for rows, numbers in self._merged_base())
        met, first = self._met_rows(self._log.order(self._alive)), 0
        for rows in self._rest():
            yield rows, met.slice(first, len(rows))
            first += len(rows)

    def deleted_rows(self) -> pa.Array:
        """Return the numbers of the base rows of `deleted_keys`, as `numbered` does."""
        return self._met_rows(np.flatnonzero(self._won & self._log.versions.is_delete))

    def _met_rows(self, records: Array) -> pa.Array:
        return pa.array(self._met_at[records], mask=self._met[records] != 1)

    def _merged_base(self) -> Iterator[tuple[pa.RecordBatch, Array]]:
        """Yield the base rows that remain, merged, with their numbers; note what became of log records."""
        merge = _choose if self._log.merger.chooses_whole_records else _patch
        first = 0
        for batch, found in self._located():
            merged, done = merge(batch, found, self._log, self._task)
            self._won[done] = False
            np.add.at(self._met, found[1], 1)
            self._met_at[found[1]] = found[0] + first
            yield from ((rows, numbers + first) for rows, numbers in merged)
            first += batch.num_rows

    def _located(self) -> Iterator[_Located]:
        """Yield the base rows with what `KeyTexts.find` returns; by position if these are known."""
        task, positions, among = self._task, self._log.positions, self._task.merged_among
        if positions is not None and self._base is None and among is None:
            yield from located_by_position(positions, base_rows(task, None))
            return
        base = base_rows(task, among) if self._base is None else self._base
        yield from KeyTexts(self._log.versions.keys, task.config).located(base)

    def _rest(self) -> Iterator[pa.RecordBatch]:
        """Yield the log records that won as a whole, or that no base row met."""
        yield from self._log.rows(self._alive, _needed(self._task))

    @property
    def _alive(self) -> Array:
        return self._won & ~self._log.versions.is_delete

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


def slice_records(task: ReadTask) -> LogRecords:
    """Read the log files of a task's slice; only the keys if the records are too large for memory."""
    reading = log_reading(task)
    size_bytes = sum(log.status.size_bytes for log in task.file_slice.logs)
    if size_bytes > limits.in_force.log_records_bytes_max and can_scan_twice(reading, task.file_slice):
        return stream_log_records(reading, task.file_slice)
    return read_log_records(reading, task.file_slice)


def finished(batch: pa.RecordBatch, task: ReadTask) -> Iterator[pa.RecordBatch]:
    """Yield rows as the task's result: with partition values, those that match, the requested columns.

    Args:
        batch: merged rows.
        task: what to read.

    Raises:
        InvalidError: the task's condition fails on a row.
    """
    if task.partition_values:
        batch = with_values(batch, task.partition_values, batch.schema)
    condition = task.condition
    if condition is None:
        batches = [batch]
    else:
        batches = matching_rows(pa.Table.from_batches([batch]), condition).to_batches()
    yield from (selected.select(list(task.columns)) for selected in batches if selected.num_rows)


def _choose(
    batch: pa.RecordBatch, found: tuple[Array, Array], log: LogRecords, task: ReadTask
) -> tuple[list[_Numbered], Any]:
    """Return the base rows that remain, and the numbers of the log records that lost against them."""
    rows, numbers = found
    if not len(rows):
        return [(batch, np.arange(batch.num_rows))], []
    wins = log.beats(ordering_of(batch, task.config, rows), numbers)
    return [_without(batch, rows[wins])], numbers[~wins]


def _without(batch: pa.RecordBatch, rows: Array) -> _Numbered:
    """Return the other rows of a batch, and their numbers."""
    keep = np.ones(batch.num_rows, dtype=bool)
    keep[rows] = False
    return batch.filter(pa.array(keep)), np.flatnonzero(keep)


def _patch(
    batch: pa.RecordBatch, found: tuple[Array, Array], log: LogRecords, task: ReadTask
) -> tuple[list[_Numbered], Any]:
    """Return the base rows merged with log records, and the numbers of the log records used up."""
    rows, numbers = found
    count = len(rows)
    if not count:
        return [(batch, np.arange(batch.num_rows))], []
    matched = pa.Table.from_batches([batch.take(pa.array(rows))])
    nothing = np.zeros(count, dtype=bool)
    newer = log.versions.take(numbers)
    older = Versions(matched, newer.keys, ordering_of(matched, task.config), nothing, nothing)
    codes = np.tile(np.arange(count, dtype=np.int64), 2)
    merged = log.merger.merge(older.followed_by(newer), codes, count)
    alive = ~merged.is_delete
    patched, at = merged.rows.filter(pa.array(alive)).combine_chunks().to_batches(), rows[alive]
    starts = np.cumsum([0, *map(len, patched)])
    numbered = [(each, at[start : start + len(each)]) for each, start in zip(patched, starts, strict=False)]
    done = numbers[~(merged.is_delete & newer.is_delete)]
    return [_without(batch, rows), *numbered], done
