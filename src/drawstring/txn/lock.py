"""The table lock: one writer at a time, also across processes and machines.

On the local file system it is an advisory lock of the operating system, which the end of its
holder frees in every case. Elsewhere it is a lease in a file, renewed while it is held.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from drawstring.base.clock import Clock, Ids
from drawstring.base.errors import ConflictError
from drawstring.storage.protocol import Storage
from drawstring.txn.file_lock import FileLock
from drawstring.txn.lease_lock import LEASE_PATH, LeaseLock

LOCK_FOLDER = ".hoodie/.locks"
FILE_LOCK_PATH = f"{LOCK_FOLDER}/drawstring.lock"

_FIRST_PAUSE_MS = 20
_PAUSE_MS_MAX = 1000
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
    shared = storage.local_path(FILE_LOCK_PATH) is None
    lock = lock_at(storage, clock, ids, LEASE_PATH if shared else FILE_LOCK_PATH)
    _acquire(lock, storage, clock, wait_ms)
    try:
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


def _acquire(lock: Lock, storage: Storage, clock: Clock, wait_ms: int) -> None:
    deadline_ms = clock.now_ms() + wait_ms
    pause_ms = _FIRST_PAUSE_MS
    while not lock.try_acquire():
        left_ms = deadline_ms - clock.now_ms()
        if left_ms <= 0:
            raise ConflictError(
                f"Another writer holds the table ({lock.holder()}); "
                f"waited {wait_ms} ms. Retry later, or wait longer with hoodie.write.lock.wait_time_ms.",
                table=storage.spec.uri,
            )
        clock.sleep(min(pause_ms, left_ms) / 1000)
        pause_ms = min(2 * pause_ms, _PAUSE_MS_MAX)


def release_lock(lock: Lock) -> None:
    """Let go; what the block did stands, so a failure here is only worth a warning."""
    try:
        lock.release()
    except Exception as error:
        _log.warning("a lock could not be released, it expires by itself: %s", error)
