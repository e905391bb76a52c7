"""The keys that a join looks for, as hashes: small enough for every task that reads the other side.

A small change of a large table joins a few keys with all that the table has. Its hashes go to the
tasks that read the table's keys, and only keys that may be wanted go through the shuffle. The join
compares the keys themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from drawstring.spark.batches import text_hash

HASHES_MAX: Final = 1 << 22
"""Keys up to which a join is worth it: 16 MiB of hashes for every task."""

HASHES_OF_A_PART_MAX: Final = 1 << 18
PARTS_MAX: Final = 128
"""Parts whose keys the driver gathers; with more of them a change is not small."""

Hashes = np.ndarray[Any, np.dtype[np.uint32]]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A filter that lets pass what may match, and at times a row that does not.

    Attributes:
        column: the first key column; its text is what was hashed.
        hashes: sorted.
    """

    column: str
    hashes: Hashes

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows that may match."""
        for batch in batches:
            kept = batch.filter(pa.array(self._has(hashes_of(batch.column(self.column)))))
            if kept.num_rows:
                yield kept

    def _has(self, asked: Hashes) -> np.ndarray[Any, np.dtype[np.bool_]]:
        if not len(self.hashes):
            return np.zeros(len(asked), bool)
        places = np.searchsorted(self.hashes, asked)
        return np.asarray(self.hashes[np.minimum(places, len(self.hashes) - 1)] == asked)


def hashes_of(keys: pa.Array) -> Hashes:
    """Hash every key to 32 bits."""
    return (text_hash(keys.cast(pa.string())) >> np.uint64(32)).astype(np.uint32)


def key_hashes(batches: Iterator[pa.RecordBatch], column: str, part: int) -> bytes | None:
    """Return the hashes of the keys of one part, None when they are too many to gather."""
    if part >= PARTS_MAX:
        return None
    found, rows = [], 0
    for batch in batches:
        rows += batch.num_rows
        if rows > HASHES_OF_A_PART_MAX:
            return None
        found.append(hashes_of(batch.column(column)))
    return np.unique(np.concatenate(found)).tobytes() if found else b""


def wanted(column: str, gathered: Sequence[bytes | None]) -> Wanted | None:
    """Return the filter by what all parts found, None when there are too many keys."""
    sizes = [len(part) for part in gathered if part is not None]
    if len(sizes) < len(gathered) or sum(sizes) > HASHES_MAX * np.dtype(np.uint32).itemsize:
        return None
    return Wanted(column, np.unique(np.frombuffer(b"".join(part for part in gathered if part), np.uint32)))
