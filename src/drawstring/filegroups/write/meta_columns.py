"""The meta columns of a record: which commit, which key, where."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.filegroups.write.sequence import counted_texts
from drawstring.schema.meta import FILE_NAME, META_COLUMNS, PARTITION_PATH, RECORD_KEY


class MetaColumnWriter:
    """Puts the meta columns on the rows of one task.

    The sequence number is `<instant>_<task>_<counter>`; the counter runs through the whole task.

    Args:
        instant: requested time of the write.
        task: number of the task.
        schema: the table's columns with meta columns.
        is_populated: whether the table has values in its meta columns.
    """

    def __init__(self, instant: str, task: int, schema: pa.Schema, is_populated: bool = True) -> None:
        self._is_populated = is_populated
        self._instant = instant
        self._prefix = f"{instant}_{task}_"
        self._names = schema.names[len(META_COLUMNS) :]
        self._schema = schema
        self._counter = itertools.count()

    def apply(self, batch: pa.RecordBatch, file_name: str) -> pa.RecordBatch:
        """Return the rows as they stand in a file.

        Args:
            batch: prepared rows: the table's columns, record key and partition path.
            file_name: name of the base file, or the file id inside log files.
        """
        rows = batch.num_rows
        own = [batch.column(name) for name in self._names]
        if not self._is_populated:
            nothing = [pa.nulls(rows, pa.string())] * len(META_COLUMNS)
            return pa.RecordBatch.from_arrays([*nothing, *own], names=self._schema.names)
        columns = [
            constant(self._instant, rows),
            self._sequence(rows),
            batch.column(RECORD_KEY),
            dictionary(batch.column(PARTITION_PATH)),
            constant(file_name, rows),
            *own,
        ]
        return pa.RecordBatch.from_arrays(columns, names=self._schema.names)

    def _sequence(self, rows: int) -> pa.Array:
        start = next(self._counter)
        self._counter = itertools.count(start + rows)
        return counted_texts(self._prefix, start, rows)


def constant(value: str, rows: int) -> pa.Array:
    """Return a text column of one value, dictionary-encoded so that it costs nothing to write."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, dtype=np.int32)), pa.array([value]))


def dictionary(column: pa.Array) -> pa.Array:
    """Return a column dictionary-encoded."""
    return column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)


def renamed(batch: pa.RecordBatch, file_name: str) -> pa.RecordBatch:
    """Return rows of another file with the name of the file that they move to."""
    position = batch.schema.get_field_index(FILE_NAME)
    return batch.set_column(position, FILE_NAME, constant(file_name, batch.num_rows))
