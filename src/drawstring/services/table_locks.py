"""Who holds the lock of a table or waits for it, and who works on its pending instants.

It only reads, so it works beside writers, whatever they do: what vanishes while it looks is left out.
Processes and file groups have the names that they have in messages (`txn.told`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from drawstring.base.errors import UnavailableError
from drawstring.config.keys.locks import ProviderName
from drawstring.config.options.write_options import WriteOptions
from drawstring.model.files import join_path
from drawstring.model.instant import FILE_ACTIONS, PLANNED_ACTIONS, Action, Instant
from drawstring.model.table_locks import LockState, PendingWork, TableLocks
from drawstring.timeline.properties_store import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.txn.heartbeats import beats
from drawstring.txn.live_work import worked_on
from drawstring.txn.locks.file_queue import FileQueue
from drawstring.txn.locks.lease_lock import LEASE_PATH
from drawstring.txn.locks.protocol import Lock
from drawstring.txn.locks.providers import provided_lock
from drawstring.txn.locks.service_lease import is_leased, is_runner_dead
from drawstring.txn.locks.table_lock import FILE_LOCK_PATH, QUEUE_FOLDER, lock_at, release_lock
from drawstring.txn.reservations import NO_PARTS, Parts, reservations
from drawstring.txn.storage_clock import about_now_ms
from drawstring.txn.table_context import TableContext
from drawstring.txn.told import groups_of, process_of

_RUNS: Final = {
    Action.COMPACTION: "compact {uri} --instant {time}",
    Action.LOG_COMPACTION: "log-compact {uri} --instant {time}",
    Action.CLUSTERING: "cluster {uri} --instant {time}",
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
    live = worked_on(context, [each for each in pending if each.action in FILE_ACTIONS], failed)
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
    other = provided_lock(storage, clock, ids, settings) if settings.given else None
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
    return {requested: max(0, now_ms - ms) for requested, ms in beats(context.storage).items()}


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
        run = f"Build it: drawstring index run {uri} {time}; or give it up: drawstring index drop {uri} NAME."
        return _WAIT_FOR_PLAN if is_alive else run
    if action in PLANNED_ACTIONS:
        run = f"Run it: drawstring {_RUNS[action].format(uri=uri, time=time)}"
        undo = f"give it up: drawstring rollback {uri} {time}"
        if action is Action.CLUSTERING and is_runner_dead(context.storage, context.clock, context.ids, time):
            undo = "the next write gives it up"
        return _WAIT_FOR_PLAN if is_alive else f"{run}; or {undo}."
    if action in FILE_ACTIONS:
        undo = f"or drawstring rollback {uri} {time}."
        return _WAIT if is_alive else f"Its process died: the next write undoes or completes it, {undo}"
    return _FINISHED
