"""Waits of a write for instants of others: a clustering of its file groups, or rivals that were first.

A clustering that a process runs is worth waiting for again before each attempt. One that nobody runs may stay
pending for good: after one wait the user has to decide.
"""

from __future__ import annotations

import logging
from contextlib import suppress
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

_log: Final = logging.getLogger("drawstring")
_WAIT: Final = "hoodie.write.lock.wait_time_ms"
_RETRIES: Final = "hoodie.write.num.retries.on.conflict.failures"
_ALLOW: Final = "hoodie.clustering.updates.strategy=SparkAllowUpdateStrategy"
_PAUSE_SECONDS: Final = 0.05
_PAUSE_SECONDS_MAX: Final = 5.0
_PASS_SECONDS_MAX: Final = 5.0
_PASS_SHARE: Final = 1 / 16
_PASS_PAUSE_SECONDS: Final = 0.002
_SPREAD_MAX: Final = 3
"""Behind so many writes and more, a write that lost begins after a random time of one to two attempts."""


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


def let_pass(context: TableContext, attempt_seconds: float) -> None:
    """Wait after a lost race until the writes that are pending now are over, for as long as an attempt took.

    Who begins while they are at work loses against them again: they commit first, and others that loop begin
    their next write at once. Behind a single one the write begins before its next one does. Behind several
    there are others that lost as well: they should not all begin at the same moment.

    Args:
        context: the open table.
        attempt_seconds: how long the attempt took that lost.
    """
    clock, others = context.clock, 0
    seconds = min(attempt_seconds, _PASS_SECONDS_MAX)
    pause, deadline_ms = max(seconds * _PASS_SHARE, _PASS_PAUSE_SECONDS), clock.now_ms() + 1000 * seconds
    with suppress(DrawstringError, OSError):  # the next attempt meets what is wrong
        store = _store(context)
        at_work = {each.requested for each in store.load().pending_writes()}
        others = min(len(at_work), _SPREAD_MAX) - 1
        while at_work and clock.now_ms() < deadline_ms:
            clock.sleep(pause * jitter(context.ids))
            at_work &= {each.requested for each in store.load().pending_writes()}
    if others > 0:
        clock.sleep(min(seconds, _PAUSE_SECONDS) * others * jitter(context.ids))


def may_go_on(context: TableContext, options: WriteOptions, number: int, error: DrawstringError) -> bool:
    """Wait, after an attempt of a write, for what the next one needs; return whether it may begin.

    Args:
        context: the open table.
        options: of the write: how long it waits.
        number: of the attempt.
        error: why it did not commit.
    """
    if isinstance(error, PendingClusteringError):
        _log.info("Attempt %d of a write waits for a clustering: %s", number, error)
        return wait_for(context, options, error) or runs(context, options, error)
    if isinstance(error, RivalError):
        _log.info("Attempt %d of a write waits for another writer: %s", number, error)
        wait_for(context, options, error)
    else:
        _log.info("Attempt %d of a write was in conflict and runs again: %s", number, error)
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
