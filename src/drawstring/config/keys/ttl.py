"""Options about the time that partitions live."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from drawstring.base.errors import InvalidError
from drawstring.config.options.option import Kind, Option


@dataclass(frozen=True, slots=True)
class PartitionTtl:
    """Which partitions have had their time.

    Attributes:
        inline: whether every write drops those.
        strategy: `KEEP_BY_TIME` counts from the last write to a partition, `KEEP_BY_CREATION_TIME` from the
            first.
        days: how long a partition lives; -1 for ever.
        selected: partition paths that this is about; empty for all.
        partitions_max: partitions that are dropped at once.
    """

    inline: bool
    strategy: str
    days: int
    selected: tuple[str, ...]
    partitions_max: int

    def __post_init__(self) -> None:
        if self.inline and self.days < 0:
            raise InvalidError(
                "hoodie.partition.ttl.inline drops partitions by their age: set"
                " hoodie.partition.ttl.strategy.days.retain"
            )


TTL_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "hoodie.partition.ttl.inline",
        "Whether a write drops partitions whose time is over after its commit, and `run_services` where it is"
        " asked.",
        kind=Kind.FLAG,
        default=False,
        field="inline",
    ),
    Option(
        "hoodie.partition.ttl.management.strategy.type",
        "What the age of a partition is counted from: the last write to it, or the first.",
        default="KEEP_BY_TIME",
        choices=("KEEP_BY_TIME", "KEEP_BY_CREATION_TIME", "CUSTOM"),
        only=("KEEP_BY_TIME", "KEEP_BY_CREATION_TIME"),
        field="strategy",
    ),
    Option(
        "hoodie.partition.ttl.strategy.days.retain",
        "Days that a partition lives; -1 for ever.",
        kind=Kind.NUMBER,
        default=-1,
        minimum=-1,
        field="days",
    ),
    Option(
        "hoodie.partition.ttl.strategy.partition.selected",
        "Partitions that may be dropped by their age; all when not given.",
        kind=Kind.LIST,
        default=(),
        field="selected",
    ),
    Option(
        "hoodie.partition.ttl.strategy.max.delete.partitions",
        "Partitions that are dropped at once, the first by path.",
        kind=Kind.NUMBER,
        default=1000,
        field="partitions_max",
    ),
)
