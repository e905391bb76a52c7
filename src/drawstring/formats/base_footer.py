"""The footer of a Parquet base file, read once when the file is rewritten."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq

from drawstring.formats.bloom.filters import BloomFilter
from drawstring.formats.bloom.key_summary import FILTER, FILTER_TYPE, StoredSummary, reusable_filter
from drawstring.formats.file_errors import about_file
from drawstring.storage.protocol import Storage


@dataclass(frozen=True, slots=True)
class BaseFooter:
    """The footer of a base file.

    Attributes:
        metadata: the Parquet metadata.
    """

    metadata: pq.FileMetaData

    def reusable_filter(self, rate: float) -> BloomFilter | None:
        """Return the bloom filter if the file that replaces this one can extend it, else None.

        Args:
            rate: rate of false positives that it may have.
        """
        return reusable_filter(self._filter_entries(), self.metadata.num_rows, rate)

    def bloom_filter(self) -> BloomFilter | None:
        """Return the bloom filter; None if there is none, or it cannot be read."""
        return StoredSummary.of(self._filter_entries(), self.metadata.num_rows).bloom_filter()

    def _filter_entries(self) -> dict[str, str]:
        entries: Mapping[bytes, bytes] = self.metadata.metadata or {}
        return {name: entries.get(name.encode(), b"").decode() for name in (FILTER, FILTER_TYPE)}

    def greatest(self, column: str) -> Any:
        """Return the greatest value of a column that is not nested; None if it is unknown."""
        metadata, values = self.metadata, []
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            chunks = (group.column(at) for at in range(group.num_columns))
            match = next((chunk for chunk in chunks if chunk.path_in_schema == column), None)
            statistics = None if match is None else match.statistics
            if statistics is None or not statistics.has_min_max:
                return None
            values.append(statistics.max)
        return max(values, default=None)


def base_footer(storage: Storage, path: str) -> BaseFooter:
    """Read the footer of a Parquet base file.

    Raises:
        CorruptTableError: the file is missing or damaged.
    """
    with about_file(path), storage.open(path) as file:
        return BaseFooter(pq.read_metadata(file))
