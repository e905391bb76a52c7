"""An overwrite that stalled before it began, was rolled back, and puts its inflight file after all."""

from __future__ import annotations

import pytest

from drawstring.model.instant import Action
from drawstring.testing import context_of
from tests.support.rows import held, rides
from tests.support.tables import COW, create, store_of

ROW = ("a", "rome", 1, 1.0)


@pytest.mark.parametrize("version", [6, 8, 9])
def test_an_overwrite_that_was_rolled_back_and_resumes_is_rolled_back_again(version: int) -> None:
    table = create(table_type=COW, version=version)
    table.upsert(rides(ROW))
    store = store_of(table)
    requested = store.request(Action.REPLACE_COMMIT, store.new_time(store.load()), b"")
    assert table.services.rollback(requested.requested)
    started = store.start(requested)
    assert context_of(table).storage.exists(store.path(started))
    assert held(table) == [ROW]
    table.upsert(rides(("b", "rome", 1, 1.0)))
    assert held(table) == [ROW, ("b", "rome", 1, 1.0)]
    assert table.timeline.pending() == ()
