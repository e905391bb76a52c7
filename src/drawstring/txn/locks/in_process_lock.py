"""The in-process provider: a lock among the threads of this process, and nobody else.

The JVM's `InProcessLockProvider` excludes the threads of one JVM in the same way.
"""

from __future__ import annotations

import threading
from typing import Final

from drawstring.base.errors import ConflictError

_LOCKS: Final[dict[str, threading.Lock]] = {}


class InProcessLock:
    """A lock by name.

    Args:
        name: address of the table.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = _LOCKS.setdefault(name, threading.Lock())
        self._is_ours = False

    def try_acquire(self) -> bool:
        """Take the lock if it is free."""
        self._is_ours = self._lock.acquire(blocking=False)
        return self._is_ours

    def is_held(self) -> bool:
        """Return whether a thread of this process holds the lock."""
        return self._lock.locked()

    def check(self) -> None:
        """Make sure that this object holds the lock.

        Raises:
            ConflictError: it does not.
        """
        if not self._is_ours:
            raise ConflictError("The table lock is not held. Retry the write.", table=self._name)

    def release(self) -> None:
        """Release the lock."""
        if self._is_ours:
            self._is_ours = False
            self._lock.release()

    def holder(self) -> str:
        """Describe the holder."""
        return "another thread of this process"
