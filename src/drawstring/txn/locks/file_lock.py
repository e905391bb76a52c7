"""The table lock on a local file system: `flock` on a file that is never deleted.

Apart from the queue of waiters (`locks.file_queue`) this is the only module outside `storage` that opens
files: an advisory lock belongs to an open file descriptor, which no storage can hand out. Two locks in one
process exclude each other as well.
"""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from pathlib import Path

from drawstring.base.disk_errors import TABLE_DISK, disk_error
from drawstring.base.errors import ConflictError, DrawstringError, UnavailableError
from drawstring.base.process import this_process

_HOLDER_BYTES_MAX = 200
_TAKEN = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)


class FileLock:
    """An exclusive lock that the operating system frees when its holder's process ends.

    Args:
        path: absolute path of the lock file.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor: int | None = None
        self._tried: int | None = None
        """The open file of a try in vain: a waiter tries again and again."""

    def try_acquire(self) -> bool:
        """Take the lock if it is free; if not, the file stays open until `release`.

        Raises:
            InvalidError: the file system refuses to open the file.
            UnavailableError: the file system has no locks, or the disk failed.
        """
        self._drop_tried(unless_at=self._path)
        if self._tried is None:
            try:
                self._tried = _opened(self._path)
            except OSError as error:
                raise self._failure(error) from error
        descriptor = self._tried
        if not self._flock(descriptor):
            return False
        self._tried = None
        if not is_at(descriptor, self._path):
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        note_holder(descriptor)
        return True

    def is_held(self) -> bool:
        """Return whether any process holds the lock; creates no file.

        Raises:
            InvalidError: the file system refuses to open the file.
            UnavailableError: the file system has no locks, or the disk failed.
        """
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise self._failure(error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        except OSError as error:
            if error.errno in _TAKEN:
                return True
            raise self._failure(error) from error
        finally:
            os.close(descriptor)
        return False

    def check(self) -> None:
        """Make sure that this process holds the lock, on the file that others would lock.

        Raises:
            ConflictError: it does not.
        """
        if self._descriptor is None or not is_at(self._descriptor, self._path):
            raise ConflictError(
                "The table lock was lost: its file was deleted or replaced while this process held it."
                " Retry the write.",
                path=self._path,
            )

    def release(self) -> None:
        """Release the lock, or stop waiting for it."""
        self._drop_tried()
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            # A forked child shares the descriptor: closing it alone would not free the lock.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)

    def holder(self) -> str:
        """Return the process that holds the lock, as noted in the lock file."""
        try:
            text = Path(self._path).read_bytes()[:_HOLDER_BYTES_MAX].decode("utf-8", "replace").strip()
        except OSError:
            text = ""
        return text or "an unknown process"

    def _flock(self, descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _TAKEN:
                return False
            self._drop_tried()
            raise self._failure(error) from error
        return True

    def _drop_tried(self, *, unless_at: str = "") -> None:
        if self._tried is not None and not (unless_at and is_at(self._tried, unless_at)):
            os.close(self._tried)
            self._tried = None

    def _failure(self, error: OSError) -> DrawstringError:
        return disk_error(error, TABLE_DISK, self._path) or UnavailableError(
            f"The table cannot be locked ({error.strerror}). Check that the file system supports locks, then"
            " try again.",
            path=self._path,
        )


def _opened(path: str) -> int:
    """Open a lock file; the folder is made if need be, which is rare."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o666)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return os.open(path, flags, 0o666)


def is_at(descriptor: int, path: str) -> bool:
    """Return whether an open file still has its name; others would lock a new file if it was deleted."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except OSError:
        return False


def note_holder(descriptor: int) -> None:
    """Note this process in a lock file; only messages use it, so a full disk does not matter."""
    text = f"{this_process()}\n".encode()[:_HOLDER_BYTES_MAX]
    noted = text.ljust(_HOLDER_BYTES_MAX)  # not cut to length: some file systems flush a file that was cut
    with suppress(OSError):
        if os.pread(descriptor, len(noted), 0) != noted:
            os.pwrite(descriptor, noted, 0)
