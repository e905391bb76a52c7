"""`table.inspect.locks()` and `drawstring inspect locks`: holders, waiters, and pending instants with"
" workers."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from drawstring.base.clock import SystemIds
from drawstring.base.errors import ConflictError, InvalidError
from drawstring.cli import app
from drawstring.model.instant import Action
from drawstring.model.result import PendingWork, TableLocks
from drawstring.services import lock_report
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.heartbeat import HEARTBEAT_FOLDER
from drawstring.txn.locks.service_lease import LEASE_FILE
from drawstring.txn.locks.storage_lock import LEASE_PATH, Lease
from drawstring.txn.locks.table_lock import table_lock
from tests.support.faults import dead_write
from tests.support.interleavings import OPTIMISTIC
from tests.support.interrupted import ActingClock, Interrupted, on, upserting
from tests.support.rows import rides
from tests.support.tables import NEW_FILE_GROUPS, WITHOUT_SERVICES, create, table_at

SELF = rf"process {os.getpid()} on \S+"
ALONE = {"hoodie.write.concurrency.mode": "SINGLE_WRITER"}
WAIT = "hoodie.write.lock.wait_time_ms"
ROW = ("a", "rome", 9, 9.0)
places = pytest.mark.parametrize("is_local", [True, False], ids=["local files", "object store"])


@pytest.fixture
def table(is_local: bool, tmp_path: Path) -> Table:
    """Return a table with a row in Rome."""
    made = create(path=tmp_path / "rides" if is_local else None)
    made.upsert(rides(("a", "rome", 1, 1.0)), options=WITHOUT_SERVICES)
    return made


def seen_during(table: Table, act: Any, look: Any = lambda other: other.inspect.locks()) -> Any:
    """Return what somebody else sees while a file in Rome is written."""
    seen: list[Any] = []
    act(on(Interrupted(table, lambda other: seen.append(look(other)))))
    return seen[0]


def only(found: TableLocks) -> PendingWork:
    (work,) = found.pending
    return work


@places
def test_a_table_that_nobody_works_on_is_free(table: Table, is_local: bool, text: Any) -> None:
    (lock,) = table.inspect.locks().locks
    assert (lock.provider, lock.holder) == ("own", "")
    assert table.inspect.locks().pending == ()
    if is_local:
        assert text("inspect", "locks", table.uri) == "lock (own): free\nnothing is pending\n"


@places
def test_a_write_is_shown_with_its_process_its_heartbeat_and_its_file_groups(table: Table) -> None:
    work = only(seen_during(table, upserting(ROW)))
    assert work.is_alive
    assert re.fullmatch(SELF, work.process)
    assert work.heartbeat_age_ms is not None and work.heartbeat_left_ms is not None
    assert work.heartbeat_age_ms + work.heartbeat_left_ms == 120_000
    assert work.heartbeat_left_ms > 0
    assert [each.rpartition("/")[0] for each in work.file_groups] == ["rome"]
    assert "Wait until it is done" in work.advice


@places
def test_the_holder_of_the_lock_has_the_name_that_others_are_told(table: Table) -> None:
    def look(other: Table) -> tuple[str, str]:
        with pytest.raises(ConflictError, match="holds the table") as caught:
            other.upsert(rides(ROW), options={**OPTIMISTIC, WAIT: "0"})
        return other.inspect.locks().locks[0].holder, str(caught.value)

    holder, told = seen_during(table, upserting(ROW, options=ALONE), look)
    assert re.search(SELF, holder)
    assert re.sub(r"\d+ s more", "", holder) in re.sub(r"\d+ s more", "", told)


@pytest.mark.parametrize("is_local", [True])
def test_those_that_wait_for_the_lock_are_shown(table: Table) -> None:
    storage, clock, seen = context_of(table).storage, context_of(table).clock, []

    def look() -> None:
        seen.append(table.inspect.locks().locks[0].waiters)

    with (
        table_lock(storage, clock, SystemIds(), 0),
        pytest.raises(ConflictError),
        table_lock(storage, ActingClock(clock, look, after=0.001), SystemIds(), 1000),
    ):
        pass
    ((waiter,),) = seen
    assert re.fullmatch(SELF, waiter)
    assert table.inspect.locks().locks[0].waiters == ()


@pytest.mark.parametrize("is_local", [False])
def test_nobody_knows_who_waits_for_a_lease(table: Table) -> None:
    assert table.inspect.locks().locks[0].waiters is None


@places
def test_a_dead_write_is_shown_with_how_to_undo_it(table: Table, is_local: bool, text: Any) -> None:
    dead = dead_write(table)
    context_of(table).storage.put(f"{HEARTBEAT_FOLDER}/{dead.requested}", b"process 7 on elsewhere")
    if is_local:
        os.utime(Path(table.uri, HEARTBEAT_FOLDER, dead.requested), (1, 1))
    else:
        context_of(table).storage.set_modified(f"{HEARTBEAT_FOLDER}/{dead.requested}", 1000)
    work = only(table.inspect.locks())
    assert work.is_alive is False
    assert work.process == "process 7 on elsewhere"
    assert work.heartbeat_left_ms is not None and work.heartbeat_left_ms < 0
    assert f"drawstring services rollback {table.uri} {dead.requested}" in work.advice
    if is_local:
        shown = text("inspect", "locks", table.uri)
        assert "no, heartbeat expired" in shown
        command = re.search(r"drawstring (services rollback \S+ \d+)", shown)
        assert command is not None
        assert app.run(command[1].split()) == 0
        assert table.inspect.locks().pending == ()


@pytest.mark.parametrize("is_local", [False])
@pytest.mark.parametrize(("host", "is_alive"), [("vm", True), ("vm2", False), ("vm.lan", False)])
def test_a_write_is_alive_while_its_own_process_holds_the_lock(
    table: Table, host: str, is_alive: bool
) -> None:
    storage, beat = context_of(table).storage, f"{HEARTBEAT_FOLDER}/{dead_write(table).requested}"
    storage.put(beat, b"process 7 on vm")
    storage.set_modified(beat, 1000)
    good_until_ms = context_of(table).clock.now_ms() + 60_000
    storage.put(LEASE_PATH, Lease(False, good_until_ms, f"an-id, process 7 on {host}").encode())
    assert only(table.inspect.locks()).is_alive is is_alive


@pytest.mark.parametrize("is_local", [True])
def test_a_write_that_ends_while_its_heartbeat_is_looked_for_is_not_called_dead(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    pending = dead_write(table)
    look = lock_report.active_instants

    def ends(*given: Any) -> set[str]:
        alive = look(*given)
        table.services.rollback(pending.requested)
        return alive

    monkeypatch.setattr(lock_report, "active_instants", ends)
    assert table.inspect.locks().pending == ()


@pytest.mark.parametrize("is_local", [True])
def test_a_plan_that_nobody_runs_is_shown_with_how_to_run_it(table: Table, text: Any) -> None:
    table.append(rides(("b", "rome", 1, 1.0)), options={**WITHOUT_SERVICES, **NEW_FILE_GROUPS})
    time = table.services.schedule_clustering()
    (work,) = json.loads(text("inspect", "locks", table.uri, "--json"))["pending"]
    assert (work["requested"], work["action"], work["is_alive"]) == (time, "clustering", False)
    assert len(work["file_groups"]) == 2
    text(*re.findall(r"drawstring (services cluster \S+ --instant \d+)", work["advice"])[0].split())
    assert json.loads(text("inspect", "locks", table.uri, "--json"))["pending"] == []


@pytest.mark.parametrize("is_local", [True])
def test_a_clustering_whose_process_died_is_shown_as_one_that_the_next_write_gives_up(table: Table) -> None:
    table.append(rides(("b", "rome", 1, 1.0)), options={**WITHOUT_SERVICES, **NEW_FILE_GROUPS})
    time = table.services.schedule_clustering() or ""
    assert (
        f"or give it up: drawstring services rollback {table.uri} {time}"
        in only(table.inspect.locks()).advice
    )
    Path(table.uri, LEASE_FILE.format(time)).touch()
    advice = only(table.inspect.locks()).advice
    assert advice.startswith(f"Run it: drawstring services cluster {table.uri} --instant {time}")
    assert advice.endswith("or the next write gives it up.")
    table.append(rides(("c", "rome", 1, 1.0)), options=WITHOUT_SERVICES)
    assert table.inspect.locks().pending == ()


@places
def test_a_running_clustering_is_shown_with_its_process(table: Table) -> None:
    table.append(rides(("b", "rome", 1, 1.0)), options={**WITHOUT_SERVICES, **NEW_FILE_GROUPS})
    time = table.services.schedule_clustering() or ""
    work = only(seen_during(table, lambda writer: writer.services.cluster(instant=time)))
    assert (work.instant.action, work.is_alive) == (Action.CLUSTERING, True)
    assert re.search(SELF, work.process)


def test_a_write_that_goes_first_is_shown_with_what_it_has_reserved(tmp_path: Path, text: Any) -> None:
    table = table_at(tmp_path / "rides", "COPY_ON_WRITE")
    acts, seen = [upserting(("a", "rome", 5, 5.0), options={**OPTIMISTIC, **WITHOUT_SERVICES})], []

    def meanwhile(other: Table) -> None:
        if acts:
            acts.pop()(other)
        elif other.inspect.locks().pending[0].reserved_partitions:
            seen.append((only(other.inspect.locks()), text("inspect", "locks", other.uri)))

    options = {**OPTIMISTIC, "hoodie.write.num.retries.on.conflict.failures": "1"}
    on(Interrupted(table, meanwhile, times=100)).upsert(rides(ROW), options=options)
    work, shown = seen[-1]
    assert (work.reserved_partitions, work.reserves_table) == (("rome",), False)
    assert re.search(
        rf"{work.instant.requested} +commit +inflight +{SELF} +yes, heartbeat 0 s ago +rome ", shown
    )


@pytest.mark.parametrize("is_local", [True, False])
def test_the_lock_of_a_provider_is_shown_besides(table: Table, is_local: bool) -> None:
    lock = {"hoodie.write.lock.provider": "storage"}

    def look(other: Table) -> TableLocks:
        return other.inspect.locks(options=lock)

    found = seen_during(table, upserting(ROW, options={**ALONE, **lock}), look)
    assert all(re.search(SELF, each.holder) for each in found.locks)
    assert [each.provider for each in found.locks] == (["own", "storage"] if is_local else ["own"])


def test_looking_changes_nothing(tmp_path: Path) -> None:
    table = table_at(tmp_path / "rides", "COPY_ON_WRITE")
    dead_write(table)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    table.inspect.locks()
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_leases_are_recorded_on_request(text: Any, tmp_path: Path) -> None:
    table, provider = create(path=tmp_path / "rides"), {"hoodie.write.lock.provider": "storage"}
    assert "leases are not recorded; 0 leases on record" in text(
        "inspect", "locks", table.uri, "--audit", "check"
    )
    assert "leases are recorded" in text("inspect", "locks", table.uri, "--audit", "on")
    table.upsert(rides(("a", "rome", 1, 1.0)), options={**provider, **WITHOUT_SERVICES})
    found = json.loads(text("inspect", "locks", table.uri, "--audit", "check", "--json"))
    assert found["leases"] > 0 and not (found["overlaps"] or found["unended"] or found["unreadable"])
    (tmp_path / "rides/.hoodie/.locks/audit/1_x.jsonl").write_text("no record")
    assert "1_x.jsonl is no record of a lease" in text("inspect", "locks", table.uri, "--audit", "check")
    assert not json.loads(text("inspect", "locks", table.uri, "--audit", "off", "--json"))["enabled"]


def test_a_local_table_says_that_its_own_lock_is_not_recorded(text: Any, tmp_path: Path) -> None:
    table = create(path=tmp_path / "rides")
    assert "of its own lock nothing is recorded" in text("inspect", "locks", table.uri, "--audit", "on")


def test_old_records_of_leases_are_deleted(text: Any, tmp_path: Path) -> None:
    table, folder = create(path=tmp_path / "rides"), tmp_path / "rides/.hoodie/.locks/audit"
    folder.mkdir(parents=True)
    for name, age_days in (("old", 9), ("young", 1)):
        (folder / f"{name}.jsonl").write_text("{}")
        at = context_of(table).clock.now_ms() / 1000 - age_days * 86_400
        os.utime(folder / f"{name}.jsonl", (at, at))
    clean = ("inspect", "locks", table.uri, "--audit", "clean")
    assert "1 record of leases older than 7 days would be deleted" in text(*clean, "--dry-run")
    assert json.loads(text(*clean, "--age-days", "30", "--json")) == {"changed": False, "files": []}
    assert "1 record of leases older than 7 days deleted" in text(*clean)
    assert [each.name for each in folder.iterdir()] == ["young.jsonl"]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (("--age-days", "7"), "--age-days is for --audit clean"),
        (("--dry-run", "--audit", "on"), "--dry-run is for --audit clean"),
        (("--audit", "clean", "--age-days", "0"), "Must be >= 1"),
    ],
)
def test_options_of_another_audit_are_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, more: tuple[str, ...], why: str
) -> None:
    table = create(path=tmp_path / "rides")
    assert app.run(["inspect", "locks", table.uri, *more]) == 2
    assert why in capsys.readouterr().err


@pytest.mark.parametrize("on", ["yes", 1, None])
def test_leases_are_recorded_or_not(tmp_path: Path, on: Any) -> None:
    table = create(path=tmp_path / "rides")
    with pytest.raises(InvalidError, match="Give True to have the leases recorded, or False"):
        table.services.record_leases(on)
    assert not table.inspect.lease_audit().enabled
