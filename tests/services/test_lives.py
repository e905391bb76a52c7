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


def test_the_life_has_every_step() -> None:
    assert {step.name for step in LIFE} == STEPS.keys()


@pytest.mark.scaled
@pytest.mark.parametrize("kind", CHOSEN, ids=str)
def test_a_table_survives_the_death_of_every_step(kind: Kind) -> None:
    live(kind, LIFE, every=EVERY * stride())
