"""Records of a partition of the metadata table, divided among its file groups by the hash of their keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from drawstring.engine.spill import SpillingGroups
from drawstring.metadata.lookups import group_numbers
from drawstring.metadata.maintained.protocol import GroupChange
from drawstring.metadata.partitions import KEY

_NO_KEYS: Final = pa.array([], pa.string())


@dataclass(frozen=True, slots=True)
class Grouping:
    """How the records of a partition are divided.

    Attributes:
        partition: of the metadata table.
        schema: of its records.
        ids: ids of its file groups, in the order of their numbers.
        memory_bytes: bytes of records that are held in memory; the others go to the disk.
    """

    partition: str
    schema: pa.Schema
    ids: Sequence[str]
    memory_bytes: int

    def changes(self, batches: Iterable[pa.RecordBatch]) -> Iterator[GroupChange]:
        """Yield the records of each file group that has any; nothing is deleted by its key."""
        held = SpillingGroups(self.schema, self.memory_bytes)
        try:
            for batch in batches:
                numbers = group_numbers(batch.column(KEY), len(self.ids))
                for number in sorted(set(numbers.tolist())):
                    held.add(self.ids[number], batch.filter(pa.array(numbers == number)))
            for file_id in sorted(map(str, held.groups())):
                rows = pa.Table.from_batches(held.batches(file_id), self.schema)
                yield GroupChange(self.partition, file_id, rows, _NO_KEYS)
        finally:
            held.close()
