r"""The order of record keys in a sorted file: ascending by their UTF-8 bytes.

Files of drawstring have each key once. In those of Apache Hudi a key may come several times in a row: its
Spark inserts and bulk inserts do not merge rows of one key.

rows of a file --- fit into memory ---> sorted there
              \--- do not ------------> divided into ranges on disk, each sorted when it is read
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.bounds import BATCH_ROWS
from drawstring.engine.grouping import first_batches
from drawstring.engine.ranges import SortedRanges, sorted_order
from drawstring.schema.meta import RECORD_KEY

SORT_BYTES: Final = 256 << 20
"""Bytes of rows of a file that are sorted in memory."""


class AscendingKeys:
    """Compares the keys of a stream, batch by batch.

    Args:
        once: whether a key that comes again is out of order, too.
    """

    def __init__(self, *, once: bool = False) -> None:
        self._compare = pc.less if once else pc.less_equal
        self._last: pa.Scalar | None = None

    def go_on(self, keys: pa.Array) -> bool:
        """Return whether no key is smaller than the one before it."""
        if not len(keys):
            return True
        keys = keys.cast(pa.string())
        last, self._last = self._last, keys[-1]
        if last is not None and not self._compare(last, keys[0]).as_py():
            return False
        return bool(pc.all(self._compare(keys[:-1], keys[1:]), min_count=0).as_py())


def is_key_order(columns: Sequence[str], record_key: Sequence[str]) -> bool:
    """Return whether rows sorted by columns are to be in the order of their record keys.

    Args:
        columns: sort columns that were asked for; none leaves the choice to the layout.
        record_key: key columns of the table.
    """
    return tuple(columns) in ((), tuple(record_key), (RECORD_KEY,))


def sorted_by_key(batches: Iterable[pa.RecordBatch], bytes_max: int = SORT_BYTES) -> Iterator[pa.RecordBatch]:
    """Yield rows sorted by record key; rows with equal keys keep their order.

    Args:
        batches: the rows, all with the same columns.
        bytes_max: bytes of rows up to which they are sorted in memory.
    """
    rows = _uniform(batches)
    held, held_bytes = first_batches(rows, bytes_max)
    if held_bytes > bytes_max:
        yield from _sorted_on_disk(chain(held, rows), held[0].schema, bytes_max)
    elif held:
        table = pa.Table.from_batches(held)
        del held
        yield from table.take(sorted_order(table, (RECORD_KEY,))).to_batches(max_chunksize=BATCH_ROWS)


def _sorted_on_disk(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, bytes_max: int
) -> Iterator[pa.RecordBatch]:
    ranges = SortedRanges(schema, (RECORD_KEY,), bytes_max, parts=1)
    try:
        ranges.take(batches)
        for part in ranges.parts():
            yield from part
    finally:
        ranges.close()


def _uniform(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches with one schema: those for a file may have dictionaries in different columns."""
    schema: pa.Schema | None = None
    for batch in batches:
        if schema is None:
            fields = [pa.field(field.name, _plain(field.type)) for field in batch.schema]
            schema = pa.schema(fields)
        columns = [batch.column(field.name) for field in schema]
        plain = [
            column if column.type == field.type else column.cast(field.type)
            for column, field in zip(columns, schema, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(plain, schema=schema)


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
