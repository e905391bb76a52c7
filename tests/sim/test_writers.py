"""Several writers, services and readers at once over a faulty storage: `make sim SEEDS=20`."""

from __future__ import annotations

import pytest

from tests.sim.seeds import FIRST, SEEDS
from tests.support.simulation.writers.simulation import KINDS, Kind, Plan, simulate

OPERATIONS = 8
"""Operations of each of them."""


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("has_faults", [False, True], ids=["calm", "faulty"])
def test_writers_beside_each_other_leave_what_one_after_the_other_leaves(
    kind: Kind, seed: int, has_faults: bool
) -> None:
    assert simulate(Plan(kind, seed, OPERATIONS, has_faults=has_faults)).commits > 0
