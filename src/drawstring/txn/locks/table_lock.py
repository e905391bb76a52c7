"""The table lock: one writer at a time, across processes and machines.

On a local file system it is an advisory lock of the operating system. The kernel frees it when its holder
ends, and waiters get it in order of arrival (`FileQueue`). Elsewhere it is a lease in a file that the
holder renews; waiters poll it at random intervals. Options may name another lock (`locks.providers`).

A fair queue of waiters for the table lock on a local file system.

    .hoodie/.locks/queue/<number>    one empty file for each waiter, locked (`flock`) while it waits

A waiter takes the number after the highest existing one, and tries the table lock only while no live waiter
has a lower number. The ticket of a process that ended is unlocked, and the next arrival removes it. A stalled
waiter (SIGSTOP) is skipped: each waiter touches its ticket whenever it checks its place, and a ticket that
was not touched for `PATIENCE_SECONDS` does not count until it is touched again.

The queue only orders the waiters that use it. The table lock alone decides which process may write: a holder
without a ticket excludes the others as well, and where no ticket can be created a waiter goes on without one.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from drawstring.base.clock import Clock, Ids, jitter
from drawstring.base.errors import ConflictError, DrawstringError, UnavailableError
from drawstring.config.keys.locks import LOCK_PROVIDER, LockSettings
from drawstring.storage.protocol import Storage
from drawstring.txn.locks.file_lock import FileLock, is_at
from drawstring.txn.locks.lease_lock import LEASE_PATH, LeaseLock
from drawstring.txn.locks.protocol import Held, Lock
from drawstring.txn.locks.providers import patience_ms, provided_lock

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

    def place(self) -> int:
        """Return 0 if no live waiter has a lower number, else how many tickets have.

        Touches the ticket, as proof of life.
        """
        with suppress(OSError):
            os.utime(self._descriptor)
        now = os.fstat(self._descriptor).st_mtime
        # The waiter just before this one is the most likely to be still there.
        earlier = sorted((number for number in _numbers(self._folder) if number < self._number), reverse=True)
        is_behind = any(_is_waiting(_path(self._folder, number), now) for number in earlier)
        return len(earlier) if is_behind else 0

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


LOCK_FOLDER = ".hoodie/.locks"
FILE_LOCK_PATH = f"{LOCK_FOLDER}/drawstring.lock"
QUEUE_FOLDER = f"{LOCK_FOLDER}/queue"

_PAUSE_SHARE = 0.1
_FIRST_PAUSES_MS = (0.5, 10)
"""The first waiter looks again after a tenth of the time that it has waited, within these bounds."""
_QUEUE_PAUSE_MS_MAX = 50
"""The second waiter looks half as often, and so on, as it will be the first soon; at least so often."""
_PAUSES_MS = (20, 250)
_log = logging.getLogger("drawstring")


@contextmanager
def table_lock(
    storage: Storage, clock: Clock, ids: Ids, wait_ms: int, settings: LockSettings | None = None
) -> Iterator[Held]:
    """Hold the table lock for a block of code.

    Args:
        storage: the table's files.
        clock: for waiting and for the expiry of the lease.
        ids: names the owner of the lease.
        wait_ms: milliseconds to wait for another holder.
        settings: the options of locks; None for the table's own lock.

    Raises:
        ConflictError: another writer held the lock for longer than `wait_ms`.
        InvalidError: there is no such lock provider, or it lacks an option.
    """
    other, limit_ms = None, wait_ms
    if settings is not None and settings.given:
        other, limit_ms = provided_lock(storage, clock, ids, settings), patience_ms(settings, wait_ms)
    wait = _Wait(storage, clock, clock.now_ms(), limit_ms, wait_ms)
    with ExitStack() as stack:
        own = None
        if other is None:
            yield stack.enter_context(_own_lock(ids, wait))
            return
        if storage.local_path("") is not None:
            try:
                own = stack.enter_context(_own_lock(ids, wait))
            except UnavailableError as error:  # a network file system without locks
                _log.info("The table is locked by %s alone. %s", LOCK_PROVIDER, error)
        stack.callback(release_lock, other)
        _acquire_by_polling(other, ids, wait)
        yield other if own is None else _Both(own, other)


@contextmanager
def _own_lock(ids: Ids, wait: _Wait) -> Iterator[Lock]:
    """Hold the table's own lock; on local files beside a provider's, so that our processes queue."""
    folder = wait.storage.local_path(QUEUE_FOLDER)
    lock = lock_at(wait.storage, wait.clock, ids, LEASE_PATH if folder is None else FILE_LOCK_PATH)
    try:
        if folder is None:
            _acquire_by_polling(lock, ids, wait)
        else:
            _acquire_in_turn(lock, FileQueue(folder), wait)
        yield lock
    finally:
        release_lock(lock)


def lock_at(storage: Storage, clock: Clock, ids: Ids, path: str) -> Lock:
    """Return a lock of the kind that fits a storage, not yet acquired.

    Args:
        storage: the table's files.
        clock: for the expiry of a lease.
        ids: names the owner of a lease.
        path: of the lock file, relative to the table.
    """
    local = storage.local_path(path)
    return LeaseLock(storage, clock, ids, path=path) if local is None else FileLock(local)


@dataclass(frozen=True, slots=True)
class _Wait:
    """A limited wait for the table lock.

    Attributes:
        storage: the table's files.
        clock: for waiting.
        began_ms: begin of the wait in epoch milliseconds.
        limit_ms: length of the wait in milliseconds.
        wait_ms: length of the wait that was asked for, for messages.
    """

    storage: Storage
    clock: Clock
    began_ms: int
    limit_ms: int
    wait_ms: int

    def so_far_ms(self) -> int:
        """Return how many milliseconds have passed since the begin."""
        return self.clock.now_ms() - self.began_ms

    def pause(self, lock: Lock, pause_ms: float) -> None:
        """Sleep for up to `pause_ms` milliseconds.

        Raises:
            ConflictError: the deadline has passed.
        """
        remaining_ms = self.limit_ms - self.so_far_ms()
        if remaining_ms <= 0:
            raise ConflictError(
                f"Another writer holds the table ({lock.holder()}); waited {self.wait_ms} ms."
                " Retry later, or wait longer with hoodie.write.lock.wait_time_ms.",
                table=self.storage.spec.uri,
            )
        self.clock.sleep(min(pause_ms, remaining_ms) / 1000)


class _Both:
    """Two locks that are held together.

    Args:
        own: the table's own lock.
        other: the lock of a provider.
    """

    def __init__(self, own: Held, other: Held) -> None:
        self._locks = (own, other)

    def check(self) -> None:
        for lock in self._locks:
            lock.check()


def _acquire_in_turn(lock: Lock, queue: FileQueue, wait: _Wait) -> None:
    """Acquire the lock once all earlier waiters have had it or have given up."""
    if queue.is_empty() and lock.try_acquire():
        return
    ticket = queue.join()
    try:
        while True:
            place = 0 if ticket is None else ticket.place()
            if place == 0 and lock.try_acquire():
                return
            wait.pause(lock, _pause_in_queue(wait.so_far_ms(), place))
    finally:
        if ticket is not None:
            ticket.leave()


def _pause_in_queue(waited_ms: float, place: int) -> float:
    least_ms, most_ms = _FIRST_PAUSES_MS
    pause_ms = min(max(waited_ms * _PAUSE_SHARE, least_ms), most_ms)
    return min((1 + place) * pause_ms, _QUEUE_PAUSE_MS_MAX)


def _acquire_by_polling(lock: Lock, ids: Ids, wait: _Wait) -> None:
    """Poll a lock until it is acquired; random pauses give all waiters a chance."""
    pause_ms, max_pause_ms = _PAUSES_MS
    while not lock.try_acquire():
        wait.pause(lock, pause_ms * jitter(ids))
        pause_ms = min(2 * pause_ms, max_pause_ms)


def release_lock(lock: Lock) -> None:
    """Release a lock; a failure is only logged, since the work under the lock has taken effect."""
    try:
        lock.release()
    except Exception as error:
        _log.warning("A lock could not be released; it expires by itself: %s", error)


class HeldLock:
    """A lock that is held, except in `released`; what need not be done under it is done `afterwards`.

    Args:
        hold: returns a context that holds the lock.
    """

    def __init__(self, hold: Callable[[], AbstractContextManager[Held]]) -> None:
        self._hold = hold
        self._stack = ExitStack()
        self._lock: Held | None = None
        self._afterwards: list[Callable[[], None]] = []

    def __enter__(self) -> HeldLock:
        self._acquire()
        return self

    def __exit__(self, *error: object) -> None:
        with ExitStack() as tasks:
            for task in reversed(self._afterwards):
                tasks.callback(task)
            self._release()

    def afterwards(self, task: Callable[[], None]) -> None:
        """Do something once the lock is released for good; others may see it undone, and do it as well."""
        self._afterwards.append(task)

    def check(self) -> None:
        """Make sure that this process holds the lock.

        Raises:
            ConflictError: the lock was lost, or could not be acquired again.
        """
        if self._lock is None:
            raise ConflictError("The table lock was lost. Retry the write.")
        self._lock.check()

    def regain(self) -> None:
        """Acquire the lock again after it was lost.

        Raises:
            ConflictError: another writer held the lock for too long.
        """
        self._release()
        self._acquire()

    @contextmanager
    def released(self) -> Iterator[None]:
        """Give the lock up for a block of code, and acquire it again behind the block.

        If the block fails, and then the lock cannot be acquired, the error of the block is raised.

        Raises:
            ConflictError: another writer held the lock for too long.
        """
        self._release()
        try:
            yield
        except BaseException:
            try:
                self._acquire()
            except (DrawstringError, OSError) as error:
                _log.warning("The table lock could not be acquired after a failed write: %s", error)
            raise
        self._acquire()

    def _acquire(self) -> None:
        with ExitStack() as stack:
            self._lock = stack.enter_context(self._hold())
            self._stack = stack.pop_all()

    def _release(self) -> None:
        self._lock = None
        self._stack.close()
