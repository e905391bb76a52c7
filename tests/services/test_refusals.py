"""Refusals because of others name the table, the process, the instant, the file groups and the next step."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from drawstring.base.clock import SystemClock
from drawstring.base.errors import ConflictError
from drawstring.model.instant import PLANNED_ACTIONS
from drawstring.storage.protocol import LOCK_FOLDER
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.timeline.properties import save_properties
from drawstring.txn.reservations import RESERVED_SUFFIX
from tests.support.interleavings import OPTIMISTIC
from tests.support.interrupted import Act, Interrupted, on, upserting
from tests.support.methods import method
from tests.support.rows import rides
from tests.support.tables import COW, MOR, NEW_FILE_GROUPS, WITHOUT_SERVICES, create, filled

SELF = rf"process {os.getpid()} on \S+"
NEXT_STEP = (
    r"[Ww]rite again|[Ww]ait until it is done|Stop it, or|End that process, or|Retry later|Run it or wait"
    r"|Make the savepoint when|when it is done|Run it again"
)
FILE_GROUP = r"rome/[0-9a-f]{8}-[0-9a-f]{4}"
ROW, RIVAL = ("a", "rome", 9, 9.0), ("a", "rome", 5, 5.0)
ALONE = {"hoodie.write.concurrency.mode": "SINGLE_WRITER"}
NO_WAIT = {"hoodie.write.lock.wait_time_ms": "0"}
ONCE = {**OPTIMISTIC, **NO_WAIT, "hoodie.write.num.retries.on.conflict.failures": "0"}
TWICE = {**OPTIMISTIC, **WITHOUT_SERVICES, "hoodie.write.num.retries.on.conflict.failures": "1"}
EARLY = {**ONCE, "hoodie.write.concurrency.early.conflict.detection.enable": "true"}
CHANGES_MAX = 100
BUCKETS = "hoodie.bucket.index.num.buckets"
"""What tables of Apache Hudi may lack, so that the first write to a partition decides."""

Refused = Callable[[Table], object]
"""What is refused, on a table at which somebody else is at work."""


def refusal(act: Refused, table: Table) -> ConflictError:
    with pytest.raises(ConflictError) as caught:
        act(table)
    return caught.value


def beside_write(refused: Refused, table: Table, options: dict[str, str]) -> tuple[ConflictError, str]:
    """Call something while a write has begun a file in Rome; return the error and the time of the write."""
    found: list[tuple[ConflictError, str]] = []

    def act(other: Table) -> None:
        (write,) = other.timeline.pending_writes()
        found.append((refusal(refused, other), write.requested))

    on(Interrupted(table, act)).upsert(rides(ROW), options=options)
    return found[0]


def beside_service(refused: Refused, table: Table, service: str) -> tuple[ConflictError, str]:
    """Call something while a service has begun a file in Rome; return the error and the time of the plan."""
    found: list[tuple[ConflictError, str]] = []

    def act(other: Table) -> None:
        (plan,) = other.timeline.pending_of(*PLANNED_ACTIONS)
        found.append((refusal(refused, other), plan.requested))

    method(on(Interrupted(table, act)), service)()
    return found[0]


def beside_last_attempt(refused: Refused, table: Table) -> tuple[ConflictError, str]:
    """Call something while a write that has reserved Rome has begun a file there."""
    found: list[tuple[ConflictError, str]] = []
    began: list[int] = []

    def act(other: Table) -> None:
        names = context_of(other).storage.list_names(LOCK_FOLDER)
        if not began:
            began.append(1)
            upserting(RIVAL, options={**OPTIMISTIC, **WITHOUT_SERVICES})(other)
        elif not found and any(name.endswith(RESERVED_SUFFIX) for name in names):
            (write,) = other.timeline.pending_writes()
            found.append((refusal(refused, other), write.requested))

    on(Interrupted(table, act, times=CHANGES_MAX)).upsert(rides(ROW), options=TWICE)
    return found[0]


def after_other(write: Act, other: Act, table: Table) -> tuple[ConflictError, str]:
    """Let others act while a write has begun a file in Rome; return its error, and their instant."""
    error = refusal(write, on(Interrupted(table, other)))
    newest = table.timeline.latest_write()
    assert newest is not None
    return error, newest.requested


def place(is_local: bool, tmp_path: Path) -> Path | None:
    return tmp_path / "rides" if is_local else None


def two_file_groups(how: dict[str, Any]) -> Table:
    table = filled(**how)
    table.upsert(rides(("a", "rome", 2, 2.0), ("n", "rome", 2, 2.0)), options=NEW_FILE_GROUPS)
    return table


places = pytest.mark.parametrize("is_local", [True, False], ids=["local files", "object store"])


def check(table: Table, error: ConflictError, instant: str, what: str = FILE_GROUP) -> None:
    text = str(error)
    assert error.table == table.uri or str(error.table).startswith("faulty://")
    assert instant in text
    assert re.search(SELF, text), text
    assert re.search(what, text), text
    assert re.search(NEXT_STEP, text), text


BESIDE_WRITE: dict[str, tuple[dict[str, Any], Refused]] = {
    "rollback": ({}, lambda table: table.services.rollback()),
    "single writer": ({}, upserting(("b", "rome", 1, 1.0), options=ALONE)),
    "restore": ({}, lambda table: table.savepoints.restore(table.timeline.writes()[0].requested)),
    "downgrade": ({}, lambda table: table.versions.downgrade(8)),
    "early detection": ({}, upserting(("b", "rome", 1, 1.0), options=EARLY)),
}


@places
@pytest.mark.parametrize("case", BESIDE_WRITE)
def test_what_is_refused_beside_a_live_write(case: str, is_local: bool, tmp_path: Path) -> None:
    how, refused = BESIDE_WRITE[case]
    table = filled(path=place(is_local, tmp_path), **how)
    check(table, *beside_write(refused, table, dict(OPTIMISTIC)))


def test_the_savepoint_of_an_older_table_that_a_live_write_would_be_in_half_of(tmp_path: Path) -> None:
    table = filled(version=6, path=tmp_path / "rides")

    def save(other: Table) -> None:
        other.upsert(rides(("x", "oslo", 1, 1.0)), options={**OPTIMISTIC, **WITHOUT_SERVICES})
        other.savepoints.create()

    check(table, *beside_write(save, table, dict(OPTIMISTIC)))


@places
def test_a_table_lock_that_somebody_else_holds(is_local: bool, tmp_path: Path) -> None:
    table = filled(path=place(is_local, tmp_path))
    check(table, *beside_write(upserting(("b", "rome", 1, 1.0), options=ONCE), table, ALONE))


BESIDE_SERVICE: dict[str, tuple[str, Callable[[str], Refused]]] = {
    "cluster again": ("cluster", lambda time: lambda table: table.services.cluster(instant=time)),
    "roll the clustering back": ("cluster", lambda time: lambda table: table.services.rollback(time)),
    "restore beside a clustering": (
        "cluster",
        lambda time: lambda table: table.savepoints.restore(table.timeline.writes()[0].requested),
    ),
    "write where it clusters": ("cluster", lambda time: upserting(("a", "rome", 7, 7.0), options=ONCE)),
    "downgrade beside a compaction": ("compact", lambda time: lambda table: table.versions.downgrade(8)),
    "compact again": ("compact", lambda time: lambda table: table.services.compact(instant=time)),
}


@places
@pytest.mark.parametrize("case", BESIDE_SERVICE)
def test_what_is_refused_beside_a_running_service(case: str, is_local: bool, tmp_path: Path) -> None:
    service, refused = BESIDE_SERVICE[case]
    table = two_file_groups(
        {"path": place(is_local, tmp_path), "table_type": COW if service == "cluster" else MOR}
    )
    if service == "compact":
        table.upsert(rides(("a", "rome", 3, 3.0)), options=WITHOUT_SERVICES)

    def act(other: Table) -> object:
        return refused(other.timeline.pending_of(*PLANNED_ACTIONS)[0].requested)(other)

    check(table, *beside_service(act, table, service))


@places
def test_a_partition_that_another_write_has_reserved(is_local: bool, tmp_path: Path) -> None:
    table = filled(path=place(is_local, tmp_path))
    error, instant = beside_last_attempt(upserting(("b", "rome", 1, 1.0), options=ONCE), table)
    check(table, error, instant)
    assert "goes first in partition rome" in str(error)


def with_column(name: str) -> pa.Table:
    return rides(ROW).append_column(name, pa.array(["x"]))


def change_properties(table: Table) -> object:
    return table.indexes.create("column_stats")


LOST: dict[str, tuple[Act, Act]] = {
    "the same file groups": (upserting(ROW, options=ONCE), upserting(RIVAL)),
    "rows that were read": (
        lambda table: table.update("fare > 0", {"fare": "fare + 1"}, options=ONCE),
        upserting(("n", "rome", 5, 5.0)),
    ),
    "an overwritten partition": (
        lambda table: table.insert_overwrite(rides(ROW), options=ONCE),
        lambda table: table.insert(rides(("n", "rome", 5, 5.0)), options={**OPTIMISTIC, **NEW_FILE_GROUPS}),
    ),
    "the schema": (
        lambda table: table.append(with_column("remark"), options=ONCE),
        lambda table: table.append(with_column("note"), options=OPTIMISTIC),
    ),
}


@pytest.mark.parametrize("case", LOST)
def test_what_another_write_has_committed(case: str) -> None:
    table = filled()
    check(table, *after_other(*LOST[case], table))


def test_a_clustering_that_was_planned_since() -> None:
    table = two_file_groups({})
    error, _ = after_other(
        upserting(ROW, options=ONCE), lambda other: other.services.schedule_clustering(), table
    )
    (plan,) = table.timeline.pending_of(*PLANNED_ACTIONS)
    assert plan.requested in str(error)
    assert re.search(FILE_GROUP, str(error))
    assert "Write again when the clustering is done" in str(error)


def test_properties_that_somebody_else_has_changed() -> None:
    table = filled()
    error = refusal(upserting(ROW, options=ONCE), on(Interrupted(table, change_properties)))
    (own,) = table.timeline.rolled_back
    check(table, error, own, what=r"\(hoodie\.table\.metadata\.partitions\)")


def test_a_first_write_that_does_not_fit_the_first_of_somebody_else() -> None:
    table = create(properties={"hoodie.index.type": "BUCKET"})
    left_open = {key: text for key, text in table.config.properties.items() if key != BUCKETS}
    save_properties(context_of(table).storage, left_open, SystemClock())
    four = {**ONCE, BUCKETS: "4"}
    eight = {**OPTIMISTIC, BUCKETS: "8"}
    check(table, *after_other(upserting(ROW, options=four), upserting(RIVAL, options=eight), table), r"rome/")


def test_another_engine_that_is_at_work_is_told_as_such() -> None:
    table = filled()

    def of_hudi(other: Table) -> object:
        (write,) = other.timeline.pending_writes()
        context_of(other).storage.put(f".hoodie/.heartbeat/{write.requested}", b"")
        return other.services.rollback()

    error, instant = beside_write(of_hudi, table, dict(OPTIMISTIC))
    assert f"the commit {instant} of another engine, at work in rome/" in str(error)
