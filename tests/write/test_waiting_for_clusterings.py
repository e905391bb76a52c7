"""Writes beside others that meet a pending clustering of their file groups: they wait, and run again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest

from drawstring.base.errors import ConflictError, DrawstringError, PendingClusteringError
from drawstring.model.instant import Action
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.faulty_storage import FaultyStorage
from tests.support.interleavings import OPTIMISTIC
from tests.support.interrupted import ActingClock, Interrupted, Standing, on, slept, while_it_sleeps
from tests.support.rows import held, rides
from tests.support.tables import COW, MOR, NEW_FILE_GROUPS, create

TEN_DAYS = 10 * 86_400
NEWER = ("a0", "rome", 50, 50.0)
AT_ONCE = {**OPTIMISTIC, "hoodie.write.lock.wait_time_ms": "0"}
kinds = pytest.mark.parametrize(("table_type", "version"), [(COW, 9), (MOR, 9), (MOR, 6)])


def planned(table_type: str = COW, version: int = 9) -> tuple[Table, str]:
    """Return a table with a pending clustering, and its time."""
    table = create(table_type=table_type, version=version)
    for batch in range(2):
        table.insert(rides((f"a{batch}", "rome", batch, 1.0)), options=NEW_FILE_GROUPS)
    time = table.services.schedule_clustering()
    assert time is not None
    return table, time


@kinds
def test_a_write_goes_on_once_the_clustering_is_done(table_type: str, version: int) -> None:
    table, _ = planned(table_type, version)
    writer = while_it_sleeps(table, lambda other: other.services.cluster(options=AT_ONCE))
    writer.upsert(rides(NEWER), options=OPTIMISTIC)
    assert held(table) == [NEWER, ("a1", "rome", 1, 1.0)]
    assert len(table.inspect.files()) == 1, "the clustering completed"
    assert table.timeline.pending() == ()
    assert 0.3 < slept(writer) < 2


@kinds
def test_a_write_goes_on_once_the_clustering_is_unscheduled(table_type: str, version: int) -> None:
    table, time = planned(table_type, version)
    writer = while_it_sleeps(table, lambda other: other.services.rollback(time, options=AT_ONCE))
    writer.upsert(rides(NEWER), options=OPTIMISTIC)
    assert held(table) == [NEWER, ("a1", "rome", 1, 1.0)]
    assert len(table.inspect.files()) == 2
    assert table.timeline.pending() == ()


def test_partitions_are_deleted_once_the_clustering_is_done() -> None:
    table, _ = planned()
    writer = while_it_sleeps(table, lambda other: other.services.cluster(options=AT_ONCE))
    assert writer.delete_partition("rome", options=OPTIMISTIC)
    assert held(table) == []


EXPIRY = {**OPTIMISTIC, "hoodie.partition.ttl.strategy.days.retain": "5"}


def aged(table: Table, act: Callable[[Table], object]) -> Table:
    """Return the table ten days later, with a clock that lets others act while somebody sleeps."""
    clock = ActingClock(context_of(table).clock, lambda: act(table), after=TEN_DAYS + 0.3)
    clock.slept = TEN_DAYS
    return Table(replace(context_of(table), clock=clock))


def test_partitions_expire_once_the_clustering_is_gone() -> None:
    table, time = planned()
    writer = aged(table, lambda other: other.services.rollback(time, options=AT_ONCE))
    assert writer.services.expire_partitions(options=EXPIRY).partitions_dropped == 1
    assert held(table) == []
    assert 0.3 < slept(writer) - TEN_DAYS < 2


def test_a_write_does_not_wait_for_partitions_to_expire() -> None:
    table, _ = planned()
    writer = aged(table, lambda other: None)
    writer.upsert(rides(("x", "oslo", 1, 1.0)), options={**EXPIRY, "hoodie.partition.ttl.inline": "true"})
    assert slept(writer) == TEN_DAYS
    assert ("a0", "rome", 0, 1.0) in held(table)


def test_a_clustering_whose_process_dies_meanwhile_is_unscheduled() -> None:
    table, _ = planned()

    def die(other: Table) -> None:
        with suppress(DrawstringError):
            Table(
                replace(context_of(other), storage=FaultyStorage(context_of(other).storage, 6))
            ).services.cluster()
        assert other.timeline.pending_of(Action.CLUSTERING)
        clock = context_of(writer).clock
        assert isinstance(clock, ActingClock)
        clock.slept += 3600  # its lease expires

    writer = while_it_sleeps(table, die)
    writer.upsert(rides(NEWER), options={**OPTIMISTIC, "hoodie.write.lock.wait_time_ms": "7200000"})
    assert held(table) == [NEWER, ("a1", "rome", 1, 1.0)]
    assert table.timeline.pending() == ()
    assert slept(writer) < 3610


def test_a_clustering_that_nobody_runs_is_an_error_after_the_wait() -> None:
    table, time = planned()
    writer = while_it_sleeps(table, lambda other: other.upsert(rides(("x", "oslo", 1, 1.0)), options=AT_ONCE))
    waits = {**OPTIMISTIC, "hoodie.write.lock.wait_time_ms": "20000"}
    with pytest.raises(PendingClusteringError) as caught:
        writer.upsert(rides(NEWER), options=waits)
    told = str(caught.value)
    assert "is part of a pending clustering" in told
    assert (caught.value.instant, caught.value.path) == (time, None)
    assert "of partition rome" in told
    assert f"rollback of {time}" in told
    assert 19 < slept(writer) < 21
    assert held(table) == [("a0", "rome", 0, 1.0), ("a1", "rome", 1, 1.0), ("x", "oslo", 1, 1.0)]
    assert table.timeline.pending_writes() == ()


@pytest.mark.parametrize(
    "options",
    [
        {"hoodie.write.concurrency.mode": "SINGLE_WRITER"},
        {**OPTIMISTIC, "hoodie.write.num.retries.on.conflict.failures": "0"},
    ],
)
def test_a_write_that_may_not_run_again_is_refused_at_once(options: dict[str, str]) -> None:
    table, time = planned()
    writer = while_it_sleeps(table, lambda other: other.services.cluster(options=AT_ONCE), after=0)
    with pytest.raises(ConflictError, match=f"rollback of {time}"):
        writer.upsert(rides(NEWER), options=options)
    assert slept(writer) == 0
    assert table.timeline.pending_writes() == ()


def test_a_last_attempt_does_not_wait_for_a_clustering_that_nobody_runs() -> None:
    table, first = planned()
    plans = [first]

    def follow(other: Table) -> None:
        """Unschedule the clustering, and plan the next one."""
        other.services.rollback(plans[-1], options=AT_ONCE)
        plans.append(other.services.schedule_clustering(options=AT_ONCE) or "")

    writer = while_it_sleeps(table, follow)
    once_more = {**OPTIMISTIC, "hoodie.write.num.retries.on.conflict.failures": "1"}
    with pytest.raises(PendingClusteringError) as caught:
        writer.upsert(rides(NEWER), options=once_more)
    assert plans == [first, caught.value.instant]
    assert slept(writer) < 2


def clustering(table: Table, time: str) -> Standing:
    """Let another process run a clustering, and stand still within it."""
    process = Standing(table, lambda other: other.services.cluster(instant=time, options=OPTIMISTIC))
    process.start()
    return process


def test_a_last_attempt_waits_for_a_clustering_that_runs() -> None:
    table, time = planned()
    table.services.rollback(time, options=AT_ONCE)
    running: list[Standing] = []

    def lose(other: Table) -> None:
        other.upsert(rides(("a0", "rome", 1, 5.0)), options=AT_ONCE)
        running.append(clustering(other, other.services.schedule_clustering(options=AT_ONCE) or ""))

    writer = on(Interrupted(while_it_sleeps(table, lambda _: running[0].finish(), after=10), lose))
    once_more = {**OPTIMISTIC, "hoodie.write.num.retries.on.conflict.failures": "1"}
    writer.upsert(rides(NEWER), options=once_more)
    assert held(table) == [NEWER, ("a1", "rome", 1, 1.0)]
    assert 9 < slept(writer) < 16
    assert table.timeline.pending() == ()


@kinds
def test_a_write_waits_for_a_running_clustering_before_each_attempt(table_type: str, version: int) -> None:
    table, time = planned(table_type, version)
    clusterer = clustering(table, time)
    writer = while_it_sleeps(table, lambda _: clusterer.finish(), after=50)
    writer.upsert(rides(NEWER), options={**OPTIMISTIC, "hoodie.write.lock.wait_time_ms": "20000"})
    assert 50 < slept(writer) < 61
    assert held(table) == [NEWER, ("a1", "rome", 1, 1.0)]
    assert len(table.inspect.files()) == 1


@kinds
@pytest.mark.parametrize("retries", [0, 2])
def test_the_error_about_a_running_clustering_says_what_works_while_it_runs(
    table_type: str, version: int, retries: int
) -> None:
    table, time = planned(table_type, version)
    clusterer = clustering(table, time)
    writer = while_it_sleeps(table, lambda _: None)
    waits = {
        **OPTIMISTIC,
        "hoodie.write.lock.wait_time_ms": "15000",  # three of them end well before the lease
        "hoodie.write.num.retries.on.conflict.failures": str(retries),
    }
    with pytest.raises(PendingClusteringError, match=f"Another process runs the clustering {time}") as caught:
        writer.upsert(rides(NEWER), options=waits)
    told, groups = str(caught.value), table.inspect.files()
    assert all(f"rome/{each.file_id}" in told for each in groups) and len(groups) == 2
    assert "hoodie.write.lock.wait_time_ms" in told and "rollback of" not in told
    assert ("waited for up to 15000 ms" in told) == (retries == 2)
    waited = 15 * (retries + 1) if retries else 0
    assert waited - 0.1 < slept(writer) < waited + 2
    going_first = {**OPTIMISTIC, "hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy"}
    table.upsert(rides(NEWER), options=going_first)
    clusterer.finish()
    assert isinstance(clusterer.error, ConflictError)
    assert held(table) == [NEWER, ("a1", "rome", 1, 1.0)]
