"""The table lock: one writer at a time, also across processes and machines.

On the local file system it is an advisory lock of the operating system, which the end of its
holder frees in every case, and who waits for it is served in the order of coming (`queue`). Elsewhere it is a
lease in a file, renewed while it is held; waiters look at it at intervals that are drawn anew each time.
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
    """A lock on the whole table, or on one instant of it."""

    def try_acquire(self) -> bool:
        """Take the lock if it is free."""
        ...

    def is_held(self) -> bool:
        """Tell whether anybody holds it; nothing is written."""
        ...

    def check(self) -> None:
        """Make sure that it is still held.

        Raises:
            ConflictError: it was lost.
        """
        ...

    def release(self) -> None:
        """Let go of it; fine when it is not held."""
        ...

    def holder(self) -> str:
        """Say who holds it, for an error's text."""
        ...


@contextmanager
def table_lock(storage: Storage, clock: Clock, ids: Ids, wait_ms: int) -> Iterator[Lock]:
    """Hold the table lock for a block of code.

    Args:
        storage: the table's files.
        clock: for waiting and for the lease's time.
        ids: for the lease's owner.
        wait_ms: milliseconds to wait for another holder.

    Raises:
        ConflictError: another writer held the lock all that time.
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
    """Return the kind of lock that fits a storage, not yet taken.

    Args:
        storage: the table's files.
        clock: for a lease's time.
        ids: for a lease's owner.
        path: of the lock, relative to the table.
    """
    local = storage.local_path(path)
    return LeaseLock(storage, clock, ids, path=path) if local is None else FileLock(local)


@dataclass(frozen=True, slots=True)
class _Wait:
    """How long somebody waits for a table.

    Attributes:
        storage: the table's files.
        clock: for waiting.
        deadline_ms: when the wait is over.
        wait_ms: how long it is in all.
    """

    storage: Storage
    clock: Clock
    deadline_ms: int
    wait_ms: int

    def pause(self, lock: Lock, pause_ms: float) -> None:
        """Wait for a moment.

        Raises:
            ConflictError: the wait is over.
        """
        left_ms = self.deadline_ms - self.clock.now_ms()
        if left_ms <= 0:
            raise ConflictError(
                f"Another writer holds the table ({lock.holder()}); waited {self.wait_ms} ms."
                " Retry later, or wait longer with hoodie.write.lock.wait_time_ms.",
                table=self.storage.spec.uri,
            )
        self.clock.sleep(min(pause_ms, left_ms) / 1000)


def _acquire_in_turn(lock: Lock, queue: FileQueue, wait: _Wait) -> None:
    """Take a lock once everybody who came earlier has had it, or has given up."""
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
    """Take a lease when it is free at a look; looks come at random, so that all have a chance."""
    pause_ms, most_ms = _LEASE_PAUSES_MS
    while not lock.try_acquire():
        share = int(ids.uuid()[:4], 16) / 0xFFFF
        wait.pause(lock, pause_ms * (1 + share) / 2)
        pause_ms = min(2 * pause_ms, most_ms)


def release_lock(lock: Lock) -> None:
    """Let go; what the block did stands, so a failure here is only worth a warning."""
    try:
        lock.release()
    except Exception as error:
        _log.warning("a lock could not be released, it expires by itself: %s", error)
