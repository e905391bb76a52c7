"""Several writers, services and a reader at once over a faulty storage; `make sim` runs many more seeds."""

from __future__ import annotations

import pytest

from tests.support.simulation.writers.simulation import KINDS, Kind, Plan, simulate

OPERATIONS = 3
"""Operations of each of them."""

FOUND = [
    # Writes that completed while a stalled holder of the lock looked at them had no heartbeat any more.
    Plan(KINDS[0], 16, lingers_at="put_if_match .hoodie/.locks/2"),
]
"""Simulations that failed once."""


@pytest.mark.parametrize("merges", [False, True], ids=["plain", "merging"])
@pytest.mark.parametrize("has_faults", [False, True], ids=["calm", "faulty"])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_writers_beside_each_other_leave_what_one_after_the_other_leaves(
    kind: Kind, has_faults: bool, merges: bool
) -> None:
    report = simulate(Plan(kind, 3 + len(str(kind)), OPERATIONS, has_faults=has_faults, merges=merges))
    assert report.commits > 0
    assert bool(report.faults) == has_faults


@pytest.mark.parametrize("plan", FOUND, ids=lambda plan: f"{plan.kind}-{plan.seed}")
def test_what_was_found_once_stays_mended(plan: Plan) -> None:
    assert simulate(plan).commits > 0


def test_a_seed_says_every_storage_call() -> None:
    first, again, other = (simulate(Plan(KINDS[1], seed, OPERATIONS)) for seed in (5, 5, 6))
    assert (first.calls, first.digest) == (again.calls, again.digest)
    assert first.digest != other.digest
