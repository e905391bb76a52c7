"""What a lock can do, and what makes one: the protocols that lock providers of a user's own keep as well."""

from __future__ import annotations

from typing import Protocol

from drawstring.base.clock import Clock, Ids
from drawstring.config.keys.locks import LockSettings
from drawstring.storage.protocol import Storage


class Held(Protocol):
    """A lock that this process took."""

    def check(self) -> None:
        """Make sure that this process still holds the lock.

        Raises:
            ConflictError: the lock was lost.
        """
        ...


class Lock(Held, Protocol):
    """A lock on a whole table, or on one instant of it."""

    def try_acquire(self) -> bool:
        """Take the lock if it is free; a lock that queues keeps its place until `release`."""
        ...

    def is_held(self) -> bool:
        """Return whether any process holds the lock; writes nothing."""
        ...

    def release(self) -> None:
        """Release the lock, or give up waiting for it; does nothing if it is neither held nor waited for."""
        ...

    def holder(self) -> str:
        """Describe the holder, for an error message."""
        ...


class LockProvider(Protocol):
    """Makes the lock of a table: a function, or a class whose objects are locks."""

    def __call__(self, storage: Storage, clock: Clock, ids: Ids, settings: LockSettings, /) -> Lock:
        """Return the table's lock, not yet acquired.

        Args:
            storage: the table's files.
            clock: for waiting and for the expiry of a lease.
            ids: names the owner.
            settings: the options of locks.

        Raises:
            InvalidError: an option that the lock needs is missing.
        """
        ...
