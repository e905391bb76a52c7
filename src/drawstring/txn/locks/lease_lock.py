"""The table lock on an object store: a lease in one file that changes only by conditional puts.

    .hoodie/.locks/table_lock.json   {"expired":false,"validUntil":<epoch ms>,"owner":"<uuid>"}

The file has the form of Hudi's storage-based lock provider, so both exclude each other. A lease is valid for
`LEASE_MS`; a thread renews it every `RENEW_SECONDS`. The lease may be short, because a process that stalled
and lost it cannot complete an instant any more (`timeline.claims`). Acquiring, renewing and releasing replace
the version of the file that was read before, so at most one of two contenders succeeds.

If the store fails while a lease is released, the lease would block its own process until it expires. Owner
names are unique per acquisition, so the process remembers which of its owners have ended: it ignores such
leases, and a late put of an ended owner is refused once the file has another version.
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
_ended_owners: set[str] = set()
"""Owners of this process that released the lease, or failed to acquire it, but may still be in the file."""

_log = logging.getLogger("drawstring")


@dataclass(frozen=True, slots=True)
class Lease:
    """The content of the lock file.

    Attributes:
        expired: whether the owner released the lease.
        valid_until_ms: end of validity in epoch milliseconds.
        owner: unique per acquisition.
    """

    expired: bool
    valid_until_ms: int
    owner: str

    def is_valid(self, now_ms: int) -> bool:
        """Return whether the owner may still believe that it holds the lock."""
        return not self.expired and self.valid_until_ms + _CLOCK_SKEW_MS >= now_ms

    def encode(self) -> bytes:
        """Return the content of the lock file."""
        fields = {"expired": self.expired, "validUntil": self.valid_until_ms, "owner": self.owner}
        return json.dumps(fields, separators=(",", ":")).encode()

    @staticmethod
    def decode(data: bytes) -> Lease:
        """Decode the lock file; an unreadable file is a lease without an owner.

        Puts are atomic, so only a file written by hand can be damaged; it must not block the table.
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
        clock: for the expiry of the lease.
        ids: names the owner.
        renew_seconds: seconds between renewals.
        path: of the lock file, relative to the table.
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
        """Acquire the lease if there is no valid one, and start renewing it."""
        owner = self._ids.uuid()
        versioned = self._storage.read_versioned(self._path)
        previous = None if versioned is None else Lease.decode(versioned[0])
        if previous is not None and self._is_good(previous):
            return False
        self._owner = owner
        _ended_owners.add(owner)  # until the lease is known to be ours: the store's answer may get lost
        self._take(self._lease(owner), versioned)
        is_ours = self._adopt()
        _ended_owners.discard(owner)
        if not is_ours:
            return False
        if previous is not None:
            _ended_owners.discard(previous.owner)
        self._stop = threading.Event()
        threading.Thread(
            target=self._keep_renewing, args=(self._stop,), daemon=True, name="table-lease"
        ).start()
        return True

    def is_held(self) -> bool:
        """Return whether any process has a valid lease; writes nothing."""
        versioned = self._storage.read_versioned(self._path)
        return versioned is not None and self._is_good(Lease.decode(versioned[0]))

    def check(self) -> None:
        """Renew the lease, which succeeds only for its holder.

        Raises:
            ConflictError: the lease was lost, because this process stalled for too long.
        """
        self.renew()
        if self._version is None:
            raise ConflictError("The lease on the table was lost. Retry the operation.", path=self._path)

    def renew(self) -> None:
        """Extend the lease, or notice that it is lost."""
        with self._mutex:
            if self._version is None:
                return
            lease = self._lease(self._owner)
            self._storage.put_if_match(self._path, lease.encode(), self._version)
            # The put may have been refused, or applied with its answer lost: only the file tells which.
            self._adopt()

    def release(self) -> None:
        """Release the lease; the file stays."""
        self._stop.set()
        with self._mutex:
            version, self._version = self._version, None
            if version is not None:
                released = Lease(True, self._clock.now_ms(), self._owner)
                _ended_owners.add(self._owner)
                self._storage.put_if_match(self._path, released.encode(), version)
                _ended_owners.discard(self._owner)

    def holder(self) -> str:
        """Describe the owner of the lease and its remaining validity."""
        versioned = self._storage.read_versioned(self._path)
        if versioned is None:
            return "an owner that has just released it"
        lease = Lease.decode(versioned[0])
        remaining_ms = max(0, lease.valid_until_ms - self._clock.now_ms())
        return f"owner {lease.owner}, lease good for {remaining_ms // 1000} s more"

    def _is_good(self, lease: Lease) -> bool:
        return lease.is_valid(self._clock.now_ms()) and lease.owner not in _ended_owners

    def _lease(self, owner: str) -> Lease:
        return Lease(False, self._clock.now_ms() + LEASE_MS, owner)

    def _take(self, lease: Lease, versioned: tuple[bytes, str] | None) -> None:
        """Put the lease; the caller reads the file to see whether the put was applied."""
        if versioned is None:
            self._storage.put_if_absent(self._path, lease.encode())
        else:
            self._storage.put_if_match(self._path, lease.encode(), versioned[1])

    def _adopt(self) -> bool:
        """Read the file and note the version that the next put must match; None if the lease is not ours."""
        versioned = self._storage.read_versioned(self._path)
        lease = Lease.decode(versioned[0]) if versioned else None
        is_ours = lease is not None and lease.owner == self._owner and not lease.expired
        self._version = versioned[1] if versioned and is_ours else None
        return is_ours

    def _keep_renewing(self, stop: threading.Event) -> None:
        while not stop.wait(self._renew_seconds) and self._version is not None:
            try:
                self.renew()
            except Exception as error:  # any failure is transient here: the next round tries again
                _log.warning("The lease on the table could not be renewed; will retry: %s", error)
