"""Tables that live through every service, each step dying after every change on copies; see `make sim`."""

from __future__ import annotations

import pytest

from tests.sim.life import KINDS, live
from tests.sim.world import STEPS, Kind, Step

A, B, C = (0, 1, 2, 3, 4, 5), (1, 2, 6), (3, 7, 8, 9)
LIFE = (
    Step("insert", A),
    Step("upsert", B),
    Step("savepoint"),
    Step("plan_compaction"),
    Step("delete", (4,)),
    Step("upsert", C),
    Step("compact"),
    Step("plan_clustering"),
    Step("update", B),
    Step("cluster"),
    Step("restore"),
    Step("upsert", B),
    Step("delete_savepoint"),
    Step("insert_overwrite", C),
    Step("delete_partition", city="oslo"),
    Step("upsert", A),
    Step("clean"),
    Step("archive"),
    Step("upsert", C),
)
CHOSEN = [kind for kind in KINDS if str(kind) in ("v6-mor-simple", "v9-cow-simple")]


def test_the_life_has_every_step() -> None:
    assert {step.name for step in LIFE} == STEPS.keys()


@pytest.mark.parametrize("kind", CHOSEN, ids=str)
def test_a_table_survives_the_death_of_every_step(kind: Kind) -> None:
    live(kind, LIFE)
