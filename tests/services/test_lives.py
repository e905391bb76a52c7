"""Tables that live through every service, each step dying after some of its changes: see `make sim`."""

from __future__ import annotations

import pytest

from tests.support.faults import stride
from tests.support.simulation.life import CHOSEN, LIFE, live
from tests.support.simulation.steps import STEPS
from tests.support.simulation.world import Kind

EVERY = 17
"""Of the changes after which a step may die one is taken of so many, and `make test-long` takes more of them;
`make sim` takes them all."""

TURNS = len(CHOSEN)
"""Each kind of table lives through all steps; in `make test` the kinds take turns: each step dies in one."""


def test_the_life_has_every_step() -> None:
    assert {step.name for step in LIFE} == STEPS.keys()


def test_what_only_tables_with_log_files_do_dies_in_one() -> None:
    merging = [number for number, step in enumerate(LIFE) if "compact" in step.name]
    assert merging
    assert all(CHOSEN[number % TURNS].is_mor for number in merging)


@pytest.mark.scaled
@pytest.mark.parametrize("kind", CHOSEN, ids=str)
def test_a_table_survives_the_death_of_every_step(kind: Kind) -> None:
    turns = 1 if stride() == 1 else TURNS
    live(kind, LIFE, every=EVERY * stride(), turn=slice(CHOSEN.index(kind) % turns, None, turns))
