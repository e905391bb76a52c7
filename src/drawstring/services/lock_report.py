"""Show who holds the lock of a table or waits for it, who works on pending instants, and the audit of leases.

`table_locks` only reads, so it runs beside writers. It leaves out what vanishes while it reads. Processes
and file groups have the same names as in messages (`txn.heartbeat`).

`lock_audit` checks the record of a table's leases, and `clean_lock_audit` deletes old files of it. Two
leases overlap if one begins before the other has ended; a lease that was not released ends when it expires.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from drawstring.base.clock import Clock
from drawstring.base.errors import InvalidError, UnavailableError
from drawstring.base.text_format import Grid, ShowsGrid
from drawstring.config.keys.concurrency import ProviderName
from drawstring.config.options.write_options import WriteOptions
from drawstring.model.files import FileStatus, join_path
from drawstring.model.instant import FILE_ACTIONS, PLANNED_ACTIONS, Action, Instant
from drawstring.model.result import LockState, PendingWork, TableLocks
from drawstring.storage.protocol import Storage
from drawstring.timeline.properties import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.txn.heartbeat import active_instants, groups_of, heartbeat_times, process_of
from drawstring.txn.locks.file_lock import FileQueue
from drawstring.txn.locks.service_lease import is_leased, is_runner_dead
from drawstring.txn.locks.storage_lock import AUDIT_FOLDER, AUDIT_SUFFIX, LEASE_PATH, LeaseEvent, is_audited
from drawstring.txn.locks.table_lock import (
    FILE_LOCK_PATH,
    QUEUE_FOLDER,
    Lock,
    lock_at,
    provider_lock,
    release_lock,
)
from drawstring.txn.reservations import NO_PARTS, Parts, reservations
from drawstring.txn.storage_clock import about_now_ms
from drawstring.txn.table_context import TableContext

_RUNS: Final = {
    Action.COMPACTION: "services compact {uri} --instant {time}",
    Action.LOG_COMPACTION: "services log-compact {uri} --instant {time}",
    Action.CLUSTERING: "services cluster {uri} --instant {time}",
}
_WAIT: Final = (
    "Wait until it is done, or end that process: the next write then rolls it back or completes it."
)
_WAIT_FOR_PLAN: Final = "Wait until it is done, or end that process: the plan can then be run again."
_FINISHED: Final = "The next write or service finishes it, unless its process still does."


def table_locks(context: TableContext, options: WriteOptions) -> TableLocks:
    """Return who holds the locks of a table, waits for them, or works on it; writes nothing.

    Args:
        context: the open table.
        options: which lock writers take besides the table's own, and the greatest age of a live heartbeat.
    """
    locks = tuple(_lock_states(context, options))
    store = TimelineStore(context.storage, load_config(context.storage), context.clock)
    timeline = store.load()
    pending, failed = timeline.pending(), options.failed_writes
    live = active_instants(context, [each for each in pending if each.action in FILE_ACTIONS], failed)
    live |= {each.requested for each in pending if _is_indexed(context, each)}
    live |= {each.requested for each in pending if _holds_a_lock(context, each, locks)}
    first = {each.write.requested: each.parts for each in reservations(context, timeline, failed)}
    ages = _heartbeat_ages(context)
    still = set(store.load().pending())  # what ended meanwhile had no heartbeat any more
    return TableLocks(
        locks,
        tuple(
            _pending_work(
                context,
                each,
                is_alive=each.requested in live,
                age_ms=ages.get(each.requested),
                alive_ms=failed.alive_ms,
                parts=first.get(each.requested, NO_PARTS),
            )
            for each in pending
            if each in still
        ),
    )


def _lock_states(context: TableContext, options: WriteOptions) -> Iterator[LockState]:
    storage, clock, ids, settings = context.storage, context.clock, context.ids, options.locking
    queue = storage.local_path(QUEUE_FOLDER)
    other = provider_lock(storage, clock, ids, settings) if settings.given else None
    is_same = queue is None and settings.known_provider in (ProviderName.OWN, ProviderName.STORAGE)
    own = lock_at(storage, clock, ids, LEASE_PATH if queue is None else FILE_LOCK_PATH)
    with suppress(*([] if other is None else [UnavailableError])):  # a file system without locks
        waiters = None if queue is None else tuple(FileQueue(queue).waiters())
        yield LockState(ProviderName.OWN.value, _holder(own), waiters)
    if other is not None and not is_same:
        try:
            yield LockState(settings.provider, _holder(other), None)
        finally:
            release_lock(other)


def _holder(lock: Lock) -> str:
    return lock.holder() if lock.is_held() else ""


def _is_indexed(context: TableContext, instant: Instant) -> bool:
    """Return whether a process builds the index that an instant plans."""
    is_indexing = instant.action is Action.INDEXING
    return is_indexing and is_leased(context.storage, context.clock, context.ids, instant.requested)


def _holds_a_lock(context: TableContext, instant: Instant, locks: Sequence[LockState]) -> bool:
    """Return whether the process of an instant holds a lock of the table."""
    process = process_of(context.storage, instant)
    return bool(process) and any(_names(each.holder, process) for each in locks)


def _names(text: str, process: str) -> bool:
    """Return whether a text has the whole name of a process; `host` is the begin of other names, too."""
    return bool(re.search(rf"(?<![\w.-]){re.escape(process)}(?![\w-]|\.\w)", text))


def _heartbeat_ages(context: TableContext) -> Mapping[str, int]:
    now_ms = about_now_ms(context.storage, context.clock)
    return {requested: max(0, now_ms - ms) for requested, ms in heartbeat_times(context.storage).items()}


def _pending_work(
    context: TableContext,
    instant: Instant,
    *,
    is_alive: bool,
    age_ms: int | None,
    alive_ms: int,
    parts: Parts,
) -> PendingWork:
    tells = instant.action in FILE_ACTIONS or instant.action is Action.INDEXING
    groups = groups_of(context.storage, context.clock, instant)
    return PendingWork(
        instant,
        process_of(context.storage, instant),
        is_alive if tells else None,
        age_ms,
        None if age_ms is None else alive_ms - age_ms,
        parts.partitions is None,
        tuple(sorted(parts.partitions or ())),
        tuple(join_path(*each) for each in sorted(groups)),
        _advice(context, instant, is_alive=is_alive),
    )


def _advice(context: TableContext, instant: Instant, *, is_alive: bool) -> str:
    uri, time, action = context.storage.spec.uri, instant.requested, instant.action
    if action is Action.INDEXING:
        run = f"Build it: drawstring indexes run {uri} {time}"
        return _WAIT_FOR_PLAN if is_alive else f"{run}; or give it up: drawstring indexes drop {uri} NAME."
    if action in PLANNED_ACTIONS:
        run = f"Run it: drawstring {_RUNS[action].format(uri=uri, time=time)}"
        undo = f"give it up: drawstring services rollback {uri} {time}"
        if action is Action.CLUSTERING and is_runner_dead(context.storage, context.clock, context.ids, time):
            undo = "the next write gives it up"
        return _WAIT_FOR_PLAN if is_alive else f"{run}; or {undo}."
    if action in FILE_ACTIONS:
        undo = f"or drawstring services rollback {uri} {time}."
        return _WAIT if is_alive else f"Its process died: the next write undoes or completes it, {undo}"
    return _FINISHED


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
