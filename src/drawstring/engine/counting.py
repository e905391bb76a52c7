"""Row counts by the values of text columns, which a write needs before it assigns rows to file groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from drawstring.engine.grouping import GroupKey, group_codes


@dataclass(frozen=True, slots=True)
class Tally:
    """Numbers of rows by group.

    Attributes:
        rows: number of rows by the values of the grouping columns.
        size_bytes: size of all rows in memory.
    """

    rows: Mapping[GroupKey, int]
    size_bytes: int

    @property
    def row_bytes(self) -> float:
        """Average size of a row in memory, in bytes."""
        return self.size_bytes / max(1, sum(self.rows.values()))

    @staticmethod
    def of(batches: Iterable[pa.RecordBatch], by: Sequence[str]) -> Tally:
        """Count the rows of a stream by text columns; null counts as a value."""
        counts: Counter[GroupKey] = Counter()
        size_bytes = 0
        for batch in batches:
            size_bytes += batch.nbytes
            codes, keys = group_codes(batch, by)
            rows = np.bincount(codes, minlength=len(keys)).tolist()
            counts.update(dict(zip(keys, rows, strict=True)))
        return Tally(dict(counts), size_bytes)

    @staticmethod
    def sum(tallies: Iterable[Tally]) -> Tally:
        """Add up the counts of several parts of the rows."""
        counts: Counter[GroupKey] = Counter()
        size_bytes = 0
        for tally in tallies:
            counts.update(tally.rows)
            size_bytes += tally.size_bytes
        return Tally(dict(counts), size_bytes)
