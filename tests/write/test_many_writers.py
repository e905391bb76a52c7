"""Several writers, services and a reader at once over a faulty storage; `make sim` runs many more seeds."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.support.combinations import others_long, pairs_first
from tests.support.faults import stride
from tests.support.simulation.writers.plans import KINDS, MORE_KINDS, STOPPED_AT, Kind, Plan, drawn
from tests.support.simulation.writers.simulation import simulate

pytestmark = pytest.mark.scaled

OPERATIONS = 3 if stride() == 1 else 2
"""Operations of each of them: two in `make test`, where they notice nearly all of the known bugs."""

FAULTS = {"calm": False, "faulty": True}

SEEDS_MAX = 20

BY_METADATA = (KINDS[0], KINDS[1], KINDS[3])
"""The kinds of tables that have a metadata table."""

FOUND = [
    # Writes that completed while a stalled holder of the lock looked at them had no heartbeat any more.
    Plan(KINDS[0], 16, lingers_at="put_if_match .hoodie/.locks/2"),
    # A stalled overwrite of version 6 that was rolled back put its inflight file: no timeline could be read.
    Plan(KINDS[2], 1, 5, follows=True),
    # A clean deleted the metadata of a partition to which a write was about to put its first file.
    Plan(KINDS[3], 1, 5, has_faults=False, restores=True),
    # A stalled process of a restore took a completed file away that the next one was about to read.
    Plan(KINDS[1], 3, 5, restores=True),
    # A stalled archiver deleted a file that the next one had not yet listed.
    Plan(KINDS[3], 14, 5, restores=True),
    # A clustering that completed after a savepoint was archived: the savepoint has what it had replaced.
    Plan(KINDS[0], 29, 5, has_faults=False, restores=True),
    # A savepoint that never completed hid the files of its write from readers of the metadata table.
    Plan(KINDS[0], 0, 4, restores=True, by_metadata=True),
    # A stalled savepoint completed after others had cleaned its files.
    Plan(KINDS[1], 42, 5, restores=True),
    # A stalled planner of a clustering leased the requested time of a write, which then seemed to be dead.
    Plan(KINDS[0], 9100, 8, follows=True),
    # A delta commit of the metadata table that was taken back completed after its files were deleted: the
    # answer to its claim had been lost.
    Plan(KINDS[0], 20002, 8, restores=True, by_metadata=True),
    # Others cleaned and archived what the last attempt of a write was to read, which then failed.
    Plan(KINDS[4], 22001, 8, has_faults=False, merges=True, retries=("1",)),
    # A clean ran beside an overwrite that went first, which then could not tell whether it found all rows.
    Plan(KINDS[0], 6, has_faults=False),
]
"""Simulations that failed once; the first ones and the last one are short."""

FOUND_IN_COMPANY = [
    # A clock that was behind gave a write the time of a compaction of the metadata table: its rollback
    # deleted the base files of that one.
    ("mor10-nonblocking-lsm", 50000, 8),
    # Two writers chose one time: the model took the one that gave it up for the writer of the other.
    ("cow9-preferring", 50000, 8),
    # A follower of new rows read late ones: in an ordered table it has to read changes.
    ("mor9-nonblocking-ordered", 50008, 5),
    # A writer with a clock behind chose a later completion time while others completed it at the first one.
    ("mor10-lsm-tiered", 62103, 8),
]
"""Simulations that failed once, by their kind, seed and operations; the seed draws the rest."""


def _named(kinds: Sequence[Kind]) -> dict[str, Kind]:
    return {str(kind): kind for kind in kinds}


@pairs_first(kind=_named(KINDS), has_faults=FAULTS, merges={"plain": False, "merging": True})
def test_writers_beside_each_other_leave_what_one_after_the_other_leaves(
    kind: Kind, has_faults: bool, merges: bool
) -> None:
    report = simulate(Plan(kind, 3 + len(str(kind)), OPERATIONS, has_faults=has_faults, merges=merges))
    assert report.commits > 0
    assert bool(report.faults) == has_faults


@pytest.mark.parametrize("has_faults", [False, True], ids=["calm", "faulty"])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_what_a_follower_sees_adds_up_to_the_table(kind: Kind, has_faults: bool) -> None:
    seed = 3 + len(str(kind))
    assert simulate(Plan(kind, seed, OPERATIONS, has_faults=has_faults, follows=True)).commits > 0


@pytest.mark.parametrize("has_faults", [False, True], ids=["calm", "faulty"])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_restores_beside_writers_undo_what_they_should_and_nothing_else(kind: Kind, has_faults: bool) -> None:
    seed = 3 + len(str(kind))
    assert simulate(Plan(kind, seed, OPERATIONS, has_faults=has_faults, restores=True)).commits > 0


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_write_that_runs_for_the_last_time_does_not_lose(kind: Kind) -> None:
    plan = Plan(kind, 3 + len(str(kind)), OPERATIONS, has_faults=False, merges=True, retries=("1",))
    assert simulate(plan).commits > 0


@pytest.mark.parametrize("kind", others_long(KINDS, KINDS[:2]), ids=str)
def test_a_write_that_is_stopped_as_it_decides_to_commit_is_done_once_or_never(kind: Kind) -> None:
    plan = Plan(kind, 3 + len(str(kind)), OPERATIONS, has_faults=False, stops_at=STOPPED_AT)
    report = simulate(plan)
    assert report.commits > 0 and report.faults.keys() == {"pause"}


@pairs_first(kind=_named(BY_METADATA), has_faults=FAULTS, restores={"followed": False, "restored": True})
def test_all_of_them_may_plan_by_the_metadata_table(kind: Kind, has_faults: bool, restores: bool) -> None:
    plan = Plan(
        kind,
        3 + len(str(kind)),
        OPERATIONS,
        has_faults=has_faults,
        follows=not restores,
        restores=restores,
        by_metadata=True,
    )
    assert simulate(plan).commits > 0


@pytest.mark.parametrize(("kind", "seed"), zip(BY_METADATA[:2], (2, 7), strict=True), ids=str)
def test_indexes_are_built_beside_all_of_them(kind: Kind, seed: int) -> None:
    """The seeds are some at which an index is complete in the end; a change may make it others."""
    for each in range(seed, seed + SEEDS_MAX):
        report = simulate(Plan(kind, each, 5, restores=True, by_metadata=True, indexes=True))
        assert report.commits > 0
        if "indexed" in report.outcomes:
            return
    raise AssertionError("no index is complete in the end")


@pytest.mark.parametrize("kind", others_long(MORE_KINDS, MORE_KINDS[::2]), ids=str)
def test_other_kinds_of_tables_hold_what_the_model_says(kind: Kind) -> None:
    number = MORE_KINDS.index(kind)
    assert simulate(Plan(kind, number, OPERATIONS, has_faults=number % 2 == 0)).commits > 0


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", MORE_KINDS, ids=str)
def test_other_kinds_of_tables_in_any_company(kind: Kind, seed: int) -> None:
    assert simulate(drawn(kind, seed, OPERATIONS)).commits > 0


@pytest.mark.parametrize(
    "plan",
    others_long(FOUND, [*FOUND[:4], FOUND[-1]]),
    ids=lambda plan: f"{plan.kind}-{plan.seed}",
)
def test_what_was_found_once_stays_mended(plan: Plan) -> None:
    assert simulate(plan).commits > 0


@pytest.mark.long
@pytest.mark.parametrize(("kind", "seed", "operations"), FOUND_IN_COMPANY)
def test_what_was_found_once_in_company_stays_mended(kind: str, seed: int, operations: int) -> None:
    assert simulate(drawn(_named((*KINDS, *MORE_KINDS))[kind], seed, operations)).commits > 0


def test_a_seed_says_every_storage_call() -> None:
    first, again, other = (simulate(Plan(KINDS[1], seed, OPERATIONS)) for seed in (5, 5, 6))
    assert (first.calls, first.digest) == (again.calls, again.digest)
    assert first.digest != other.digest
