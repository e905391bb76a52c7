"""A filter by key hashes: drops rows of the build side of a join before the shuffle.

A small change of a large table joins a few keys with all keys of the table. The hashes of these few keys are
sent to the tasks that read the table's keys, and only rows that may match go through the shuffle. The join
compares the keys themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from drawstring.engine.key_sets import KeySets, told_bytes
from drawstring.spark.engine.batches import text_hash

Hashes = np.ndarray[Any, np.dtype[np.uint32]]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A filter that passes all rows that match a key, and occasionally others (false positives).

    Attributes:
        column: the first key column, whose string values are hashed.
        hashes: sorted hashes of the keys.
    """

    column: str
    hashes: Hashes

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows that may match."""
        for batch in batches:
            matching = batch.filter(pa.array(self._contains(hashes_of(batch.column(self.column)))))
            if matching.num_rows:
                yield matching

    def _contains(self, hashes: Hashes) -> np.ndarray[Any, np.dtype[np.bool_]]:
        if not len(self.hashes):
            return np.zeros(len(hashes), bool)
        positions = np.searchsorted(self.hashes, hashes)
        return np.asarray(self.hashes[np.minimum(positions, len(self.hashes) - 1)] == hashes)


def hashes_of(keys: pa.Array) -> Hashes:
    """Hash every key to 32 bits."""
    return (text_hash(keys.cast(pa.string())) >> np.uint64(32)).astype(np.uint32)


def wanted(column: str, sets: KeySets) -> Wanted | None:
    """Return the filter by the keys of a change, None if only the ranges of the keys are known."""
    if told_bytes(sets) is None:
        return None
    hashes = [hashes_of(key_set.keys) for key_set in sets.values()]
    return Wanted(column, np.unique(np.concatenate([np.zeros(0, np.uint32), *hashes])))
