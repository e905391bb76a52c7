"""Acquire the table lock: one writer at a time, across processes and machines.

    local file system     an advisory lock of the operating system (`FileLock`), beside a queue (`FileQueue`)
    other storages        a lease in a file that its holder renews (`LeaseLock`)
    a provider's lock     the lock that `hoodie.write.lock.provider` names

On local files the kernel frees the lock when its holder ends, and waiters get it in order of arrival.
Waiters for a lease poll it at random intervals, which become shorter in the course of a wait. On local
files a process holds the table's own lock beside a provider's, so that processes of drawstring queue.

The protocols: every lock has the methods of `Lock`. A `LockProvider` makes the lock of a table. `Held` is a
lock that this process took.

Other providers are plug-ins: entry points of the group `drawstring.lock_providers`, whose name is the value
of `hoodie.write.lock.provider`: a function, or a class, that follows `LockProvider`. Those for ZooKeeper and
DynamoDB are in `drawstring.plugins`; users add their own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from drawstring.base.clock import Clock, Ids, jitter
from drawstring.base.errors import (
    ConflictError,
    CorruptTableError,
    DecidedError,
    DrawstringError,
    InvalidError,
    LostRaceError,
    PendingClusteringError,
    UnavailableError,
    UnsupportedError,
)
from drawstring.base.plugins import custom_fault, find_plugin, load_plugin, plugin_names, plugin_subject
from drawstring.config.keys.concurrency import HUDI_CLASSES, LOCK_PROVIDER, LockSettings, ProviderName
from drawstring.storage.protocol import LOCK_FOLDER, Storage
from drawstring.txn.locks.file_lock import FileLock, FileQueue, InProcessLock, hudi_file_lock
from drawstring.txn.locks.storage_lock import LEASE_MS, LEASE_PATH, RENEW_SECONDS, LeaseLock


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


@runtime_checkable
class WatchingLock(Lock, Protocol):
    """A lock whose waiters find out that its holder is dead by watching it."""

    def watch_ms(self, wait_ms: int) -> int:
        """Return for how many milliseconds a waiter goes on beyond its wait, to look again.

        Args:
            wait_ms: length of the wait in milliseconds.
        """
        ...


if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_log: Final = logging.getLogger("drawstring")
GROUP: Final = "drawstring.lock_providers"
_SIMILARITY_MIN: Final = 0.9
"""How similar a misspelt name is to the right one; names of different classes in Hudi are less so."""
_METHODS: Final = ("try_acquire", "is_held", "check", "release", "holder")


def provider_lock(storage: Storage, clock: Clock, ids: Ids, settings: LockSettings) -> Lock | None:
    """Return the lock that the options name, not yet acquired; None for the table's own.

    Args:
        storage: the table's files.
        clock: for waiting and for the expiry of a lease.
        ids: names the owner.
        settings: the options of locks.

    Raises:
        InvalidError: there is no such provider, or an option that it needs is missing.
        UnsupportedError: Hudi has the provider, and drawstring has not.
    """
    name = settings.known_provider
    is_lease = name is ProviderName.STORAGE or (name is ProviderName.OWN and storage.local_path("") is None)
    if name is not None and not is_lease and settings.lease_ms_and_renewal is not None:
        _warn_of_leases(storage.spec.uri, name)
    if name is ProviderName.OWN:
        if storage.local_path("") is not None:
            return None
        name = ProviderName.STORAGE
    provider = _custom_provider(settings.provider) if name is None else _known_provider(name)
    return provider(storage, clock, ids, settings)


@cache
def _warn_of_leases(uri: str, provider: ProviderName) -> None:
    """Say once that options of leases do nothing."""
    _log.warning(
        "hoodie.write.lock.storage.* do nothing on %s: its lock is that of the provider %s%s, and no lease on"
        " storage. Drop them.",
        uri,
        provider,
        ", a lock of the operating system" if provider is ProviderName.OWN else "",
    )


def _in_process(storage: Storage, clock: Clock, ids: Ids, settings: LockSettings) -> Lock:
    return InProcessLock(storage.spec.uri)


def _lease(storage: Storage, clock: Clock, ids: Ids, settings: LockSettings) -> Lock:
    lease_ms, renew_seconds = settings.lease_ms_and_renewal or (LEASE_MS, RENEW_SECONDS)
    return LeaseLock(storage, clock, ids, renew_seconds, lease_ms=lease_ms)


_KIND: Final = "lock provider"

_PROVIDERS: Final[Mapping[ProviderName, LockProvider]] = {
    ProviderName.IN_PROCESS: _in_process,
    ProviderName.FILE_SYSTEM: hudi_file_lock,
    ProviderName.STORAGE: _lease,
}


def _known_provider(name: ProviderName) -> LockProvider:
    if name in _PROVIDERS:
        return _PROVIDERS[name]
    provider: LockProvider = load_plugin(GROUP, name, f"the lock provider {name}")
    return provider


class _CustomLock:
    """Wrap a lock of a user, and turn its foreign errors into those of the protocol of locks.

    Args:
        lock: the lock.
        provider: begin of a sentence about its provider.
        table: root of the table that it locks.
    """

    def __init__(self, lock: Lock, provider: str, table: str) -> None:
        self._lock = lock
        self._provider = provider
        self._table = table

    def try_acquire(self) -> bool:
        with self._translated("take the lock", UnavailableError):
            return self._lock.try_acquire()

    def is_held(self) -> bool:
        with self._translated("say whether the lock is held", UnavailableError):
            return self._lock.is_held()

    def check(self) -> None:
        with self._translated(
            "say whether this process still holds the lock, which counts as lost", ConflictError
        ):
            self._lock.check()

    def release(self) -> None:
        with self._translated("release the lock", UnavailableError):
            self._lock.release()

    def holder(self) -> str:
        try:
            return self._lock.holder()
        except Exception as error:  # it was to be part of a message
            return f"a holder whose name failed with {type(error).__name__}: {error}"

    @contextmanager
    def _translated(self, what: str, kind: type[DrawstringError]) -> Iterator[None]:
        try:
            yield
        except DrawstringError:
            raise
        except Exception as error:
            raise kind(
                f"{self._provider} could not {what} ({type(error).__name__}: {error}). Make sure that it"
                f" reaches its server, or mend it, and try again; or name another one in {LOCK_PROVIDER}.",
                table=self._table,
            ) from error


class _CustomProvider:
    """Wrap a lock provider of a user, and name it in its faults.

    Args:
        entry: its entry point.
    """

    def __init__(self, entry: EntryPoint) -> None:
        self._entry = entry

    def __call__(self, storage: Storage, clock: Clock, ids: Ids, settings: LockSettings, /) -> Lock:
        """Import the provider and return its lock.

        Raises:
            InvalidError: it cannot be imported, raised an error, or made no lock.
        """
        try:
            provider: LockProvider = self._entry.load()
        except Exception as error:
            raise self._fault("cannot be imported", error) from error
        try:
            lock = provider(storage, clock, ids, settings)
        except DrawstringError:
            raise
        except KeyError as error:
            raise self._fault(f"needs the option {error.args[0]}, which was not given", None) from error
        except Exception as error:
            raise self._fault("made no lock", error) from error
        missing = [method for method in _METHODS if not callable(getattr(lock, method, None))]
        if missing:
            raise self._fault(f"made a lock without {', '.join(missing)}", None)
        return _CustomLock(lock, plugin_subject(self._entry, _KIND), storage.spec.uri)

    def _fault(self, what: str, error: Exception | None) -> InvalidError:
        cause = "" if error is None else f" ({type(error).__name__}: {error})"
        return custom_fault(self._entry, _KIND, f"{what}{cause}", f"name another one in {LOCK_PROVIDER}")


def _custom_provider(name: str) -> LockProvider:
    entry = find_plugin(GROUP, name)
    if entry is not None:
        return _CustomProvider(entry)
    own = sorted({*ProviderName, *plugin_names(GROUP)})
    known = {each.rpartition(".")[2]: str(each) for each in (*own, *HUDI_CLASSES)}
    if near := get_close_matches(name.rpartition(".")[2], known, 1, _SIMILARITY_MIN):
        raise InvalidError(f"There is no lock provider {name!r}. Did you mean {known[near[0]]!r}?")
    if name.startswith("org.apache.hudi."):
        raise UnsupportedError(
            f"{LOCK_PROVIDER}={name} is not supported: drawstring cannot take this lock, so writers of Hudi"
            f" would not notice it. Use one of {', '.join(ProviderName)}, or write only with drawstring."
        )
    raise InvalidError(
        f"There is no lock provider {name!r}. Use one of {', '.join(own)}, or a class name of Hudi's."
    )


FILE_LOCK_PATH = f"{LOCK_FOLDER}/drawstring.lock"
QUEUE_FOLDER = f"{LOCK_FOLDER}/queue"

_PAUSE_SHARE = 0.1
_FIRST_PAUSES_MS = (0.5, 10)
"""The first waiter looks again after a tenth of the time that it has waited, within these bounds."""
_QUEUE_PAUSE_MS_MAX = 50
"""The second waiter looks half as often, and so on, as it will be the first soon; at least so often."""
_FIRST_POLL_MS = 20
_POLLS_MS = (250, 80)
"""A lock without a queue is looked at so rarely at first, and so often in the end,"""
_PATIENCE_MS = 15_000
"""after a wait of this length: who waits longer is more likely to be there when the lock is free."""


@contextmanager
def table_lock(
    storage: Storage,
    clock: Clock,
    ids: Ids,
    wait_ms: int,
    settings: LockSettings | None = None,
    pending: Callable[[], str] = str,
) -> Iterator[Held]:
    """Hold the table lock for a block of code.

    Args:
        storage: the table's files.
        clock: for waiting and for the expiry of the lease.
        ids: names the owner of the lease.
        wait_ms: milliseconds to wait for another holder.
        settings: the options of locks; None for the table's own lock.
        pending: returns a sentence about what is pending on the table, for the message of a wait in vain.

    Raises:
        ConflictError: another writer held the lock for longer than `wait_ms`.
        InvalidError: there is no such lock provider, or it lacks an option.
    """
    other, limit_ms = None, wait_ms
    if settings is not None and settings.given:
        other = provider_lock(storage, clock, ids, settings)
        if isinstance(other, WatchingLock):
            limit_ms += other.watch_ms(wait_ms)
    wait = _Wait(storage, clock, clock.now_ms(), limit_ms, wait_ms, pending)
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
        pending: returns a sentence about what is pending on the table.
    """

    storage: Storage
    clock: Clock
    began_ms: int
    limit_ms: int
    wait_ms: int
    pending: Callable[[], str]

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
                f"Another writer holds the table ({lock.holder()}); waited {self.wait_ms} ms.{self.pending()}"
                " Retry later, or wait longer with hoodie.write.lock.wait_time_ms: a single writer keeps the"
                " lock while it writes rows, and on a slow store each of many writers waits for the commits"
                " of all others.",
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
    """Poll a lock until it is acquired; random pauses give all waiters a chance, old ones a better one."""
    pause_ms = _FIRST_POLL_MS
    while not lock.try_acquire():
        wait.pause(lock, min(pause_ms, _pause_of_polls(wait.so_far_ms())) * jitter(ids))
        pause_ms = min(2 * pause_ms, _POLLS_MS[0])


def _pause_of_polls(waited_ms: float) -> float:
    most_ms, least_ms = _POLLS_MS
    return max(least_ms, most_ms - (most_ms - least_ms) * waited_ms / _PATIENCE_MS)


def release_lock(lock: Lock) -> None:
    """Release a lock; a failure is only logged, since the work under the lock has taken effect."""
    try:
        lock.release()
    except Exception as error:
        _log.warning("A lock could not be released; it expires by itself: %s", error)


@contextmanager
def conflict_if_lost(lock: Held) -> Iterator[None]:
    """Blame a damaged table on others if a lock or lease was lost: they may have written and cleaned since.

    Args:
        lock: held at the begin of the block.

    Raises:
        ConflictError: the table seemed to be damaged, and the lock is lost.
    """
    try:
        yield
    except (CorruptTableError, FileNotFoundError) as error:
        try:
            lock.check()
        except ConflictError as lost:
            raise lost from error
        raise


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

    def in_order_afterwards(self) -> list[Callable[[], None]]:
        """Return a list for what is done then, one after the other; what follows a failure is not done."""
        tasks: list[Callable[[], None]] = []

        def run() -> None:
            for task in tasks:
                task()

        self.afterwards(run)
        return tasks

    def check(self) -> None:
        """Make sure that this process holds the lock.

        Raises:
            ConflictError: the lock was lost, or could not be acquired again.
        """
        if self._lock is None:
            raise ConflictError(
                "The table lock, given up while rows were written, could not be taken again. Retry the write."
            )
        self._lock.check()

    def is_lost(self) -> bool:
        """Return whether this process took the lock and stood still until it had it no longer."""
        if self._lock is None:
            return False
        try:
            self._lock.check()
        except ConflictError:
            return True
        return False

    @contextmanager
    def race_if_lost(self) -> Iterator[None]:
        """Let a write run again that stood still before it put anything on the timeline.

        Raises:
            LostRaceError: the block met a conflict, and the lock is lost.
        """
        try:
            yield
        except ConflictError as error:
            if not self.explains(error):
                raise
            cause = error.__cause__ or error
            raise LostRaceError(error.message, instant=error.instant, path=error.path) from cause

    def explains(self, error: BaseException) -> bool:
        """Return whether an error is a conflict that comes from the loss of this lock."""
        is_conflict = isinstance(error, ConflictError)
        is_told = isinstance(error, LostRaceError | DecidedError | PendingClusteringError)
        return is_conflict and not is_told and self.is_lost()

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
