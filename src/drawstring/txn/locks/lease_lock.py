"""The table lock on an object store: a lease in one file, changed by conditional puts only.

    .hoodie/.locks/table_lock.json   {"expired":false,"validUntil":<epoch ms>,"owner":"<uuid>"}

The form of the JVM's storage-based lock provider, so both exclude each other. A lease is good for
`LEASE_MS`; a thread renews it every `RENEW_SECONDS`. It may be short: a process that lost it, because it
stood still, cannot complete anything any more (`timeline.claims`). Taking, renewing and giving back replace
the version of the file that was read before, so at most one of two contenders succeeds.

A lease that could not be given back, because the store failed just then, would be in its own process's way
until it expires. Owners are unique to an acquisition, so the process remembers whose time is over: nobody
uses such a lease any more, and a late put of its owner is refused once the file has another version.
"""

from __future__ import annotations

import json
import logging
import threading
from dataclasses import dataclass

from drawstring.base.clock import Clock, Ids
from drawstring.base.errors import ConflictError
from drawstring.storage.protocol import Storage

LEASE_PATH = ".hoodie/.locks/table_lock.json"
LEASE_MS = 60_000
RENEW_SECONDS = 10.0

_CLOCK_SKEW_MS = 500
_over: set[str] = set()
"""Owners of this process that let go, or never got hold, but whose lease may still stand in the file."""

_log = logging.getLogger("drawstring")


@dataclass(frozen=True, slots=True)
class Lease:
    """What the lock file says.

    Attributes:
        expired: whether the owner gave it back.
        valid_until_ms: milliseconds since the epoch.
        owner: unique to one acquisition.
    """

    expired: bool
    valid_until_ms: int
    owner: str

    def is_valid(self, now_ms: int) -> bool:
        """Tell whether the owner may still think that it holds the lock."""
        return not self.expired and self.valid_until_ms + _CLOCK_SKEW_MS >= now_ms

    def encode(self) -> bytes:
        """Return the content of the lock file."""
        fields = {"expired": self.expired, "validUntil": self.valid_until_ms, "owner": self.owner}
        return json.dumps(fields, separators=(",", ":")).encode()

    @staticmethod
    def decode(data: bytes) -> Lease:
        """Read the lock file; one that cannot be read is nobody's lease.

        Puts are whole, so only a file written by hand can be damaged; it must not block the table.
        """
        try:
            fields = json.loads(data)
            return Lease(bool(fields["expired"]), int(fields["validUntil"]), str(fields["owner"]))
        except (ValueError, KeyError, TypeError):
            return Lease(True, 0, "")


class LeaseLock:
    """A lock that its owner must renew.

    Args:
        storage: the table's files.
        clock: for the lease's time.
        ids: for the owner's name.
        renew_seconds: pause between renewals.
        path: of its file, relative to the table.
    """

    def __init__(
        self,
        storage: Storage,
        clock: Clock,
        ids: Ids,
        renew_seconds: float = RENEW_SECONDS,
        path: str = LEASE_PATH,
    ) -> None:
        self._storage = storage
        self._clock = clock
        self._ids = ids
        self._renew_seconds = renew_seconds
        self._path = path
        self._mutex = threading.Lock()
        self._stop = threading.Event()
        self._owner = ""
        self._version: str | None = None

    def try_acquire(self) -> bool:
        """Take the lease if nobody has a valid one, and start renewing it."""
        owner = self._ids.uuid()
        found = self._storage.read_versioned(self._path)
        before = None if found is None else Lease.decode(found[0])
        if before is not None and self._is_good(before):
            return False
        self._owner = owner
        _over.add(owner)  # until it is known that the lease is ours: an answer may get lost
        self._take(self._lease(owner), found)
        is_ours = self._adopt()
        _over.discard(owner)
        if not is_ours:
            return False
        if before is not None:
            _over.discard(before.owner)
        self._stop = threading.Event()
        threading.Thread(target=self._keep, args=(self._stop,), daemon=True, name="table-lease").start()
        return True

    def is_held(self) -> bool:
        """Tell whether anybody has a valid lease; nothing is written."""
        found = self._storage.read_versioned(self._path)
        return found is not None and self._is_good(Lease.decode(found[0]))

    def check(self) -> None:
        """Renew the lease: that succeeds only for the one who holds it.

        Raises:
            ConflictError: it was lost, because this process stood still for too long.
        """
        self.renew()
        if self._version is None:
            raise ConflictError("The lease was lost; try again.", path=self._path)

    def renew(self) -> None:
        """Extend the lease, or find out that it is lost."""
        with self._mutex:
            if self._version is None:
                return
            lease = self._lease(self._owner)
            self._storage.put_if_match(self._path, lease.encode(), self._version)
            # Whether the put was refused, or was applied though its answer got lost: the file says.
            self._adopt()

    def release(self) -> None:
        """Give the lease back; the file stays."""
        self._stop.set()
        with self._mutex:
            version, self._version = self._version, None
            if version is not None:
                given_back = Lease(True, self._clock.now_ms(), self._owner)
                _over.add(self._owner)
                self._storage.put_if_match(self._path, given_back.encode(), version)
                _over.discard(self._owner)

    def holder(self) -> str:
        """Say whose lease it is and how long it is good for."""
        found = self._storage.read_versioned(self._path)
        if found is None:
            return "nobody any more"
        lease = Lease.decode(found[0])
        left_ms = max(0, lease.valid_until_ms - self._clock.now_ms())
        return f"owner {lease.owner}, lease good for {left_ms // 1000} s more"

    def _is_good(self, lease: Lease) -> bool:
        return lease.is_valid(self._clock.now_ms()) and lease.owner not in _over

    def _lease(self, owner: str) -> Lease:
        return Lease(False, self._clock.now_ms() + LEASE_MS, owner)

    def _take(self, lease: Lease, found: tuple[bytes, str] | None) -> None:
        """Put the lease; what became of that, the file says."""
        if found is None:
            self._storage.put_if_absent(self._path, lease.encode())
        else:
            self._storage.put_if_match(self._path, lease.encode(), found[1])

    def _adopt(self) -> bool:
        """Note the version that the next put must match; None when the file is not ours."""
        found = self._storage.read_versioned(self._path)
        lease = Lease.decode(found[0]) if found else None
        is_ours = lease is not None and lease.owner == self._owner and not lease.expired
        self._version = found[1] if found and is_ours else None
        return is_ours

    def _keep(self, stop: threading.Event) -> None:
        while not stop.wait(self._renew_seconds) and self._version is not None:
            try:
                self.renew()
            except Exception as error:  # whatever it was, the next round tries again
                _log.warning("the lease on the table could not be renewed now: %s", error)
