r"""Compaction of a slice of sorted files that copies row groups among whose keys no log file has one.

    keys of the log files ──> row groups of the base file with one of them, or next to one
    other row groups ───────────────────────────────> copied as they are stored
    these ── rows ──┐
    log files ──────┴─ merged as by any reader ─────> encoded as row groups

Changes of recent keys, or of few, leave most row groups alone. A key that no row group has belongs to the
first one that ends after it, or to the last one. The bloom filter is made of the keys of the new file.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import itemgetter, methodcaller
from typing import Final

import numpy as np
import pyarrow as pa

from drawstring.filegroups.read.open_logs import open_logs
from drawstring.filegroups.read.slice_merge import base_schema, finished, log_reading
from drawstring.filegroups.read.sorted_merge import has_sorted_runs, in_order, merged_parts
from drawstring.filegroups.read.tasks import LogReading, ReadTask, nullable
from drawstring.filegroups.write.key_order import KeyOrder
from drawstring.filegroups.write.patch import SuccessorWriter
from drawstring.filegroups.write.settings import FileSettings
from drawstring.filegroups.write.virtual_keys import as_stored
from drawstring.formats.base_files import is_parquet
from drawstring.formats.base_footer import BaseFooter, base_footer
from drawstring.formats.bloom.key_summary import KeySummary
from drawstring.formats.parquet import RowGroups, physical
from drawstring.formats.parquet.parts import read_parquet_groups
from drawstring.formats.parquet.patched import PatchedFile, patch_source, patched_file
from drawstring.formats.parquet.write import entries_of, table_of
from drawstring.merge.order import Array
from drawstring.merge.versions import flat
from drawstring.model.commit import WriteStat
from drawstring.schema.evolve import conform
from drawstring.schema.meta import RECORD_KEY
from drawstring.storage import open_spec

_LOGGED_MAX: Final = 0.5
"""Size of the log files, as a share of that of the base file, up to which row groups are looked for."""

_COPIED_MIN: Final = 0.2
"""Smallest share of row groups that must be copied; below it, encoding the whole file is cheaper."""

_GROUPS_MIN: Final = 4
"""Fewest row groups of a base file: of fewer, little is left to copy beside those that change."""

_CHUNKS_MAX: Final = 20_000
"""Column chunks of a file whose footer is taken apart: each takes about 4 KB."""

_SMALL: Final = 4
"""A row group is small below 1/4 of the row and byte limits; it is merged with a changed neighbour."""

_STRETCH: Final = 1.25
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
    if sum(log.status.size_bytes for log in task.file_slice.logs) > _LOGGED_MAX * base.status.size_bytes:
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
                is_logged[_groups_of(flat(piece.keys), ends)] = True
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
        schema = physical(self.settings.full_schema)
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
        if rows > _STRETCH * _fitting(held, limits):
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
