"""Several writers, services and a reader at once over a faulty storage; `make sim` runs many more seeds."""

from __future__ import annotations

import pytest

from tests.support.simulation.writers.simulation import KINDS, Kind, Plan, simulate

OPERATIONS = 3
"""Operations of each of them."""


@pytest.mark.parametrize("has_faults", [False, True], ids=["calm", "faulty"])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_writers_beside_each_other_leave_what_one_after_the_other_leaves(
    kind: Kind, has_faults: bool
) -> None:
    report = simulate(Plan(kind, 3 + len(str(kind)), OPERATIONS, has_faults=has_faults))
    assert report.commits > 0
    assert bool(report.faults) == has_faults


def test_a_seed_says_every_storage_call() -> None:
    first, again, other = (simulate(Plan(KINDS[1], seed, OPERATIONS)) for seed in (5, 5, 6))
    assert (first.calls, first.digest) == (again.calls, again.digest)
    assert first.digest != other.digest
