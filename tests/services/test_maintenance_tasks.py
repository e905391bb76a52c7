"""A process that looks after tables does what is due on each, and one that fails holds up no other."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from drawstring.base.clock import SteppingClock
from drawstring.base.errors import CorruptTableError
from drawstring.cli import app
from drawstring.cli.commands import services
from drawstring.model.instant import Action
from drawstring.model.result import CleanResult
from drawstring.services import table_services as duties
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.heartbeat import HEARTBEAT_FOLDER
from drawstring.txn.locks.service_lease import service_lease
from drawstring.txn.table_context import TableContext
from tests.support.compaction import FIRST, MERGED, NEWER, logged
from tests.support.rows import held, rides
from tests.support.tables import COW, MOR, create, logs

DUE = {"hoodie.compact.inline.max.delta.commits": "1"}


def did(table: Table, **options: Any) -> list[str]:
    return [each.task for each in table.services.run(options=options)]


def test_what_is_planned_is_run_and_what_is_due_is_planned() -> None:
    table = create(table_type=MOR)
    table.upsert(rides(*FIRST))
    table.upsert(rides(*NEWER))
    assert did(table) == [], "two delta commits are not five"
    table.services.schedule_compaction()
    assert did(table) == ["compaction"]
    assert (held(table), logs(table), table.timeline.pending()) == (MERGED, 0, ())
    table.upsert(rides(("a", "rome", 8, 8.0)))
    assert did(table, **DUE) == ["compaction"]
    assert (logs(table), did(table, **DUE)) == (0, [])


def test_a_planned_clustering_is_run_and_one_that_is_due_by_commits_is_planned() -> None:
    table = create(table_type=COW)
    apart = {"hoodie.parquet.small.file.limit": "0"}
    due = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "2"}
    table.insert(rides(("a", "rome", 1, 1.0)), options=apart)
    table.insert(rides(("b", "rome", 1, 1.0)), options=apart)
    planned = table.services.schedule_clustering()
    assert did(table, **due) == ["clustering"], "no commits since the one that was planned"
    assert (len(table.inspect.files()), table.timeline.write_at(planned or "") is None) == (1, False)
    table.insert(rides(("c", "rome", 1, 1.0)), options=apart)
    assert did(table, **due) == [], "one commit is not two"
    table.insert(rides(("d", "rome", 1, 1.0)), options=apart)
    assert did(table) == [], "nobody asked for it"
    assert did(table, **due) == ["clustering"]
    assert (len(table.inspect.files()), len(held(table))) == (1, 4)


def test_old_files_and_instants_go_and_logs_become_one() -> None:
    table = create(table_type=MOR)
    by_hand = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
    for turn in range(8):
        table.upsert(rides(("a", "rome", turn, float(turn))), options=by_hand)
        if turn % 2:
            table.services.compact()
    table.upsert(rides(("a", "rome", 9, 9.0)), options=by_hand)
    table.upsert(rides(("a", "rome", 10, 10.0)), options=by_hand)
    options = {
        "hoodie.clean.commits.retained": 1,
        "hoodie.keep.min.commits": 2,
        "hoodie.keep.max.commits": 3,
        "hoodie.log.compaction.inline": "true",
        "hoodie.log.compaction.blocks.threshold": 2,
    }
    assert did(table, **options) == ["log compaction", "clean", "archive"]
    assert held(table) == [("a", "rome", 10, 10.0)]
    assert table.services.validate().is_sound


def test_a_service_that_fails_is_told_and_the_others_are_done() -> None:
    table = create(table_type=MOR)
    table.upsert(rides(*FIRST))
    for turn in range(4):
        table.insert_overwrite(rides(("a", "oslo", turn, 1.0)), options={"hoodie.clean.automatic": "false"})
    table.upsert(rides(("a", "rome", 9, 9.0)), options={"hoodie.clean.automatic": "false"})
    table.services.schedule_compaction()
    log = next(log.status.path for each in table.inspect.files() for log in each.logs)
    context_of(table).storage.put(log, b"#HUDI# and nothing more")
    done = {each.task: each for each in table.services.run(options={"hoodie.clean.commits.retained": 1})}
    assert isinstance(done["compaction"].error, CorruptTableError)
    assert isinstance(done["clean"].result, CleanResult)
    assert len(table.timeline.pending_of(Action.COMPACTION)) == 1


def test_the_command_looks_after_many_tables_and_says_what_it_did(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = logged(path=tmp_path / "one"), logged(path=tmp_path / "other", table_type=COW)
    option = ("--option", "hoodie.compact.inline.max.delta.commits=1")
    assert app.run(["services", "run", one.uri, other.uri, *option]) == 0
    assert capsys.readouterr().out.startswith(f"{one.uri}: compaction: 6 rows in 2 files (")
    one.upsert(rides(("a", "rome", 8, 8.0)))
    assert app.run(["services", "run", str(tmp_path / "nothing"), one.uri, *option]) == 2
    captured = capsys.readouterr()
    assert "not a Hudi table" in captured.out
    assert f"{one.uri}: compaction: 3 rows in 1 file" in captured.out
    assert "1 service failed" in captured.err
    one.upsert(rides(("a", "rome", 9, 9.0)))
    assert app.run(["services", "run", one.uri, *option, "--json"]) == 0
    (done,) = json.loads(capsys.readouterr().out)
    assert (done["table"], done["service"]) == (one.uri, "compaction")
    assert (done["result"]["operation"], done["error"], done["left_to"]) == (
        "compact",
        None,
        None,
    )
    nothing_due = ("--option", "hoodie.clean.automatic=false", "--option", "hoodie.archive.automatic=false")
    assert app.run(["services", "run", one.uri, *nothing_due, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    assert app.run(["services", "run", str(tmp_path / "nothing"), "--json"]) == 2
    (failed,) = json.loads(capsys.readouterr().out)
    assert (failed["error"]["kind"], failed["result"]) == ("InvalidError", None)
    assert "not a Hudi table" in failed["error"]["message"]


@pytest.mark.parametrize("is_engine", [False, True], ids=["process", "engine"])
def test_a_plan_that_others_run_is_told_to_be_left_to_them(
    is_engine: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = logged(path=tmp_path / "rides")
    plan = table.services.schedule_compaction() or ""
    context = context_of(table)
    with ExitStack() as stack:
        if is_engine:
            context.storage.put(f"{HEARTBEAT_FOLDER}/{plan}", b"")
        else:
            stack.enter_context(service_lease(context.storage, context.clock, context.ids, plan))
        assert app.run(["services", "run", table.uri, "--json"]) == 0
        (left,) = json.loads(capsys.readouterr().out)
        who = "another engine" if is_engine else f"process {os.getpid()} on "
        assert (left["service"], left["instant"], left["error"]) == ("compaction", plan, None)
        assert left["left_to"].startswith(who)
        assert app.run(["services", "run", table.uri]) == 0
        assert f"compaction: {plan} is left to another process" in capsys.readouterr().out
    assert plan in {each.requested for each in table.timeline.pending()}


def test_the_loop_goes_round_until_it_is_interrupted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = logged(path=tmp_path / "rides")
    pauses = []

    class Clock:
        def sleep(self, seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == 3:
                raise KeyboardInterrupt
            table.upsert(rides(("a", "rome", 10 + len(pauses), 1.0)))

    monkeypatch.setattr(services, "SystemClock", Clock)
    option = ("--option", "hoodie.compact.inline.max.delta.commits=1")
    assert app.run(["services", "run", table.uri, "--watch", "--every", "5", *option]) == 0
    assert pauses == [5.0, 5.0, 5.0]
    assert capsys.readouterr().out.count("compaction: ") == 3


def test_partitions_whose_time_is_over_go_where_that_is_asked_for() -> None:
    table = create(table_type=COW)
    table.upsert(rides(("a", "rome", 1, 1.0), ("b", "oslo", 1, 1.0)))
    over = {"hoodie.partition.ttl.strategy.days.retain": 5}
    rome = {"hoodie.partition.ttl.strategy.partition.selected": "rome"}
    inline = {"hoodie.partition.ttl.inline": "true"}
    later = SteppingClock(context_of(table).clock.now_ms() + 10 * 86_400_000)
    aged = Table(replace(context_of(table), clock=later))
    assert did(aged, **over) == [], "nobody asked for it"
    assert did(aged, **{**over, "hoodie.partition.ttl.strategy.days.retain": 0}, **inline) == []
    assert did(aged, **over, **rome, **inline) == ["expiry"]
    assert held(table) == [("b", "oslo", 1, 1.0)]


def test_an_error_that_nobody_expected_holds_up_neither_services_nor_tables(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, other = logged(path=tmp_path / "one"), logged(path=tmp_path / "other")
    schedule = duties.compaction.schedule_compaction

    def fails(context: TableContext, *how: Any, **named: Any) -> str | None:
        if context.storage.spec.uri == one.uri:
            raise pa.ArrowInvalid("a page of nonsense")
        return schedule(context, *how, **named)

    monkeypatch.setattr(duties.compaction, "schedule_compaction", fails)
    option = ("--option", "hoodie.compact.inline.max.delta.commits=1")
    assert app.run(["services", "run", one.uri, other.uri, *option]) == 2
    told = capsys.readouterr().out
    assert f"{one.uri}: compaction: failed: ArrowInvalid: a page of nonsense" in told
    assert f"{other.uri}: compaction: 6 rows in 2 files" in told
    assert "failed unexpectedly" in caplog.text


def test_a_table_that_fails_as_a_whole_leaves_the_loop_going(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = logged(path=tmp_path / "rides")

    def broken(path: str, option: object) -> Table:
        if path == "broken":
            raise ValueError("who would have thought")
        return table

    monkeypatch.setattr(services, "open_table", broken)
    assert app.run(["services", "run", "broken", table.uri]) == 2
    told = capsys.readouterr().out.splitlines()
    assert told == [
        "broken: open: failed: ValueError: who would have thought",
        f"{table.uri}: nothing was due",
    ]


@pytest.mark.parametrize(
    "words", [[], ["--watch"], ["here", "--watch", "--every", "-1"], ["here", "--watch", "--every", "0"]]
)
def test_a_loop_that_makes_no_sense_is_a_mistake_of_the_call(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.run(["services", "run", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "--every" in captured.err or "No tables were given" in captured.err
