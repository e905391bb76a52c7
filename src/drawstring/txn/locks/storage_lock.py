"""Lock a table on an object store by a lease: one file that changes only by conditional puts.

    .hoodie/.locks/table_lock.json   {"expired":false,"validUntil":<epoch ms>,"owner":"<text>"}

The file has the form of Hudi's storage-based lock provider, so the two exclude each other. An owner is a
UUID; an owner of drawstring also names its process, which the messages of waiters show. A lease is valid
for `LEASE_MS`, and a thread renews it every `RENEW_SECONDS`, unless options say otherwise. All processes go
by the values in the file. The lease may be short, because a process that stalled and lost it cannot
complete an instant any more (`timeline.claims`).

Acquiring, renewing and releasing replace the version of the file that was read before, so at most one of
two contenders succeeds. A lease that was not released is taken over once its file, by the clock of the
storage, is also older than the duration of a lease (`txn.storage_clock`): clocks of machines may differ.

    answer of the store           here                                        in the JVM
    412, or 409 on a put          read the file: it says whose lease it is    lost; not acquired, tried again
    429, 5xx, no answer           the store tries again; then the same        not acquired, tried again
    a file that is no lease       free                                        an error

If the store fails while a lease is released, the lease would block its own process until it expires. Owner
names are unique per acquisition, so the process remembers which of its owners have ended. It ignores their
leases, and the store refuses a late put of an ended owner once the file has another version.

The audit records who held the lease on a table and when, as Hudi's storage-based lock provider does.

    .hoodie/.locks/audit_enabled.json              {"STORAGE_LOCK_AUDIT_SERVICE_ENABLED":true}
    .hoodie/.locks/audit/<start ms>_<uuid>.jsonl   one line for each START, RENEW and END of a lease

Each event puts the file again with all its lines. A failure to record is only logged: the lock matters
more. The switch is read when a lease begins, and the process uses that value for a minute.
"""

from __future__ import annotations

import json
import logging
import threading
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from drawstring.base.clock import Clock, Ids, Stopwatch
from drawstring.base.errors import ConflictError, DrawstringError, InvalidError
from drawstring.base.resources import Renewal, this_process
from drawstring.storage.protocol import Storage
from drawstring.txn.storage_clock import storage_now_ms

AUDIT_SWITCH: Final = ".hoodie/.locks/audit_enabled.json"
AUDIT_FOLDER: Final = ".hoodie/.locks/audit"
AUDIT_SUFFIX: Final = ".jsonl"
_FIELD: Final = "STORAGE_LOCK_AUDIT_SERVICE_ENABLED"
_FRESH_SECONDS: Final = 60.0
_known: dict[str, tuple[Stopwatch, bool]] = {}
_log: Final = logging.getLogger("drawstring")


class LeaseEvent(StrEnum):
    """What happened to a lease."""

    START = "START"
    RENEW = "RENEW"
    END = "END"


def is_audited(storage: Storage) -> bool:
    """Return whether leases on a table are recorded."""
    try:
        switch = json.loads(storage.read(AUDIT_SWITCH))
    except (FileNotFoundError, ValueError):
        return False
    return isinstance(switch, dict) and switch.get(_FIELD) in (True, "true")


def switch_audit(storage: Storage, on: bool) -> None:
    """Have leases on a table recorded, or no longer.

    Raises:
        InvalidError: `on` is neither True nor False.
    """
    if not isinstance(on, bool):
        raise InvalidError(f"on is {on!r}. Give True to have the leases recorded, or False.")
    storage.put(AUDIT_SWITCH, json.dumps({_FIELD: on}, separators=(",", ":")).encode())
    _known.pop(storage.spec.uri, None)


class LeaseRecord:
    """The record of one lease.

    Args:
        storage: the table's files.
        owner: of the lease.
        start_ms: when it began, in epoch milliseconds.
    """

    def __init__(self, storage: Storage, owner: str, start_ms: int) -> None:
        self._storage = storage
        self._owner = owner
        self._start_ms = start_ms
        self._path = f"{AUDIT_FOLDER}/{start_ms}_{owner.partition(',')[0]}{AUDIT_SUFFIX}"
        self._lines = b""

    def note(self, event: LeaseEvent, now_ms: int, lease_ms: int) -> None:
        """Record an event.

        Args:
            event: what happened.
            now_ms: when, in epoch milliseconds.
            lease_ms: milliseconds that a lease is valid.
        """
        fields = {
            "ownerId": self._owner,
            "transactionStartTime": self._start_ms,
            "timestamp": now_ms,
            "state": event,
            "lockExpiration": now_ms + lease_ms,
            "lockHeld": True,
        }
        self._lines += json.dumps(fields, separators=(",", ":")).encode() + b"\n"
        try:
            self._storage.put(self._path, self._lines)
        except (OSError, DrawstringError) as error:
            _log.warning("%s of a lease was not recorded in %s: %s", event, self._path, error)


def lease_record(storage: Storage, owner: str, start_ms: int) -> LeaseRecord | None:
    """Return the record of a lease that begins; None where leases are not recorded."""
    uri = storage.spec.uri
    known = _known.get(uri)
    if known is None or known[0].seconds() > _FRESH_SECONDS:
        try:
            known = (Stopwatch(), is_audited(storage))
        except (OSError, DrawstringError) as error:
            _log.warning("Whether leases are recorded (%s) cannot be read: %s", AUDIT_SWITCH, error)
            return None
        _known[uri] = known
    return LeaseRecord(storage, owner, start_ms) if known[1] else None


LEASE_PATH = ".hoodie/.locks/table_lock.json"
LEASE_MS = 60_000
RENEW_SECONDS = 10.0

_CLOCK_SKEW_MS = 500
_RELEASES_MAX = 4
_GRANTED_MS_MAX = 3_600_000
"""Longest time for which a lease is granted; Hudi grants minutes."""
_ended_owners: set[str] = set()
"""Owners of this process that released the lease, or failed to acquire it, but may still be in the file."""


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
            is_expired = fields["expired"] in (True, "true")
            return Lease(is_expired, int(fields["validUntil"]), str(fields["owner"]))
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
        lease_ms: milliseconds that a lease is valid; None for `LEASE_MS`.
    """

    def __init__(
        self,
        storage: Storage,
        clock: Clock,
        ids: Ids,
        renew_seconds: float = RENEW_SECONDS,
        path: str = LEASE_PATH,
        lease_ms: int | None = None,
    ) -> None:
        self._storage = storage
        self._clock = clock
        self._ids = ids
        self._path = path
        self._lease_ms = LEASE_MS if lease_ms is None else lease_ms
        self._mutex = threading.Lock()
        self._renewal = Renewal(self._keep, renew_seconds)
        self._owner = ""
        self._valid_until_ms = 0
        self._version: str | None = None
        self._record: LeaseRecord | None = None

    def try_acquire(self) -> bool:
        """Acquire the lease if there is no valid one, and start renewing it."""
        owner = f"{self._ids.uuid()}, {this_process()}"
        versioned = self._storage.read_versioned(self._path)
        previous = None if versioned is None else Lease.decode(versioned[0])
        if previous is not None and (self._is_good(previous) or not self._has_ended(previous)):
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
        self._renewal.start()
        self._begin_record()
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
            raise ConflictError(
                "The lease on the table was lost, because this process stood still for longer than it lasts."
                f"{self._last_owner()} Retry the operation.",
                path=self._path,
            )

    def _last_owner(self) -> str:
        with suppress(DrawstringError, OSError):  # the lock is lost, whoever has it
            return f" Its last owner is {self.holder()}."
        return ""

    def renew(self) -> None:
        """Extend the lease, or notice that it is lost."""
        with self._mutex:
            if self._version is None:
                return
            lease = self._lease(self._owner)
            self._storage.put_if_match(self._path, lease.encode(), self._version)
            # The put may have been refused, or applied with its answer lost: only the file tells which.
            if self._adopt():
                self._note(LeaseEvent.RENEW)

    def release(self) -> None:
        """Release the lease; the file stays, with the validity that it had."""
        self._renewal.stop()
        with self._mutex:
            try:
                for _ in range(_RELEASES_MAX):
                    if self._version is None:
                        break
                    self._give_back(self._version)
            finally:
                self._version = self._record = None

    def holder(self) -> str:
        """Describe the owner of the lease and its remaining validity."""
        versioned = self._storage.read_versioned(self._path)
        if versioned is None:
            return "an owner that has just released it"
        lease = Lease.decode(versioned[0])
        if lease.expired:
            return f"owner {lease.owner or 'unknown'}, who has released it"
        remaining_ms = max(0, lease.valid_until_ms - self._clock.now_ms())
        return f"owner {lease.owner}, lease good for {remaining_ms // 1000} s more"

    def _is_good(self, lease: Lease) -> bool:
        return lease.is_valid(self._clock.now_ms()) and lease.owner not in _ended_owners

    def _has_ended(self, lease: Lease) -> bool:
        """Return whether a lease that is not good by our clock has ended by that of the storage as well."""
        if lease.expired or lease.owner in _ended_owners:
            return True
        now_ms = storage_now_ms(self._storage, self._clock)
        listed = self._storage.list_files(self._path.rpartition("/")[0])
        written = [each.modified_ms for each in listed if each.path == self._path]
        return all(now_ms - ms > self._lasts_ms(lease.valid_until_ms - ms) for ms in written)

    def _lasts_ms(self, granted_ms: int) -> int:
        """Return how long a lease lasts: as granted, unless the clock of its owner is far off."""
        return granted_ms if 0 < granted_ms <= _GRANTED_MS_MAX else self._lease_ms

    def _lease(self, owner: str) -> Lease:
        return Lease(False, self._clock.now_ms() + self._lease_ms, owner)

    def _give_back(self, version: str) -> None:
        """Put the released lease; a store may refuse that for no reason, and the lease is still ours."""
        released = Lease(True, self._valid_until_ms, self._owner)
        _ended_owners.add(self._owner)
        if self._storage.put_if_match(self._path, released.encode(), version) or not self._adopt():
            _ended_owners.discard(self._owner)
            self._version = None
            self._note(LeaseEvent.END)

    def _begin_record(self) -> None:
        """Record the lease if it is that of the table, and leases of the table are recorded."""
        if self._path == LEASE_PATH:
            start_ms = self._valid_until_ms - self._lease_ms
            self._record = lease_record(self._storage, self._owner, start_ms)
            self._note(LeaseEvent.START)

    def _note(self, event: LeaseEvent) -> None:
        if self._record is not None:
            self._record.note(event, self._clock.now_ms(), self._lease_ms)

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
        self._valid_until_ms = lease.valid_until_ms if lease else 0
        return is_ours

    def _keep(self) -> bool:
        self.renew()
        return self._version is not None
