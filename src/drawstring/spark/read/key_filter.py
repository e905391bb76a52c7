"""The keys that a join looks for, as hashes: small enough for every task that reads the other side.

A small change of a large table joins a few keys with all that the table has. Its hashes go to the
tasks that read the table's keys, and only keys that may be wanted go through the shuffle. The join
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


def wanted(column: str, sets: KeySets) -> Wanted | None:
    """Return the filter by the keys of a change, None where they are not told one by one."""
    if told_bytes(sets) is None:
        return None
    hashes = [hashes_of(each.keys) for each in sets.values()]
    return Wanted(column, np.unique(np.concatenate([np.zeros(0, np.uint32), *hashes])))
