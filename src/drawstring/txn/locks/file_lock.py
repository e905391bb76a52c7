"""Lock a table by files on a local file system: the table's own lock, its queue, and two of Hudi's providers.

    FileLock        `flock` on a file that is never deleted: the default lock of a table on local files
    FileQueue       the order of the waiters for it
    HudiFileLock    Hudi's `FileSystemBasedLockProvider`: a file that exists while the lock is held
    InProcessLock   the JVM's `InProcessLockProvider`: excludes the threads of one process only

Outside `storage` only this module opens files, because an advisory lock belongs to an open file descriptor,
which no storage can return. Two locks in one process exclude each other too.

The queue:

    .hoodie/.locks/queue/<number>    one file for each waiter, which names its process and is locked
                                     (`flock`) while it waits

A waiter takes the number after the highest existing one. It tries the table lock only while no live waiter
has a lower number. The ticket of a process that ended is unlocked, and the next arrival removes it. A
waiter touches its ticket whenever it checks its place. A ticket that was not touched for `PATIENCE_SECONDS`
does not count until it is touched again, so others pass a stalled waiter (SIGSTOP).

The queue only orders the waiters that use it. The table lock alone decides which process may write: a
holder without a ticket excludes the others too, and a waiter that cannot create a ticket goes on without
one. While nobody waits there is no such folder.

Without the queue, a process that has just released the lock usually gets it again: of eight processes in a
loop two did nearly all the work.

Hudi's file lock:

    .hoodie/lock     {"lockCreateTime":...,"lockStacksInfo":[],"lockThreadName":...}

The process that creates the file holds the lock, and deletes the file to release it. The file of a process
that died stays. It counts as abandoned once it was not modified for `hoodie.write.lock.filesystem.expire`
minutes (0: never).

**It is not safe beside the JVM.** Hudi deletes the file without checking who made it, twice at each
release, and its create on a local disk checks first and writes then. drawstring checks who made the file
before it deletes it, creates it exclusively, touches it while it holds the lock, and notices when the file
is gone (`check`). So processes of drawstring exclude each other. A JVM may take the lock while drawstring
holds it; the write then fails.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import threading
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from drawstring.base.clock import Clock, Ids
from drawstring.base.errors import (
    TABLE_DISK,
    ConflictError,
    DrawstringError,
    InvalidError,
    UnavailableError,
    disk_error,
)
from drawstring.base.resources import Renewal, this_process
from drawstring.config.keys.concurrency import LOCK_PROVIDER, LockSettings
from drawstring.storage.protocol import Storage

_HOLDER_BYTES_MAX = 200
_LOCKED_ERRNOS = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)


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
            if error.errno in _LOCKED_ERRNOS:
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
            if error.errno in _LOCKED_ERRNOS:
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


PATIENCE_SECONDS: Final = 5.0
_ATTEMPTS: Final = 100


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
        return error.errno in _LOCKED_ERRNOS and os.fstat(descriptor).st_mtime > now - PATIENCE_SECONDS
    finally:
        os.close(descriptor)
    return False


FILE_NAME: Final = "lock"
_FOLDER: Final = ".hoodie"
_TOUCHES: Final = 4
"""How often a held file is touched before it would expire."""


class HudiFileLock:
    """A lock file.

    Args:
        path: absolute path of the file.
        clock: for the age of the file, as long as it is young by it.
        ids: names the owner.
        expire_minutes: age from which the file counts as left behind; 0 for never.
    """

    def __init__(self, path: str, clock: Clock, ids: Ids, expire_minutes: int) -> None:
        self._path = path
        self._clock = clock
        self._ids = ids
        self._expire_seconds = expire_minutes * 60
        self._content = b""
        self._renewal = Renewal(self._touch, (self._expire_seconds or 1) / _TOUCHES)

    def try_acquire(self) -> bool:
        """Create the file, if there is none or an expired one.

        Raises:
            UnavailableError: the folder cannot be written to.
        """
        content = self._new_content()
        try:
            self._drop_expired()
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except FileExistsError:
            return False
        except OSError as error:
            raise UnavailableError(
                f"The lock file cannot be made ({error.strerror}). Check the permissions of its folder.",
                path=self._path,
            ) from error
        with open(descriptor, "wb") as file:
            file.write(content)
        self._content = content
        if self._expire_seconds:
            self._renewal.start()
        return True

    def is_held(self) -> bool:
        """Return whether there is a file that has not expired."""
        try:
            return not self._seems_expired(os.stat(self._path))
        except OSError:
            return False

    def check(self) -> None:
        """Make sure that the file is there and ours.

        Raises:
            ConflictError: another process deleted or replaced it.
        """
        if not self._is_ours():
            raise ConflictError(
                "The lock file of the table was deleted or replaced by another process. Retry the write.",
                path=self._path,
            )

    def release(self) -> None:
        """Delete the file, if it is ours."""
        self._renewal.stop()
        if self._is_ours():
            with suppress(FileNotFoundError):
                os.unlink(self._path)
        self._content = b""

    def holder(self) -> str:
        """Return who the file says has made it; Hudi's own file is empty."""
        name = None
        with suppress(OSError, ValueError, AttributeError):
            name = json.loads(_read(self._path)).get("lockThreadName")
        return f"{name or 'a process that left no name'}, by the file {self._path}"

    def _new_content(self) -> bytes:
        now = datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC)
        fields = {
            "lockCreateTime": now.isoformat(" ", "milliseconds").removesuffix("+00:00"),
            "lockStacksInfo": [],
            "lockThreadName": f"{this_process()}, {self._ids.uuid()}",
        }
        return json.dumps(fields, separators=(",", ":")).encode()

    def _is_ours(self) -> bool:
        try:
            return bool(self._content) and _read(self._path) == self._content
        except OSError:
            return False

    def _touch(self) -> bool:
        is_ours = self._is_ours()
        if is_ours:
            os.utime(self._path)  # the time of the file system, as of a new file
        return is_ours

    def _seems_expired(self, status: os.stat_result) -> bool:
        age = self._clock.now_ms() / 1000 - status.st_mtime
        return self._expire_seconds > 0 and age > self._expire_seconds

    def _is_expired(self, status: os.stat_result) -> bool:
        """Return whether a file has expired by the clock of its file system, which a new file shows."""
        if not self._seems_expired(status):
            return False
        new = f"{self._path}.{self._ids.uuid()}"
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            return os.fstat(descriptor).st_mtime - status.st_mtime > self._expire_seconds
        finally:
            os.close(descriptor)
            os.unlink(new)

    def _drop_expired(self) -> None:
        """Delete an expired file; of two processes that see it neither deletes the other's new one."""
        aside = f"{self._path}.{self._ids.uuid()}"
        with suppress(FileNotFoundError):
            expired = os.stat(self._path)
            if not self._is_expired(expired):
                return
            os.rename(self._path, aside)
            if not self._is_expired(os.stat(aside)):
                with suppress(FileExistsError):
                    os.link(aside, self._path)
            os.unlink(aside)


def hudi_file_lock(storage: Storage, clock: Clock, ids: Ids, settings: LockSettings) -> HudiFileLock:
    """Return the lock in the table's folder, or in the one that the options name.

    Raises:
        InvalidError: the folder is in an object store, which cannot create files atomically as Hudi needs it.
    """
    folder = settings.folder.removeprefix("file://") or storage.local_path(_FOLDER)
    if folder is None or "://" in folder:
        raise InvalidError(
            f"{LOCK_PROVIDER}={settings.provider} needs a local folder, but {settings.folder or 'the table'}"
            " is in an object store. Use the provider storage.",
            table=storage.spec.uri,
        )
    return HudiFileLock(f"{folder}/{FILE_NAME}", clock, ids, settings.expire_minutes)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(10_000)


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
