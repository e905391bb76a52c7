"""Sort and shuffle the rows of a bulk insert or first insert, and write them to new file groups.

The sort mode determines the `Arrangement` of the rows before they are written:

    NONE                                  no shuffle, no sort: every task writes its rows
    GLOBAL_SORT                           all rows sorted by partition path and record key
    PARTITION_SORT                        the rows of each task sorted by partition path and record key
    PARTITION_PATH_REPARTITION            one task per partition path
    PARTITION_PATH_REPARTITION_AND_SORT   the same: rows of a partition path are grouped in any case

The task `PlaceNew` then writes rows in any order. A task with several threads gathers the rows of a
partition path before it writes them (`engine.gathering`), so that a small partition gets one file, and a
large one at most a file for each thread. A task with one thread, as Spark's are, writes its rows as they
come.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final

import pyarrow as pa
import pyarrow.types as pt

from drawstring.base.clock import Ids
from drawstring.base.errors import InvalidError
from drawstring.base.resources import map_in_threads
from drawstring.config.keys.write import BulkInsert, SortMode
from drawstring.engine.gathering import Gathering, Portion
from drawstring.engine.grouping import (
    COALESCED_BYTES_MAX,
    SMALL_BYTES_MAX,
    coalesced,
    contiguous_groups,
    split_by,
)
from drawstring.filegroups.base_file_writer import FileSettings, NewFileGroupWriter, close_together
from drawstring.filegroups.sorted_merge import whole_keys
from drawstring.filegroups.write.changes import split_deletes, upserts
from drawstring.model.commit import WriteStat
from drawstring.model.files import TaskContext
from drawstring.schema.fields import PARTITION_PATH, RECORD_KEY
from drawstring.storage import open_spec
from drawstring.write.placement import with_record_keys

FILES_TOGETHER_MAX: Final = 32
"""Number of small files that are written together."""


@dataclass(frozen=True, slots=True)
class PlaceNew:
    """Task that writes rows in any order to new file groups (bulk insert without hashing index).

    Attributes:
        settings: of the write.
        ids: names file groups.
        is_sorted: whether the rows of a partition path are contiguous, so that its files can be closed.
    """

    settings: FileSettings
    ids: Ids
    is_sorted: bool = False

    def __call__(self, batches: Iterator[pa.RecordBatch], context: TaskContext) -> Iterator[WriteStat]:
        """Write the rows of one task."""
        files = _Files(self.settings, self.ids, context)
        rows = with_record_keys(batches, self.settings, context.task)
        try:
            if self.is_sorted:
                yield from self._in_order(rows, files)
            elif context.threads == 1:
                for batch in rows:
                    for (partition,), part in split_by(batch, (PARTITION_PATH,)):
                        files.write(partition, iter((part,)))
                yield from chain.from_iterable(map(_closed, files.idle()))
            else:
                yield from _Gatherer(rows, files, context).run()
        except BaseException:
            files.abort()
            raise

    def _in_order(self, batches: Iterator[pa.RecordBatch], files: _Files) -> Iterator[WriteStat]:
        for (partition,), rows in contiguous_groups(self._unique(batches), (PARTITION_PATH,)):
            yield from files.finish(partition, rows)

    def _unique(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows; for sorted files, rows that are sorted by partition and key with each key once."""
        if not self.settings.config.has_sorted_files:
            yield from batches
            return
        for (_,), rows in contiguous_groups(whole_keys(batches), (PARTITION_PATH,)):
            for batch in rows:
                merged = upserts(pa.Table.from_batches([batch]), self.settings).records
                yield from merged.sort_by(RECORD_KEY).combine_chunks().to_batches()


class _Gatherer:
    """Gathers the rows of a task by partition and writes them, with all threads that the task may use."""

    def __init__(self, rows: Iterator[pa.RecordBatch], files: _Files, context: TaskContext) -> None:
        first = list(islice(rows, 2))
        self._rows = chain(first, rows)
        self._reading = threading.Lock()
        self._threads = context.threads
        self._readers = context.threads if len(first) > 1 else 1
        self._files = files
        self._gathering = Gathering(context.memory_bytes, context.threads)

    def run(self) -> Iterator[WriteStat]:
        try:
            map_in_threads(self._read, range(self._readers), self._readers)
            done = map_in_threads(
                self._finish, _batches_of_portions(self._gathering.rest(), self._threads), self._threads
            )
        finally:
            self._gathering.close()
        done += map_in_threads(_closed, self._files.idle(), self._threads)
        yield from chain.from_iterable(done)

    def _read(self, _: int) -> None:
        """Read rows, and write what is to make room, until there are no more rows."""
        try:
            while not self._gathering.is_stopped:
                portion = self._gathering.next_ready()
                if portion is not None:
                    self._files.write(portion.group, portion.batches, as_row_groups=True)
                    self._gathering.written(portion)
                elif (batch := self._next()) is not None:
                    self._gathering.add(split_by(batch, (PARTITION_PATH,)))
                else:
                    return
        except BaseException:
            self._gathering.stop()
            raise

    def _next(self) -> pa.RecordBatch | None:
        with self._reading:
            return next(self._rows, None)

    def _finish(self, portions: list[Portion]) -> list[WriteStat]:
        return self._files.finish_all([(each.group, each.batches) for each in portions])


class _Files:
    """The files of a task. Several threads may write, each to a file of its own."""

    def __init__(self, settings: FileSettings, ids: Ids, context: TaskContext) -> None:
        self._settings = settings
        self._ids = ids
        self._context = context
        self._storage = open_spec(settings.storage)
        self._meta_columns = settings.meta_column_writer(context.task)
        self._lock = threading.Lock()
        self._idle: dict[str, list[NewFileGroupWriter]] = defaultdict(list)
        self._all: set[NewFileGroupWriter] = set()

    def write(self, partition: str, rows: Iterator[pa.RecordBatch], *, as_row_groups: bool = False) -> None:
        """Write rows to an open file, or to a new one, which stays open.

        Args:
            partition: path of the partition.
            rows: the rows.
            as_row_groups: whether they are stored at once, so that they take no more memory.
        """
        groups = self._written(partition, rows)
        if as_row_groups:
            groups.flush()
        with self._lock:
            self._idle[partition].append(groups)

    def finish(self, partition: str, rows: Iterator[pa.RecordBatch]) -> list[WriteStat]:
        """Write rows to an open file, or to a new one, and close it."""
        return list(self._written(partition, rows).close())

    def finish_all(self, portions: list[tuple[str, Iterator[pa.RecordBatch]]]) -> list[WriteStat]:
        """Write rows of partitions to open files, or to new ones, and close them; all are open for a time."""
        with self._lock:
            files = [self._taken(partition) for partition, _ in portions]
        new = [each.announced() for each in files if not each.is_begun]
        self._settings.markers(self._storage).expect(new)
        for groups, (_, rows) in zip(files, portions, strict=True):
            self._fill(groups, rows)
        return close_together(files)

    def idle(self) -> list[NewFileGroupWriter]:
        """Return the open files."""
        return list(chain.from_iterable(self._idle.values()))

    def abort(self) -> None:
        """Give up the files that are open."""
        for groups in self._all:
            groups.abort()

    def _written(self, partition: str, rows: Iterator[pa.RecordBatch]) -> NewFileGroupWriter:
        with self._lock:
            groups = self._taken(partition)
        self._fill(groups, rows)
        return groups

    def _taken(self, partition: str) -> NewFileGroupWriter:
        return self._idle[partition].pop() if self._idle[partition] else self._new(partition)

    def _fill(self, groups: NewFileGroupWriter, rows: Iterator[pa.RecordBatch]) -> None:
        # A file ends between batches.
        for batch in coalesced(rows, bytes_max=min(COALESCED_BYTES_MAX, self._settings.base_file_bytes_max)):
            live_rows = _live(batch, self._settings)
            if live_rows.num_rows:
                groups.write(live_rows)

    def _new(self, partition: str) -> NewFileGroupWriter:
        groups = NewFileGroupWriter(
            self._settings, self._storage, partition, self._context, self._meta_columns, self._ids
        )
        self._all.add(groups)
        return groups


def _batches_of_portions(portions: list[Portion], threads: int) -> list[list[Portion]]:
    """Divide portions, the largest first, into those that are written together; the large ones are alone."""
    small = [each for each in portions if each.size_bytes <= SMALL_BYTES_MAX]
    count = max(1, min(FILES_TOGETHER_MAX, -(-len(small) // threads)))
    large = [[each] for each in portions[: len(portions) - len(small)]]
    return large + [small[start : start + count] for start in range(0, len(small), count)]


def _closed(groups: NewFileGroupWriter) -> list[WriteStat]:
    return list(groups.close())


def _live(rows: pa.RecordBatch, settings: FileSettings) -> pa.RecordBatch:
    """Drop rows that are marked as deletes: a new file group has no records to delete."""
    live_rows = split_deletes(pa.Table.from_batches([rows]), settings.config).records
    if live_rows.num_rows == rows.num_rows:
        return rows
    return pa.concat_batches(live_rows.to_batches()) if live_rows.num_rows else rows.slice(0, 0)


_BY_PARTITION = (SortMode.PARTITION_PATH_REPARTITION, SortMode.PARTITION_PATH_REPARTITION_AND_SORT)


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Sort and shuffle of rows before they are written.

    Attributes:
        sort_by: sort columns.
        global_sort: whether tasks get sorted ranges of all rows, rather than sort their own rows.
        by_partition: whether one task gets all rows of a partition path.
    """

    sort_by: tuple[str, ...] = ()
    global_sort: bool = False
    by_partition: bool = False


def arrangement(bulk: BulkInsert, schema: pa.Schema) -> Arrangement:
    """Return the arrangement that the options of a bulk insert request.

    Args:
        bulk: options of the bulk insert.
        schema: schema of the table.

    Raises:
        InvalidError: the table lacks a sort column, or its type has no order.
    """
    if bulk.partitioner and not bulk.sort_columns:
        raise InvalidError(
            "hoodie.bulkinsert.user.defined.partitioner.class needs sort columns. Set them in"
            " hoodie.bulkinsert.user.defined.partitioner.sort.columns."
        )
    if bulk.sort_columns:
        for name in bulk.sort_columns:
            if name not in schema.names or pt.is_nested(schema.field(name).type):
                raise InvalidError(
                    f"Rows cannot be sorted by {name}. Use columns of simple types from"
                    f" {', '.join(schema.names)}."
                )
        last = (RECORD_KEY,) if bulk.sort_by_key_last else ()
        return Arrangement((PARTITION_PATH, *bulk.sort_columns, *last), global_sort=True)
    mode = SortMode(bulk.sort_mode)
    if mode in _BY_PARTITION:
        return Arrangement(by_partition=True)
    if mode is SortMode.NONE:
        return Arrangement()
    return Arrangement((PARTITION_PATH, RECORD_KEY), global_sort=mode is SortMode.GLOBAL_SORT)
