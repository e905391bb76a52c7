"""Concatenation of small record batches into larger ones.

A kernel call costs the same few microseconds for ten rows as for a thousand, and splitting a stream into
groups produces many batches of few rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from drawstring.base.bounds import BATCH_ROWS

COALESCED_BYTES_MAX: Final = 16 << 20
"""Largest size in bytes of a batch that is copied together from several."""


def coalesced(
    batches: Iterator[pa.RecordBatch], rows_max: int = BATCH_ROWS, bytes_max: int = COALESCED_BYTES_MAX
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a stream in batches as large as the bounds allow.

    Args:
        batches: the stream; a batch that fits together with no neighbour is passed on without a copy.
        rows_max: largest number of rows in a concatenated batch.
        bytes_max: largest size in bytes of a concatenated batch.
    """
    pending: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if batch.num_rows == 0:
            continue
        if pending and (rows + batch.num_rows > rows_max or size + batch.nbytes > bytes_max):
            yield _concatenated(pending)
            pending, rows, size = [], 0, 0
        pending.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
    if pending:
        yield _concatenated(pending)


def _concatenated(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
