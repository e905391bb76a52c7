"""Who runs a plan of the timeline: a lease for each instant, held while its files are made.

    .hoodie/.locks/<T>.service      an advisory lock (local file system), or a lease that is renewed

A plan is run without the table lock, so that writers go on. What keeps two processes from running one
plan is this lease: it is held as long as its holder lives, and another process takes the plan over once
it is free. The file goes when the plan is done. A lease that is there and that nobody holds says that the
runner of its plan died.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from drawstring.base.clock import Clock, Ids
from drawstring.storage.protocol import Storage
from drawstring.txn.locks.table_lock import LOCK_FOLDER, Lock, lock_at, release_lock

_SUFFIX = ".service"


class ServiceLease:
    """The lease of one instant, held.

    Args:
        storage: the table's files.
        path: of the lease.
        lock: what holds it.
        others_may_live: whether another process had it before, which may only stand still. Of a local file
            system's lock it is known that its process died.
    """

    def __init__(self, storage: Storage, path: str, lock: Lock, *, others_may_live: bool) -> None:
        self._storage = storage
        self._path = path
        self._lock = lock
        self.others_may_live = others_may_live

    def check(self) -> None:
        """Make sure that it is still held.

        Raises:
            ConflictError: it was lost.
        """
        self._lock.check()

    def forget(self) -> None:
        """Delete the lease of a plan that is done; nobody needs to look for it any more."""
        self._storage.delete([self._path])


@contextmanager
def service_lease(storage: Storage, clock: Clock, ids: Ids, requested: str) -> Iterator[ServiceLease | None]:
    """Hold the lease of an instant for a block of code.

    Args:
        storage: the table's files.
        clock: for the lease's time.
        ids: for its owner.
        requested: requested time of the instant.

    Yields:
        The lease, None when another process holds it.
    """
    path = _path(requested)
    lock = lock_at(storage, clock, ids, path)
    others_may_live = storage.local_path(path) is None and storage.exists(path)
    if not lock.try_acquire():
        yield None
        return
    try:
        yield ServiceLease(storage, path, lock, others_may_live=others_may_live)
    finally:
        release_lock(lock)


def is_leased(storage: Storage, clock: Clock, ids: Ids, requested: str) -> bool:
    """Tell whether a process holds the lease of an instant; nothing is written."""
    return lock_at(storage, clock, ids, _path(requested)).is_held()


def is_runner_dead(storage: Storage, clock: Clock, ids: Ids, requested: str) -> bool:
    """Tell whether a process ran the plan of an instant and died; nothing is written."""
    return storage.exists(_path(requested)) and not is_leased(storage, clock, ids, requested)


def sweep_leases(storage: Storage, pending: Collection[str], check: Callable[[], None]) -> None:
    """Delete the leases of instants that are not pending any more; only under the table lock.

    Args:
        storage: the table's files.
        pending: requested times of the pending instants.
        check: makes sure that the lock is still held.
    """
    found = (status for status in storage.list_files(LOCK_FOLDER) if status.name.endswith(_SUFFIX))
    doomed = [each.path for each in found if each.name.removesuffix(_SUFFIX) not in pending]
    if doomed:
        check()
        storage.delete(doomed)


def _path(requested: str) -> str:
    return f"{LOCK_FOLDER}/{requested}{_SUFFIX}"
