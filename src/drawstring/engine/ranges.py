r"""External sort by ranges, for more rows than fit in memory.

stream ── store and sample ──> cut points ── split ──> ranges, on disk beyond a bound
ranges, each sorted when it is read ──> for each part one stream of neighbouring ranges
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.bounds import BATCH_ROWS
from drawstring.engine.spill import SpillingGroups

_SAMPLE_ROWS = 64
_ALL_ROWS = "rows"


class SortedRanges:
    """Divides rows into ranges and returns them sorted.

    Args:
        schema: columns of the rows.
        by: columns to sort by; null comes first.
        memory_bytes: bytes of rows kept in memory.
        parts: number of streams that are read at the same time.
    """

    def __init__(self, schema: pa.Schema, by: Sequence[str], memory_bytes: int, parts: int) -> None:
        self._by = tuple(by)
        self._schema = schema
        self._range_bytes = max(1, memory_bytes // (4 * parts))
        self._parts = parts
        self._rows = SpillingGroups(schema, memory_bytes // 4)
        self._ranges = SpillingGroups(schema, memory_bytes // 4)

    def take(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Read all rows and divide them into ranges."""
        sample: list[pa.RecordBatch] = []
        size_bytes = 0
        for batch in batches:
            if batch.num_rows:
                self._rows.add(_ALL_ROWS, batch)
                step = max(1, batch.num_rows // _SAMPLE_ROWS)
                sample.append(batch.select(self._by).take(pa.array(np.arange(0, batch.num_rows, step))))
                size_bytes += batch.nbytes
        if not sample:
            return
        count = max(self._parts, -(-size_bytes // self._range_bytes))
        cuts = _cuts(pa.Table.from_batches(sample), self._by, count)
        for batch in self._rows.batches(_ALL_ROWS):
            for number, rows in _split(batch, self._by, cuts):
                self._ranges.add(number, rows)
        self._rows.close()

    def parts(self) -> list[Iterator[pa.RecordBatch]]:
        """Return streams of neighbouring ranges, each sorted."""
        numbers = sorted(number for number in self._ranges.groups() if isinstance(number, int))
        ends = np.linspace(0, len(numbers), min(self._parts, len(numbers)) + 1).astype(int).tolist()
        return [self._stream(numbers[start:end]) for start, end in pairwise(ends)]

    def close(self) -> None:
        """Delete the files on disk."""
        self._rows.close()
        self._ranges.close()

    def _stream(self, numbers: Sequence[int]) -> Iterator[pa.RecordBatch]:
        for number in numbers:
            rows = pa.Table.from_batches(list(self._ranges.batches(number)), self._schema)
            self._ranges.drop(number)
            yield from rows.take(sorted_order(rows, self._by)).to_batches(max_chunksize=BATCH_ROWS)


def sorted_order(rows: pa.Table, by: Sequence[str]) -> pa.Array:
    """Return the row numbers in sorted order; the sort is stable."""
    columns: dict[str, pa.ChunkedArray] = {}
    for number, name in enumerate(by):
        if rows.column(name).null_count:
            columns[f"{number} is valid"] = pc.is_valid(rows.column(name))
        columns[str(number)] = rows.column(name)
    return pc.sort_indices(pa.table(columns), sort_keys=[(name, "ascending") for name in columns])


def _cuts(sample: pa.Table, by: Sequence[str], count: int) -> pa.Table:
    """Return the rows of a sample at which the second and all later ranges begin."""
    ordered = sample.take(sorted_order(sample, by))
    positions = np.unique(np.linspace(0, len(ordered), count + 1).astype(int)[1:-1])
    return ordered.take(pa.array(positions))


def _split(batch: pa.RecordBatch, by: Sequence[str], cuts: pa.Table) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Divide a batch into ranges; rows that equal a cut belong to the range that begins there."""
    keys = pa.Table.from_batches([batch.select(list(by))])
    order = sorted_order(pa.concat_tables([cuts, keys]), by).to_numpy().astype(np.int64)
    is_row = order >= len(cuts)
    ordered = batch.take(pa.array(order[is_row] - len(cuts)))
    ends = np.cumsum(is_row)[~is_row].tolist()
    for number, (start, end) in enumerate(pairwise((0, *ends, batch.num_rows))):
        if end > start:
            yield number, ordered.slice(start, end - start)
