"""Heartbeats of writers: a file for each pending write, touched while the write goes on.

    .hoodie/.heartbeat/<T>       empty, in object stores the name of the process of drawstring (Hudi looks at
                                 the time of the file only); of a single writer or a service `drawstring`
    .hoodie/.locks/<T>.service   on local files, locked by a process of drawstring that writes beside others

A write of another engine is alive while its heartbeat is young, and so is a write of drawstring that runs
beside other writers. A single writer of drawstring is dead as soon as another process holds the table lock,
because a live one would still hold it. Under the LAZY policy (failed writes are left to the cleaner) it
writes heartbeats for Hudi, which takes a write without one for dead. So does a running compaction or
clustering of drawstring, whose lease tells other processes of drawstring.

The lock ends with its process, so that the next writer need not wait for the heartbeat to expire.

An empty file is not flushed to the disk, which would take longer than all else that a write does under the
table lock when it begins. A power cut may lose it; it ends the writer as well.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

from drawstring.base.clock import Clock
from drawstring.base.errors import ConflictError, DrawstringError, UnavailableError
from drawstring.base.process import this_process
from drawstring.base.threads import Renewal
from drawstring.config.keys.failed_writes import FailedWrites
from drawstring.model.instant import PLANNED_ACTIONS, Instant
from drawstring.storage.protocol import Storage
from drawstring.txn.locks.file_lock import FileLock
from drawstring.txn.locks.service_lease import LEASE_FILE
from drawstring.txn.storage_clock import about_now_ms, passed_ms, storage_now_ms

HEARTBEAT_FOLDER: Final = ".hoodie/.heartbeat"
OF_DRAWSTRING: Final = b"drawstring"
"""Content of a heartbeat that is for Hudi alone: a lock or a lease tells whether the process lives."""
_BESIDE_OTHERS: Final = b""
_TOLERANCE_MS: Final = 10_000
"""How far in the future a heartbeat may lie without a doubt about the clock of this machine."""
_log = logging.getLogger("drawstring")


def alive_elsewhere(
    storage: Storage,
    clock: Clock,
    pending: Collection[Instant],
    failed: FailedWrites,
    *,
    only_reads: bool = False,
) -> list[Instant]:
    """Return the instants of writers that live without the table lock, in the same order.

    The lock of a process of drawstring tells that it died before its heartbeat expires.

    Args:
        storage: the table's files.
        clock: the current time, which the clock of the storage corrects.
        pending: pending instants.
        failed: the greatest age of a live heartbeat.
        only_reads: whether to trust the clock of this machine rather than to write a file.
    """
    if not pending:
        return []
    ages = _ages(storage, clock, pending, failed, only_reads=only_reads)
    young = [each for each in pending if ages.get(each.requested, failed.alive_ms) < failed.alive_ms]
    return [each for each in young if not _held_lock(storage, each) and not has_died(storage, each)]


def expired(
    storage: Storage, clock: Clock, pending: Collection[Instant], failed: FailedWrites
) -> list[Instant]:
    """Return the instants whose heartbeat is missing or too old, in the same order."""
    ages, never_ms = _ages(storage, clock, pending, failed), failed.alive_ms + 1
    return [each for each in pending if ages.get(each.requested, never_ms) > failed.alive_ms]


def forget_heartbeats(
    storage: Storage, clock: Clock, pending: Collection[Instant], failed: FailedWrites
) -> None:
    """Delete expired heartbeats of instants that are not pending: their writers died after completing."""
    ages, times = _ages(storage, clock, None, failed), {instant.requested for instant in pending}
    old = [time for time, ms in ages.items() if time not in times and ms > failed.alive_ms]
    storage.delete([f"{HEARTBEAT_FOLDER}/{time}" for time in old])


def _ages(
    storage: Storage,
    clock: Clock,
    instants: Collection[Instant] | None,
    failed: FailedWrites,
    *,
    only_reads: bool = False,
) -> Mapping[str, int]:
    """Return the ages of heartbeats in milliseconds, by requested time.

    One that is too old is so by the clock of the storage.

    Args:
        storage: the table's files.
        clock: the current time, for what is young in any case.
        instants: of which to look at the heartbeats; None for all heartbeats.
        failed: the greatest age of a live heartbeat.
        only_reads: whether to trust the clock of this machine.
    """
    now_ms, found = about_now_ms(storage, clock), beats(storage)
    times = found.keys() if instants is None else found.keys() & {each.requested for each in instants}
    passed, doubtful = passed_ms(storage), False
    ages: dict[str, int] = {}
    for time in times:
        is_old = passed - found[time] > failed.alive_ms
        ages[time] = (passed if is_old else now_ms) - found[time]
        doubtful |= not is_old and not -_TOLERANCE_MS <= ages[time] <= failed.alive_ms
    if only_reads or not doubtful:
        return ages
    now_ms = storage_now_ms(storage, clock)
    return {time: now_ms - ms for time, ms in beats(storage).items() if time in times}


class Heartbeat:
    """The heartbeat of one write or service of this process.

    Args:
        storage: the table's files.
        clock: the current time, for the age of the last beat.
        requested: requested time of the write.
        failed: the interval of beats and the greatest age of a live heartbeat.
        is_leased: whether this process holds the lease of the instant, as a service does.
    """

    def __init__(
        self, storage: Storage, clock: Clock, requested: str, failed: FailedWrites, *, is_leased: bool = False
    ) -> None:
        self._storage = storage
        self._clock = clock
        self._requested = requested
        self._failed = failed
        self._last_ms = 0
        self._is_anothers = False
        self._lock_path = LEASE_FILE.format(requested)
        local = storage.local_path(self._lock_path)
        self._tells_all = failed.spares_writers and not is_leased
        self._lock = FileLock(local) if self._tells_all and local is not None else None
        failure = f"The heartbeat of {requested} could not be written"
        self._renewal = Renewal(self._beat, failed.interval_ms / 1000, failure)

    @contextmanager
    def beating(self, defer: Callable[[Callable[[], None]], None]) -> Iterator[None]:
        """Keep the heartbeat during a block of code.

        Args:
            defer: takes the end of the heartbeat, which may come later.
        """
        self.start()
        try:
            yield
        finally:
            defer(self.stop)

    def start(self) -> None:
        """Write the heartbeat once, and repeat it in a daemon thread; lock the file of this process."""
        if self._lock is not None:
            with suppress(UnavailableError):  # a file system without locks: the heartbeat has to do
                self._lock.try_acquire()
        self._beat()
        self._renewal.start()

    def check(self) -> None:
        """Make sure that no other process may have taken this write for dead.

        Raises:
            ConflictError: the heartbeat is too old, because this process stalled for too long.
        """
        if self._clock.now_ms() - self._last_ms > self._failed.alive_ms:
            raise ConflictError(
                "This write sent no heartbeat for too long and may have been rolled back. Write again.",
                instant=self._requested,
            )

    def leave(self) -> None:
        """Let the file expire when this heartbeat stops: another write of the same time may beat there."""
        self._is_anothers = True

    def stop(self) -> None:
        """Stop beating and delete the files; a heartbeat that cannot be deleted expires."""
        self._renewal.stop()
        if self._is_anothers:
            if self._lock is not None:
                self._lock.release()
            return
        try:
            self._storage.delete([self._path, *([] if self._lock is None else [self._lock_path])])
        except (DrawstringError, OSError) as error:
            _log.warning(
                "The heartbeat of %s could not be deleted and expires by itself: %s", self._requested, error
            )
        finally:
            if self._lock is not None:
                self._lock.release()

    @property
    def _path(self) -> str:
        return f"{HEARTBEAT_FOLDER}/{self._requested}"

    def _beat(self) -> bool:
        now_ms = self._clock.now_ms()
        self._storage.put(self._path, self._content())
        self._last_ms = now_ms
        return True

    def _content(self) -> bytes:
        if not self._tells_all:
            return OF_DRAWSTRING
        return _BESIDE_OTHERS if self._lock is not None else this_process().encode()


def beats(storage: Storage) -> Mapping[str, int]:
    """Return the modification time of each heartbeat in epoch milliseconds, by requested time."""
    return {status.name: status.modified_ms for status in storage.list_files(HEARTBEAT_FOLDER)}


def has_died(storage: Storage, write: Instant) -> bool:
    """Return whether the lock that the process of a write holds while it lives is free.

    The lease of a plan tells nothing: its process may have died, and another engine runs the plan. In object
    stores no file does, whatever its name: a process that lost the table lock may have leased the requested
    time of a write for a plan that it could not schedule.
    """
    path = LEASE_FILE.format(write.requested)
    local = storage.local_path(path)
    if local is None or write.action in PLANNED_ACTIONS or not storage.exists(path):
        return False
    try:
        return not FileLock(local).is_held()
    except UnavailableError:  # a file system without locks: the heartbeat has to do
        return False


def _held_lock(storage: Storage, instant: Instant) -> bool:
    """Return whether the heartbeat is that of a process of drawstring with the table lock, or a lease."""
    try:
        return storage.read(f"{HEARTBEAT_FOLDER}/{instant.requested}") == OF_DRAWSTRING
    except FileNotFoundError:
        return True
