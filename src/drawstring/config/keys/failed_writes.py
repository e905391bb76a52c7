"""Options of failed writes: which process rolls them back, and the heartbeats of writers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from drawstring.config.options.option import Kind, Option


class FailedWritesPolicy(StrEnum):
    """Which process rolls back failed writes."""

    EAGER = "EAGER"
    LAZY = "LAZY"
    NEVER = "NEVER"


@dataclass(frozen=True, slots=True)
class FailedWrites:
    """Settings of the rollback of failed writes.

    Attributes:
        policy: one of `FailedWritesPolicy`.
        interval_ms: milliseconds between two heartbeats of a writer.
        misses: intervals without a heartbeat after which a writer counts as dead.
    """

    policy: str
    interval_ms: int
    misses: int

    @property
    def alive_ms(self) -> int:
        """Milliseconds after which a heartbeat expires."""
        return self.interval_ms * self.misses


FAILED_WRITES_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "hoodie.clean.failed.writes.policy",
        "Which process rolls back failed writes: EAGER: the next write or table service; LAZY: a clean, once"
        " the heartbeat of the writer has expired; NEVER: none, so that cleaning and archiving stop before a"
        " failed write.",
        default=FailedWritesPolicy.EAGER.value,
        choices=tuple(FailedWritesPolicy),
        alternatives=("hoodie.cleaner.policy.failed.writes",),
        field="policy",
    ),
    Option(
        "hoodie.client.heartbeat.interval_in_ms",
        "Interval between two heartbeats of a writer, milliseconds.",
        kind=Kind.NUMBER,
        default=60_000,
        minimum=1000,
        field="interval_ms",
    ),
    Option(
        "hoodie.client.heartbeat.tolerable.misses",
        "Intervals without a heartbeat after which a writer counts as dead.",
        kind=Kind.NUMBER,
        default=2,
        field="misses",
    ),
)

DEFAULT_FAILED_WRITES: Final = FailedWrites(FailedWritesPolicy.EAGER, 60_000, 2)
"""Hudi's default."""
