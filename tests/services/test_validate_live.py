"""What `validate` and `repair` say of pending actions: a live process is left alone, a dead one is undone."""

from __future__ import annotations

import pytest

from drawstring.model.result import Remedy
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.interleavings import OPTIMISTIC
from tests.support.interrupted import Act, Standing, upserting
from tests.support.rows import held, rides
from tests.support.tables import MOR, WITHOUT_SERVICES, create

SINGLE = {"hoodie.write.concurrency.mode": "SINGLE_WRITER"}
NEW = ("n", "rome", 9, 9.0)


def filled() -> Table:
    table = create(table_type=MOR)
    for ts in range(3):
        table.upsert(rides(("a", "rome", ts, 1.0)), options=WITHOUT_SERVICES)
    return table


def pending(table: Table) -> list[tuple[str, Remedy | None]]:
    return [
        (each.what, each.remedy) for each in table.services.validate().findings if each.check == "pending"
    ]


@pytest.mark.parametrize(
    "act",
    [
        upserting(NEW, options=OPTIMISTIC),
        upserting(NEW, options=SINGLE),
        lambda table: table.services.compact(),
    ],
    ids=["write", "single", "service"],
)
def test_what_a_live_process_is_at_work_on_needs_no_repair(act: Act) -> None:
    table = filled()
    process = Standing(table, act)
    process.start()
    ((what, remedy),) = pending(table)
    assert "A process is at work on this" in what and remedy is None
    process.finish()
    assert process.error is None
    assert pending(table) == []


def test_a_dead_write_is_repaired_beside_a_live_one() -> None:
    table = filled()
    storage = context_of(table).storage
    process = Standing(table, upserting(NEW, options=OPTIMISTIC))
    process.start()
    (live,) = table.timeline.pending_writes()
    store_file = f".hoodie/timeline/{int(live.requested) - 5}"
    storage.put(f"{store_file}.deltacommit.requested", b"")
    storage.put(f"{store_file}.deltacommit.inflight", b"")
    dead = [each for each in table.services.repair(apply=False) if each.remedy is Remedy.ROLLBACK]
    assert [each.instant for each in dead] == [str(int(live.requested) - 5)]
    assert "no process shows" in dead[0].what
    assert table.services.repair(apply=True)
    assert [each.requested for each in table.timeline.pending_writes()] == [live.requested]
    process.finish()
    assert process.error is None
    assert NEW in held(table)
