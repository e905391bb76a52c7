"""Random histories of writes, services and deaths: `make sim SEEDS=20 STEPS=12`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.sim.seeds import FIRST, SEEDS, STEPS
from tests.support.simulation.life import CHOSEN, KINDS, LIFE, live
from tests.support.simulation.pauses import live_through_pauses
from tests.support.simulation.power_cut_lives import CUT_LIFE, THOROUGH, live_through_cuts
from tests.support.simulation.steps import random_steps
from tests.support.simulation.world import Kind

PAUSED_EVERY = 11
"""Of so many storage calls a step stands still before one."""


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_table_survives_the_death_of_every_step(kind: Kind, seed: int) -> None:
    live(kind, random_steps(seed, STEPS), seed)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_table_survives_power_cuts_during_every_step(kind: Kind, tmp_path: Path) -> None:
    live_through_cuts(kind, CUT_LIFE, tmp_path, THOROUGH)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_table_survives_power_cuts_in_a_random_life(kind: Kind, seed: int, tmp_path: Path) -> None:
    live_through_cuts(kind, random_steps(seed, STEPS), tmp_path, replace(THOROUGH, cuts=30))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_table_survives_writers_that_stand_still(kind: Kind, seed: int) -> None:
    live_through_pauses(kind, random_steps(seed, STEPS), seed, PAUSED_EVERY)


@pytest.mark.parametrize("kind", CHOSEN, ids=str)
def test_a_table_survives_the_deaths_of_a_life_with_every_step(kind: Kind) -> None:
    live(kind, LIFE)
