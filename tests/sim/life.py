"""A whole life of a table in the simulation."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

from drawstring.model.validation import Severity
from tests.sim.checks import KEPT, check_queries, check_recovery
from tests.sim.world import SERVICES, Kind, Step, World, die_everywhere

DIES = 0.3
"""How often a step dies in the life of a table itself."""

RETENTION = (
    ("hoodie.clean.commits.retained", str(KEPT)),
    ("hoodie.keep.min.commits", str(KEPT + 1)),
    ("hoodie.keep.max.commits", str(KEPT + 2)),
)
KINDS = [
    Kind(version, table_type, index, RETENTION)
    for version, table_type, index in itertools.product(
        (6, 8, 9), ("COPY_ON_WRITE", "MERGE_ON_READ"), ("SIMPLE", "BUCKET")
    )
]


def live(kind: Kind, steps: Sequence[Step], seed: int | None = None) -> None:
    """Take steps; each dies on copies after every number of changes before it is taken.

    Args:
        kind: of table.
        steps: what to do, in order.
        seed: draws which deaths the table itself lives through; None for none.
    """
    draw = random.Random(seed)
    world = World.create(kind)
    for number, step in enumerate(steps):
        deaths: list[World] = []

        def check(
            copy: World, finished: World, where: str, deaths: list[World] = deaths, step: Step = step
        ) -> None:
            if seed is not None:
                deaths.append(copy.copy())
            check_recovery(copy, finished if step.name == "restore" else None, where)
            check_queries(copy, where)

        die_everywhere(world, step, check)
        if seed is not None and draw.random() < DIES:
            world = draw.choice(deaths)
        else:
            world.take(step)
        check_queries(world, f"{kind}, step {number}: {step}")
    findings = world.table().validate().findings
    assert [found for found in findings if found.severity is Severity.ERROR] == []


def _deaths(world: World, step: Step, *, keep: bool) -> list[World]:
    """Let a step die everywhere, check what is left, and return it if asked to."""
    kept: list[World] = []

    def check(copy: World, finished: World, where: str) -> None:
        if keep:
            kept.append(copy.copy())
        check_recovery(copy, finished if step.name == "restore" else None, where)
        if keep or step.name in SERVICES:
            check_queries(copy, where)

    die_everywhere(world, step, check)
    return kept
