from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.clock import SteppingClock, SystemClock, SystemIds
from drawstring.base.errors import ConflictError
from drawstring.storage.local import LocalStorage
from drawstring.storage.protocol import Storage
from drawstring.txn.locks.file_lock import FileLock
from drawstring.txn.locks.table_lock import FILE_LOCK_PATH, HeldLock, table_lock
from tests.support.storages import memory
from tests.support.tables import listing

HOLDER = """
import sys, time
from drawstring.base.clock import SystemClock, SystemIds
from drawstring.storage.local import LocalStorage
from drawstring.txn.locks.table_lock import table_lock

with table_lock(LocalStorage(sys.argv[1]), SystemClock(), SystemIds(), 0):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture(params=["local", "lease"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return LocalStorage(str(tmp_path)) if request.param == "local" else memory()


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate(timeout=60)


def test_a_second_holder_is_refused_when_the_wait_is_over(storage: Storage) -> None:
    clock = SteppingClock()
    with table_lock(storage, clock, SystemIds(), 0) as lock:
        lock.check()
        before_ms = clock.now_ms()
        expected = pytest.raises(ConflictError, match=r"Another writer holds the table .*5000 ms")
        with expected, table_lock(storage, clock, SystemIds(), 5000):
            pass
        assert 5000 <= clock.now_ms() - before_ms < 7000
        lock.check()


def test_the_lock_is_free_after_the_block(storage: Storage) -> None:
    for _ in range(3):
        with table_lock(storage, SteppingClock(), SystemIds(), 0) as lock:
            lock.check()


def test_the_lock_is_free_after_a_failure(storage: Storage) -> None:
    with pytest.raises(ValueError, match="broke"), table_lock(storage, SteppingClock(), SystemIds(), 0):
        raise ValueError("broke")
    with table_lock(storage, SteppingClock(), SystemIds(), 0):
        pass


def test_a_waiter_gets_the_lock_when_it_is_let_go(storage: Storage) -> None:
    taken, order = threading.Event(), []

    def wait() -> None:
        taken.wait()
        with table_lock(storage, SystemClock(), SystemIds(), 60_000):
            order.append("second")

    waiter = threading.Thread(target=wait)
    waiter.start()
    with table_lock(storage, SystemClock(), SystemIds(), 0):
        taken.set()
        waiter.join(0.1)
        order.append("first")
    waiter.join(60)
    assert order == ["first", "second"]


def test_threads_never_hold_it_together(storage: Storage) -> None:
    inside, most = [0], [0]

    def work() -> None:
        for _ in range(5):
            with table_lock(storage, SystemClock(), SystemIds(), 60_000):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert most == [1]


def test_another_process_is_refused_and_told_who_holds_it(
    holder: subprocess.Popen[str], tmp_path: Path
) -> None:
    expected = pytest.raises(ConflictError, match=f"process {holder.pid} ")
    with expected, table_lock(LocalStorage(str(tmp_path)), SteppingClock(), SystemIds(), 100):
        pass


def test_a_killed_holder_frees_the_lock(holder: subprocess.Popen[str], tmp_path: Path) -> None:
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait(timeout=60)
    with table_lock(LocalStorage(str(tmp_path)), SystemClock(), SystemIds(), 0) as lock:
        lock.check()


def test_a_lock_whose_file_was_deleted_is_lost(tmp_path: Path) -> None:
    with table_lock(LocalStorage(str(tmp_path)), SteppingClock(), SystemIds(), 0) as lock:
        (tmp_path / ".hoodie/.locks/drawstring.lock").unlink()
        with pytest.raises(ConflictError, match="lost"):
            lock.check()


@pytest.mark.parametrize("name", ["ftruncate", "pwrite"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_the_lock_does_not_need_room_for_the_name_of_its_holder(
    name: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(os, name, fail)
        with table_lock(LocalStorage(tmp_path), SystemClock(), SystemIds(), 0) as lock:
            lock.check()
    with table_lock(LocalStorage(tmp_path), SystemClock(), SystemIds(), 0) as lock:
        lock.check()


def test_what_is_left_for_afterwards_is_done_without_the_lock_even_if_the_block_and_a_part_of_it_fail(
    storage: Storage,
) -> None:
    done: list[str] = []

    def another_holder() -> None:
        with table_lock(storage, SteppingClock(), SystemIds(), 0) as lock:
            lock.check()
        done.append("locked")

    def failing() -> None:
        done.append("failing")
        raise OSError("of the first")

    with (
        pytest.raises(OSError, match="of the first"),
        HeldLock(lambda: table_lock(storage, SteppingClock(), SystemIds(), 0)) as held,
    ):
        held.afterwards(failing)
        held.afterwards(another_holder)
        with held.released():
            assert done == []
        raise ValueError("of the block")
    assert done == ["failing", "locked"]


def test_a_write_cleans_up_after_it_released_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted: dict[str, bool] = {}
    lock = FileLock(str(tmp_path / "t" / FILE_LOCK_PATH))
    delete, delete_tree = LocalStorage.delete, LocalStorage.delete_tree

    def noted_delete(self: LocalStorage, paths: Iterable[str]) -> None:
        listed = list(paths)
        deleted.update((path, lock.is_held()) for path in listed)
        delete(self, listed)

    def noted_delete_tree(self: LocalStorage, folder: str) -> None:
        deleted[folder] = lock.is_held()
        delete_tree(self, folder)

    table = listing(drawstring.create(tmp_path / "t", pa.schema([("id", pa.string())]), record_key="id"))
    monkeypatch.setattr(LocalStorage, "delete", noted_delete)
    monkeypatch.setattr(LocalStorage, "delete_tree", noted_delete_tree)
    result = table.insert(pa.table({"id": ["a"]}))
    time = result.instant
    assert deleted == {
        f".hoodie/.locks/{time}.claim": False,
        f".hoodie/.temp/{time}": False,
        f".hoodie/.heartbeat/{time}": False,
        f".hoodie/.locks/{time}.service": False,
    }
