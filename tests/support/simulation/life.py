"""A whole life of a table in the simulation."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

from drawstring.model.result import Severity
from tests.support.simulation.checks import PROBED, check_queries, check_recovery
from tests.support.simulation.steps import CHANGES_MAX, die_everywhere, take
from tests.support.simulation.world import KEPT, Kind, Step, World, place

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
        (6, 8, 9, 10), ("COPY_ON_WRITE", "MERGE_ON_READ"), ("SIMPLE", "BUCKET")
    )
]

CHOSEN = [kind for kind in KINDS if str(kind) in ("v6-mor-simple", "v9-cow-simple", "v10-mor-simple")]
A, B, C = (0, 1, 2, 3, 4, 5), (1, 2, 6), (3, 7, 8, 9)
LIFE = (
    Step("insert", A),
    Step("upsert", B),
    Step("savepoint"),
    Step("plan_compaction"),
    Step("delete", (4,)),
    Step("upsert", C),
    Step("compact"),
    Step("move_column"),
    Step("plan_clustering"),
    Step("update", B),
    Step("cluster"),
    Step("restore"),
    Step("upsert", B),
    Step("delete_savepoint"),
    Step("insert_overwrite", C),
    Step("delete_partition", city="oslo"),
    Step("upsert", A),
    Step("append", B),
    Step("move_column"),
    Step("leave_merge", B),
    Step("update", (1,)),
    Step("leave_merge", (2, 4)),
    Step("append", B),
    Step("append", B),
    Step("leave_merge", B),
    Step("rollback", B),
    Step("die", B),
    Step("rollback", B),
    Step("clean"),
    Step("archive"),
    Step("upsert", C),
)


def live(
    kind: Kind,
    steps: Sequence[Step],
    seed: int | None = None,
    every: int = 1,
    turn: slice = slice(None),
) -> None:
    """Take steps; each dies on copies after every number of changes before it is taken.

    Args:
        kind: of table.
        steps: what to do, in order.
        seed: draws which deaths the table itself lives through; None for none.
        every: with 3 a step dies after every third number of changes, which one of three changing by step.
        turn: which of the steps die; the others are taken only.
    """
    draw = random.Random(seed)
    world = World.create(kind)
    dying = range(len(steps))[turn]
    for number, step in enumerate(steps):
        deaths: list[World] = []

        def check(
            copy: World, finished: World, where: str, deaths: list[World] = deaths, step: Step = step
        ) -> None:
            left = copy.copy()
            check_recovery(copy, finished, where)
            check_queries(copy, where)
            if seed is not None and _is_decided(left, copy):
                deaths.append(left)

        if number in dying:
            die_everywhere(world, step, check, range(number % every, CHANGES_MAX, every))
        if deaths and draw.random() < DIES:
            world = draw.choice(deaths)
        else:
            take(world, step)
        check_queries(world, f"{kind}, step {number}: {step}")
    findings = world.table().services.validate().findings
    assert [found for found in findings if found.severity is Severity.ERROR] == []


def _is_decided(left: World, recovered: World) -> bool:
    """Tell whether readers saw at once what a death left in the end.

    A write that had claimed its completion is completed by the next writer only. The model of a life that
    goes on from there would have to know both.
    """
    return left.rows == {at: value for at, value in recovered.rows.items() if at != place(PROBED)}
