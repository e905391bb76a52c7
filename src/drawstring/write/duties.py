"""The registry of what a process does for a table that it looks after (`services.maintenance_tasks`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from drawstring.model.result import CommitResult
from drawstring.services.maintenance_tasks import MAKING, TAKING_AWAY, Duty, Upkeep
from drawstring.services.partition_ttl import expire_partitions


def _expire(upkeep: Upkeep) -> CommitResult | None:
    """Drop the partitions whose time is over, with `hoodie.partition.ttl.inline`."""
    return expire_partitions(upkeep.state, upkeep.options) if upkeep.options.ttl.inline else None


DUTIES: Final[Mapping[str, Duty]] = {**MAKING, "expiry": _expire, **TAKING_AWAY}
"""By name, in the order in which they are done: what makes files first, what takes them away last."""
