"""The record of a table's leases: checked, and cleaned of old files.

Two leases overlap if one begins before the other has ended; one that was not released ends when it expires.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from drawstring.base.clock import Clock
from drawstring.base.display import Grid, ShowsGrid
from drawstring.base.errors import InvalidError
from drawstring.model.files import FileStatus
from drawstring.storage.protocol import Storage
from drawstring.txn.locks.lock_audit import AUDIT_FOLDER, AUDIT_SUFFIX, LeaseEvent, is_audited

_DAY_MS: Final = 86_400_000


@dataclass(frozen=True, slots=True)
class LockAudit(ShowsGrid):
    """The record of the leases on a table. It shows itself as a table, in notebooks too.

    Attributes:
        enabled: whether leases are recorded.
        leases: the recorded leases that can be read.
        overlaps: pairs of files with leases of which one began before the other had ended.
        unended: files with leases that were not released: their processes died, or still hold them.
        unreadable: files that are no record.
    """

    enabled: bool
    leases: int
    overlaps: tuple[tuple[str, str], ...]
    unended: tuple[str, ...]
    unreadable: tuple[str, ...]

    def _grid(self) -> Grid:
        rows = [
            *(
                (one, f"overlaps with {other}: two writers held the lock at once")
                for one, other in self.overlaps
            ),
            *((name, "was not released: its process died, or still holds it") for name in self.unended),
            *((name, "is no record of a lease") for name in self.unreadable),
        ]
        state = "recorded" if self.enabled else "not recorded"
        return Grid(f"Leases are {state}; {self.leases} on record", (), rows)


@dataclass(frozen=True, slots=True)
class _Lease:
    """A lease on the table.

    Attributes:
        name: of its file.
        start_ms: when it began.
        end_ms: when it was released, or expired.
        is_ended: whether it was released.
    """

    name: str
    start_ms: int
    end_ms: int
    is_ended: bool


def lock_audit(storage: Storage) -> LockAudit:
    """Return what the record of leases on a table tells."""
    leases, unreadable = [], []
    for file in _files(storage):
        name = file.path.rpartition("/")[2]
        lease = _lease(name, storage.read(file.path))
        if lease is None:
            unreadable.append(name)
        else:
            leases.append(lease)
    leases.sort(key=lambda each: each.start_ms)
    unended = tuple(each.name for each in leases if not each.is_ended)
    return LockAudit(
        is_audited(storage), len(leases), tuple(_overlaps(leases)), unended, tuple(sorted(unreadable))
    )


def clean_lock_audit(storage: Storage, clock: Clock, *, age_days: int, apply: bool) -> tuple[str, ...]:
    """Delete old records of leases.

    Args:
        storage: the table's files.
        clock: tells their age.
        age_days: age in days beyond which a record goes.
        apply: whether to delete.

    Returns:
        The files that were, or would be, deleted.

    Raises:
        InvalidError: the age is no positive number.
    """
    if type(age_days) is not int or age_days <= 0:
        raise InvalidError(
            f"age_days is {age_days!r}. Give the age in days beyond which records of leases go: a whole"
            " number of at least 1."
        )
    before_ms = clock.now_ms() - age_days * _DAY_MS
    old = tuple(each.path for each in _files(storage) if each.modified_ms < before_ms)
    if apply:
        storage.delete(old)
    return old


def has_lock_audit(storage: Storage) -> bool:
    """Return whether there is a record of any lease."""
    return bool(_files(storage))


def _files(storage: Storage) -> list[FileStatus]:
    found = (each for each in storage.list_files(AUDIT_FOLDER) if each.path.endswith(AUDIT_SUFFIX))
    return sorted(found, key=lambda each: each.path)


def _lease(name: str, data: bytes) -> _Lease | None:
    """Return the lease in a file, None if it is no record of one."""
    try:
        events = [json.loads(line) for line in data.splitlines() if line.strip()]
        at = {LeaseEvent(each["state"]): int(each["timestamp"]) for each in reversed(events)}
        start_ms = at.get(LeaseEvent.START, int(events[0]["transactionStartTime"]))
        end_ms = at.get(LeaseEvent.END, int(events[-1].get("lockExpiration", start_ms)))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        return None
    return _Lease(name, start_ms, end_ms, LeaseEvent.END in at)


def _overlaps(leases: Sequence[_Lease]) -> Iterator[tuple[str, str]]:
    """Yield the overlapping pairs of leases, which are in the order of their begin."""
    for place, one in enumerate(leases):
        for other in leases[place + 1 :]:
            if other.start_ms >= one.end_ms:
                break
            yield one.name, other.name
