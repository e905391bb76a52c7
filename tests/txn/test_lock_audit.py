"""The record of a table's leases, as Hudi's storage-based lock provider keeps it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from drawstring.base.clock import SeededIds, SteppingClock
from drawstring.base.errors import InvalidError
from drawstring.services.lock_report import clean_lock_audit, lock_audit
from drawstring.storage.memory import MemoryStorage
from drawstring.txn.locks.storage_lock import AUDIT_FOLDER, AUDIT_SWITCH, LEASE_MS, LeaseLock, switch_audit
from tests.support.storages import by_clock, memory

DAY_MS = 86_400_000


def recorded(storage: MemoryStorage) -> dict[str, list[dict[str, Any]]]:
    return {
        each.path.rpartition("/")[2]: [json.loads(line) for line in storage.read(each.path).splitlines()]
        for each in storage.list_files(AUDIT_FOLDER)
    }


def audited() -> tuple[MemoryStorage, LeaseLock]:
    storage, clock = memory(), SteppingClock()
    by_clock(storage, clock)
    switch_audit(storage, True)
    return storage, LeaseLock(storage, clock, SeededIds(1), 3600)


def put(storage: MemoryStorage, name: str, *events: tuple[str, int]) -> None:
    lines = (
        json.dumps(
            {
                "ownerId": name,
                "transactionStartTime": events[0][1],
                "timestamp": at,
                "state": state,
                "lockExpiration": at + 100,
                "lockHeld": True,
            }
        )
        for state, at in events
    )
    storage.put(f"{AUDIT_FOLDER}/{name}.jsonl", "\n".join(lines).encode())


def test_begin_renewals_and_end_of_a_lease_are_recorded_in_one_file() -> None:
    storage, lock = audited()
    assert storage.read(AUDIT_SWITCH) == b'{"STORAGE_LOCK_AUDIT_SERVICE_ENABLED":true}'
    assert lock.try_acquire()
    lock.renew()
    lock.release()
    [(name, events)] = recorded(storage).items()
    assert [each["state"] for each in events] == ["START", "RENEW", "END"]
    first = events[0]
    assert name == f"{first['transactionStartTime']}_{first['ownerId'].partition(',')[0]}.jsonl"
    assert first["lockExpiration"] - first["timestamp"] == LEASE_MS
    assert all(each["ownerId"] == first["ownerId"] and each["lockHeld"] for each in events)
    found = lock_audit(storage)
    assert (found.enabled, found.leases, found.overlaps, found.unended) == (True, 1, (), ())


def test_nothing_is_recorded_until_it_is_switched_on_nor_after_it_was_switched_off() -> None:
    storage, clock = memory(), SteppingClock()
    by_clock(storage, clock)
    for on in (False, True, False):
        if on or storage.exists(AUDIT_SWITCH):
            switch_audit(storage, on)
        lock = LeaseLock(storage, clock, SeededIds(2 if on else 3), 3600)
        assert lock.try_acquire()
        lock.release()
    assert len(recorded(storage)) == 1


def test_a_record_that_cannot_be_written_does_not_cost_the_lock(caplog: pytest.LogCaptureFixture) -> None:
    storage, lock = audited()
    own_put = storage.put

    def refuse(path: str, data: bytes) -> None:
        if path.startswith(AUDIT_FOLDER):
            raise OSError("no space left")
        own_put(path, data)

    storage.put = refuse  # type: ignore[method-assign]
    assert lock.try_acquire()
    lock.check()
    lock.release()
    assert "START of a lease was not recorded" in caplog.text


def test_leases_that_overlap_or_have_no_end_are_found() -> None:
    storage = memory()
    put(storage, "a", ("START", 1000), ("END", 1200))
    put(storage, "b", ("START", 1100), ("RENEW", 1150))
    put(storage, "c", ("START", 1249), ("END", 1300))
    put(storage, "d", ("START", 1300), ("END", 1400))
    storage.put(f"{AUDIT_FOLDER}/e.jsonl", b"no record")
    found = lock_audit(storage)
    assert found.leases == 4
    assert found.overlaps == (("a.jsonl", "b.jsonl"), ("b.jsonl", "c.jsonl"))
    assert found.unended == ("b.jsonl",)
    assert found.unreadable == ("e.jsonl",)


def test_old_records_are_deleted_and_young_ones_stay() -> None:
    storage, clock = memory(), SteppingClock(start_ms=100 * DAY_MS, step_ms=0)
    put(storage, "old", ("START", 1), ("END", 2))
    put(storage, "young", ("START", 1), ("END", 2))
    storage.set_modified(f"{AUDIT_FOLDER}/old.jsonl", 92 * DAY_MS)
    storage.set_modified(f"{AUDIT_FOLDER}/young.jsonl", 94 * DAY_MS)
    old = (f"{AUDIT_FOLDER}/old.jsonl",)
    assert clean_lock_audit(storage, clock, age_days=7, apply=False) == old
    assert len(recorded(storage)) == 2
    assert clean_lock_audit(storage, clock, age_days=7, apply=True) == old
    assert [*recorded(storage)] == ["young.jsonl"]
    with pytest.raises(InvalidError, match=r"age_days is 0\. Give the age in days"):
        clean_lock_audit(storage, clock, age_days=0, apply=True)
