"""Random histories of writes, services and deaths: `make sim SEEDS=20 STEPS=12`."""

from __future__ import annotations

import os

import pytest

from tests.sim.life import CHOSEN, KINDS, LIFE, live
from tests.sim.steps import random_steps
from tests.sim.world import Kind

FIRST = int(os.environ.get("SIM_SEED", "0"))
SEEDS = int(os.environ.get("SIM_SEEDS", "3"))
STEPS = int(os.environ.get("SIM_STEPS", "12"))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_table_survives_the_death_of_every_step(kind: Kind, seed: int) -> None:
    live(kind, random_steps(seed, STEPS), seed)


@pytest.mark.parametrize("kind", CHOSEN, ids=str)
def test_a_table_survives_the_deaths_of_a_life_with_every_step(kind: Kind) -> None:
    live(kind, LIFE)
