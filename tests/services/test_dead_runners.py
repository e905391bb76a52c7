"""Clusterings whose process was killed: nobody else is held up by them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from drawstring.base.errors import ConflictError, DrawstringError
from drawstring.model.instant import Action
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.faults import HOUR_MS, START_MS, Prepared, leftovers, opened, orphans
from tests.support.faulty_storage import FaultyStorage
from tests.support.interrupted import in_no_time
from tests.support.methods import method
from tests.support.rows import held, rides
from tests.support.tables import COW, MOR, NEW_FILE_GROUPS, create

INLINE = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1"}
NEWER = rides(("a0", "rome", 9, 9.0), ("a1", "rome", 9, 9.0))


def grown(table: Table) -> Table:
    for batch in range(2):
        table.insert(
            rides(*((f"{key}{batch}", "rome", batch, -1.0 * batch) for key in "ab")), options=NEW_FILE_GROUPS
        )
    return table


def after_newer(rows: list[Any]) -> list[Any]:
    newer = [("a0", "rome", 9, 9.0), ("a1", "rome", 9, 9.0)]
    return sorted([*(row for row in rows if row[0] not in ("a0", "a1")), *newer])


@pytest.mark.parametrize(("table_type", "version"), [(COW, 9), (MOR, 6)])
@pytest.mark.scaled
def test_the_file_groups_of_a_clustering_whose_process_died_take_writes(
    table_type: str, version: int
) -> None:
    table = grown(create(table_type=table_type, version=version))
    start = Prepared.of(table)
    rows = held(table)
    for storage, step in start.deaths(lambda each: each.services.cluster(), steps_min=10):
        writer = opened(storage, START_MS + HOUR_MS)
        writer.upsert(NEWER)
        assert held(writer) == after_newer(rows), step
        assert writer.timeline.pending_of(Action.CLUSTERING, Action.REPLACE_COMMIT) == (), step
        writer.insert(rides(("next", "rome", 1, 1.0)))
        assert (orphans(writer), leftovers(writer)) == ([], []), step


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.scaled
def test_other_services_run_after_a_clustering_whose_process_died(version: int) -> None:
    table = grown(create(table_type=MOR, version=version))
    table.upsert(NEWER)
    start = Prepared.of(table)
    for service in ("compact", "clean", "archive"):
        for storage, step in start.deaths(lambda each: each.services.cluster(), every=3):
            runner = opened(storage, START_MS + HOUR_MS)
            method(runner, service)()
            assert runner.timeline.pending_of(Action.CLUSTERING, Action.REPLACE_COMMIT) == (), step
            assert held(runner) == start.before, f"{service} {step}"


def test_a_clustering_that_was_only_planned_keeps_writes_out_as_before() -> None:
    table = grown(create(table_type=COW))
    assert table.services.schedule_clustering()
    with pytest.raises(ConflictError, match="pending clustering"):
        in_no_time(table).upsert(NEWER)


@pytest.mark.scaled
def test_an_inline_clusterer_starts_again_after_each_death() -> None:
    start = Prepared.of(grown(create(table_type=COW)))
    for storage, step in start.deaths(lambda each: each.upsert(NEWER, options=INLINE), every=5):
        writer = opened(storage, START_MS + HOUR_MS)
        writer.upsert(NEWER, options=INLINE)
        assert held(writer) == after_newer(start.before), step
        assert writer.timeline.pending_of(Action.CLUSTERING) == (), step


def test_a_killed_clustering_of_a_local_table_is_known_by_its_free_lease(tmp_path: Any) -> None:
    table = grown(create(path=tmp_path / "t"))
    with suppress(DrawstringError):
        Table(
            replace(context_of(table), storage=FaultyStorage(context_of(table).storage, 5))
        ).services.cluster()
    assert table.timeline.pending_of(Action.CLUSTERING)
    table.upsert(NEWER)
    assert table.timeline.pending_of(Action.CLUSTERING) == ()
