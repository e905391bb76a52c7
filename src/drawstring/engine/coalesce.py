"""Making few batches of many small ones.

Every kernel costs the same few microseconds for ten rows as for a thousand, and splitting a stream among
groups makes many batches of few rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from drawstring.base.bounds import BATCH_ROWS

COALESCED_BYTES_MAX: Final = 16 << 20
"""Bytes of rows that are copied into one batch."""


def coalesced(
    batches: Iterator[pa.RecordBatch], rows_max: int = BATCH_ROWS, bytes_max: int = COALESCED_BYTES_MAX
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a stream in batches that are as large as the bounds allow.

    Args:
        batches: the stream; a batch that nothing fits beside goes through as it is.
        rows_max: rows in a batch that is made.
        bytes_max: bytes of rows in a batch that is made.
    """
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if batch.num_rows == 0:
            continue
        if held and (rows + batch.num_rows > rows_max or size + batch.nbytes > bytes_max):
            yield _one(held)
            held, rows, size = [], 0, 0
        held.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
    if held:
        yield _one(held)


def _one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
