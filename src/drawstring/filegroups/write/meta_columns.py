"""Writer of the meta columns (commit time, sequence number, key, partition, file) and of generated keys.

Counters such as `20250101000000000_0_17` are built without formatting every number:

head, the same for ten thousand rows    20250101000000000_0_12
the last four digits                                          3456
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.digits import DIGITS
from drawstring.schema.meta import FILE_NAME, META_COLUMNS, PARTITION_PATH, RECORD_KEY

_RUN_NUMBERS: Final = 10_000
_BORDERS: Final = (0, 10, 100, 1_000, _RUN_NUMBERS)


def counted_texts(prefix: str, start: int, rows: int) -> pa.Array:
    """Return `prefix` followed by `start`, `start + 1` and so on.

    Args:
        prefix: prefix of each text.
        start: first number, not negative.
        rows: number of texts.
    """
    cuts = list(_cuts(start, start + rows))
    runs = [_Run.of(prefix, first, last) for first, last in itertools.pairwise(cuts)]
    offsets = pa.allocate_buffer(4 * (rows + 1))
    texts = pa.allocate_buffer(sum(run.width * len(run.tails) for run in runs))
    ends = np.frombuffer(offsets, np.int32)
    ends[0] = row = end = 0
    for run in runs:
        count = len(run.tails)
        run.write(np.frombuffer(texts, run.layout, count, end))
        ends[row + 1 : row + count + 1] = np.arange(1, count + 1, dtype=np.int32) * run.width + end
        row, end = row + count, end + count * run.width
    return pa.StringArray.from_buffers(rows, offsets, texts)


@dataclass(frozen=True, slots=True)
class _Run:
    """Texts with the same head and the same length."""

    head: bytes
    tails: np.ndarray[tuple[int], np.dtype[np.void]]

    @staticmethod
    def of(prefix: str, first: int, last: int) -> _Run:
        thousands, number = divmod(first, _RUN_NUMBERS)
        digits = DIGITS[-1 if thousands else len(str(number)) - 1]
        head = f"{prefix}{thousands}" if thousands else prefix
        return _Run(head.encode(), digits[number : number + last - first])

    @property
    def layout(self) -> np.dtype[np.void]:
        return np.dtype([("head", f"V{len(self.head)}"), ("tail", self.tails.dtype)])

    @property
    def width(self) -> int:
        return len(self.head) + self.tails.itemsize

    def write(self, place: np.ndarray[tuple[int], np.dtype[np.void]]) -> None:
        place["head"] = np.void(self.head)
        place["tail"] = self.tails


def _cuts(start: int, end: int) -> Iterator[int]:
    """Yield the boundaries of the runs whose texts have the same head and the same length."""
    yield start
    while start < end:
        border = next((each for each in _BORDERS if each > start), (start // _RUN_NUMBERS + 1) * _RUN_NUMBERS)
        start = min(border, end)
        yield start


def with_generated_keys(
    batches: Iterator[pa.RecordBatch], instant: str, task: int
) -> Iterator[pa.RecordBatch]:
    """Yield prepared rows of a table without key columns with keys `<instant>_<task>_<counter>`.

    Args:
        batches: prepared rows of one task; rows with a non-empty key keep it.
        instant: requested time of the write.
        task: number of the task, which makes its keys distinct from those of other tasks.
    """
    prefix, made = f"{instant}_{task}_", 0
    for batch in batches:
        keys = batch.column(RECORD_KEY)
        is_missing = pc.equal(keys, "")
        if pc.any(is_missing).as_py():
            keys = pc.if_else(is_missing, counted_texts(prefix, made, batch.num_rows), keys)
            made += batch.num_rows
        yield batch.set_column(batch.schema.get_field_index(RECORD_KEY), RECORD_KEY, keys)


class MetaColumnWriter:
    """Adds the meta columns to the rows of one task, on one thread or several.

    The sequence number is `<instant>_<task>_<counter>`; the counter spans the whole task.

    Args:
        instant: requested time of the write.
        task: number of the task.
        schema: the table's columns with meta columns.
        is_populated: whether meta columns have values (`hoodie.populate.meta.fields`).
    """

    def __init__(self, instant: str, task: int, schema: pa.Schema, is_populated: bool = True) -> None:
        self._is_populated = is_populated
        self._instant = instant
        self._prefix = f"{instant}_{task}_"
        self._names = schema.names[len(META_COLUMNS) :]
        self._schema = schema
        self._next = 0
        self._counting = threading.Lock()

    def apply(self, batch: pa.RecordBatch, file_name: str) -> pa.RecordBatch:
        """Return the rows as they are stored in a file.

        Args:
            batch: prepared rows: the table's columns, record key and partition path.
            file_name: name of the base file, or the file id for log files.
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
        with self._counting:
            start, self._next = self._next, self._next + rows
        return counted_texts(self._prefix, start, rows)


def constant(value: str, rows: int) -> pa.Array:
    """Return a dictionary-encoded text column with a single value, which is cheap to write."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, dtype=np.int32)), pa.array([value]))


def dictionary(column: pa.Array) -> pa.Array:
    """Return a column dictionary-encoded."""
    return column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)


def renamed(batch: pa.RecordBatch, file_name: str) -> pa.RecordBatch:
    """Return rows of another file with the file name of their new file."""
    position = batch.schema.get_field_index(FILE_NAME)
    return batch.set_column(position, FILE_NAME, constant(file_name, batch.num_rows))
