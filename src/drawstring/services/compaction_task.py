"""Compact one file slice into a base file, or its log files into new ones.

`CompactSlice` is the task. `slice_of` returns the file slice of an operation, and `file_settings` the
settings of the files that a table service writes.

A slice of sorted files is compacted by copying the row groups among whose keys no log file has one:

    keys of the log files ──> row groups of the base file with one of them, or next to one
    other row groups ───────────────────────────────> copied as they are stored
    these ── rows ──┐
    log files ──────┴─ merged as by any reader ─────> encoded as row groups

Changes of recent keys, or of few, leave most row groups alone. A key that no row group has belongs to the
first row group that ends after it, or to the last one. The bloom filter is made of the keys of the new
file.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from operator import itemgetter, methodcaller
from typing import Final

import numpy as np
import pyarrow as pa

from drawstring.base import limits
from drawstring.base.clock import Ids
from drawstring.base.errors import InvalidError
from drawstring.base.resources import releasing_memory
from drawstring.config.options.write_options import WriteOptions
from drawstring.filegroups.base_file_writer import BaseFileWriter, FileSettings, as_stored, check_installed
from drawstring.filegroups.file_slice_reader import read_slice
from drawstring.filegroups.log_merge import base_schema, finished, log_reading
from drawstring.filegroups.log_scanner import open_logs
from drawstring.filegroups.read_task import InstantRange, LogReading, ReadTask, nullable
from drawstring.filegroups.row_group_patch import SuccessorWriter
from drawstring.filegroups.sorted_merge import KeyOrder, has_sorted_runs, in_order, merged_parts
from drawstring.filegroups.write.log_compaction import rewrite_logs
from drawstring.formats.bloom_footer import KeySummary
from drawstring.formats.data_file import base_footer, is_parquet
from drawstring.formats.file_format import BaseFooter
from drawstring.formats.parquet import RowGroups, physical_schema
from drawstring.formats.parquet.row_group_copy import (
    PatchedFile,
    patch_source,
    patched_file,
    read_parquet_groups,
)
from drawstring.formats.parquet.writer import entries_of, table_of
from drawstring.index.factory import bloom_rate
from drawstring.merge.record_version import Array, combined_chunks
from drawstring.metadata.maintenance import summarized_columns
from drawstring.model.commit import WriteStat
from drawstring.model.files import BaseFile, FileSlice, FileStatus, LogFile, TaskContext, join_path
from drawstring.model.plans import CompactionOperation
from drawstring.schema.avro import avro_to_arrow
from drawstring.schema.evolution import conform
from drawstring.schema.fields import RECORD_KEY, with_meta_fields, without_meta
from drawstring.storage import open_spec
from drawstring.timeline.schema import table_schema_json, with_history
from drawstring.timeline.timeline import Timeline
from drawstring.txn.transaction import LockedTable

_COPIED_MIN: Final = 0.2
"""Smallest share of row groups that must be copied; below it, encoding the whole file is cheaper."""

_GROUPS_MIN: Final = 4
"""Fewest row groups of a base file: of fewer, little is left to copy beside those that change."""

_CHUNKS_MAX: Final = 20_000
"""Column chunks of a file whose footer is taken apart: each takes about 4 KB."""

_SMALL: Final = 4
"""A row group is small below 1/4 of the row and byte limits; it is merged with a changed neighbour."""

_LAST_ROW_GROUP_FACTOR: Final = 1.25
"""How many times its size a row group may have at the end of a run, rather than to leave a small one."""


def compacted_by_copying(settings: FileSettings, task: ReadTask, write_token: str) -> WriteStat | None:
    """Write the base file of a compaction; None, and no file, if all of it has to be encoded.

    Args:
        settings: of the new base file.
        task: reads the whole slice.
        write_token: write token of the task attempt.

    Raises:
        CorruptTableError: a file is missing, damaged or not sorted.
    """
    base, footer = task.file_slice.base, _footer(settings, task)
    is_logged = None if footer is None else _logged_groups(task, footer)
    if base is None or footer is None or is_logged is None:
        return None
    storage = open_spec(settings.storage)
    source = patch_source(storage, base.status.path, settings.full_schema, settings.compression)
    if source is None:
        return None
    with patched_file(storage, source, footer.metadata) as file:
        last_keys = _last_keys(file)
        is_merged = _with_small_neighbours(is_logged, file, settings.row_groups)
        if last_keys is None or is_merged.mean() > 1 - _COPIED_MIN:
            return None
        writer = SuccessorWriter(settings, storage, task.file_slice, write_token, source, notes_keys=False)
        try:
            _Copy(settings, task, file, writer, last_keys, is_merged).write()
        except BaseException:
            writer.abort()
            raise
    return writer.close(inserts=0, updates=writer.rows)


def _footer(settings: FileSettings, task: ReadTask) -> BaseFooter | None:
    """Return the footer of the base file if its row groups are worth to be looked at."""
    base, config = task.file_slice.base, settings.config
    if base is None or base.source is not None or task.base_renames is not None:
        return None
    if not is_parquet(base.status.path):
        return None
    if not (config.has_sorted_files and has_sorted_runs(config, task.file_slice)):
        return None
    if (
        sum(log.status.size_bytes for log in task.file_slice.logs)
        > limits.in_force.copied_logs_share_max * base.status.size_bytes
    ):
        return None
    storage = open_spec(settings.storage)
    footer = base_footer(storage, base.status.path)
    metadata = footer.metadata
    if metadata.num_row_groups < _GROUPS_MIN or metadata.num_row_groups * metadata.num_columns > _CHUNKS_MAX:
        return None
    return footer


def _last_keys(file: PatchedFile) -> pa.Array | None:
    """Return the last key of each row group (binary); None if the footer does not tell, or not exactly."""
    bounds = [file.bounds(group, RECORD_KEY) for group in range(len(file.group_rows))]
    found = [each for each in bounds if each is not None and all(isinstance(key, bytes) for key in each)]
    if len(found) < len(bounds) or any(one[1] >= next_[0] for one, next_ in pairwise(found)):
        return None
    return pa.array([last for _, last in found], pa.binary())


def _logged_groups(task: ReadTask, footer: BaseFooter) -> Array | None:
    """Return for each row group whether a log file has a key that belongs to it; None if too many have.

    Args:
        task: reads the slice.
        footer: of the base file, whose bounds of keys need not be exact: `_last_keys` tells.
    """
    last_keys = footer.last_keys()
    if last_keys is None:
        return None
    ends = pa.array(last_keys, pa.binary()).to_numpy(zero_copy_only=False)
    reading = log_reading(task)
    reading = LogReading(
        reading.storage, reading.config, nullable(task.schema, (RECORD_KEY,)), reading.instants, None
    )
    is_logged = np.zeros(len(ends), dtype=bool)
    with open_logs(reading, task.file_slice) as logs:
        for placed in logs.blocks_to_merge(reading.instants):
            for piece in logs.windows(placed):
                is_logged[_groups_of(combined_chunks(piece.keys), ends)] = True
            if is_logged.mean() > 1 - _COPIED_MIN:
                return None
    return is_logged


def _groups_of(keys: pa.Array, ends: Array) -> Array:
    """Return the numbers of the row groups to which ascending keys belong."""
    if not len(keys):
        return np.zeros(0, dtype=np.int64)
    found = np.searchsorted(keys.cast(pa.binary()).to_numpy(zero_copy_only=False), ends, side="right")
    counts = np.diff(found, prepend=0)
    counts[-1] += len(keys) - found[-1]
    return np.flatnonzero(counts)


def _with_small_neighbours(is_logged: Array, file: PatchedFile, limits: RowGroups) -> Array:
    """Return the row groups to merge: small ones next to others that are, so that no small ones add up."""
    merged = is_logged.copy()
    is_small = [
        rows * _SMALL < limits.rows and size_bytes * _SMALL < limits.size_bytes
        for rows, size_bytes in zip(file.group_rows, file.group_bytes, strict=True)
    ]
    for group in range(1, len(merged)):
        merged[group] |= is_small[group] and merged[group - 1]
    for group in range(len(merged) - 2, -1, -1):
        merged[group] |= is_small[group] and merged[group + 1]
    return np.asarray(merged)


@dataclass(frozen=True, slots=True)
class _Copy:
    """A compaction.

    Attributes:
        settings: of the new base file.
        task: reads the slice.
        file: its base file.
        writer: of the new one.
        last_keys: the last key of each row group.
        is_merged: which row groups are merged with the log files; the others are copied.
    """

    settings: FileSettings
    task: ReadTask
    file: PatchedFile
    writer: SuccessorWriter
    last_keys: pa.Array
    is_merged: Array

    def write(self) -> None:
        """Write the row groups and the entries of the footer."""
        rate = self.settings.key_filter
        order, keys = KeyOrder(self.writer.path), KeySummary(rate=rate)
        rows = 0
        for batch in self._written():
            order.check(batch)
            keys.add(batch.column(RECORD_KEY))
            rows += batch.num_rows
        self.writer.count(rows, pa.array([], pa.string()))
        entries = entries_of(self.settings.avro_schema)
        self.writer.patched.add_entries(entries | (keys.footer() if rate else {}))

    def _written(self) -> Iterator[pa.RecordBatch]:
        """Write row group by row group; yield the rows, or the keys of those that were copied."""
        with closing(self._merged_rows()) as rows:
            merged = _MergedRows(rows)
            for is_merged, run in groupby(enumerate(self.is_merged.tolist()), key=itemgetter(1)):
                groups = [group for group, _ in run]
                if is_merged:
                    is_last = groups[-1] == len(self.is_merged) - 1
                    up_to = merged.up_to(None if is_last else self.last_keys[groups[-1]])
                    yield from self._encoded(up_to, groups[0])
                else:
                    yield from self._copied(groups)

    def _copied(self, groups: Sequence[int]) -> Iterator[pa.RecordBatch]:
        for group in groups:
            self.writer.patched.copy(self.file.file, group)
            yield from self.file.columns(group, [RECORD_KEY]).to_batches()

    def _encoded(self, rows: Iterator[pa.RecordBatch], like: int) -> Iterator[pa.RecordBatch]:
        schema = physical_schema(self.settings.full_schema)
        for batches in _in_row_groups(rows, self.settings.row_groups):
            self.writer.patched.add(table_of(batches, schema), like)
            yield from batches

    def _merged_rows(self) -> Generator[pa.RecordBatch]:
        parts = merged_parts(self.task, self._base_rows())
        for batch in in_order(parts):
            for rows in finished(batch, self.task):
                yield as_stored(rows, self.writer.name, self.settings.config)

    def _base_rows(self) -> Iterator[pa.RecordBatch]:
        schema, groups = base_schema(self.task), np.flatnonzero(self.is_merged).tolist()
        storage = open_spec(self.settings.storage)
        for batch in read_parquet_groups(storage, self.file.source.path, schema, groups):
            yield conform(batch, schema)


class _MergedRows:
    """A stream of sorted rows that is taken key range by key range."""

    def __init__(self, rows: Iterator[pa.RecordBatch]) -> None:
        self._rows = rows
        self._held: pa.RecordBatch | None = None

    def up_to(self, last: pa.Scalar | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows with keys up to a key (binary); all without one."""
        while (batch := self._held or next(self._rows, None)) is not None:
            self._held = None
            count = batch.num_rows
            if last is not None:
                keys = batch.column(RECORD_KEY).cast(pa.binary())
                count = bisect_right(keys, last.as_py(), key=methodcaller("as_py"))
            if count:
                yield batch.slice(0, count)
            if count < batch.num_rows:
                self._held = batch.slice(count)
                return


def _in_row_groups(batches: Iterator[pa.RecordBatch], limits: RowGroups) -> Iterator[list[pa.RecordBatch]]:
    """Yield rows by row group, as large as they may be, but for two alike or a larger one at the end."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        while (rows := _rows_in(held)) > 2 * (fitting := _fitting(held, limits)) and rows > 1:
            group, held = _divided(held, fitting)
            yield group
    if rows := _rows_in(held):
        if rows > _LAST_ROW_GROUP_FACTOR * _fitting(held, limits):
            group, held = _divided(held, -(-rows // 2))
            yield group
        yield held


def _rows_in(batches: Sequence[pa.RecordBatch]) -> int:
    return sum(batch.num_rows for batch in batches)


def _fitting(batches: Sequence[pa.RecordBatch], limits: RowGroups) -> int:
    return limits.rows_of(_rows_in(batches), sum(batch.nbytes for batch in batches))


def _divided(
    batches: Sequence[pa.RecordBatch], rows: int
) -> tuple[list[pa.RecordBatch], list[pa.RecordBatch]]:
    """Return some first rows and the others."""
    first, others = [], []
    for batch in batches:
        count = min(rows, batch.num_rows)
        rows -= count
        first += [batch.slice(0, count)] if count else []
        others += [batch.slice(count)] if count < batch.num_rows else []
    return first, others


@dataclass(frozen=True, slots=True)
class CompactSlice:
    """A task that compacts one file slice.

    Attributes:
        settings: of the new base files.
        schema_json: the table schema as Avro JSON.
        instants: decides which log blocks count.
        ids: gives every attempt its own write token.
    """

    settings: FileSettings
    schema_json: str
    instants: InstantRange
    ids: Ids

    def __call__(self, numbered: tuple[int, CompactionOperation]) -> list[WriteStat]:
        """Write the files of one operation."""
        number, operation = numbered
        storage = open_spec(self.settings.storage)
        target = slice_of(operation, {s.path: s for s in storage.list_files(operation.partition)})
        attempt = int(self.ids.uuid()[:6], 16)
        token = TaskContext(number, 0, attempt).write_token
        if operation.logs_only:
            return rewrite_logs(self.settings, storage, target, self.instants, token)
        full_schema = self.settings.full_schema
        read_task = ReadTask(
            self.settings.storage,
            self.settings.config,
            target,
            full_schema,
            tuple(full_schema.names),
            instants=self.instants,
            in_order=self.settings.config.has_sorted_files,
        )
        with releasing_memory(read_task.size_bytes):
            copied = compacted_by_copying(self.settings, read_task, token)
            return [_compacted(copied or self._encoded(read_task, token), target)]

    def _encoded(self, task: ReadTask, token: str) -> WriteStat:
        """Write all merged rows."""
        target = task.file_slice
        storage = open_spec(self.settings.storage)
        writer = BaseFileWriter(self.settings, storage, target.partition, target.file_id, token, target)
        try:
            for batch in read_slice(task):
                writer.write(as_stored(batch, writer.name, self.settings.config))
        except BaseException:
            writer.abort()
            raise
        return writer.close(inserts=0, updates=writer.rows)


def _compacted(stat: WriteStat, target: FileSlice) -> WriteStat:
    return replace(
        stat,
        log_files_compacted=len(target.logs),
        log_size_compacted=sum(log.status.size_bytes for log in target.logs),
    )


def slice_of(operation: CompactionOperation, files: dict[str, FileStatus]) -> FileSlice:
    """Return the file slice of an operation, with files of size 0 in place of missing ones."""

    def status(name: str) -> FileStatus:
        path = join_path(operation.partition, name)
        return files.get(path) or FileStatus(path, 0)

    logs = [LogFile.parse(status(name)) for name in operation.log_files]
    base = BaseFile.parse(status(operation.base_file)) if operation.base_file else None
    return FileSlice(
        partition=operation.partition,
        file_id=operation.file_id,
        base_instant=operation.base_instant,
        base=replace(base, source=operation.source) if base else None,
        logs=tuple(sorted((log for log in logs if log), key=lambda log: log.order)),
    )


def file_settings(
    locked: LockedTable, timeline: Timeline, requested: str, options: WriteOptions
) -> tuple[FileSettings, str]:
    """Return the settings of the files that a service writes, and the table schema as Avro JSON.

    Args:
        locked: the locked table.
        timeline: the current timeline.
        requested: requested time of the service's instant.
        options: compression codec and file sizes.

    Raises:
        InvalidError: the table has no data yet, or a package is not installed that writes its files.
    """
    check_installed(locked.config)
    storage, store = locked.context.storage, locked.store
    config = with_history(locked.config, storage, store, timeline)
    as_of = None
    if (
        config.history is not None and requested
    ):  # files have the version of their instant, whatever came after it
        config, as_of = replace(config, history=config.history.at(requested)), requested
    schema_json = table_schema_json(storage, store, timeline, config, as_of)
    if schema_json is None:
        raise InvalidError("The table has no data yet, so there is nothing to do. Write to it first.")
    settings = FileSettings(
        storage=storage.spec,
        config=config,
        instant=requested,
        schema=without_meta(avro_to_arrow(schema_json)),
        avro_schema=with_meta_fields(schema_json),
        compression=options.compression,
        bloom=bloom_rate(options, config),
        base_file_bytes_max=options.sizing.base_file_size_max_bytes,
        log_format=options.log_block_format,
        summarized=summarized_columns(storage, config),
    )
    return settings, schema_json
