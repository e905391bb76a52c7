"""How often services list the timeline, and that they decide by the table as it is under their lock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from drawstring.model.instant import Action
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.transaction import lock_table, recover_and_load
from tests.support.rows import rides
from tests.support.tables import MOR, NEW_FILE_GROUPS, create, locking

COMPLETION = 3
"""Looks of a plan that is completed: once it is taken over, under the lock, and with its claim."""


@pytest.mark.parametrize(
    ("service", "looks"),
    [
        (lambda each: each.services.schedule_compaction(), 1),
        (lambda each: each.services.schedule_clustering(), 1),
        (lambda each: each.services.compact(), 4 + COMPLETION),
        (lambda each: each.services.cluster(), 4 + COMPLETION),
        (lambda each: each.services.clean(), 1),
        (lambda each: each.services.archive(), 2),  # to prepare the archive, and again under the lock
        (lambda each: each.savepoints.create(), 2),
    ],
)
def test_a_service_lists_the_timeline_once_each_time_that_it_takes_the_lock(
    service: Callable[[Table], object], looks: int, listed: Counter[str]
) -> None:
    table = create(table_type=MOR)
    table.insert(rides(("a", "oslo", 1, 1.0)), options=NEW_FILE_GROUPS)
    table.insert(rides(("b", "oslo", 1, 1.0)), options=NEW_FILE_GROUPS)
    table.upsert(rides(("a", "oslo", 2, 2.0)))
    listed.clear()
    service(table)
    assert listed[".hoodie/timeline"] == looks


@pytest.mark.parametrize("action", [Action.DELTA_COMMIT, Action.ROLLBACK])
def test_what_the_lock_finds_dead_is_on_no_timeline_that_a_service_goes_by(action: Action) -> None:
    table = create(table_type=MOR)
    table.insert(rides(("a", "oslo", 1, 1.0)))
    with lock_table(context_of(table), locking(1_000)) as found:
        found.store.request(action, found.store.new_time(found.store.load()))
    with lock_table(context_of(table), locking(1_000)) as found:
        locked, timeline = recover_and_load(found)
        assert not timeline.pending()
        assert timeline == locked.store.load()
