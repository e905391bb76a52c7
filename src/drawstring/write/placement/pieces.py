r"""Rows of one file group in pieces that memory holds; all rows of a key are in one piece.

rows ── few enough ──> one piece
    \─ too many ────> by a hash of the key, on disk beyond a bound, then piece after piece
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final

import numpy as np
import pyarrow as pa

from drawstring.engine.spill import SpillingGroups
from drawstring.schema.meta import RECORD_KEY
from drawstring.write.placement.shares import key_places

PIECE_BYTES_MAX: Final = 128 << 20
"""Bytes of rows of one file group that are looked at together."""

_PIECES: Final = 64
_SHUFFLED: Final = 1_048_573
"""Places of a file group's keys lie close together: these are further digits of them."""


def in_pieces(rows: Iterator[pa.RecordBatch], bytes_max: int = PIECE_BYTES_MAX) -> Iterator[pa.Table]:
    """Yield the rows of a file group, all of a key together and in their order.

    Args:
        rows: prepared rows, at least one batch.
        bytes_max: bytes of them that are held in memory.
    """
    held: list[pa.RecordBatch] = []
    held_bytes = 0
    for batch in rows:
        held.append(batch)
        held_bytes += batch.nbytes
        if held_bytes > bytes_max:
            yield from _divided(chain(held, rows), batch.schema, bytes_max)
            return
    yield pa.Table.from_batches(held)


def _divided(rows: Iterator[pa.RecordBatch], schema: pa.Schema, bytes_max: int) -> Iterator[pa.Table]:
    pieces = SpillingGroups(schema, bytes_max)
    try:
        for batch in rows:
            numbers = ((key_places(batch.column(RECORD_KEY)) * _SHUFFLED) % 1.0 * _PIECES).astype(np.int64)
            for number in np.unique(numbers).tolist():
                pieces.add(number, batch.filter(pa.array(numbers == number)))
        for group in pieces.groups():
            yield pa.Table.from_batches(list(pieces.batches(group)))
            pieces.drop(group)
    finally:
        pieces.close()
