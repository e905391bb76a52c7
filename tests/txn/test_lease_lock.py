from __future__ import annotations

import json
import time

import pytest

from drawstring.base.clock import SeededIds, SteppingClock, SystemClock, SystemIds
from drawstring.base.errors import ConflictError, UnavailableError
from drawstring.storage.memory import MemoryStorage
from drawstring.testing import context_of
from drawstring.txn.locks.storage_lock import LEASE_MS, LEASE_PATH, LeaseLock
from tests.support.storages import by_clock, memory
from tests.support.store_server import StoreServer
from tests.support.store_tables import table_in


def lock_on(
    storage: MemoryStorage, clock: SteppingClock, seed: int = 1, renew_seconds: float = 3600
) -> LeaseLock:
    by_clock(storage, clock)
    return LeaseLock(storage, clock, SeededIds(seed), renew_seconds)


def stored(storage: MemoryStorage) -> dict[str, object]:
    content: dict[str, object] = json.loads(storage.read(LEASE_PATH))
    return content


def test_the_file_has_the_form_of_the_jvm() -> None:
    storage, clock = memory(), SteppingClock(step_ms=0)
    lock = lock_on(storage, clock)
    assert lock.try_acquire()
    valid_until = clock.now_ms() + LEASE_MS
    owner = stored(storage)["owner"]
    assert (
        storage.read(LEASE_PATH)
        == f'{{"expired":false,"validUntil":{valid_until},"owner":"{owner}"}}'.encode()
    )
    lock.release()
    assert stored(storage)["expired"] is True


def test_a_valid_lease_of_the_jvm_is_respected() -> None:
    storage, clock = memory(), SteppingClock()
    lease = {"expired": False, "validUntil": clock.now_ms() + 1000, "owner": "jvm"}
    storage.put(LEASE_PATH, json.dumps(lease).encode())
    lock = lock_on(storage, clock)
    assert not lock.try_acquire()
    assert "owner jvm" in lock.holder()


@pytest.mark.parametrize(
    "content", ['{"expired":true,"validUntil":99999999999999,"owner":"jvm"}', "", "{", "[]", "{}"]
)
def test_a_lease_that_was_given_back_or_is_no_lease_is_taken(content: str) -> None:
    storage = memory()
    storage.put(LEASE_PATH, content.encode())
    lock = lock_on(storage, SteppingClock())
    assert lock.try_acquire()
    lock.check()
    lock.release()


def test_a_lease_of_a_dead_holder_expires() -> None:
    storage, clock = memory(), SteppingClock()
    dead, next_one = lock_on(storage, clock), lock_on(storage, clock, seed=2)
    assert dead.try_acquire()
    clock.sleep(LEASE_MS / 1000 - 10)
    assert not next_one.try_acquire()
    clock.sleep(11)
    assert next_one.try_acquire()
    next_one.check()


def test_a_holder_that_stood_still_finds_its_lease_lost() -> None:
    storage, clock = memory(), SteppingClock()
    slow, quick = lock_on(storage, clock), lock_on(storage, clock, seed=2)
    assert slow.try_acquire()
    clock.sleep(LEASE_MS / 1000 + 1)
    assert quick.try_acquire()
    with pytest.raises(ConflictError, match="lost"):
        slow.check()
    slow.release()
    quick.check()
    assert stored(storage)["expired"] is False


def test_an_expired_lease_that_nobody_took_is_still_held() -> None:
    storage, clock = memory(), SteppingClock()
    lock = lock_on(storage, clock)
    assert lock.try_acquire()
    clock.sleep(LEASE_MS / 1000 + 60)
    lock.check()
    assert not lock_on(storage, clock, seed=2).try_acquire()


def test_the_lease_is_renewed_while_it_is_held() -> None:
    storage, clock = memory(), SteppingClock()
    lock = lock_on(storage, clock, renew_seconds=0.01)
    assert lock.try_acquire()
    first = stored(storage)["validUntil"]
    deadline = time.monotonic() + 30
    while stored(storage)["validUntil"] == first and time.monotonic() < deadline:
        time.sleep(0.01)
    assert stored(storage)["validUntil"] != first
    lock.release()
    assert stored(storage)["expired"] is True


class LossyStorage(MemoryStorage):
    """Applies a put and then fails to say so."""

    lossy = False

    def put_if_match(self, path: str, data: bytes, version: str) -> bool:
        done = super().put_if_match(path, data, version)
        if self.lossy:
            raise UnavailableError("no answer")
        return done


def test_a_renewal_whose_answer_got_lost_does_not_lose_the_lease() -> None:
    storage = LossyStorage(memory().spec.uri)
    lock = lock_on(storage, SteppingClock())
    assert lock.try_acquire()
    storage.lossy = True
    with pytest.raises(UnavailableError):
        lock.check()
    storage.lossy = False
    lock.check()
    lock.release()
    assert stored(storage)["expired"] is True


def test_of_two_contenders_for_a_free_lease_one_wins() -> None:
    storage, clock = memory(), SteppingClock()
    first, second = lock_on(storage, clock), lock_on(storage, clock, seed=2)

    class Slow(MemoryStorage):
        def put_if_absent(self, path: str, data: bytes) -> bool:
            assert first.try_acquire()
            return super().put_if_absent(path, data)

    second = lock_on(Slow(storage.spec.uri), clock, seed=2)
    assert not second.try_acquire()
    first.check()


class LosesPuts(MemoryStorage):
    """Fails puts of leases, before or after they took effect."""

    def __init__(self, uri: str) -> None:
        super().__init__(uri)
        self.fails = ""

    def put_if_match(self, path: str, data: bytes, version: str) -> bool:
        if self.fails == "before":
            raise UnavailableError("the store is down")
        done = super().put_if_match(path, data, version)
        if self.fails == "after":
            raise UnavailableError("the answer got lost")
        return done


@pytest.mark.parametrize("fails", ["before", "after"])
def test_a_lease_that_could_not_be_given_back_is_not_in_its_own_process_s_way(fails: str) -> None:
    storage, clock = LosesPuts(memory().spec.uri), SteppingClock()
    lock, other = lock_on(storage, clock), lock_on(storage, clock, seed=2)
    assert lock.try_acquire()
    assert not other.try_acquire()
    storage.fails = fails
    with pytest.raises(UnavailableError):
        lock.release()
    storage.fails = ""
    assert other.try_acquire()
    other.check()
    assert not lock_on(storage, clock, seed=3).try_acquire()
    other.release()


def test_a_lease_that_was_taken_without_an_answer_is_not_in_the_way_either() -> None:
    storage, clock = LosesPuts(memory().spec.uri), SteppingClock()
    first = lock_on(storage, clock)
    assert first.try_acquire()
    first.release()
    storage.fails = "after"
    with pytest.raises(UnavailableError):
        lock_on(storage, clock, seed=2).try_acquire()
    storage.fails = ""
    assert stored(storage)["expired"] is False
    assert lock_on(storage, clock, seed=3).try_acquire()


def test_a_lease_of_another_process_that_was_not_given_back_is_waited_for() -> None:
    storage, clock = memory(), SteppingClock()
    assert lock_on(storage, clock).try_acquire()
    assert not lock_on(storage, clock, seed=2).try_acquire()


def test_the_file_of_a_released_lease_keeps_its_validity() -> None:
    storage, clock = memory(), SteppingClock()
    lock = lock_on(storage, clock)
    assert lock.try_acquire()
    valid_until = stored(storage)["validUntil"]
    clock.sleep(10)
    lock.release()
    assert stored(storage) == {"expired": True, "validUntil": valid_until, "owner": stored(storage)["owner"]}


@pytest.mark.parametrize(("late_ms", "is_free"), [(500, False), (501, True)])
def test_clocks_may_differ_by_half_a_second(late_ms: int, is_free: bool) -> None:
    storage, clock = memory(), SteppingClock(step_ms=0)
    lease = {"expired": False, "validUntil": clock.now_ms() - late_ms, "owner": "jvm", "later": [1]}
    storage.put(LEASE_PATH, json.dumps(lease).encode())
    assert lock_on(storage, clock).is_held() is not is_free


@pytest.mark.parametrize("expired", [False, "false", None])
def test_only_what_says_so_is_released(expired: object) -> None:
    storage, clock = memory(), SteppingClock()
    lease = {"expired": expired, "validUntil": clock.now_ms() + 60_000, "owner": "jvm"}
    storage.put(LEASE_PATH, json.dumps(lease).encode())
    assert not lock_on(storage, clock).try_acquire()


@pytest.mark.parametrize("kind", ["conflict", "throttled", "lost", "busy"])
def test_an_answer_of_the_store_that_tells_nothing_does_not_mislead(store: StoreServer, kind: str) -> None:
    storage = context_of(table_in(store, "COPY_ON_WRITE", 9)).storage
    lock, other = (LeaseLock(storage, SystemClock(), SystemIds(), 3600) for _ in range(2))
    for _ in range(2):  # the file is made, and then replaced
        store.fail("", kind)
        assert lock.try_acquire() or (kind == "conflict" and lock.try_acquire())
        assert not other.try_acquire()
        store.fail(kind)
        lock.check()
        store.fail(kind)
        lock.release()
        assert other.try_acquire()
        other.release()
