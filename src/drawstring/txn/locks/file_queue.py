"""A fair queue of waiters for the table lock on a local file system.

    .hoodie/.locks/queue/<number>    one file for each waiter, which names its process and is locked
                                     (`flock`) while it waits

A waiter takes the number after the highest existing one, and tries the table lock only while no live waiter
has a lower number. The ticket of a process that ended is unlocked, and the next arrival removes it. A stalled
waiter (SIGSTOP) is skipped: each waiter touches its ticket whenever it checks its place, and a ticket that
was not touched for `PATIENCE_SECONDS` does not count until it is touched again.

The queue only orders the waiters that use it. The table lock alone decides which process may write: a holder
without a ticket excludes the others as well, and where no ticket can be created a waiter goes on without one.

Without the queue a process that has just released the lock mostly gets it again: of eight processes in a loop
two did nearly all the work. With nobody waiting there is no such folder.
"""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from typing import Final

from drawstring.txn.locks.file_lock import FileLock, is_at, note_holder

PATIENCE_SECONDS: Final = 5.0
_ATTEMPTS: Final = 100
_TAKEN: Final = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)


class Ticket:
    """The place of one waiter in the queue.

    Args:
        folder: absolute path of the queue.
        number: of the ticket.
        descriptor: open descriptor of the ticket file, locked.
    """

    def __init__(self, folder: str, number: int, descriptor: int) -> None:
        self._folder = folder
        self._number = number
        self._descriptor = descriptor
        self._is_first = False

    def place(self) -> int:
        """Return 0 if no live waiter has a lower number, else how many tickets have.

        Touches the ticket, as proof of life. A ticket that was first once stays first: later tickets have
        higher numbers, and a stalled waiter that goes on tries the lock as well.
        """
        with suppress(OSError):
            os.utime(self._descriptor)
        if self._is_first:
            return 0
        now = os.fstat(self._descriptor).st_mtime
        # The waiter just before this one is the most likely to be still there.
        earlier = sorted((number for number in _numbers(self._folder) if number < self._number), reverse=True)
        self._is_first = not any(_is_waiting(_path(self._folder, number), now) for number in earlier)
        return 0 if self._is_first else len(earlier)

    def leave(self) -> None:
        """Remove the ticket, and the queue if no other waiter is in it."""
        path = _path(self._folder, self._number)
        with suppress(OSError):
            if is_at(self._descriptor, path):
                os.unlink(path)
        with suppress(OSError):
            os.rmdir(self._folder)
        # A forked child shares the descriptor: closing it alone would not free the lock.
        with suppress(OSError):
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        os.close(self._descriptor)


class FileQueue:
    """The queue of waiters for one lock.

    Args:
        folder: absolute path; it exists only while there are waiters.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def is_empty(self) -> bool:
        """Return whether there is no ticket, not even of a dead process."""
        return not _numbers(self._folder)

    def waiters(self) -> list[str]:
        """Return the processes that wait, the next one first; writes nothing."""
        tickets = (FileLock(_path(self._folder, number)) for number in sorted(_numbers(self._folder)))
        return [ticket.holder() for ticket in tickets if ticket.is_held()]

    def join(self) -> Ticket | None:
        """Take the next number; return None if that is not possible, as on a full disk."""
        for _ in range(_ATTEMPTS):
            number = max(_numbers(self._folder), default=0) + 1
            try:
                os.makedirs(self._folder, exist_ok=True)
                flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                descriptor = os.open(_path(self._folder, number), flags, 0o666)
            except (FileExistsError, FileNotFoundError):
                continue  # another waiter took the number, or the last one left and removed the queue
            except OSError:
                return None
            if self._is_ours(descriptor, number):
                return Ticket(self._folder, number, descriptor)
            os.close(descriptor)
        return None

    def _is_ours(self, descriptor: int, number: int) -> bool:
        """Lock a new ticket: before that another waiter takes it for the ticket of a dead process."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        note_holder(descriptor)
        return is_at(descriptor, _path(self._folder, number))


def _path(folder: str, number: int) -> str:
    return f"{folder}/{number:012d}"


def _numbers(folder: str) -> list[int]:
    try:
        return [int(name) for name in os.listdir(folder) if name.isdecimal()]
    except OSError:
        return []


def _is_waiting(path: str, now: float) -> bool:
    """Return whether the process of a ticket is alive and not stalled; remove the ticket of a dead one."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Only the holder of its lock removes a ticket, and only while the file is still in its place.
        if is_at(descriptor, path):
            os.unlink(path)
    except OSError as error:
        return error.errno in _TAKEN and os.fstat(descriptor).st_mtime > now - PATIENCE_SECONDS
    finally:
        os.close(descriptor)
    return False
