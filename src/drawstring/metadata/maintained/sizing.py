"""How many file groups a new index of keys gets, by the number of records of the table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from drawstring.formats.base_footer import key_summary
from drawstring.model.files import FileSlice
from drawstring.storage.protocol import Storage

_GIB: Final = 1 << 30
_RECORD_BYTES: Final = 48
"""Bytes of a record that Hudi expects when it chooses the number of file groups."""

_SMALL_BYTES: Final = 1 << 20
"""Size of base files whose records do not count: the number of file groups depends on millions."""


@dataclass(frozen=True, slots=True)
class IndexSizing:
    """How many file groups an index gets.

    Attributes:
        groups_min, groups_max: bounds of the number.
        growth: factor by which the number of records may grow
            (`hoodie.metadata.record.index.growth.factor`).
        group_bytes_max: size of a file group (`hoodie.metadata.record.index.max.filegroup.size`).
    """

    groups_min: int = 10
    groups_max: int = 10_000
    growth: float = 2.0
    group_bytes_max: int = _GIB

    def groups(self, records: int) -> int:
        """Return the number of file groups for a number of records."""
        if self.groups_min == self.groups_max:
            return self.groups_min
        expected = int(np.ceil(records * self.growth)) // max(1, self.group_bytes_max // _RECORD_BYTES)
        return min(max(expected, self.groups_min), self.groups_max)


GLOBAL_SIZING: Final = IndexSizing()
PARTITIONED_SIZING: Final = IndexSizing(1, 10)


def records_in(storage: Storage, file_slice: FileSlice) -> int:
    """Return the number of records in the base file of a slice, 0 for a small one.

    Args:
        storage: the table's files.
        file_slice: one of its slices.

    Raises:
        CorruptTableError: the base file is missing or damaged.
    """
    base = file_slice.base
    if base is None or base.status.size_bytes < _SMALL_BYTES:
        return 0
    summary = key_summary(storage, base.status.path)
    return 0 if summary is None else summary.rows
