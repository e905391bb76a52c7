"""Which lock a table is locked with: one that comes with drawstring, or one of a user's own.

A user's own provider is an entry point of the group `drawstring.lock_providers`, whose name is the value of
`hoodie.write.lock.provider`: a function, or a class, that keeps `LockProvider`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Final

from drawstring.base.clock import Clock, Ids
from drawstring.base.errors import (
    ConflictError,
    DrawstringError,
    InvalidError,
    UnavailableError,
    UnsupportedError,
)
from drawstring.base.later import import_later
from drawstring.config.keys.locks import HUDI_CLASSES, LOCK_PROVIDER, LockSettings, ProviderName
from drawstring.storage.protocol import Storage
from drawstring.txn.locks.dynamodb_lock import LEASE_MS_MIN, dynamodb_lock
from drawstring.txn.locks.hudi_file_lock import hudi_file_lock
from drawstring.txn.locks.in_process_lock import InProcessLock
from drawstring.txn.locks.lease_lock import LEASE_MS, RENEW_SECONDS, LeaseLock
from drawstring.txn.locks.protocol import Lock, LockProvider
from drawstring.txn.locks.zookeeper_lock import zookeeper_lock

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, entry_points
else:  # it loads the whole package `email`
    import_later(globals(), entry_points="importlib.metadata:entry_points")

_log: Final = logging.getLogger("drawstring")
GROUP: Final = "drawstring.lock_providers"
_DYNAMODB: Final = (ProviderName.DYNAMODB, ProviderName.DYNAMODB_IMPLICIT)
_WATCHING_MS: Final = 5000
_NEAR: Final = 0.9
"""How similar a misspelt name is to the right one; names of different classes in Hudi are less so."""
_METHODS: Final = ("try_acquire", "is_held", "check", "release", "holder")


def provided_lock(storage: Storage, clock: Clock, ids: Ids, settings: LockSettings) -> Lock | None:
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
    provider = _users_own(settings.provider) if name is None else _PROVIDERS[name]
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


def patience_ms(settings: LockSettings, wait_ms: int) -> int:
    """Return how long to wait for a lock, in milliseconds.

    A dead holder in DynamoDB is noticed after a lease, mostly as long as the wait: the waiter looks again.
    """
    watches = settings.known_provider in _DYNAMODB and wait_ms >= LEASE_MS_MIN
    return wait_ms + _WATCHING_MS if watches else wait_ms


def _in_process(storage: Storage, clock: Clock, ids: Ids, settings: LockSettings) -> Lock:
    return InProcessLock(storage.spec.uri)


def _lease(storage: Storage, clock: Clock, ids: Ids, settings: LockSettings) -> Lock:
    lease_ms, renew_seconds = settings.lease_ms_and_renewal or (LEASE_MS, RENEW_SECONDS)
    return LeaseLock(storage, clock, ids, renew_seconds, lease_ms=lease_ms)


_PROVIDERS: Final[Mapping[ProviderName, LockProvider]] = {
    ProviderName.IN_PROCESS: _in_process,
    ProviderName.FILE_SYSTEM: hudi_file_lock,
    ProviderName.STORAGE: _lease,
    ProviderName.ZOOKEEPER: zookeeper_lock,
    ProviderName.ZOOKEEPER_IMPLICIT: zookeeper_lock,
    ProviderName.DYNAMODB: dynamodb_lock,
    ProviderName.DYNAMODB_IMPLICIT: dynamodb_lock,
}


class _UsersLock:
    """A lock of a user's own, whose foreign errors are told as the protocol of locks has them.

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
        with self._told("take the lock", UnavailableError):
            return self._lock.try_acquire()

    def is_held(self) -> bool:
        with self._told("say whether the lock is held", UnavailableError):
            return self._lock.is_held()

    def check(self) -> None:
        with self._told("say whether this process still holds the lock, which counts as lost", ConflictError):
            self._lock.check()

    def release(self) -> None:
        with self._told("release the lock", UnavailableError):
            self._lock.release()

    def holder(self) -> str:
        try:
            return self._lock.holder()
        except Exception as error:  # it was to be part of a message
            return f"a holder whose name failed with {type(error).__name__}: {error}"

    @contextmanager
    def _told(self, what: str, kind: type[DrawstringError]) -> Iterator[None]:
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


class _Named:
    """A provider of a user's own, whose faults are told under its name.

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
        return _UsersLock(lock, self._subject, storage.spec.uri)

    @property
    def _subject(self) -> str:
        return f"The lock provider {self._entry.name!r}, which is {self._entry.value},"

    def _fault(self, what: str, error: Exception | None) -> InvalidError:
        cause = "" if error is None else f" ({type(error).__name__}: {error})"
        return InvalidError(
            f"{self._subject} {what}{cause}. Mend it or its options, or name another one in {LOCK_PROVIDER}."
        )


def _users_own(name: str) -> LockProvider:
    for entry in entry_points(group=GROUP, name=name):
        return _Named(entry)
    own = sorted({*ProviderName, *entry_points(group=GROUP).names})
    known = {each.rpartition(".")[2]: str(each) for each in (*own, *HUDI_CLASSES)}
    if near := get_close_matches(name.rpartition(".")[2], known, 1, _NEAR):
        raise InvalidError(f"There is no lock provider {name!r}. Did you mean {known[near[0]]!r}?")
    if name.startswith("org.apache.hudi."):
        raise UnsupportedError(
            f"{LOCK_PROVIDER}={name} is not supported: drawstring cannot take this lock, so writers of Hudi"
            f" would not notice it. Use one of {', '.join(ProviderName)}, or write only with drawstring."
        )
    raise InvalidError(
        f"There is no lock provider {name!r}. Use one of {', '.join(own)}, or a class name of Hudi's."
    )
