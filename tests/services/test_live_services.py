"""Compactions and clusterings that run while others want the table for themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from drawstring.base.errors import ConflictError, CorruptTableError
from drawstring.model.instant import PLANNED_ACTIONS, Action
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn import heartbeat
from drawstring.txn.heartbeat import HEARTBEAT_FOLDER
from tests.support.faulty_storage import FaultyStorage
from tests.support.interrupted import Act, Interrupted, Standing, on, upserting
from tests.support.methods import method
from tests.support.rows import held, rides
from tests.support.service_process import runner
from tests.support.tables import COW, MOR, NEW_FILE_GROUPS, WITHOUT_SERVICES, create

NEW = ("z", "rome", 9, 9.0)
LOG_COMPACTING = {"hoodie.log.compaction.blocks.threshold": "2"}
VERBS: dict[str, Act] = {
    "cluster": lambda table: table.services.cluster(),
    "compact": lambda table: table.services.compact(),
    "log_compact": lambda table: table.services.log_compact(options=LOG_COMPACTING),
}
services = pytest.mark.parametrize("service", VERBS)
WHOLE: dict[str, Callable[[Table, str], Any]] = {
    "restore": lambda table, first: table.savepoints.restore(first),
    "downgrade": lambda table, _: table.versions.downgrade(8),
}
"""What needs the table for itself."""

IN_THE_MIDDLE = 5
"""Changes after which the first base file is under way, and the table lock is free."""


def grown(service: str, path: Path | None = None) -> tuple[Table, str]:
    """Return a table that the service has work on, and its first write."""
    table = create(table_type=COW if service == "cluster" else MOR, path=path)
    times = []
    for ts in range(4):
        key = f"a{ts}" if service == "cluster" else "a"
        done: Any = table.upsert(
            rides((key, "rome", ts, 1.0)), options={**WITHOUT_SERVICES, **NEW_FILE_GROUPS}
        )
        times.append(done.instant)
    return table, times[0]


def beats(table: Table) -> list[str]:
    return [each.name for each in context_of(table).storage.list_files(HEARTBEAT_FOLDER)]


@contextmanager
def at_work(table: Table, service: str) -> Iterator[tuple[Standing, str]]:
    """Let another process begin a file of the service, and stand still; yield it with its instant."""
    other = Standing(table, VERBS[service])
    other.start()
    yield other, table.timeline.pending_of(*PLANNED_ACTIONS)[0].requested
    other.finish()
    assert other.error is None
    assert not table.timeline.pending_of(*PLANNED_ACTIONS)


@services
@pytest.mark.parametrize("act", WHOLE)
@pytest.mark.parametrize("is_local", [False, True])
def test_what_needs_the_table_for_itself_is_refused_beside_a_running_service(
    service: str, act: str, is_local: bool, tmp_path: Path
) -> None:
    table, first = grown(service, tmp_path / "rides" if is_local else None)
    rows = held(table)
    with at_work(table, service) as (_, instant):
        named = {"cluster": "clustering", "compact": "compaction", "log_compact": "logcompaction"}[service]
        said = f"Another process runs the {named} {instant} of process .*, at work in rome/.*End that process"
        with pytest.raises(ConflictError, match=said):
            WHOLE[act](table, first)
    assert held(table) == rows
    assert WHOLE[act](table, first)
    assert len(held(table)) == (1 if act == "restore" else len(rows))


@pytest.mark.parametrize("service", ["compact", pytest.param("cluster", marks=pytest.mark.long)])
def test_a_service_whose_process_was_killed_keeps_no_restore_out(service: str, tmp_path: Path) -> None:
    table, first = grown(service, tmp_path / "rides")
    instant = (
        table.services.schedule_clustering() if service == "cluster" else table.services.schedule_compaction()
    )
    assert instant is not None
    with runner(table.uri, instant, IN_THE_MIDDLE, service) as other:
        assert other.says().startswith("rome/")
        with pytest.raises(ConflictError, match=f"Another process runs the .* {instant}"):
            table.savepoints.restore(first)
        other.kill()
    assert beats(table) == [instant]
    assert table.savepoints.restore(first)
    assert held(table) == [("a0" if service == "cluster" else "a", "rome", 0, 1.0)]
    table.upsert(rides(NEW))
    assert table.timeline.pending() == ()


@services
def test_a_service_whose_table_was_restored_ends_with_a_conflict_that_names_the_restore(
    service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, first = grown(service)
    with monkeypatch.context() as blind:  # as Hudi's restore, and ours of earlier releases
        blind.setattr(heartbeat, "leased", lambda *_: [])
        runs = on(Interrupted(table, lambda other: other.savepoints.restore(first)))
        with pytest.raises(ConflictError) as raised:
            VERBS[service](runs)
    restore = table.timeline.completed_of(Action.RESTORE)[-1]
    assert f"The restore {restore.requested} of another process took this" in str(raised.value)
    assert "no row is lost" in str(raised.value)
    assert len(held(table)) == 1
    table.upsert(rides(NEW))
    assert len(held(table)) == 2


@pytest.mark.parametrize("service", ["cluster", "compact"])
def test_a_damaged_file_that_a_service_meets_is_not_blamed_on_others(service: str) -> None:
    table, _ = grown(service)

    def damage(other: Table) -> None:
        storage = context_of(other).storage
        storage.delete([each.path for each in storage.list_files("rome")])

    with pytest.raises(CorruptTableError):
        VERBS[service](on(Interrupted(table, damage)))


@services
def test_a_service_shows_hudi_by_a_heartbeat_that_it_lives(service: str) -> None:
    table, _ = grown(service)
    with at_work(table, service) as (_, instant):
        assert beats(table) == [instant]
        table.upsert(rides(("z", "oslo", 9, 9.0)), options=WITHOUT_SERVICES)
        assert beats(table) == [instant], "a writer leaves it alone"
    assert beats(table) == []


def test_a_service_that_fails_leaves_no_heartbeat() -> None:
    table, _ = grown("cluster")

    def fail(_: Table) -> None:
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space"):
        on(Interrupted(table, fail)).services.cluster()
    assert beats(table) == []


ALLOWED = {**WITHOUT_SERVICES, "hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy"}


class Overtaken(Interrupted):
    """Lets others act when a file is begun, and not when it is taken back under the table lock."""

    marked: frozenset[str] = frozenset()

    def before_change(self, path: str) -> None:
        if path.endswith(".marker.CREATE") and path not in self.marked:
            self.marked |= {path}
            self.let_others_act()
        FaultyStorage.before_change(self, path)


def overtaken(table: Table, times: int) -> Table:
    """Return the table for a clustering that others overtake with a write, so many times."""
    return on(Overtaken(table, upserting(("a0", "rome", 9, 9.0), options=ALLOWED), times=times))


@pytest.mark.parametrize("verb", ["cluster", "compact_base_files"])
def test_a_clustering_that_lost_against_a_write_is_planned_and_run_again(verb: str) -> None:
    table, _ = grown("cluster")
    rows = [row for row in held(table) if row[0] != "a0"]
    assert method(overtaken(table, 2), verb)().instant
    assert held(table) == [("a0", "rome", 9, 9.0), *rows]
    assert len(table.inspect.files()) == 1
    assert table.timeline.pending() == ()


def test_a_clustering_runs_again_as_often_as_the_options_say() -> None:
    table, _ = grown("cluster")
    once_more = {"hoodie.write.num.retries.on.conflict.failures": "1"}
    with pytest.raises(
        ConflictError,
        match=r"while it ran: the (delta)?commit \d+ in ",
    ):
        overtaken(table, 2).services.cluster(options=once_more)
    assert table.timeline.pending() == ()
    assert overtaken(table, 1).services.cluster(options=once_more).instant


def test_a_clustering_that_was_named_does_not_run_again() -> None:
    table, _ = grown("cluster")
    instant = table.services.schedule_clustering()
    with pytest.raises(
        ConflictError,
        match=r"while it ran: the (delta)?commit \d+ in ",
    ):
        overtaken(table, 1).services.cluster(instant=instant)


def test_the_timeline_says_who_works_on_pending_instants_and_what_a_restore_undid() -> None:
    table, first = grown("cluster")
    with at_work(table, "cluster") as (_, instant):
        (pending,) = [each for each in table.inspect.instants() if each.is_worked_on is not None]
        assert (pending.instant.requested, pending.is_worked_on) == (instant, True)
    undone = table.savepoints.restore(first)
    assert undone
    (last,) = table.inspect.instants(last=1)
    assert sorted(last.rolled_back) == sorted(undone.rolled_back)
    left = table.services.schedule_clustering()
    assert left is None or table.inspect.instants(last=1)[0].is_worked_on is False
