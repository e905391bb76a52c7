"""The table lock: one writer at a time, across processes and machines.

On a local file system it is an advisory lock of the operating system. The kernel frees it when its holder
ends, and waiters get it in order of arrival (`locks.queue`). Elsewhere it is a lease in a file that the
holder renews; waiters poll it at random intervals.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from drawstring.base.clock import Clock, Ids
from drawstring.base.errors import ConflictError
from drawstring.storage.protocol import Storage
from drawstring.txn.locks.file_lock import FileLock
from drawstring.txn.locks.lease_lock import LEASE_PATH, LeaseLock
from drawstring.txn.locks.queue import FileQueue

LOCK_FOLDER = ".hoodie/.locks"
FILE_LOCK_PATH = f"{LOCK_FOLDER}/drawstring.lock"
QUEUE_FOLDER = f"{LOCK_FOLDER}/queue"

_FIRST_PAUSE_MS = 10
_LATER_PAUSE_MS = 50
_LEASE_PAUSES_MS = (20, 250)
_log = logging.getLogger("drawstring")


class Lock(Protocol):
    """A lock on a whole table, or on one instant of it."""

    def try_acquire(self) -> bool:
        """Take the lock if it is free."""
        ...

    def is_held(self) -> bool:
        """Return whether any process holds the lock; writes nothing."""
        ...

    def check(self) -> None:
        """Make sure that this process still holds the lock.

        Raises:
            ConflictError: the lock was lost.
        """
        ...

    def release(self) -> None:
        """Release the lock; does nothing if it is not held."""
        ...

    def holder(self) -> str:
        """Describe the holder, for an error message."""
        ...


@contextmanager
def table_lock(storage: Storage, clock: Clock, ids: Ids, wait_ms: int) -> Iterator[Lock]:
    """Hold the table lock for a block of code.

    Args:
        storage: the table's files.
        clock: for waiting and for the expiry of the lease.
        ids: names the owner of the lease.
        wait_ms: milliseconds to wait for another holder.

    Raises:
        ConflictError: another writer held the lock for longer than `wait_ms`.
    """
    folder = storage.local_path(QUEUE_FOLDER)
    lock = lock_at(storage, clock, ids, LEASE_PATH if folder is None else FILE_LOCK_PATH)
    wait = _Wait(storage, clock, clock.now_ms() + wait_ms, wait_ms)
    try:
        if folder is None:
            _acquire_lease(lock, ids, wait)
        else:
            _acquire_in_turn(lock, FileQueue(folder), wait)
        yield lock
    finally:
        release_lock(lock)


def lock_at(storage: Storage, clock: Clock, ids: Ids, path: str) -> Lock:
    """Return a lock of the kind that fits a storage, not yet acquired.

    Args:
        storage: the table's files.
        clock: for the expiry of a lease.
        ids: names the owner of a lease.
        path: of the lock file, relative to the table.
    """
    local = storage.local_path(path)
    return LeaseLock(storage, clock, ids, path=path) if local is None else FileLock(local)


@dataclass(frozen=True, slots=True)
class _Wait:
    """A limited wait for the table lock.

    Attributes:
        storage: the table's files.
        clock: for waiting.
        deadline_ms: end of the wait in epoch milliseconds.
        wait_ms: length of the whole wait in milliseconds.
    """

    storage: Storage
    clock: Clock
    deadline_ms: int
    wait_ms: int

    def pause(self, lock: Lock, pause_ms: float) -> None:
        """Sleep for up to `pause_ms` milliseconds.

        Raises:
            ConflictError: the deadline has passed.
        """
        remaining_ms = self.deadline_ms - self.clock.now_ms()
        if remaining_ms <= 0:
            raise ConflictError(
                f"Another writer holds the table ({lock.holder()}); waited {self.wait_ms} ms."
                " Retry later, or wait longer with hoodie.write.lock.wait_time_ms.",
                table=self.storage.spec.uri,
            )
        self.clock.sleep(min(pause_ms, remaining_ms) / 1000)


def _acquire_in_turn(lock: Lock, queue: FileQueue, wait: _Wait) -> None:
    """Acquire the lock once all earlier waiters have had it or have given up."""
    if queue.is_empty() and lock.try_acquire():
        return
    ticket = queue.join()
    try:
        while True:
            is_first = ticket is None or ticket.is_first()
            if is_first and lock.try_acquire():
                return
            wait.pause(lock, _FIRST_PAUSE_MS if is_first else _LATER_PAUSE_MS)
    finally:
        if ticket is not None:
            ticket.leave()


def _acquire_lease(lock: Lock, ids: Ids, wait: _Wait) -> None:
    """Poll a lease until it is acquired; random pauses give all waiters a chance."""
    pause_ms, max_pause_ms = _LEASE_PAUSES_MS
    while not lock.try_acquire():
        jitter = int(ids.uuid()[:4], 16) / 0xFFFF
        wait.pause(lock, pause_ms * (1 + jitter) / 2)
        pause_ms = min(2 * pause_ms, max_pause_ms)


def release_lock(lock: Lock) -> None:
    """Release a lock; a failure is only logged, since the work under the lock has taken effect."""
    try:
        lock.release()
    except Exception as error:
        _log.warning("A lock could not be released; it expires by itself: %s", error)
