"""A compaction that runs while others write, run and die: no row is lost, and one runner does the work."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import drawstring
from drawstring.base.clock import SteppingClock
from drawstring.base.errors import ConflictError, InvalidError
from drawstring.filegroups.write.markers import MARKER_ROOT
from drawstring.model.instant import Action
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.locks.service_lease import service_lease
from drawstring.txn.locks.storage_lock import Lease
from tests.support.compaction import MERGED, logged, once
from tests.support.faults import HOUR_MS, START_MS, Prepared, leftovers, opened, orphans
from tests.support.rows import held, rides
from tests.support.storages import by_clock
from tests.support.tables import BUCKETS, COW, MOR, WITHOUT_COMPACTION, create, logs, versions

BACKGROUND = {
    "hoodie.datasource.compaction.async.enable": "true",
    "hoodie.compact.inline.max.delta.commits": "2",
}
WRITES: dict[str, Callable[[Table], Any]] = {
    "upsert": lambda table: table.upsert(rides(("a", "rome", 7, 7.0), ("new", "bern", 7, 7.0))),
    "delete": lambda table: table.delete(rides(("a", "rome", 7, 7.0))),
    "insert_overwrite": lambda table: table.insert_overwrite(rides(("x", "rome", 7, 7.0))),
    "update": lambda table: table.update("id = 'a'", {"ts": 8}),
}


@versions
@pytest.mark.parametrize("index", [{}, BUCKETS], ids=["simple", "bucket"])
@pytest.mark.parametrize("write", WRITES)
def test_a_write_goes_on_while_a_compaction_runs(version: int, index: dict[str, str], write: str) -> None:
    table = logged(version, properties=index)
    expected = logged(version, properties=index)
    WRITES[write](expected)
    seen: list[Any] = []

    def meanwhile() -> None:
        WRITES[write](table)
        seen.append(held(table))

    result = table.services.compact(progress=once(meanwhile))
    assert result
    assert seen == [held(expected)]
    assert held(table) == held(expected)
    table.services.compact()
    assert held(table) == held(table, read_optimized=True) == held(expected)
    assert (logs(table), leftovers(table), orphans(table)) == (0, [], [])


@versions
def test_a_plan_is_made_by_one_call_and_run_by_another(version: int) -> None:
    table = logged(version)
    instant = table.services.schedule_compaction()
    assert instant is not None
    assert [each.requested for each in table.timeline.pending_of(Action.COMPACTION)] == [instant]
    assert table.services.schedule_compaction() is None
    result = table.services.compact(instant=instant)
    assert result and result.instant == instant
    assert (logs(table), held(table), leftovers(table)) == (0, MERGED, [])
    assert not table.services.compact(instant=instant)


def test_a_compaction_that_is_not_there_cannot_be_run() -> None:
    table = logged(9)
    write = table.timeline.writes()[0].requested
    for time in ("20200101000000000", write):
        with pytest.raises(InvalidError, match="There is no compaction with this time"):
            table.services.compact(instant=time)
    assert leftovers(table) == []


def test_only_what_a_strategy_takes_is_planned() -> None:
    table = logged(9)
    strategy = {
        "hoodie.compaction.strategy": "PartitionRegexBasedCompactionStrategy",
        "hoodie.compaction.partition.path.regex": "^ro",
    }
    result = table.services.compact(options=strategy)
    assert result and result.files == 1
    assert {each.partition for each in table.inspect.files() if each.logs} == {"oslo"}
    assert not table.services.compact(options=strategy)
    with pytest.raises(InvalidError, match="is not a day"):
        table.services.schedule_compaction(
            options={"hoodie.compaction.strategy": "DayBasedCompactionStrategy"}
        )
    assert table.timeline.pending() == ()


def test_scheduling_is_refused_where_there_are_no_logs_to_come() -> None:
    with pytest.raises(InvalidError, match="COPY_ON_WRITE"):
        create(table_type=COW).services.schedule_compaction()


@pytest.mark.parametrize("where", ["memory", "files"])
def test_a_compaction_that_is_being_run_is_left_to_its_runner(where: str, tmp_path: Path) -> None:
    table = logged(9) if where == "memory" else logged(path=tmp_path / "rides")
    instant = table.services.schedule_compaction()
    assert instant is not None
    told: list[str] = []

    def meanwhile() -> None:
        other = drawstring.open(table.uri)
        with pytest.raises(ConflictError, match="Another process runs this compaction") as caught:
            other.services.compact(instant=instant)
        told.append(str(caught.value.instant))
        assert not other.services.compact()

    result = table.services.compact(progress=once(meanwhile), instant=instant)
    assert told == [instant]
    assert result and result.files == 2
    assert (held(table), logs(table), leftovers(table), orphans(table)) == (MERGED, 0, [], [])


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.scaled
def test_a_runner_that_dies_at_any_step_is_followed_by_another(version: int) -> None:
    table = logged(version)
    instant = table.services.schedule_compaction()
    assert instant is not None
    start = Prepared.of(table)
    for copy, step in start.deaths(lambda each: each.services.compact(instant=instant), steps_min=10):
        writer = opened(copy, START_MS + HOUR_MS)
        writer.upsert(rides(("b", "rome", 9, 9.0)))
        expected = sorted([("b", "rome", 9, 9.0), *(row for row in MERGED if row[:2] != ("b", "rome"))])
        assert held(writer) == expected, step
        opened(copy, START_MS + 2 * HOUR_MS).services.compact()
        assert (held(writer), logs(writer)) == (expected, 0), step
        assert held(writer, read_optimized=True) == expected, step
        assert (orphans(writer), leftovers(writer)) == ([], []), step


def test_a_lease_that_a_dead_runner_holds_is_waited_for() -> None:
    table = logged(9)
    instant = table.services.schedule_compaction()
    storage, path = context_of(table).storage, f".hoodie/.locks/{instant}.service"
    now_ms = context_of(table).clock.now_ms()
    storage.put(path, Lease(False, now_ms + 60_000, "dead").encode())
    with pytest.raises(ConflictError, match="Another process runs"):
        table.services.compact(instant=instant)
    by_clock(storage, SteppingClock(now_ms - 120_000))
    storage.put(path, Lease(False, now_ms - 60_000, "dead").encode())
    by_clock(storage, context_of(table).clock)
    with pytest.raises(ConflictError, match="The plan was unscheduled"):
        table.services.compact(instant=instant)
    assert table.services.compact()
    assert (held(table), leftovers(table)) == (MERGED, [])


def test_an_attempt_that_somebody_rolled_back_does_not_commit() -> None:
    table = logged(9)
    instant = table.services.schedule_compaction()
    storage = context_of(table).storage
    with pytest.raises(ConflictError, match=r"rolled this attempt, .*, back"):
        table.services.compact(progress=once(lambda: storage.delete_tree(f"{MARKER_ROOT}/{instant}")))
    assert held(table) == MERGED
    assert table.services.compact()
    assert (held(table), logs(table), leftovers(table), orphans(table)) == (MERGED, 0, [], [])


@pytest.mark.parametrize(
    ("options", "left"),
    [({}, 0), ({"hoodie.datasource.compaction.async.enable": "false"}, 0), (WITHOUT_COMPACTION, 4)],
)
def test_the_fifth_delta_commit_compacts_unless_told_not_to(options: dict[str, str], left: int) -> None:
    table, seen = create(table_type=MOR), []
    for turn in range(1, 6):
        table.upsert(rides(("a", "rome", turn, float(turn))), options=options)
        seen.append(logs(table))
    assert seen == [0, 1, 2, 3, left]
    assert held(table) == [("a", "rome", 5, 5.0)]


def test_what_others_planned_is_left_to_them_until_a_compaction_is_due() -> None:
    table = create(table_type=MOR)
    for turn in (1, 2):
        table.upsert(rides(("a", "rome", turn, float(turn))))
    planned = table.services.schedule_compaction()
    pending = []
    for turn in (3, 4, 5):
        table.upsert(rides(("a", "rome", turn, float(turn))))
        pending.append([each.requested for each in table.timeline.pending()])
    assert pending == [[planned], [planned], []]
    assert (logs(table), held(table)) == (3, [("a", "rome", 5, 5.0)])


def test_writes_beside_a_running_compaction_do_not_each_plan_another() -> None:
    table = create(table_type=MOR)
    for turn in range(4):
        table.upsert(rides(("a", "rome", turn, 1.0), ("b", "oslo", turn, 1.0)))
    running, planned = table.services.schedule_compaction(), []
    assert running is not None
    context = context_of(table)
    with service_lease(context.storage, context.clock, context.ids, running):
        for turn in range(4, 12):
            table.upsert(rides((f"c{turn}", f"city{turn}", turn, 1.0)))
            table.upsert(rides((f"c{turn}", f"city{turn}", turn, 2.0)))
            planned.append(len(table.timeline.completed_of(Action.COMMIT)))
    assert planned == [0, 0, 1, 1, 1, 2, 2, 2], "one for each five delta commits"
    table.upsert(rides(("a", "rome", 99, 9.0)))
    assert held(table)[0] == ("a", "rome", 99, 9.0)


def test_a_write_plans_a_compaction_and_leaves_it_to_another_process() -> None:
    table = create(table_type=MOR)
    options = {"hoodie.compact.schedule.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"}
    pending = []
    for turn in range(1, 4):
        table.upsert(rides(("a", "rome", turn, float(turn))), options=options)
        pending.append(len(table.timeline.pending_of(Action.COMPACTION)))
    assert pending == [0, 1, 1]
    assert table.services.compact()
    assert (logs(table), held(table)) == (0, [("a", "rome", 3, 3.0)])


def test_an_inline_compaction_goes_by_time_if_told_so() -> None:
    table = create(table_type=MOR)
    options = {
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.trigger.strategy": "TIME_ELAPSED",
        "hoodie.compact.inline.max.delta.seconds": "3600",
    }
    for turn in (1, 2):
        table.upsert(rides(("a", "rome", turn, float(turn))), options=options)
    assert logs(table) == 1
    late = opened(context_of(table).storage, context_of(table).clock.now_ms() + 2 * HOUR_MS)
    late.upsert(rides(("a", "rome", 3, 3.0)), options=options)
    assert (logs(table), held(table)) == (0, [("a", "rome", 3, 3.0)])


def test_a_thread_compacts_while_its_process_writes_on() -> None:
    table = create(table_type=MOR)
    for turn in range(1, 12):
        table.upsert(rides(("a", "rome", turn, float(turn)), ("b", "oslo", turn, 1.0)), options=BACKGROUND)
        assert ("a", "rome", turn, float(turn)) in held(table)
    assert table.services.wait(60)
    assert any(each.action is Action.COMMIT for each in table.timeline.writes())
    assert table.timeline.pending() == ()
    assert held(table) == [("a", "rome", 11, 11.0), ("b", "oslo", 11, 1.0)]
    assert not [each for each in threading.enumerate() if each.name == "drawstring-service"]


def test_a_failure_in_the_background_fails_no_write(caplog: pytest.LogCaptureFixture) -> None:
    table = create(table_type=MOR)
    table.upsert(rides(("a", "rome", 1, 1.0)))
    table.upsert(rides(("a", "rome", 2, 2.0)))
    (damaged,) = (log.status.path for each in table.inspect.files() for log in each.logs)
    context_of(table).storage.put(damaged, b"#HUDI# and nothing more")
    table.append(rides(("z", "oslo", 1, 1.0)), options=BACKGROUND)
    assert table.services.wait(60)
    assert "A table service in the background failed" in caplog.text
    assert len(table.timeline.pending_of(Action.COMPACTION)) == 1
