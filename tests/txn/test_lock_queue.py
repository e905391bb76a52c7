from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from drawstring.base.clock import SteppingClock, SystemClock, SystemIds
from drawstring.base.errors import ConflictError
from drawstring.storage.local import LocalStorage
from drawstring.txn.locks.file_lock import PATIENCE_SECONDS, FileQueue
from drawstring.txn.locks.table_lock import QUEUE_FOLDER, table_lock

WAITERS = 8
WAITER = """
import sys
from drawstring.base.clock import SystemClock, SystemIds
from drawstring.storage.local import LocalStorage
from drawstring.txn.locks.table_lock import table_lock

class Telling(SystemClock):
    def sleep(self, seconds):
        print("waiting", flush=True)
        super().sleep(seconds)

with table_lock(LocalStorage(sys.argv[1]), Telling(), SystemIds(), 600_000):
    print("held", flush=True)
"""


class TellingClock(SystemClock):
    """Says when somebody waits by it, and lets no time pass by the way."""

    def __init__(self) -> None:
        self.waits = threading.Event()

    def sleep(self, seconds: float) -> None:
        self.waits.set()
        super().sleep(seconds / 10)


def hold(path: Path, wait_ms: int = 60_000, clock: SystemClock | SteppingClock | None = None) -> None:
    with table_lock(LocalStorage(path), clock or SystemClock(), SystemIds(), wait_ms):
        pass


def started(work: Callable[[TellingClock], None]) -> threading.Thread:
    """Start a thread, and return once it waits."""
    clock = TellingClock()
    thread = threading.Thread(target=work, args=(clock,))
    thread.start()
    assert clock.waits.wait(60)
    return thread


def test_waiters_are_served_in_the_order_of_coming(tmp_path: Path) -> None:
    served: list[int] = []

    def waiter(number: int) -> Callable[[TellingClock], None]:
        def work(clock: TellingClock) -> None:
            with table_lock(LocalStorage(tmp_path), clock, SystemIds(), 60_000):
                served.append(number)

        return work

    with table_lock(LocalStorage(tmp_path), SystemClock(), SystemIds(), 0):
        threads = [started(waiter(number)) for number in range(WAITERS)]
    # Who had the lock comes last, though it asks at once.
    with table_lock(LocalStorage(tmp_path), SystemClock(), SystemIds(), 60_000):
        served.append(WAITERS)
    for thread in threads:
        thread.join(60)
    assert served == list(range(WAITERS + 1))
    assert not (tmp_path / QUEUE_FOLDER).exists()


def test_the_ticket_of_a_killed_waiter_is_nobodys(tmp_path: Path) -> None:
    with table_lock(LocalStorage(tmp_path), SystemClock(), SystemIds(), 0):
        process = subprocess.Popen(
            [sys.executable, "-c", WAITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout
        assert process.stdout.readline() == "waiting\n"
        os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
        assert len(os.listdir(tmp_path / QUEUE_FOLDER)) == 1
    hold(tmp_path, wait_ms=0)
    assert not (tmp_path / QUEUE_FOLDER).exists()


def test_a_live_waiter_comes_before_one_that_does_not_wait(tmp_path: Path) -> None:
    ticket = FileQueue(str(tmp_path / QUEUE_FOLDER)).join()
    assert ticket
    with pytest.raises(ConflictError, match="waited 0 ms"):
        hold(tmp_path, wait_ms=0)
    ticket.leave()
    hold(tmp_path, wait_ms=0)


def test_a_waiter_that_stands_still_is_passed_over(tmp_path: Path) -> None:
    ticket = FileQueue(str(tmp_path / QUEUE_FOLDER)).join()
    assert ticket
    file = next((tmp_path / QUEUE_FOLDER).iterdir())
    long_ago = file.stat().st_mtime - 2 * PATIENCE_SECONDS
    os.utime(file, (long_ago, long_ago))
    hold(tmp_path, wait_ms=0)
    assert ticket.place() == 0  # which shows that it is awake again
    with pytest.raises(ConflictError):
        hold(tmp_path, wait_ms=0)
    ticket.leave()


def test_who_is_about_to_be_the_first_looks_more_often(tmp_path: Path) -> None:
    pauses: list[float] = []

    class NotingClock(SteppingClock):
        def sleep(self, seconds: float) -> None:
            pauses.append(seconds)
            super().sleep(1)

    queue = FileQueue(str(tmp_path / QUEUE_FOLDER))
    with table_lock(LocalStorage(tmp_path), SystemClock(), SystemIds(), 0):
        tickets = []
        for _ in range(6):
            with pytest.raises(ConflictError):
                hold(tmp_path, wait_ms=900, clock=NotingClock())
            tickets.append(queue.join())
    assert pauses == [0.0005, 0.001, 0.0015, 0.002, 0.0025, 0.003]
    for ticket in tickets:
        assert ticket
        ticket.leave()


def test_a_holder_without_a_ticket_keeps_the_first_in_the_queue_waiting(tmp_path: Path) -> None:
    with table_lock(LocalStorage(tmp_path), SystemClock(), SystemIds(), 0):
        for _ in range(2):
            with pytest.raises(ConflictError, match=f"process {os.getpid()} "):
                hold(tmp_path, wait_ms=100, clock=SteppingClock())
    assert not (tmp_path / QUEUE_FOLDER).exists()


def test_without_a_queue_the_lock_works_all_the_same(tmp_path: Path) -> None:
    folder = tmp_path / QUEUE_FOLDER
    folder.parent.mkdir(parents=True)
    folder.write_bytes(b"")
    with table_lock(LocalStorage(tmp_path), SystemClock(), SystemIds(), 0):
        with pytest.raises(ConflictError):
            hold(tmp_path, wait_ms=100, clock=SteppingClock())
        thread = started(lambda clock: hold(tmp_path, clock=clock))
    thread.join(60)
    hold(tmp_path, wait_ms=0)


def test_a_wait_that_is_broken_off_leaves_nothing(tmp_path: Path) -> None:
    class Stopped(BaseException):
        pass

    class StoppingClock(SystemClock):
        def sleep(self, seconds: float) -> None:
            raise Stopped

    with table_lock(LocalStorage(tmp_path), SystemClock(), SystemIds(), 0), pytest.raises(Stopped):
        hold(tmp_path, clock=StoppingClock())
    assert not (tmp_path / QUEUE_FOLDER).exists()
    hold(tmp_path, wait_ms=0)
