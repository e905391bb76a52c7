"""Actions whose process died once it had decided that they complete: whoever comes next completes them."""

from __future__ import annotations

from contextlib import suppress

import pytest

from drawstring.base.errors import ConflictError, DrawstringError
from drawstring.model.instant import Action
from drawstring.storage.protocol import Storage
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.faults import HOUR_MS, START_MS, leftovers, opened, orphans
from tests.support.faulty_storage import FaultyStorage
from tests.support.methods import method
from tests.support.rows import held, rides
from tests.support.simulation.steps import CHANGES_MAX
from tests.support.tables import COW, MOR, create

FIRST, NEWER = ("a", "rome", 1, 1.0), ("a", "rome", 2, 2.0)


class DiesCompleting(FaultyStorage):
    """Dies before the first completed file of an action, which is decided by then."""

    def __init__(self, inner: Storage, suffix: str) -> None:
        super().__init__(inner, CHANGES_MAX)
        self._suffix, self._is_dead = suffix, False

    def before_change(self, path: str) -> None:
        self._is_dead = self._is_dead or path.endswith(self._suffix)
        if self._is_dead:
            self.die(path)
        super().before_change(path)


def decided(table: Table, suffix: str, verb: str, *rows: object) -> Table:
    with suppress(DrawstringError):
        method(opened(DiesCompleting(context_of(table).storage, suffix), START_MS), verb)(*rows)
        raise AssertionError(f"the {verb} lives on")
    return opened(context_of(table).storage, START_MS + HOUR_MS)


@pytest.mark.parametrize(("table_type", "suffix"), [(COW, ".commit"), (MOR, ".deltacommit")])
def test_a_decided_write_takes_effect_with_the_next_one(table_type: str, suffix: str) -> None:
    table = create(table_type=table_type)
    table.insert(rides(FIRST))
    later = decided(table, suffix, "upsert", rides(NEWER))
    assert held(later) == [FIRST]
    later.upsert(rides(("b", "oslo", 1, 1.0)))
    assert held(later) == [NEWER, ("b", "oslo", 1, 1.0)]
    assert (orphans(later), leftovers(later)) == ([], [])


def test_a_stream_goes_on_behind_a_decided_batch() -> None:
    table = create(table_type=MOR)
    dying = opened(DiesCompleting(context_of(table).storage, ".deltacommit"), START_MS)
    with pytest.raises(DrawstringError):
        dying.stream("rides").write(rides(FIRST), "1")
    later = opened(context_of(table).storage, START_MS + HOUR_MS)
    stream = later.stream("rides")
    assert stream.position == "1"
    stream.write(rides(("b", "oslo", 1, 1.0)), "2")
    assert held(later) == [FIRST, ("b", "oslo", 1, 1.0)]


def test_a_decided_write_is_not_rolled_back_by_name() -> None:
    table = create(table_type=COW)
    table.insert(rides(FIRST))
    later = decided(table, ".commit", "upsert", rides(NEWER))
    (pending,) = later.timeline.pending_writes()
    with pytest.raises(ConflictError, match="had claimed its completion"):
        later.services.rollback(pending.requested)
    assert held(later) == [NEWER]
    assert later.timeline.pending() == ()


def test_a_decided_savepoint_is_kept_by_the_next_write() -> None:
    table = create(table_type=COW)
    first = table.insert(rides(FIRST))
    later = decided(table, ".savepoint", "savepoints.create")
    later.upsert(rides(NEWER))
    (saved,) = later.timeline.completed_of(Action.SAVEPOINT)
    assert saved.requested == first.instant
    later.savepoints.restore(first.instant)
    assert held(later) == [FIRST]
