"""Messages that name the process and the instant of another writer."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from drawstring.base.errors import ConflictError
from drawstring.table import Table
from tests.support.interrupted import Interrupted, on, upserting
from tests.support.rows import rides
from tests.support.tables import WITHOUT_SERVICES, create

SELF = rf"process {os.getpid()} on \S+"
ALONE = {"hoodie.write.concurrency.mode": "SINGLE_WRITER"}
EAGER = {"hoodie.clean.failed.writes.policy": "EAGER"}
places = pytest.mark.parametrize("is_local", [True, False], ids=["local files", "object store"])


def place(is_local: bool, tmp_path: Path) -> Path | None:
    return tmp_path / "rides" if is_local else None


@places
@pytest.mark.parametrize("call", ["rollback", "single writer", "eager"])
def test_what_a_live_writer_stands_in_the_way_of_is_refused_with_its_instant_and_process(
    is_local: bool, call: str, tmp_path: Path
) -> None:
    table = create(path=place(is_local, tmp_path))
    table.upsert(rides(("a", "rome", 1, 1.0)))
    found: list[str] = []

    def refused(other: Table) -> None:
        (write,) = other.timeline.pending_writes()
        calls = {
            "rollback": lambda: other.services.rollback(),
            "single writer": lambda: upserting(("b", "rome", 1, 1.0), options=ALONE)(other),
            "eager": lambda: upserting(("b", "rome", 1, 1.0), options=EAGER)(other),
        }
        named = rf"Another process .* the heartbeat of the commit {write.requested} of {SELF}"
        with pytest.raises(ConflictError, match=named) as caught:
            calls[call]()
        found.append(str(caught.value))

    on(Interrupted(table, refused)).upsert(rides(("a", "rome", 2, 2.0)))
    assert "Wait until it is done, or end that process." in found[0]
    assert ("OPTIMISTIC_CONCURRENCY_CONTROL" in found[0]) == (call != "rollback")
    assert ("policy=EAGER means SINGLE_WRITER" in found[0]) == (call != "rollback")


@places
def test_a_clustering_that_another_process_runs_is_named_with_that_process(
    is_local: bool, tmp_path: Path
) -> None:
    table = create(path=place(is_local, tmp_path))
    for key in "ab":
        table.append(rides((key, "rome", 1, 1.0)), options=WITHOUT_SERVICES)
    time = table.services.schedule_clustering() or ""
    refused: list[str] = []

    def meanwhile(other: Table) -> None:
        named = rf"Another process runs this clustering \(.*{SELF}"
        for call in (lambda: other.services.cluster(instant=time), lambda: other.services.rollback(time)):
            with pytest.raises(ConflictError, match=named) as caught:
                call()
            refused.append(str(caught.value))

    on(Interrupted(table, meanwhile)).services.cluster(instant=time)
    assert len(refused) == 2


@places
def test_a_held_lock_is_told_with_the_pending_writes_and_their_processes(
    is_local: bool, tmp_path: Path
) -> None:
    table = create(path=place(is_local, tmp_path))
    table.upsert(rides(("a", "rome", 1, 1.0)))
    refused: list[str] = []

    def meanwhile(other: Table) -> None:
        (write,) = other.timeline.pending_writes()
        expected = rf"holds the table \(.*{SELF}.* Pending: the commit {write.requested}.*wait_time_ms"
        with pytest.raises(ConflictError, match=expected) as caught:
            other.upsert(rides(("b", "rome", 1, 1.0)), options={"hoodie.write.lock.wait_time_ms": "0"})
        refused.append(str(caught.value))

    on(Interrupted(table, meanwhile)).upsert(rides(("a", "rome", 2, 2.0)), options=ALONE)
    assert len(refused) == 1
