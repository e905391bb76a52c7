"""Rows of row groups that match a condition, of which the other columns are decoded afterwards, if at all.

    columns of the condition ── no row matches ──> nothing more is decoded
        │ some do
    other columns, up to the last row that matches ──> the rows that match

A point read decodes half of a row group so on average, and nothing of one that its bounds did not exclude.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from drawstring.base.bounds import BATCH_ROWS

ROWS_MIN: Final = 8_192
"""Rows up to which all columns are decoded at once: decoding in two steps costs more than it saves."""

COLUMNS_MIN: Final = 32
"""Columns beside those of the condition from which on it saves something, however few the rows are."""

KNOWN_BYTES_MAX: Final = 32 << 20
"""Bytes of columns of the condition that are kept for the rows that match; of more they are decoded again."""

Decode: TypeAlias = Callable[[Sequence[str], int], Iterator[pa.RecordBatch]]
"""Yields some columns of all rows, so many rows at a time."""

Match: TypeAlias = Callable[[pa.RecordBatch], pa.Array]
"""Returns the numbers of the rows of a batch that match, ascending."""


def matching_in_steps(
    decode: Decode,
    looked_at: Sequence[str],
    requested: Sequence[str],
    match: Match,
) -> Iterator[pa.RecordBatch]:
    """Yield the requested columns of the rows that match.

    Args:
        decode: decodes columns.
        looked_at: the columns of the condition, at least one.
        requested: the columns to yield, of which the condition lacks some.
        match: finds the rows that match.
    """
    known: list[pa.RecordBatch] = []
    places: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []
    rows = known_bytes = 0
    for batch in decode(looked_at, BATCH_ROWS):
        numbers = match(batch)
        if len(numbers):
            places.append(numbers.to_numpy().astype(np.int64) + rows)
            if known_bytes <= KNOWN_BYTES_MAX:
                known.append(batch if len(numbers) == batch.num_rows else batch.take(numbers))
                known_bytes += known[-1].nbytes
        rows += batch.num_rows
    if not places:
        return
    is_known = known_bytes <= KNOWN_BYTES_MAX
    others = [name for name in requested if name not in looked_at] if is_known else requested
    found, wanted = pa.Table.from_batches(known) if is_known else None, np.concatenate(places)
    known.clear()
    start = done = 0
    for batch in decode(others, min(BATCH_ROWS, int(wanted[-1]) + 1)):
        end = start + batch.num_rows
        stop = int(np.searchsorted(wanted, end))
        if stop - done < batch.num_rows:
            batch = batch.take(pa.array(wanted[done:stop] - start))
        if found is not None:
            yield from _joined(found.slice(done, stop - done), batch, requested)
        elif batch.num_rows:
            yield batch.select(list(requested))
        start, done = end, stop
        if done == len(wanted):
            return


def _joined(found: pa.Table, others: pa.RecordBatch, requested: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield columns of the same rows side by side."""
    start, in_found = 0, {*found.column_names}
    for batch in found.to_batches():
        beside = others.slice(start, batch.num_rows)
        start += batch.num_rows
        columns = [(batch if name in in_found else beside).column(name) for name in requested]
        yield pa.RecordBatch.from_arrays(columns, names=list(requested))
