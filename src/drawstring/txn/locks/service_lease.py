"""Service leases: a lease on each planned instant, held by the process that runs the plan.

    .hoodie/.locks/<T>.service      an advisory lock (local file system), or a lease that is renewed

A plan runs without the table lock, so that writers can go on. The lease keeps two processes from running
the same plan: it is held as long as its holder lives, and another process takes the plan over once the lease
is free. The file is deleted when the plan is done. A lease file that no process holds means that the runner
of the plan died.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from drawstring.base.clock import Clock, Ids
from drawstring.storage.protocol import LOCK_FOLDER, Storage
from drawstring.txn.locks.table_lock import Lock, lock_at, release_lock

LEASE_SUFFIX = ".service"
LEASE_FILE = f"{LOCK_FOLDER}/{{}}{LEASE_SUFFIX}"
"""Path of the lease of an instant, by its requested time (`str.format`)."""


class ServiceLease:
    """A lease on one instant, held by this process.

    Args:
        storage: the table's files.
        path: of the lease file.
        lock: the held lock on that file.
        others_may_live: whether a previous holder may only have stalled and may resume. The lock of a local
            file system is free only if the process of its holder has died.
    """

    def __init__(self, storage: Storage, path: str, lock: Lock, *, others_may_live: bool) -> None:
        self._storage = storage
        self._path = path
        self._lock = lock
        self.others_may_live = others_may_live

    def check(self) -> None:
        """Make sure that this process still holds the lease.

        Raises:
            ConflictError: the lease was lost.
        """
        self._lock.check()

    def forget(self) -> None:
        """Delete the lease file of a plan that is done."""
        self._storage.delete([self._path])


@contextmanager
def service_lease(storage: Storage, clock: Clock, ids: Ids, requested: str) -> Iterator[ServiceLease | None]:
    """Hold the lease of an instant for a block of code.

    Args:
        storage: the table's files.
        clock: for the expiry of the lease.
        ids: names the owner.
        requested: requested time of the instant.

    Yields:
        The lease, None if another process holds it.
    """
    path = LEASE_FILE.format(requested)
    lock = lock_at(storage, clock, ids, path)
    others_may_live = storage.local_path(path) is None and storage.exists(path)
    try:
        is_ours = lock.try_acquire()
        yield ServiceLease(storage, path, lock, others_may_live=others_may_live) if is_ours else None
    finally:
        release_lock(lock)


def is_leased(storage: Storage, clock: Clock, ids: Ids, requested: str) -> bool:
    """Return whether a process holds the lease of an instant; writes nothing."""
    return lock_at(storage, clock, ids, LEASE_FILE.format(requested)).is_held()


def runner_of(storage: Storage, clock: Clock, ids: Ids, requested: str) -> str:
    """Describe the holder of the lease of an instant, for a message; writes nothing."""
    return lock_at(storage, clock, ids, LEASE_FILE.format(requested)).holder()


def is_runner_dead(storage: Storage, clock: Clock, ids: Ids, requested: str) -> bool:
    """Return whether a process began to run the plan of an instant and died; writes nothing."""
    return storage.exists(LEASE_FILE.format(requested)) and not is_leased(storage, clock, ids, requested)


def sweep_leases(
    storage: Storage, leases: Collection[str], pending: Collection[str], check: Callable[[], None]
) -> None:
    """Delete the leases and reservations of instants that are no longer pending, under the table lock.

    Args:
        storage: the table's files.
        leases: the paths of the leases and reservations.
        pending: requested times of the pending instants.
        check: makes sure that the table lock is still held.
    """
    obsolete = [path for path in leases if path.rpartition("/")[2].rpartition(".")[0] not in pending]
    if obsolete:
        check()
        storage.delete(obsolete)
