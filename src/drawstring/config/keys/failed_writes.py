"""Options of failed writes: which process rolls them back, and the heartbeats of writers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from drawstring.base.errors import InvalidError
from drawstring.config.keys.concurrency import Concurrency, ConcurrencyMode
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
        policy: one of `FailedWritesPolicy`, None for the default of the concurrency mode.
        interval_ms: milliseconds between two heartbeats of a writer.
        misses: intervals without a heartbeat after which a writer counts as dead.
        expires_clusterings: whether clusterings that nobody works on are rolled back as well.
        clustering_minutes: minutes for which these are left alone.
        spares_writers: whether writers with a live heartbeat are left to go on (several writers); otherwise
            an operation that meets one is refused.
        alive_ms: milliseconds after which a heartbeat expires.
    """

    policy: str | None
    interval_ms: int
    misses: int
    expires_clusterings: bool = False
    clustering_minutes: int = 60
    spares_writers: bool = False
    alive_ms: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "alive_ms", self.interval_ms * self.misses)

    def beside_others(self, concurrency: Concurrency) -> tuple[Concurrency, FailedWrites]:
        """Return both settings with their defaults, which depend on each other.

        Raises:
            InvalidError: the policy EAGER, which would roll live writers back, with a mode of several; early
                detection of conflicts in a mode without it.
        """
        is_eager = self.policy == FailedWritesPolicy.EAGER
        mode = concurrency.mode or (
            ConcurrencyMode.SINGLE_WRITER.value if is_eager else ConcurrencyMode.OPTIMISTIC.value
        )
        settled = replace(concurrency, mode=mode)
        if concurrency.detects_early and mode != ConcurrencyMode.OPTIMISTIC:
            raise InvalidError(
                "hoodie.write.concurrency.early.conflict.detection.enable=true does nothing with"
                f" hoodie.write.concurrency.mode={mode}: writes do not give way there. Drop it, or set the"
                f" mode to {ConcurrencyMode.OPTIMISTIC}."
            )
        if mode == ConcurrencyMode.SINGLE_WRITER:
            return settled, replace(self, policy=self.policy or FailedWritesPolicy.EAGER.value)
        if is_eager:
            raise InvalidError(
                f"hoodie.clean.failed.writes.policy=EAGER would roll back the other writers of {mode}. Drop"
                " the option, or set it to LAZY."
            )
        lazy = replace(self, policy=self.policy or FailedWritesPolicy.LAZY.value, spares_writers=True)
        return settled, lazy


FAILED_WRITES_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "hoodie.clean.failed.writes.policy",
        "Which process rolls back failed writes: EAGER: the next write or table service; LAZY: a clean, once"
        " the heartbeat of the writer has expired, and beside other writers also the next write; NEVER: none,"
        " so that cleaning and archiving stop before a failed write. By default LAZY, with SINGLE_WRITER"
        " EAGER. On local files LAZY does not wait for the heartbeat of a process of drawstring that died.",
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
    Option(
        "hoodie.clustering.enable.expirations",
        "Whether the rollback of failed writes under the policy LAZY takes clusterings off the timeline that"
        " nobody works on, planned ones as well; otherwise they wait for a process that runs them.",
        kind=Kind.FLAG,
        default=False,
        field="expires_clusterings",
    ),
    Option(
        "hoodie.clustering.expiration.threshold.mins",
        "Age of such a clustering, minutes.",
        kind=Kind.NUMBER,
        default=60,
        minimum=0,
        field="clustering_minutes",
    ),
)

DEFAULT_FAILED_WRITES: Final = FailedWrites(FailedWritesPolicy.EAGER, 60_000, 2)
"""Hudi's default."""
