"""Several writers, services and readers at once over a faulty storage: `make sim SEEDS=20`."""

from __future__ import annotations

import pytest

from tests.sim.seeds import FIRST, SEEDS
from tests.support.simulation.writers.plans import (
    KINDS,
    LINGERING_AT,
    MORE_KINDS,
    STOPPED_AT,
    Kind,
    Plan,
    drawn,
)
from tests.support.simulation.writers.simulation import simulate

OPERATIONS = 8
"""Operations of each of them."""


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("has_faults", [False, True], ids=["calm", "faulty"])
@pytest.mark.parametrize("merges", [False, True], ids=["plain", "merging"])
def test_writers_beside_each_other_leave_what_one_after_the_other_leaves(
    kind: Kind, seed: int, has_faults: bool, merges: bool
) -> None:
    plan = Plan(kind, seed, OPERATIONS, has_faults=has_faults, merges=merges)
    assert simulate(plan).commits > 0


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("has_faults", [False, True], ids=["calm", "faulty"])
def test_what_a_follower_sees_adds_up_to_the_table(kind: Kind, seed: int, has_faults: bool) -> None:
    assert simulate(Plan(kind, seed, OPERATIONS, has_faults=has_faults, follows=True)).commits > 0


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("has_faults", [False, True], ids=["calm", "faulty"])
def test_restores_beside_writers_undo_what_they_should_and_nothing_else(
    kind: Kind, seed: int, has_faults: bool
) -> None:
    assert simulate(Plan(kind, seed, OPERATIONS, has_faults=has_faults, restores=True)).commits > 0


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
@pytest.mark.parametrize("kind", (KINDS[0], KINDS[1], KINDS[3]), ids=str)
@pytest.mark.parametrize("has_faults", [False, True], ids=["calm", "faulty"])
@pytest.mark.parametrize("restores", [False, True], ids=["followed", "restored"])
def test_all_of_them_may_plan_by_the_metadata_table(
    kind: Kind, seed: int, has_faults: bool, restores: bool
) -> None:
    plan = Plan(
        kind,
        seed,
        OPERATIONS,
        has_faults=has_faults,
        merges=not restores,
        follows=not restores,
        restores=restores,
        by_metadata=True,
    )
    assert simulate(plan).commits > 0


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
@pytest.mark.parametrize("kind", (KINDS[0], KINDS[1]), ids=str)
@pytest.mark.parametrize("has_faults", [False, True], ids=["calm", "faulty"])
@pytest.mark.parametrize("restores", [False, True], ids=["", "restored"])
def test_indexes_are_built_beside_all_of_them(
    kind: Kind, seed: int, has_faults: bool, restores: bool
) -> None:
    plan = Plan(
        kind, seed, OPERATIONS, has_faults=has_faults, restores=restores, by_metadata=True, indexes=True
    )
    assert simulate(plan).commits > 0


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("has_faults", [False, True], ids=["calm", "faulty"])
def test_a_write_that_runs_for_the_last_time_goes_first(kind: Kind, seed: int, has_faults: bool) -> None:
    plan = Plan(kind, seed, OPERATIONS, has_faults=has_faults, merges=True, retries=("1",))
    assert simulate(plan).commits > 0


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("lingers_at", LINGERING_AT)
def test_writers_that_stand_still_where_it_matters_do_no_harm(kind: Kind, seed: int, lingers_at: str) -> None:
    assert simulate(Plan(kind, seed, OPERATIONS, lingers_at=lingers_at)).commits > 0


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
@pytest.mark.parametrize("kind", (*KINDS, *MORE_KINDS), ids=str)
@pytest.mark.parametrize("has_faults", [False, True], ids=["calm", "faulty"])
def test_a_write_that_is_stopped_as_it_decides_to_commit_is_done_once_or_never(
    kind: Kind, seed: int, has_faults: bool
) -> None:
    plan = Plan(kind, seed, OPERATIONS, has_faults=has_faults, stops_at=STOPPED_AT)
    assert simulate(plan).commits > 0


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
@pytest.mark.parametrize("kind", (*KINDS, *MORE_KINDS), ids=str)
def test_any_kind_of_table_in_any_company(kind: Kind, seed: int) -> None:
    """The seed draws who takes part, whether anything fails, and whether there is a metadata table."""
    assert simulate(drawn(kind, seed, OPERATIONS)).commits > 0
