"""The plan of an indexing action, and what it did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class IndexedPartition:
    """A partition of the metadata table that is built.

    Attributes:
        name: of the partition.
        up_to: requested time of the last write that the partition is built of; writes after it add their own
            records.
        extra: further facts.
    """

    name: str
    up_to: str
    extra: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IndexPlan:
    """The partitions of an indexing action, planned or built.

    Attributes:
        partitions: at least one.
    """

    partitions: tuple[IndexedPartition, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The partitions of the metadata table."""
        return tuple(each.name for each in self.partitions)
