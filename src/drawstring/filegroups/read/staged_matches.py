"""The rows of a base file that match a condition, found before other columns are decoded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from drawstring.filegroups.read.bootstrap_reader import side_by_side
from drawstring.merge.order import Array

_FEW_MATCHES: Final = 16
"""Number of matching rows up to which those of a look-up are compared, and not all of their row group."""


@dataclass(frozen=True, slots=True)
class Matches:
    """The rows of some row groups that match the condition.

    Attributes:
        facts: the columns of the condition, batch by batch.
        mask: for each row, whether it matches.
    """

    facts: Sequence[pa.RecordBatch]
    mask: Array

    @property
    def are_few(self) -> bool:
        """Whether so few rows match that the others are not compared with log records, even for later."""
        return int(self.mask.sum()) < _FEW_MATCHES

    @property
    def end(self) -> int:
        """The number of rows up to the last one that matches."""
        return int(np.flatnonzero(self.mask)[-1]) + 1


def beside(
    facts: Sequence[pa.RecordBatch], others: Iterator[pa.RecordBatch] | None
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """Yield batches and further columns of the same rows; the batches twice if there are no others."""
    if others is None:
        yield from ((batch, batch) for batch in facts)
    else:
        yield from side_by_side(iter(facts), others)
