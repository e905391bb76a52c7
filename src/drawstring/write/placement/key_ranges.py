"""Rows of a sorted file group (`lsm_tree`) in pieces that fit in memory, each a range of keys."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.filegroups.read.key_order import sorted_by_key
from drawstring.schema.meta import RECORD_KEY


def in_key_ranges(rows: Iterator[pa.RecordBatch], bytes_max: int) -> Iterator[pa.Table]:
    """Divide rows of a sorted file group (`place.in_pieces`): a piece follows those with lower keys.

    So they can be written to one sorted file, piece by piece.

    Args:
        rows: prepared rows, which are not all in memory.
        bytes_max: about how many bytes of rows a piece has.
    """
    yield from _cut(sorted_by_key(rows, bytes_max), bytes_max)


def _cut(batches: Iterator[pa.RecordBatch], bytes_max: int) -> Iterator[pa.Table]:
    """Cut sorted rows between two keys wherever there are enough rows."""
    held: list[pa.RecordBatch] = []
    held_bytes = 0
    for batch in batches:
        if held_bytes > bytes_max:
            last = held[-1].column(RECORD_KEY)[-1]
            same = pc.sum(pc.equal(batch.column(RECORD_KEY), last)).as_py() or 0
            if same:
                held.append(batch.slice(0, same))
            if same < batch.num_rows:
                yield pa.Table.from_batches(held)
                held, held_bytes = [], 0
            batch = batch.slice(same)
        if batch.num_rows:
            held.append(batch)
            held_bytes += batch.nbytes
    if held:
        yield pa.Table.from_batches(held)
