"""Reading the record keys of a file slice, and nothing else, for indexes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from drawstring.config.table import TableConfig
from drawstring.filegroups.reader import SliceMerge, read_slice
from drawstring.filegroups.tasks import InstantRange, ReadTask
from drawstring.model.files import FileSlice
from drawstring.schema.meta import RECORD_KEY
from drawstring.storage.protocol import StorageSpec


@dataclass(frozen=True, slots=True)
class ReadKeys:
    """Yields record key, partition path, file id of every record of a slice, and whether it is deleted.

    Deleted are those keys that the slice's log files say so of; a base file has none.

    Attributes:
        storage: opens the table.
        config: the table.
        schema: the table's columns with meta columns.
        instants: which log blocks count.
        output: names of the four columns and their types.
    """

    storage: StorageSpec
    config: TableConfig
    schema: pa.Schema
    instants: InstantRange
    output: pa.Schema

    def __call__(self, file_slice: FileSlice) -> Iterator[pa.RecordBatch]:
        """Read one slice."""
        task = ReadTask(
            self.storage, self.config, file_slice, self.schema, (RECORD_KEY,), instants=self.instants
        )
        if not file_slice.logs:
            yield from (self._located(file_slice, each.column(RECORD_KEY)) for each in read_slice(task))
            return
        merge = SliceMerge(task)
        yield from (self._located(file_slice, each.column(RECORD_KEY)) for each in merge.batches())
        yield self._located(file_slice, merge.deleted_keys(), is_deleted=True)

    def _located(self, file_slice: FileSlice, keys: pa.Array, *, is_deleted: bool = False) -> pa.RecordBatch:
        constants = (file_slice.partition, file_slice.file_id, is_deleted)
        columns = [keys, *(pa.repeat(value, len(keys)) for value in constants)]
        return pa.RecordBatch.from_arrays(columns, schema=self.output)
