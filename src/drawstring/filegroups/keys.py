"""Reading the record keys of a file slice, and nothing else, for indexes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from drawstring.config.table import TableConfig
from drawstring.filegroups.reader import read_slice
from drawstring.filegroups.tasks import InstantRange, ReadTask
from drawstring.model.files import FileSlice
from drawstring.schema.meta import RECORD_KEY
from drawstring.storage.protocol import StorageSpec


@dataclass(frozen=True, slots=True)
class ReadKeys:
    """Yields record key, partition path and file id of every record of a slice.

    Attributes:
        storage: opens the table.
        config: the table.
        schema: the table's columns with meta columns.
        instants: which log blocks count.
        output: names of the three columns and their types.
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
        for batch in read_slice(task):
            rows = batch.num_rows
            columns = [
                batch.column(RECORD_KEY),
                pa.repeat(file_slice.partition, rows),
                pa.repeat(file_slice.file_id, rows),
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=self.output)
