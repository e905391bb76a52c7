"""Options of the partition TTL, which drops partitions by age."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from drawstring.base.errors import InvalidError
from drawstring.config.options.option import Kind, Option


@dataclass(frozen=True, slots=True)
class PartitionTtl:
    """Settings of the partition TTL.

    Attributes:
        inline: whether every write drops expired partitions.
        strategy: `KEEP_BY_TIME` counts the age from the last write to a partition, `KEEP_BY_CREATION_TIME`
            from the first.
        days: age at which a partition expires; -1 for never.
        selected: partition paths that may expire; empty for all.
        partitions_max: largest number of partitions dropped at once.
    """

    inline: bool
    strategy: str
    days: int
    selected: tuple[str, ...]
    partitions_max: int

    def __post_init__(self) -> None:
        if self.inline and self.days < 0:
            raise InvalidError(
                "hoodie.partition.ttl.inline drops partitions by age, but no age is set. Set"
                " hoodie.partition.ttl.strategy.days.retain."
            )


TTL_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "hoodie.partition.ttl.inline",
        "Whether a write drops expired partitions after its commit, and `run_services` does so, too.",
        kind=Kind.FLAG,
        default=False,
        field="inline",
    ),
    Option(
        "hoodie.partition.ttl.management.strategy.type",
        "Whether the age of a partition counts from the last write to it, or from the first.",
        default="KEEP_BY_TIME",
        choices=("KEEP_BY_TIME", "KEEP_BY_CREATION_TIME", "CUSTOM"),
        only=("KEEP_BY_TIME", "KEEP_BY_CREATION_TIME"),
        field="strategy",
    ),
    Option(
        "hoodie.partition.ttl.strategy.days.retain",
        "Days after which a partition expires; -1 for never. With 0, writes and `CALL run_ttl` drop nothing,"
        " as in Hudi; a call that asks for it drops all.",
        kind=Kind.NUMBER,
        default=-1,
        minimum=-1,
        field="days",
    ),
    Option(
        "hoodie.partition.ttl.strategy.partition.selected",
        "Partitions that may expire; all when not given.",
        kind=Kind.LIST,
        default=(),
        field="selected",
    ),
    Option(
        "hoodie.partition.ttl.strategy.max.delete.partitions",
        "Largest number of partitions dropped at once, in the order of their paths.",
        kind=Kind.NUMBER,
        default=1000,
        field="partitions_max",
    ),
)
