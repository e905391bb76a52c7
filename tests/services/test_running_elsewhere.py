"""A compaction or clustering that another engine shows signs of life for is left to it."""

from __future__ import annotations

import pytest

from drawstring.base.clock import SteppingClock, SystemClock
from drawstring.base.errors import ConflictError
from drawstring.model.instant import Action
from drawstring.storage.memory import MemoryStorage
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.heartbeat import HEARTBEAT_FOLDER
from tests.support.faults import orphans
from tests.support.rows import held, rides
from tests.support.tables import COW, MOR, NEW_FILE_GROUPS, WITHOUT_SERVICES, create, store_of

services = pytest.mark.parametrize("service", ["compact", "cluster"])
IMPATIENT = {
    "hoodie.client.heartbeat.interval_in_ms": "1000",
    "hoodie.client.heartbeat.tolerable.misses": "1",
}


def begun(service: str, age_ms: int = 0) -> tuple[Table, str, str]:
    """A table whose planned service another engine began; the plan, and a file that it wrote so far."""
    table = create(table_type=MOR if service == "compact" else COW)
    for number in range(5):
        key = "a" if service == "compact" else f"a{number}"
        table.upsert(rides((key, "rome", number, 1.0)), options={**WITHOUT_SERVICES, **NEW_FILE_GROUPS})
    instant = (
        table.services.schedule_compaction() if service == "compact" else table.services.schedule_clustering()
    )
    assert instant is not None
    store = store_of(table, SystemClock())
    store.start(store.load().pending_of(Action.COMPACTION, Action.CLUSTERING)[0])
    written = f"rome/f9-0_0-1-0_{instant}.parquet"
    context_of(table).storage.put(written, b"half")
    beat(table, instant, age_ms)
    return table, instant, written


def beat(table: Table, instant: str, age_ms: int) -> None:
    then = SteppingClock(SystemClock().now_ms() - age_ms)
    MemoryStorage(table.uri, then).put(f"{HEARTBEAT_FOLDER}/{instant}", b"")


def is_left_alone(table: Table, instant: str, written: str) -> bool:
    pending = {each.requested for each in table.timeline.pending()}
    return instant in pending and context_of(table).storage.exists(written)


@services
def test_it_is_passed_over_by_writes_and_services(service: str) -> None:
    table, instant, written = begun(service)
    before = held(table)
    table.upsert(rides(("x", "oslo", 1, 1.0)))
    (table.services.compact if service == "compact" else table.services.cluster)()
    assert [done.error for done in table.services.run() if done.error] == []
    assert is_left_alone(table, instant, written)
    assert held(table) == sorted([*before, ("x", "oslo", 1, 1.0)])


@services
def test_it_is_not_run_or_unscheduled_by_name(service: str) -> None:
    table, instant, written = begun(service)
    run = table.services.compact if service == "compact" else table.services.cluster
    with pytest.raises(ConflictError, match="Another process or engine"):
        run(instant=instant)
    for ask in (table.services.plan_rollback, table.services.rollback):
        with pytest.raises(ConflictError, match="Another process or engine"):
            ask(instant)
    assert is_left_alone(table, instant, written)


@services
@pytest.mark.parametrize("unscheduled", [False, True])
def test_it_is_taken_over_once_its_sign_of_life_is_as_old_as_the_options_say(
    service: str, unscheduled: bool
) -> None:
    table, instant, written = begun(service, age_ms=5000)
    before = held(table)
    run = table.services.compact if service == "compact" else table.services.cluster
    assert not run() or is_left_alone(table, instant, written)
    if unscheduled:
        assert table.services.plan_rollback(instant, options=IMPATIENT) is not None
    (table.services.rollback if unscheduled else run)(instant=instant, options=IMPATIENT)
    assert (held(table), table.timeline.pending(), orphans(table)) == (before, (), [])
