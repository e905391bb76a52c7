"""A fair queue for the table lock on a local file system.

    .hoodie/.locks/queue/<number>    one empty file for each waiter, locked (`flock`) while it waits

A waiter takes the number after the highest one there is, and tries the table lock only while no lower number
belongs to a live waiter. The end of a process frees its ticket, and whoever comes next removes it. A waiter
that stands still (SIGSTOP) is passed over: it touches its ticket at each look, and one that was not touched
for `PATIENCE_SECONDS` does not count until it is touched again.

The queue only orders those who use it. The table lock alone decides who may write, so a holder without a
ticket excludes the others as ever, and where no ticket can be made a waiter goes on without one.
"""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from typing import Final

PATIENCE_SECONDS: Final = 5.0
_ATTEMPTS: Final = 100
_TAKEN: Final = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)


class Ticket:
    """The place of one waiter.

    Args:
        folder: absolute path of the queue.
        number: what it was given.
        descriptor: of its file, locked.
    """

    def __init__(self, folder: str, number: int, descriptor: int) -> None:
        self._folder = folder
        self._number = number
        self._descriptor = descriptor

    def is_first(self) -> bool:
        """Tell whether nobody with a lower number is waiting; shows the others that this one does."""
        with suppress(OSError):
            os.utime(self._descriptor)
        now = os.fstat(self._descriptor).st_mtime
        # The one right before is the likeliest to be there still.
        before = sorted((each for each in _numbers(self._folder) if each < self._number), reverse=True)
        return not any(_is_waiting(_path(self._folder, each), now) for each in before)

    def leave(self) -> None:
        """Give the place up, and remove the queue if nobody else is in it."""
        path = _path(self._folder, self._number)
        with suppress(OSError):
            if _is_at(self._descriptor, path):
                os.unlink(path)
        with suppress(OSError):
            os.rmdir(self._folder)
        # A child that was forked meanwhile shares the descriptor: closing alone would not free it.
        with suppress(OSError):
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        os.close(self._descriptor)


class FileQueue:
    """Those who wait for a lock.

    Args:
        folder: absolute path; made when somebody waits, and gone when nobody does.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def is_empty(self) -> bool:
        """Tell whether there is no ticket, not even one of a dead process."""
        return not _numbers(self._folder)

    def join(self) -> Ticket | None:
        """Take the next number; None where that is not possible, on a full disk for instance."""
        for _ in range(_ATTEMPTS):
            number = max(_numbers(self._folder), default=0) + 1
            try:
                os.makedirs(self._folder, exist_ok=True)
                flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                descriptor = os.open(_path(self._folder, number), flags, 0o666)
            except (FileExistsError, FileNotFoundError):
                continue  # another one took the number, or the last one left and removed the queue
            except OSError:
                return None
            if self._is_ours(descriptor, number):
                return Ticket(self._folder, number, descriptor)
            os.close(descriptor)
        return None

    def _is_ours(self, descriptor: int, number: int) -> bool:
        """Lock a new ticket: until then another waiter takes it for that of a dead process."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return _is_at(descriptor, _path(self._folder, number))


def _path(folder: str, number: int) -> str:
    return f"{folder}/{number:012d}"


def _numbers(folder: str) -> list[int]:
    try:
        return [int(name) for name in os.listdir(folder) if name.isdecimal()]
    except OSError:
        return []


def _is_waiting(path: str, now: float) -> bool:
    """Tell whether a ticket's process lives and is awake; removes the ticket of a dead one."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Nobody else removes a file whose lock we hold, and that is still in its place.
        if _is_at(descriptor, path):
            os.unlink(path)
    except OSError as error:
        return error.errno in _TAKEN and os.fstat(descriptor).st_mtime > now - PATIENCE_SECONDS
    finally:
        os.close(descriptor)
    return False


def _is_at(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except OSError:
        return False
