"""Counting rows by the values of text columns: what a write has to know before it places them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from drawstring.engine.grouping import GroupKey, group_codes


@dataclass(frozen=True, slots=True)
class Tally:
    """How many rows there are.

    Attributes:
        rows: by the values of the columns that were asked for.
        size_bytes: what all of them take in memory.
    """

    rows: Mapping[GroupKey, int]
    size_bytes: int

    @property
    def row_bytes(self) -> float:
        """What a row takes in memory, on average."""
        return self.size_bytes / max(1, sum(self.rows.values()))

    @staticmethod
    def of(batches: Iterable[pa.RecordBatch], by: Sequence[str]) -> Tally:
        """Count the rows of a stream by text columns; null is a value of its own."""
        counts: Counter[GroupKey] = Counter()
        size_bytes = 0
        for batch in batches:
            size_bytes += batch.nbytes
            codes, keys = group_codes(batch, by)
            found = np.bincount(codes, minlength=len(keys)).tolist()
            counts.update(dict(zip(keys, found, strict=True)))
        return Tally(dict(counts), size_bytes)

    @staticmethod
    def sum(tallies: Iterable[Tally]) -> Tally:
        """Add up what parts of the rows have."""
        counts: Counter[GroupKey] = Counter()
        size_bytes = 0
        for tally in tallies:
            counts.update(tally.rows)
            size_bytes += tally.size_bytes
        return Tally(dict(counts), size_bytes)
