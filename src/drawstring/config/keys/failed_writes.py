"""Options about writes whose writer died: who takes back what they left, and how death is told."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from drawstring.config.options.option import Kind, Option


class FailedWritesPolicy(StrEnum):
    """Who takes back what dead writers left."""

    EAGER = "EAGER"
    LAZY = "LAZY"
    NEVER = "NEVER"


@dataclass(frozen=True, slots=True)
class FailedWrites:
    """What becomes of writes whose writer died.

    Attributes:
        policy: who takes them back.
        interval_ms: milliseconds from one sign of life of a writer to the next.
        misses: intervals without one after which the writer counts as dead.
    """

    policy: str
    interval_ms: int
    misses: int

    @property
    def alive_ms(self) -> int:
        """Milliseconds for which a sign of life is good."""
        return self.interval_ms * self.misses


FAILED_WRITES_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "hoodie.clean.failed.writes.policy",
        "Who takes back what dead writers left: the next write or service, a clean once their heartbeat is"
        " too old (writers have one then), or nobody: then cleaning and archiving stop before it.",
        default=FailedWritesPolicy.EAGER.value,
        choices=tuple(FailedWritesPolicy),
        alternatives=("hoodie.cleaner.policy.failed.writes",),
        field="policy",
    ),
    Option(
        "hoodie.client.heartbeat.interval_in_ms",
        "Time from one heartbeat of a writer to the next, milliseconds.",
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

EAGERLY: Final = FailedWrites(FailedWritesPolicy.EAGER, 60_000, 2)
"""What Hudi does by default."""
