"""Heartbeats and leases beside machines whose clocks are minutes off: the clock of the storage decides."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from drawstring.base.clock import Clock, SystemClock, SystemIds
from drawstring.base.errors import UnavailableError
from drawstring.storage.protocol import LOCK_FOLDER
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.heartbeat import HEARTBEAT_FOLDER
from drawstring.txn.locks.file_lock import HudiFileLock
from drawstring.txn.locks.storage_lock import LeaseLock
from tests.support.faults import dead_write
from tests.support.faulty_storage import FaultyStorage
from tests.support.interleavings import OPTIMISTIC
from tests.support.interrupted import ActingClock, Interrupted, on, upserting
from tests.support.rows import held, rides
from tests.support.storages import Aged, by_clock, memory
from tests.support.tables import WITHOUT_SERVICES, create

HOUR_MS = 3_600_000
QUIET = {**OPTIMISTIC, **WITHOUT_SERVICES}
ROW, OTHER = ("a", "rome", 9, 9.0), ("o", "oslo", 1, 1.0)
skews = pytest.mark.parametrize("skew_ms", [-HOUR_MS, 0, HOUR_MS], ids=["behind", "right", "ahead"])
PROBE = f"{LOCK_FOLDER}/drawstring.clock"


class Skewed(SystemClock):
    """The clock of a machine that is wrong."""

    def __init__(self, skew_ms: int, right: Clock | None = None) -> None:
        self._skew_ms = skew_ms
        self._right = right or SystemClock()

    def now_ms(self) -> int:
        return self._right.now_ms() + self._skew_ms


def at(table: Table, skew_ms: int) -> Table:
    """Return the table as a machine with a wrong clock sees it."""
    return Table(replace(context_of(table), clock=Skewed(skew_ms)))


def new_table() -> Table:
    table = create()
    table.upsert(rides(("a", "rome", 1, 1.0)), options=QUIET)
    return table


@skews
def test_a_live_writer_is_not_rolled_back(skew_ms: int) -> None:
    table = new_table()
    done = on(Interrupted(table, lambda other: upserting(OTHER, options=QUIET)(at(other, skew_ms))))
    done.upsert(rides(ROW), options={**QUIET, "hoodie.write.num.retries.on.conflict.failures": "0"})
    assert held(table) == [ROW, OTHER]
    assert not table.timeline.rolled_back
    assert not context_of(table).storage.exists(PROBE)


@skews
def test_a_dead_one_is(skew_ms: int) -> None:
    table = new_table()
    dead = dead_write(table)
    context_of(table).storage.put(f"{HEARTBEAT_FOLDER}/{dead.requested}", b"process 7 on elsewhere")
    later = Table(replace(context_of(table), storage=Aged(context_of(table).storage, HOUR_MS + 300_000)))
    at(later, skew_ms).upsert(rides(OTHER), options=QUIET)
    assert dead.requested in table.timeline.rolled_back
    assert not context_of(table).storage.exists(PROBE)


def test_a_machine_that_is_behind_learns_that_from_a_heartbeat_in_its_future() -> None:
    table = new_table()
    dead = dead_write(table)
    context_of(table).storage.put(f"{HEARTBEAT_FOLDER}/{dead.requested}", b"process 7 on elsewhere")
    later = Table(replace(context_of(table), storage=Aged(context_of(table).storage, 300_000)))
    at(later, -HOUR_MS).upsert(rides(OTHER), options=QUIET)
    assert dead.requested in table.timeline.rolled_back


def test_nothing_expires_while_the_clock_of_the_storage_cannot_be_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    table = new_table()
    dead = dead_write(table)
    context_of(table).storage.put(f"{HEARTBEAT_FOLDER}/{dead.requested}", b"process 7 on elsewhere")

    class Unwritable(FaultyStorage):
        def put(self, path: str, data: bytes) -> None:
            if path == PROBE:
                raise UnavailableError("The disk is full.", path=path)
            super().put(path, data)

    at(
        Table(replace(context_of(table), storage=Unwritable(context_of(table).storage, 1 << 60))), HOUR_MS
    ).upsert(rides(OTHER), options=QUIET)
    assert dead.requested not in table.timeline.rolled_back
    assert "could not be read" in caplog.text


@skews
def test_a_lease_that_its_holder_renews_is_not_taken_over(skew_ms: int) -> None:
    storage, ids = memory(), SystemIds()
    holder, other = LeaseLock(storage, SystemClock(), ids), LeaseLock(storage, Skewed(skew_ms), ids)
    assert holder.try_acquire()
    assert not other.try_acquire()
    holder.check()
    holder.release()
    assert other.try_acquire()
    other.release()


@pytest.mark.parametrize("skew_ms", [0, HOUR_MS])
def test_a_lock_file_of_hudi_expires_by_the_clock_of_its_file_system(skew_ms: int, tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch()
    lock = HudiFileLock(str(path), Skewed(skew_ms), SystemIds(), expire_minutes=10)
    assert not lock.try_acquire()
    old = SystemClock().now_ms() / 1000 - 601
    os.utime(path, (old, old))
    assert lock.try_acquire()
    assert [each.name for each in tmp_path.iterdir()] == ["lock"]
    lock.release()


def test_instants_far_in_the_future_are_told(caplog: pytest.LogCaptureFixture) -> None:
    table = create()
    at(table, 48 * HOUR_MS).append(rides(ROW), options=QUIET)
    assert "more than a day in the future" not in caplog.text
    (early,) = table.timeline.writes()
    (finding,) = table.services.validate().findings
    assert (finding.instant, finding.severity.name) == (early.requested, "WARNING")
    assert "more than a day in the future" in finding.what
    table.append(rides(OTHER), options=QUIET)
    assert caplog.text.count(f"{table.uri} is more than a day in the future") == 1
    assert table.timeline.writes()[-1].requested > early.requested


def test_a_lease_of_a_dead_holder_is_taken_over_when_it_has_ended_by_the_clock_of_the_storage() -> None:
    storage, ids, clock = memory(), SystemIds(), ActingClock(SystemClock(), lambda: None)
    by_clock(storage, clock)
    assert LeaseLock(storage, clock, ids, renew_seconds=3600).try_acquire()
    other = LeaseLock(storage, Skewed(HOUR_MS, clock), ids)
    clock.slept = 50
    assert not other.try_acquire()
    clock.slept = 70
    assert other.try_acquire()
    other.release()
