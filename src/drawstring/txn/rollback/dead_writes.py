"""Recovery from failed writes, by the policy `hoodie.clean.failed.writes.policy`.

    EAGER   the next writer that gets the table lock rolls them back
    LAZY    they stay pending until a clean, or the next of several writers, finds their heartbeat expired or
            their process dead
    NEVER   they stay pending

A write that stays pending does not count: readers, writers and services ignore its files and blocks.
Cleaning and archiving stop before it, as in Hudi. Its claim is taken, so that its writer, if it is still
alive, cannot complete it next to later writes.

A clustering whose runner died is unscheduled too: it would block all writes to its file groups.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from typing import Final

from drawstring.base.errors import UnsupportedError
from drawstring.config.keys.failed_writes import DEFAULT_FAILED_WRITES, FailedWrites, FailedWritesPolicy
from drawstring.filegroups.write.markers import MARKER_ROOT, Markers
from drawstring.model.files import FileStatus, LogFile
from drawstring.model.instant import PLANNED_ACTIONS, Action, Instant
from drawstring.model.table_version import VersionRules
from drawstring.storage.paths import LOCK_FOLDER, RESERVED_SUFFIX, folders_above
from drawstring.timeline.claims import Fence
from drawstring.timeline.instants import instant_time
from drawstring.timeline.timeline import Timeline
from drawstring.txn.heartbeats import (
    alive_elsewhere,
    expired,
    forget_heartbeats,
    has_died,
)
from drawstring.txn.live_work import refuse_live_writers
from drawstring.txn.locks.service_lease import LEASE_SUFFIX, is_leased, is_runner_dead, sweep_leases
from drawstring.txn.rollback.plan_inputs import planned_inputs
from drawstring.txn.rollback.rollback import (
    RollbackContext,
    resume_rollback,
    rollback_instant,
)
from drawstring.txn.rollback.temporary_files import own_folders, sweep_leftovers
from drawstring.txn.rollback.unschedule import unschedule_clustering, unschedule_compaction

_BESIDE: Final = (
    "Wait until it is done, or end that process. Only writes and services go on beside it, in the default"
    " mode hoodie.write.concurrency.mode=OPTIMISTIC_CONCURRENCY_CONTROL, and"
    " hoodie.clean.failed.writes.policy=EAGER means SINGLE_WRITER."
)
_MINUTE_MS: Final = 60_000
_log = logging.getLogger("drawstring")


def rollback_pending(
    context: RollbackContext, timeline: Timeline | None = None, failed: FailedWrites = DEFAULT_FAILED_WRITES
) -> list[str]:
    """Finish interrupted rollbacks and, by default, roll back all failed writes.

    Compactions and clusterings stay pending: they can be run again.

    Args:
        context: the table, locked.
        timeline: as read under that lock; None to read it.
        failed: the policy for failed writes.

    Returns:
        The requested times of the instants that were rolled back, unscheduled or completed.

    Raises:
        ConflictError: one of the writes has a live heartbeat of another engine.
        UnsupportedError: another engine was restoring the table, or rolling a completed write back.
    """
    timeline = timeline or context.store.load()
    _refuse_restore(timeline)
    done = _drop_shared(context, timeline)
    if done:
        timeline = context.store.load()
    if (writes := timeline.pending_writes()) and not failed.spares_writers:
        refuse_live_writers(context.storage, context.clock, writes, failed, _BESIDE)
    # Nobody else knows of a savepoint before it is completed, so none completes behind a clean.
    saved = [each for each in timeline.pending_of(Action.SAVEPOINT) if context.store.prevent_completion(each)]
    unfinished = timeline.pending_of(Action.ROLLBACK)
    done += [
        target for each in unfinished if (target := resume_rollback(context, timeline, each)) is not None
    ]
    done += [each.requested for each in saved]
    if done or unfinished:
        timeline = context.store.load()
    dead = _dead_writes(context, timeline, failed)
    written_to = {path.rpartition("/")[0] for each in dead for path in _marked(context, each)}
    for instant in reversed(dead):
        rollback_instant(context, instant)
        done.append(instant.requested)
    if done:
        folders = (*own_folders(context.config), *sorted(written_to))
        sweep_leftovers(context.storage, context.clock, folders)
    lock_files = [status.path for status in context.storage.list_files(LOCK_FOLDER)]
    done += _settle_others(context, timeline, dead, failed, lock_files)
    done += _unschedule_plans(context, timeline, failed)
    _sweep(context, context.store.load() if done else timeline, None if done else lock_files)
    return done


def _drop_shared(context: RollbackContext, timeline: Timeline) -> list[str]:
    """Drop the pending cleans and rollbacks whose time another action has, and return these times.

    The next ones do their work.

    They are those of processes that lost the table lock before they put them on the timeline. Completed, they
    would replace in the metadata table what it knows of the other action.
    """
    shared = [
        each
        for each in timeline.pending_of(Action.CLEAN, Action.ROLLBACK)
        if timeline.shares_time(each) and isinstance(context.store.fence(each), Fence)
    ]
    for each in shared:
        _log.warning("Dropping the pending %s %s: another action has its time.", each.action, each.requested)
        context.check()
        context.store.remove_pending(each)
    return [each.requested for each in shared]


def _dead_writes(context: RollbackContext, timeline: Timeline, failed: FailedWrites) -> Sequence[Instant]:
    """Return the failed writes that this process rolls back before it goes on."""
    pending = timeline.pending_writes()
    if failed.policy == FailedWritesPolicy.EAGER or not pending:
        return pending
    if failed.policy == FailedWritesPolicy.NEVER or not failed.spares_writers:
        return ()
    late = _expired(context, pending, failed)
    return [each for each in pending if each in late or has_died(context.storage, each)]


def _expired(context: RollbackContext, pending: Sequence[Instant], failed: FailedWrites) -> list[Instant]:
    late = expired(context.storage, context.clock, pending, failed)
    if late:
        context.check()  # a write that completed since the timeline was read has no heartbeat either
    return late


def _settle_others(
    context: RollbackContext,
    timeline: Timeline,
    dead: Sequence[Instant],
    failed: FailedWrites,
    lock_files: Collection[str],
) -> list[str]:
    """Bar the other pending writes; return the times of those that their writers had decided to complete."""
    others = [each for each in timeline.pending_writes() if each not in dead]
    if not failed.spares_writers:
        return [
            each.requested for each in others if isinstance(context.store.prevent_completion(each), Instant)
        ]
    # A writer that is spared may complete beside later writes: it checks for conflicts with them.
    now = context.store.bar_stalled(others, lock_files) or timeline
    return [each.requested for each in others if now.write_at(each.requested) is not None]


def _unschedule_plans(context: RollbackContext, timeline: Timeline, failed: FailedWrites) -> list[str]:
    """Unschedule clusterings whose runner died, and those half unscheduled; return their times."""
    interrupted = [
        each for each in timeline.pending_of(*PLANNED_ACTIONS) if each.requested in timeline.rolled_back
    ]
    abandoned = (
        []
        if failed.policy == FailedWritesPolicy.NEVER
        else _clusterings_of_dead_runners(context, timeline, failed)
    )
    unscheduled = []
    for instant in dict.fromkeys((*interrupted, *abandoned)):
        _log.info("Unscheduling the %s %s, whose process died.", instant.action, instant.requested)
        if instant.action is Action.CLUSTERING:
            unschedule_clustering(context, instant, failed)
        else:
            unschedule_compaction(context, instant)
        unscheduled.append(instant.requested)
    return unscheduled


def _clusterings_of_dead_runners(
    context: RollbackContext, timeline: Timeline, failed: FailedWrites
) -> list[Instant]:
    return [
        instant
        for instant in timeline.pending_of(Action.CLUSTERING)
        if is_runner_dead(context.storage, context.clock, context.ids, instant.requested)
        and not alive_elsewhere(context.storage, context.clock, (instant,), failed)
    ]


def rollback_expired(context: RollbackContext, timeline: Timeline, failed: FailedWrites) -> list[str]:
    """Roll back the writes whose heartbeat expired, as a clean does under the policy LAZY.

    Args:
        context: the table, locked.
        timeline: as read under that lock.
        failed: the policy for failed writes, and the greatest age of a live heartbeat.

    Returns:
        The requested times of the writes that were rolled back.
    """
    if failed.policy != FailedWritesPolicy.LAZY:
        return []
    pending = timeline.pending_writes()
    dead = _expired(context, pending, failed) if pending else []
    for instant in reversed(dead):
        rollback_instant(context, instant)
    forget_heartbeats(context.storage, context.clock, timeline.pending_writes(), failed)
    clusterings = expired_clusterings(context, timeline, failed)
    gone = [each for each in clusterings if unschedule_clustering(context, each, failed)]
    return [instant.requested for instant in (*dead, *gone)]


def expired_clusterings(context: RollbackContext, timeline: Timeline, failed: FailedWrites) -> list[Instant]:
    """Return the pending clusterings that are old enough to be given up, and that nobody works on.

    Args:
        context: the table.
        timeline: the current timeline.
        failed: whether clusterings expire, and when.
    """
    if not failed.expires_clusterings or failed.policy != FailedWritesPolicy.LAZY:
        return []
    before_ms = context.clock.now_ms() - failed.clustering_minutes * _MINUTE_MS
    before = instant_time(before_ms, context.config.timezone)
    old = [each for each in timeline.pending_of(Action.CLUSTERING) if each.requested <= before]
    if not old:
        return []
    return [
        each
        for each in expired(context.storage, context.clock, old, failed)
        if not is_leased(context.storage, context.clock, context.ids, each.requested)
    ]


def _marked(context: RollbackContext, instant: Instant) -> list[str]:
    return Markers(context.storage, instant.requested).files()


def _sweep(context: RollbackContext, timeline: Timeline, listed: Collection[str] | None) -> None:
    """Remove claims, leases, markers and late files of writes whose process died after completing them.

    Args:
        context: the table, locked.
        timeline: the current timeline.
        listed: paths of the files in the folder of the claims; None to list them.
    """
    lock_files = context.store.sweep_claims(timeline, context.check, listed)
    for stray in timeline.stray:
        context.store.withdraw(stray)
    if leases := [path for path in lock_files if path.endswith((LEASE_SUFFIX, RESERVED_SUFFIX))]:
        pending = {instant.requested for instant in timeline.pending()}
        sweep_leases(context.storage, leases, pending, context.check)
    for folder in context.storage.list_folders(MARKER_ROOT):
        instant = folder.rpartition("/")[2]
        write, markers = timeline.write_at(instant), Markers(context.storage, instant)
        if write is not None:
            counted = {stat.path for stat in context.store.commit_metadata(write).stats}
            if uncounted := _uncounted(markers.files(), counted, instant, context.config.rules):
                context.storage.delete(uncounted)
                context.storage.sync(folders_above(uncounted))
            markers.remove()
        elif instant in timeline.rolled_back and timeline.find(instant) is None:
            delete_late_files(context, timeline, instant)


def delete_late_files(context: RollbackContext, timeline: Timeline, requested: str) -> None:
    """Delete the files of a write that stalled, was rolled back, and resumed.

    The write can never complete, so no other process uses its files, and no lock is needed. The markers may
    also be those that the rollback deleted, back after a power cut. Its log files then stayed, next to their
    rollback commands, and a plan may include them: they and the markers wait until it has run.

    Args:
        context: the table.
        timeline: as it is now, without the write.
        requested: requested time of the write.
    """
    markers = Markers(context.storage, requested)
    marked = markers.files()
    planned = planned_inputs(context.store, timeline).intersection(marked)
    context.storage.delete([path for path in marked if path not in planned])
    if not planned:
        markers.remove()


def _uncounted(marked: Sequence[str], counted: set[str], instant: str, rules: VersionRules) -> list[str]:
    """Return the marked files of a completed write that are not in its commit metadata (lost attempts).

    A log file that is named after its slice carries another instant and may hold blocks of others; CDC files
    are not listed as the paths of write statistics.
    """
    return [
        path
        for path in marked
        if path not in counted
        and (not rules.names_logs_by_slice or f"_{instant}." in path.rpartition("/")[2])
        and not _is_change_log(path)
    ]


def _is_change_log(path: str) -> bool:
    log = LogFile.parse(FileStatus(path, 0))
    return log is not None and log.is_cdc


def _refuse_restore(timeline: Timeline) -> None:
    for restore in timeline.pending_of(Action.RESTORE):
        raise UnsupportedError(
            "Another engine was restoring this table and did not finish. Finish the restore there.",
            instant=restore.requested,
        )
