"""A clustering that dies at any step: readers never notice, and the next one finishes it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from drawstring.base.errors import ConflictError, LostRaceError, MissingFileError
from drawstring.config.options.write_options import options_of
from drawstring.model.instant import Action
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.transaction import lock_table
from tests.support.faults import (
    HOUR_MS,
    START_MS,
    STEPS_MAX,
    Prepared,
    leftovers,
    opened,
    orphans,
    settled_rows,
)
from tests.support.faulty_storage import FaultyStorage, InjectedFault
from tests.support.rows import held, rides
from tests.support.tables import COW, MOR, NEW_FILE_GROUPS, create

SORT = {"hoodie.clustering.plan.strategy.sort.columns": "fare"}
AWAY = {
    "hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy",
    "hoodie.clustering.rollback.pending.replacecommit.on.conflict": True,
}
NEWER = rides(("a0", "rome", 9, 9.0))

ACTS: dict[str, Callable[[Table], Any]] = {
    "cluster": lambda table: table.services.cluster(options=SORT),
    "schedule": lambda table: table.services.schedule_clustering(options=SORT),
    "write that cancels": lambda table: table.upsert(NEWER, options=AWAY),
}
CASES = [
    (COW, 9, "cluster"),
    (MOR, 6, "cluster"),
    (COW, 6, "schedule"),
    (MOR, 9, "write that cancels"),
    (MOR, 6, "write that cancels"),
]


def prepared(table_type: str, version: int, act: str) -> Prepared:
    table = create(table_type=table_type, version=version)
    for batch in range(2):
        table.insert(
            rides(*((f"{key}{batch}", "rome", batch, -1.0 * batch) for key in "ab")), options=NEW_FILE_GROUPS
        )
    table.upsert(rides(("a1", "rome", 5, 5.0)), options=NEW_FILE_GROUPS)
    if act == "write that cancels":
        table.services.schedule_clustering()
    start = Prepared.of(table)
    ACTS[act](table)
    return replace(start, after=held(table))


@pytest.mark.parametrize(("table_type", "version", "act"), CASES)
@pytest.mark.scaled
def test_a_clustering_that_dies_at_any_step_is_finished_by_the_next(
    table_type: str, version: int, act: str
) -> None:
    start = prepared(table_type, version, act)
    for storage, step in start.deaths(ACTS[act], steps_min=2):
        table = opened(storage, START_MS + HOUR_MS)
        seen = held(table)
        assert seen in (start.before, start.after), step
        settled = settled_rows(storage, start, seen)
        table.insert(rides(("next", "bern", 9, 9.0)))
        expected = sorted([*settled, ("next", "bern", 9, 9.0)])
        assert held(table) == expected, step
        table.services.cluster(options=SORT)
        assert held(table) == expected, step
        assert len(table.inspect.files()) == 2, step
        assert (orphans(table), leftovers(table)) == ([], []), step


@pytest.mark.parametrize(("table_type", "version"), [(COW, 9), (MOR, 6)])
def test_a_clustering_that_one_failure_stops_stays_requested_at_most(table_type: str, version: int) -> None:
    start = prepared(table_type, version, "cluster")
    for steps in range(STEPS_MAX):
        faulty = FaultyStorage(start.copy(), steps, failures=1)
        table, step = opened(faulty, START_MS), f"after {steps} changes"
        with suppress(
            InjectedFault, ConflictError
        ):  # a lease that could not be given back blocks the next step
            table.services.cluster(options=SORT)
        table = opened(faulty, START_MS + HOUR_MS)
        assert held(table) == start.after, step
        if table.timeline.pending_of(Action.CLUSTERING):
            table.services.cluster(options=SORT)
        assert (orphans(table), table.timeline.pending()) == ([], ()), step
        if faulty.changes < steps:
            return
    raise AssertionError(f"still failing after {STEPS_MAX} changes")


def test_a_clustering_is_planned_while_an_archiver_takes_an_earlier_plan_away() -> None:
    table = create(table_type=COW)
    for batch in range(2):
        table.insert(rides((f"a{batch}", "rome", batch, -1.0 * batch)), options=NEW_FILE_GROUPS)
    done = table.services.cluster(options=SORT)
    storage = context_of(table).storage
    files = (each.path for each in storage.list_files(".hoodie/timeline"))
    storage.delete([path for path in files if f"{done.instant}.clustering" in path])
    table.insert(rides(("n", "rome", 9, 9.0)), options=NEW_FILE_GROUPS)
    rows = held(table)
    assert table.services.cluster(options=SORT).instant
    assert held(table) == rows


def test_an_instant_that_is_archived_while_it_is_read_is_a_lost_race() -> None:
    table = create(table_type=COW)
    for batch in range(2):
        table.insert(rides((f"a{batch}", "rome", batch, 1.0)), options=NEW_FILE_GROUPS)
    write = table.timeline.latest_write()
    context, storage = context_of(table), context_of(table).storage
    files = {each.path: storage.read(each.path) for each in storage.list_files(".hoodie/timeline")}
    assert write is not None
    own = [path for path in files if path.rpartition("/")[2].startswith(write.requested)]
    completed = [path for path in own if path.endswith(".commit")]
    for gone, error in ((own, LostRaceError), (completed, MissingFileError)):
        with pytest.raises(error), lock_table(context, options_of("upsert", {}).locking) as locked:
            storage.delete(gone)
            locked.store.read(write)
        for path in gone:
            storage.put(path, files[path])
