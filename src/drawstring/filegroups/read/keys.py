"""Reader of the record keys of a file slice, for indexes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from drawstring.config.table.config import TableConfig
from drawstring.filegroups.positions import POSITION, has_positions
from drawstring.filegroups.read.open_logs import record_keys
from drawstring.filegroups.read.slice_merge import SliceMerge
from drawstring.filegroups.read.slice_reader import read_slice
from drawstring.filegroups.read.sorted_merge import has_sorted_runs, merged_parts
from drawstring.filegroups.read.tasks import InstantRange, ReadTask
from drawstring.model.files import FileSlice
from drawstring.schema.meta import RECORD_KEY
from drawstring.storage.protocol import StorageSpec


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
