"""Writers and services that stand still while others go on, before some of their calls: see `make sim`."""

from __future__ import annotations

import pytest

from tests.support.combinations import others_long
from tests.support.faults import stride
from tests.support.simulation.life import KINDS
from tests.support.simulation.pauses import CALLS_MAX, pause_everywhere
from tests.support.simulation.steps import take
from tests.support.simulation.world import Step, World

EVERY, SHORT_EVERY = 41, 61
"""Of so many storage calls a step stands still before one, here and in `make test`; `make sim` takes more."""

OFTEN = {
    ("v9-cow-simple", "upsert"): 5,
    ("v9-cow-simple", "cluster"): 7,
    ("v9-cow-simple", "upsert that archives"): 3,
}
"""Where a call matters that is easily missed: of so many one, in `make test` of three times as many."""

FIRST = (Step("insert", (0, 1, 2, 3, 4, 5)), Step("upsert", (1, 2, 6)), Step("upsert", (3, 7, 8)))
CASES = {
    "upsert": (FIRST, Step("upsert", (0, 2, 9))),
    "compact": ((*FIRST, Step("plan_compaction")), Step("compact")),
    "cluster": (FIRST, Step("cluster")),
    "clean": (FIRST * 3, Step("clean")),
    "upsert that archives": ((Step("upsert", (1, 2, 6)),) * 8, Step("upsert", (0, 2, 9))),
    "savepoint": (FIRST, Step("savepoint")),
    "restore": ((*FIRST, Step("savepoint"), Step("upsert", (2, 9))), Step("restore")),
    "upsert after a death": ((*FIRST, Step("die", (2, 9))), Step("upsert", (0, 2, 9))),
    "delete_partition": (FIRST, Step("delete_partition", city="lima")),
}
CHOSEN = {
    str(kind): kind for kind in KINDS if str(kind) in ("v6-mor-simple", "v9-mor-simple", "v9-cow-simple")
}


STANDS_STILL = [(kind, name) for kind in CHOSEN for name in CASES]
SHORT = [
    *((list(CHOSEN)[number % len(CHOSEN)], name) for number, name in enumerate(CASES, start=1)),
    ("v9-cow-simple", "cluster"),
]
"""Each step on a table of one kind, the next one on the next kind, and what matters at many calls."""


@pytest.mark.scaled
@pytest.mark.parametrize(("kind", "name"), others_long(STANDS_STILL, SHORT))
def test_what_a_writer_does_that_stood_still_counts_once_or_not_at_all(kind: str, name: str) -> None:
    before, step = CASES[name]
    world = World.create(CHOSEN[kind])
    for each in before:
        take(world, each)
    world.time += 100
    often, is_short = OFTEN.get((kind, name)), stride() > 1
    if often is None:
        every = SHORT_EVERY if is_short else EVERY
    else:
        every = 3 * often if is_short else often
    pause_everywhere(world, step, range((len(name) + 1) % every, CALLS_MAX, every))
