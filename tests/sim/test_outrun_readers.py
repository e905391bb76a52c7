"""Random histories of tables whose readers are outrun: `make sim SEEDS=20 STEPS=12`."""

from __future__ import annotations

import pytest

from tests.sim.outrun_readers import live_with_readers
from tests.sim.seeds import FIRST, SEEDS, STEPS
from tests.support.simulation.life import CHOSEN, KINDS, LIFE
from tests.support.simulation.steps import random_steps
from tests.support.simulation.world import Kind


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_readers_are_outrun_and_never_misled(kind: Kind, seed: int) -> None:
    assert live_with_readers(kind, random_steps(seed, STEPS), seed) >= 0


@pytest.mark.parametrize("kind", CHOSEN, ids=str)
def test_readers_are_outrun_in_a_life_with_every_step(kind: Kind) -> None:
    assert live_with_readers(kind, LIFE, 0) > len(LIFE)
