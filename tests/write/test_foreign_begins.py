"""Writers of Hudi that are on the timeline and have not read it yet: commits of base files wait for them.

Hudi would not notice such a commit, and write a base file that counts as older than that of the commit.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from drawstring.base.clock import SteppingClock, SystemClock
from drawstring.base.errors import ConflictError
from drawstring.model.instant import Action, Instant
from drawstring.storage.memory import MemoryStorage
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.heartbeat import HEARTBEAT_FOLDER
from tests.support.interleavings import OPTIMISTIC
from tests.support.interrupted import in_no_time, slept, while_it_sleeps
from tests.support.rows import held, rides
from tests.support.tables import AVRO_LOGS, COW, MOR, NEW_FILE_GROUPS, WITHOUT_SERVICES, create, store_of

DAY = 86_400
OLD, NEW = ("a", "rome", 1, 1.0), ("a", "rome", 5, 5.0)
ALONE = {**OPTIMISTIC, **WITHOUT_SERVICES}
IMPATIENT = {
    **ALONE,
    "hoodie.write.lock.wait_time_ms": "5000",
    "hoodie.write.num.retries.on.conflict.failures": "0",
}


def with_a_beginner(table_type: str, *, inflight: bool = False) -> tuple[Table, Instant]:
    """Return a table to cluster or compact, and the instant of a live writer of Hudi."""
    table = create(table_type=table_type)
    table.upsert(rides(OLD), options=ALONE)
    extra = NEW_FILE_GROUPS if table_type == COW else AVRO_LOGS
    table.upsert(rides(OLD if table_type == MOR else ("b", "rome", 1, 1.0)), options={**ALONE, **extra})
    store = store_of(table)
    action = Action.DELTA_COMMIT if table_type == MOR else Action.COMMIT
    instant = store.request(action, store.new_time(store.load()))
    context_of(table).storage.put(f"{HEARTBEAT_FOLDER}/{instant.requested}", b"")
    if inflight:
        store.start(instant)
    return table, instant


def cluster(table: Table, options: dict[str, str]) -> object:
    return table.services.cluster(options=options)


def compact(table: Table, options: dict[str, str]) -> object:
    return table.services.compact(options=options)


def upsert(table: Table, options: dict[str, str]) -> object:
    return table.upsert(rides(NEW), options=options)


commits = pytest.mark.parametrize(
    ("table_type", "commit"),
    [(COW, upsert), (COW, cluster), (MOR, compact)],
    ids=["upsert", "cluster", "compact"],
)


@commits
def test_they_are_waited_for_until_they_are_inflight(table_type: str, commit: Callable[..., object]) -> None:
    table, instant = with_a_beginner(table_type)
    before, writes = held(table), table.timeline.writes()

    def begin(other: Table) -> None:
        assert (held(other), other.timeline.writes()) == (before, writes), "nothing is committed so far"
        store_of(other).start(instant)

    waiting = while_it_sleeps(table, begin)
    assert commit(waiting, ALONE)
    assert 0.3 < slept(waiting) < 2
    assert len(table.timeline.writes()) == len(writes) + 1
    assert table.timeline.find(instant.requested) is not None, "the other writer goes on"


@commits
def test_they_are_not_waited_for_once_they_are_inflight(
    table_type: str, commit: Callable[..., object]
) -> None:
    table, _ = with_a_beginner(table_type, inflight=True)
    at_once = in_no_time(table)
    assert commit(at_once, ALONE)
    assert slept(at_once) == 0


def test_log_files_are_committed_at_once() -> None:
    table, _ = with_a_beginner(MOR)
    at_once = in_no_time(table)
    upsert(at_once, ALONE)
    assert slept(at_once) == 0
    assert held(table) == [NEW]


@commits
def test_one_that_does_not_get_there_is_named(table_type: str, commit: Callable[..., object]) -> None:
    table, instant = with_a_beginner(table_type)
    to_come = SteppingClock(SystemClock().now_ms() + 1000 * DAY)
    MemoryStorage(table.uri, to_come).put(f"{HEARTBEAT_FOLDER}/{instant.requested}", b"")
    before, writes = held(table), table.timeline.writes()
    with pytest.raises(ConflictError, match="still looks up where to write") as caught:
        commit(in_no_time(table), IMPATIENT)
    assert caught.value.instant == instant.requested
    assert (held(table), table.timeline.writes()) == (before, writes)


def test_a_dead_one_is_waited_for_as_long_as_it_may_live() -> None:
    table, _ = with_a_beginner(COW)
    waiting, mortal = in_no_time(table), {"hoodie.client.heartbeat.interval_in_ms": "10000"}
    assert cluster(waiting, {**IMPATIENT, **mortal})
    assert 10 < slept(waiting) < 25
