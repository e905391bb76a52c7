"""What is pending is rolled back on request: dead writes, and plans that nobody wants."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

import drawstring
from drawstring.base.clock import SteppingClock, SystemClock
from drawstring.base.errors import ConflictError, CorruptTableError, InvalidError
from drawstring.model.instant import Action
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.timeline.timeline import epoch_ms_of
from drawstring.txn.locks.service_lease import service_lease
from tests.support.compaction import MERGED, logged
from tests.support.faults import (
    HOUR_MS,
    NO_ROLLBACK,
    START_MS,
    Prepared,
    dead_write,
    leftovers,
    lose_completion,
    opened,
    orphans,
)
from tests.support.interrupted import in_no_time
from tests.support.rows import held, rides
from tests.support.service_process import runner
from tests.support.storages import data_files
from tests.support.tables import COW, MOR, NEW_FILE_GROUPS, create, logs, store_of

versions = pytest.mark.parametrize("version", (6, 8, 9))
NEWEST = ("c", "rome", 7, 7.0)
WITH_NEWEST = sorted([NEWEST, *(row for row in MERGED if row[:2] != ("c", "rome"))])


def scattered(version: int = 9) -> Table:
    table = create(table_type=COW, version=version)
    for number in range(3):
        table.insert(rides((f"a{number}", "rome", 1, 1.0)), options=NEW_FILE_GROUPS)
    return table


@versions
def test_the_write_of_a_dead_writer_is_rolled_back_by_name_and_no_other(version: int) -> None:
    table = logged(version)
    one, other = dead_write(table), dead_write(table)
    planned = table.services.plan_rollback(one.requested)
    assert planned is not None and planned.files == (f"rome/f9-0_0-1-0_{one.requested}.parquet",)
    assert len(table.timeline.pending()) == 2
    result = table.services.rollback(one.requested)
    assert result and (result.instant, result.action, result.files) == (
        one.requested,
        "deltacommit",
        1,
    )
    assert [each.requested for each in table.timeline.pending()] == [other.requested]
    assert table.services.rollback(), "without a name it is the newest"
    assert (held(table), leftovers(table), orphans(table)) == (MERGED, [], [])
    assert not table.services.rollback()


@versions
def test_a_plan_is_unscheduled_by_name_only(version: int) -> None:
    table = logged(version)
    dead, plan = dead_write(table), table.services.schedule_compaction(options=NO_ROLLBACK)
    assert plan is not None and plan > dead.requested
    for ask in (table.services.plan_rollback, table.services.rollback):
        chosen = ask()
        assert chosen is not None and chosen.instant == dead.requested
    assert [each.requested for each in table.timeline.pending()] == [plan]
    assert table.services.plan_rollback() is None and not table.services.rollback()
    assert [each.requested for each in table.timeline.pending()] == [plan]
    assert table.services.rollback(plan)


def test_a_preview_refuses_a_plan_whose_lease_is_held() -> None:
    table = logged(9)
    instant = table.services.schedule_compaction()
    assert instant is not None
    context = context_of(table)
    with service_lease(context.storage, context.clock, context.ids, instant):
        for ask in (table.services.plan_rollback, table.services.rollback):
            with pytest.raises(ConflictError, match="Another process runs this compaction"):
                ask(instant)
    assert table.services.plan_rollback(instant) is not None


def test_a_preview_leaves_no_trace(tmp_path: Path) -> None:
    table = drawstring.create(tmp_path, rides().schema, record_key="id", partition_by="city", table_type=MOR)
    table.upsert(rides(("a", "rome", 1, 1.0)))
    table.upsert(rides(("a", "rome", 2, 2.0)))
    instant = table.services.schedule_compaction()
    before = sorted(tmp_path.rglob("*"))
    assert table.services.plan_rollback(instant) is not None
    assert sorted(tmp_path.rglob("*")) == before


@versions
@pytest.mark.parametrize("began", [False, True])
def test_a_compaction_that_nobody_wants_is_unscheduled(version: int, began: bool) -> None:
    table = logged(version)
    instant = table.services.schedule_compaction()
    assert instant is not None
    if began:
        store = store_of(table, SystemClock())
        store.start(store.load().pending_of(Action.COMPACTION)[0])
        context_of(table).storage.put(f"rome/f9-0_0-1-0_{instant}.parquet", b"half")
    result = table.services.rollback(instant)
    assert result and (result.action, result.files) == ("compaction", int(began))
    assert (table.timeline.pending(), leftovers(table), orphans(table)) == ((), [], [])
    table.upsert(rides(NEWEST))
    assert held(table) == WITH_NEWEST
    assert table.services.compact()
    assert (held(table), logs(table), table.services.validate().is_sound) == (WITH_NEWEST, 0, True)


@versions
def test_the_time_of_an_unscheduled_plan_is_not_used_again(version: int) -> None:
    """A write that is requested within the same millisecond gets another time."""
    table = logged(version)
    instant = table.services.schedule_compaction()
    assert instant is not None
    now_ms = epoch_ms_of(instant, table.config.timezone)
    assert now_ms is not None
    assert table.services.rollback(instant)
    standing = SteppingClock(now_ms, step_ms=0)
    upserted = Table(replace(context_of(table), clock=standing)).upsert(rides(NEWEST))
    assert upserted.instant is not None and upserted.instant > instant
    assert held(table) == WITH_NEWEST


@pytest.mark.parametrize("version", (8, 9))
def test_a_compaction_is_unscheduled_though_others_wrote_since(version: int) -> None:
    table = logged(version)
    instant = table.services.schedule_compaction()
    table.upsert(rides(NEWEST))
    assert table.services.rollback(instant)
    assert held(table) == WITH_NEWEST
    assert table.services.compact()
    assert (held(table), logs(table), table.services.validate().is_sound) == (WITH_NEWEST, 0, True)


def test_a_compaction_of_version_6_that_others_wrote_on_top_of_is_not_unscheduled() -> None:
    table = logged(6)
    instant = table.services.schedule_compaction()
    table.upsert(rides(NEWEST))
    for ask in (table.services.plan_rollback, table.services.rollback):
        with pytest.raises(ConflictError, match="Run it"):
            ask(instant)
    assert (len(table.timeline.pending()), held(table)) == (1, WITH_NEWEST)
    assert table.services.compact(instant=instant)
    assert held(table) == WITH_NEWEST


def test_a_log_compaction_is_unscheduled() -> None:
    table = logged(9)
    table.upsert(rides(NEWEST))
    instant = table.services.schedule_log_compaction(options={"hoodie.log.compaction.blocks.threshold": 2})
    assert instant is not None
    assert table.services.rollback(instant)
    assert (table.timeline.pending(), held(table)) == ((), WITH_NEWEST)


@versions
def test_a_clustering_that_refuses_writes_says_how_to_unschedule_it(version: int) -> None:
    table = scattered(version)
    instant = table.services.schedule_clustering()
    assert instant is not None
    with pytest.raises(ConflictError, match=f"rollback of {instant}"):
        in_no_time(table).upsert(rides(("a0", "rome", 2, 2.0)))
    result = table.services.rollback(instant)
    assert result and (result.action, result.files) == ("clustering", 0)
    table.upsert(rides(("a0", "rome", 2, 2.0)))
    assert [row[2] for row in held(table)] == [2, 1, 1]
    assert (table.timeline.pending(), leftovers(table)) == ((), [])


@versions
@pytest.mark.parametrize("service", ["compact", "cluster"])
def test_a_plan_whose_completion_was_lost_keeps_its_files(version: int, service: str) -> None:
    table = logged(version)
    result = table.services.compact() if service == "compact" else table.services.cluster()
    assert result
    table.services.clean(
        options={"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": 1}
    )
    write = table.timeline.write_at(result.instant)
    assert write is not None and held(table) == MERGED
    lost, files = lose_completion(table, write), data_files(context_of(table).storage)
    for ask in (table.services.plan_rollback, table.services.rollback):
        with pytest.raises(CorruptTableError, match="had been completed"):
            ask(result.instant)
    assert data_files(context_of(table).storage) == files
    for path, data in lost.items():
        context_of(table).storage.put(path, data)
    assert held(table) == MERGED


@pytest.mark.parametrize("kind", ["write", "compaction", "clustering"])
@pytest.mark.parametrize("version", (6, 9))
@pytest.mark.scaled
def test_a_rollback_that_dies_at_any_step_is_done_again(version: int, kind: str) -> None:
    table = logged(version)
    if kind == "write":
        instant = dead_write(table).requested
    else:
        planned = (
            table.services.schedule_compaction()
            if kind == "compaction"
            else table.services.schedule_clustering()
        )
        store = store_of(table, SystemClock())
        store.start(store.load().pending()[0])
        assert planned is not None
        instant = planned
        context_of(table).storage.put(f"rome/f9-0_0-1-0_{instant}.parquet", b"half")
    for copy, step in Prepared.of(table).deaths(lambda each: each.services.rollback(instant), steps_min=2):
        again = opened(copy, START_MS + HOUR_MS)
        assert held(again) == MERGED
        with suppress(InvalidError):  # it is gone already
            again.services.rollback(instant)
        again.upsert(rides(NEWEST))
        assert (held(again), leftovers(again), orphans(again)) == (WITH_NEWEST, [], []), step


def test_what_is_completed_or_unknown_is_refused_with_the_way_to_go() -> None:
    table = scattered()
    first, before, last = (each.requested for each in table.timeline.writes())
    with pytest.raises(InvalidError, match=f"Restore the table to {before}"):
        table.services.rollback(last)
    with pytest.raises(InvalidError, match="It is the first"):
        table.services.rollback(first)
    instant = table.services.schedule_clustering()
    with pytest.raises(InvalidError, match=f"Pending: {instant}"):
        table.services.rollback("20200101000000000")
    assert len(held(table)) == 3


def test_what_a_live_process_runs_is_left_to_it(tmp_path: Path) -> None:
    table = create(path=tmp_path, table_type=MOR)
    table.upsert(rides(("a", "rome", 1, 1.0)))
    table.upsert(rides(("a", "rome", 2, 2.0)))
    instant = table.services.schedule_compaction()
    assert instant is not None
    with runner(table.uri, instant, 3) as other:
        other.says()
        for ask in (table.services.plan_rollback, table.services.rollback):
            with pytest.raises(ConflictError, match="Another process runs this compaction"):
                ask(instant)
        other.kill()
    assert table.services.plan_rollback(instant) is not None
    assert table.services.rollback(instant)
    assert (held(table), table.timeline.pending(), orphans(table)) == ([("a", "rome", 2, 2.0)], (), [])
