"""Waits of a write for instants of others: a clustering of its file groups, or a rival that was first.

A clustering that a process runs is worth waiting for again before each attempt. One that nobody runs may stay
pending for good: after one wait the user has to decide.
"""

from __future__ import annotations

from typing import Final

from drawstring.base.clock import jitter
from drawstring.base.errors import DrawstringError, PendingClusteringError, RivalError
from drawstring.config.options.write_options import WriteOptions
from drawstring.formats.metadata.clustering_plan import decode_clustering_plan
from drawstring.model.instant import Action, Instant, State
from drawstring.timeline.properties_store import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.txn.heartbeats import alive_elsewhere
from drawstring.txn.live_work import leased
from drawstring.txn.locks.service_lease import is_runner_dead
from drawstring.txn.reach import shown
from drawstring.txn.table_context import TableContext
from drawstring.txn.told import process_of, told

_WAIT: Final = "hoodie.write.lock.wait_time_ms"
_RETRIES: Final = "hoodie.write.num.retries.on.conflict.failures"
_ALLOW: Final = "hoodie.clustering.updates.strategy=SparkAllowUpdateStrategy"
_PAUSE_SECONDS: Final = 0.05
_PAUSE_SECONDS_MAX: Final = 5.0


def wait_for(context: TableContext, options: WriteOptions, refused: DrawstringError) -> bool:
    """Wait without the table lock until an instant has completed, is gone, or its process died.

    Args:
        context: the open table.
        options: of the write, with the longest wait.
        refused: names the instant.

    Returns:
        False if it is still pending after that time.
    """
    requested, clock = refused.instant or "", context.clock
    store = _store(context)
    deadline_ms, pause = clock.now_ms() + options.locking.wait_ms, _PAUSE_SECONDS
    while (instant := store.load().find(requested)) is not None and not instant.is_completed:
        if _is_abandoned(context, options, instant):
            break  # the next attempt unschedules it, or need not care
        remaining_ms = deadline_ms - clock.now_ms()
        if remaining_ms <= 0:
            return False
        clock.sleep(min(pause * jitter(context.ids), remaining_ms / 1000))
        pause = min(2 * pause, _PAUSE_SECONDS_MAX)
    return True


def _is_abandoned(context: TableContext, options: WriteOptions, instant: Instant) -> bool:
    storage, clock = context.storage, context.clock
    if instant.action is Action.CLUSTERING:
        return is_runner_dead(storage, clock, context.ids, instant.requested)
    return not alive_elsewhere(storage, clock, (instant,), options.failed_writes)


def runs(context: TableContext, options: WriteOptions, refused: DrawstringError) -> bool:
    """Return whether a process of any engine works on the instant that an error names.

    Args:
        context: the open table.
        options: of the write, with the greatest age of a live heartbeat.
        refused: names the instant.
    """
    instant = _store(context).load().find(refused.instant or "")
    if instant is None or instant.is_completed:
        return False
    alive = alive_elsewhere(context.storage, context.clock, (instant,), options.failed_writes)
    return bool(alive or leased(context, (instant,)))


def running_clustering(
    context: TableContext, options: WriteOptions, refused: PendingClusteringError
) -> PendingClusteringError:
    """Return the error of a write whose last attempt met a clustering that a process runs.

    Args:
        context: the open table.
        options: of the write.
        refused: names the clustering.
    """
    store, time = _store(context), refused.instant or ""
    instant = Instant(time, Action.CLUSTERING, State.REQUESTED)
    inputs = frozenset(decode_clustering_plan(store.read_requested(instant)).inputs)
    who, wait_ms = process_of(context.storage, instant), options.locking.wait_ms
    waited = f" Before each further attempt this write waited for up to {wait_ms} ms."
    waited = waited if options.concurrency.retries_max else ""
    return PendingClusteringError(
        f"Another process runs the clustering {time}{f' ({who})' if who else ''}, which rewrites file groups"
        f" that this write changes; it rewrites {shown(inputs)}.{waited} Nothing of this write was"
        f" committed. Write again when it is done, wait longer with {_WAIT} (and {_RETRIES}),"
        f" or let writes go first, so that the clustering gives way, with {_ALLOW}.",
        table=context.storage.spec.uri,
        instant=time,
    )


def rival_at_work(context: TableContext, refused: RivalError) -> RivalError:
    """Return the error of a write whose last attempt met a live writer that was first, with its process."""
    rival = _store(context).load().find(refused.instant or "")
    if rival is None:
        return refused
    message = f"{refused.message} It is {told(context.storage, context.clock, rival)}."
    return RivalError(message, table=refused.table, instant=refused.instant, path=refused.path)


def _store(context: TableContext) -> TimelineStore:
    return TimelineStore(context.storage, load_config(context.storage), context.clock)
