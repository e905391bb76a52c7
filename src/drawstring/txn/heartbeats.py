"""Signs of life of writers: a file for each write, touched while it goes on.

    .hoodie/.heartbeat/<T>      Hudi's are empty, drawstring's say whose they are; age alone counts

Another engine's write is alive while its heartbeat is young. One of drawstring is not once somebody else
holds the table lock: it would still hold it. It has a heartbeat all the same where dead writes are left to a
clean (LAZY), for Hudi takes a write without one for dead.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from drawstring.base.clock import Clock
from drawstring.base.errors import ConflictError, DrawstringError
from drawstring.config.keys.failed_writes import EAGERLY, FailedWrites, FailedWritesPolicy
from drawstring.model.instant import Instant
from drawstring.storage.protocol import Storage

HEARTBEAT_FOLDER: Final = ".hoodie/.heartbeat"
_OWN: Final = b"drawstring"
_log = logging.getLogger("drawstring")


def refuse_live_writers(
    storage: Storage, clock: Clock, pending: Collection[Instant], failed: FailedWrites = EAGERLY
) -> None:
    """Refuse to go on beside writers of other engines that show signs of life.

    Args:
        storage: the table's files.
        clock: tells how old a sign is.
        pending: the instants.
        failed: how old a sign may be.

    Raises:
        ConflictError: another engine is at work on one of them.
    """
    for instant in alive_elsewhere(storage, clock, pending, failed):
        raise ConflictError(
            "Another engine is writing to this table; retry when it is done.", instant=instant.requested
        )


def alive_elsewhere(
    storage: Storage, clock: Clock, pending: Collection[Instant], failed: FailedWrites
) -> list[Instant]:
    """Return the instants that another engine shows signs of life for, in the same order."""
    if not pending:
        return []
    beats, now_ms = _beats(storage), clock.now_ms()
    return [
        each
        for each in pending
        if now_ms - beats.get(each.requested, 0) < failed.alive_ms and not _is_own(storage, each)
    ]


def expired(
    storage: Storage, clock: Clock, pending: Collection[Instant], failed: FailedWrites
) -> list[Instant]:
    """Return the instants whose heartbeat is missing or too old, in the same order."""
    beats, now_ms = _beats(storage), clock.now_ms()
    return [each for each in pending if now_ms - beats.get(each.requested, 0) > failed.alive_ms]


def forget_heartbeats(
    storage: Storage, clock: Clock, pending: Collection[Instant], failed: FailedWrites
) -> None:
    """Delete old heartbeats of writes that are not pending: their writers died right after them."""
    times, now_ms = {each.requested for each in pending}, clock.now_ms()
    old = [at for at, ms in _beats(storage).items() if at not in times and now_ms - ms > failed.alive_ms]
    storage.delete([f"{HEARTBEAT_FOLDER}/{time}" for time in old])


class Heartbeat:
    """The heartbeat of one write of this process.

    Args:
        storage: the table's files.
        clock: tells how old the last beat is.
        requested: requested time of the write.
        failed: how often it beats, and how old a beat may be.
    """

    def __init__(self, storage: Storage, clock: Clock, requested: str, failed: FailedWrites) -> None:
        self._storage = storage
        self._clock = clock
        self._requested = requested
        self._failed = failed
        self._last_ms = 0
        self._stop = threading.Event()

    def start(self) -> None:
        """Beat once, and from now on in a thread."""
        self._beat()
        threading.Thread(target=self._keep, daemon=True, name="write-heartbeat").start()

    def check(self) -> None:
        """Make sure that nobody may take this write for dead.

        Raises:
            ConflictError: somebody may, because this process stood still for too long.
        """
        if self._clock.now_ms() - self._last_ms > self._failed.alive_ms:
            raise ConflictError(
                "This write showed no sign of life for too long, and may be rolled back: write again.",
                instant=self._requested,
            )

    def stop(self) -> None:
        """End it; a file that cannot be deleted grows old."""
        self._stop.set()
        try:
            self._storage.delete([self._path])
        except (DrawstringError, OSError) as error:
            _log.warning("the heartbeat of %s stays for now: %s", self._requested, error)

    @property
    def _path(self) -> str:
        return f"{HEARTBEAT_FOLDER}/{self._requested}"

    def _beat(self) -> None:
        now_ms = self._clock.now_ms()
        self._storage.put(self._path, _OWN)
        self._last_ms = now_ms

    def _keep(self) -> None:
        while not self._stop.wait(self._failed.interval_ms / 1000):
            try:
                self._beat()
            except Exception as error:  # whatever it was, the next round tries again
                _log.warning("no heartbeat of %s now: %s", self._requested, error)


@contextmanager
def beating(
    storage: Storage, clock: Clock, requested: str, failed: FailedWrites
) -> Iterator[Heartbeat | None]:
    """Show signs of life during a block of code, where dead writes are told by them."""
    if failed.policy != FailedWritesPolicy.LAZY:
        yield None
        return
    heartbeat = Heartbeat(storage, clock, requested, failed)
    heartbeat.start()
    try:
        yield heartbeat
    finally:
        heartbeat.stop()


def _beats(storage: Storage) -> Mapping[str, int]:
    """Return when each heartbeat was, by requested time."""
    return {status.name: status.modified_ms for status in storage.list_files(HEARTBEAT_FOLDER)}


def _is_own(storage: Storage, instant: Instant) -> bool:
    try:
        return storage.read(f"{HEARTBEAT_FOLDER}/{instant.requested}") == _OWN
    except FileNotFoundError:
        return True
