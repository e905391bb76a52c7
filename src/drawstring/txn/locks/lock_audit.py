"""A record of who held the lease on a table and when, as Hudi's storage-based lock provider keeps it.

    .hoodie/.locks/audit_enabled.json              {"STORAGE_LOCK_AUDIT_SERVICE_ENABLED":true}
    .hoodie/.locks/audit/<start ms>_<uuid>.jsonl   one line for each START, RENEW and END of a lease

A file is put anew with all its lines at each event. What cannot be recorded is logged: the lock matters more.
The switch is read when a lease begins, and its value counts for a minute in the process.
"""

from __future__ import annotations

import json
import logging
from enum import StrEnum
from typing import Final

from drawstring.base.clock import Stopwatch
from drawstring.base.errors import DrawstringError, InvalidError
from drawstring.storage.protocol import Storage

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
