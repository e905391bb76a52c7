"""Recover a table from failed writes, by the policy `hoodie.clean.failed.writes.policy`.

    EAGER   the next writer that gets the table lock rolls them back
    LAZY    they stay pending until a clean, or the next of several writers, finds their heartbeat expired or
            their process dead
    NEVER   they stay pending

A write that stays pending does not count: readers, writers and services ignore its files and blocks.
Cleaning and archiving stop before it, as in Hudi. The recovery takes its claim, so that a writer that is
still alive cannot complete it after other writes. A clustering whose runner died is unscheduled too,
because it would block all writes to its file groups.

Pending plans of compactions, log compactions and clusterings are rolled back or unscheduled:

    rollback_inflight_plan   fence the attempt of another process off and delete its files; the plan can be
                             run again (Hudi: rollbackInflightCompaction, rollbackInflightClustering)
    unschedule_clustering,   make sure that the plan never completes, delete its files, and remove it from the
    unschedule_compaction    timeline

The files of a compaction attempt that died must not remain beside those of the next attempt.

An own write that failed: the process rolls it back, whether or not it still holds the table lock.

    lock held                    roll the instant back, or delete what was written after others rolled it back
    lost, single writer          delete the files if others rolled it back; else the next writer does
    lost, beside other writers   acquire the lock again, then as if it had been held

Whether a write runs again after a failed commit depends on its instant, read under the lock. The write runs
again if nothing is left of the instant. It is done if others completed the instant. If the state is
uncertain, the write fails (`timeline.store`).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from drawstring.base.errors import (
    ConflictError,
    DecidedError,
    DrawstringError,
    LostRaceError,
    TakenOverError,
    UnsupportedError,
)
from drawstring.config.keys.concurrency import DEFAULT_FAILED_WRITES, FailedWrites, FailedWritesPolicy
from drawstring.filegroups.write.markers import MARKER_ROOT, Markers
from drawstring.index.factory import STORED_INDEX_LIFECYCLE
from drawstring.model.files import BaseFile, FileStatus, LogFile
from drawstring.model.instant import COMPACTION_ACTIONS, PLANNED_ACTIONS, Action, Instant, State
from drawstring.model.table_version import VersionRules
from drawstring.storage.local import data_files
from drawstring.storage.protocol import LOCK_FOLDER, RESERVED_SUFFIX, Storage, folders_above
from drawstring.timeline.claims import Fence
from drawstring.timeline.timeline import Timeline, instant_time
from drawstring.txn.heartbeat import (
    alive_elsewhere,
    expired,
    forget_heartbeats,
    has_died,
    refuse_live_writers,
)
from drawstring.txn.locks.service_lease import LEASE_SUFFIX, is_leased, is_runner_dead, sweep_leases
from drawstring.txn.locks.table_lock import HeldLock
from drawstring.txn.rollback.dependents import refuse_built_on
from drawstring.txn.rollback.file_owners import instants_in
from drawstring.txn.rollback.rollback import (
    RollbackContext,
    forget_instant,
    gather_facts,
    marked_files,
    own_folders,
    plan_rollback,
    planned_inputs,
    prevent_completion,
    refuse_inputs_gone,
    resume_rollback,
    roll_back_files,
    rollback_failed_write,
    rollback_instant,
    sweep_leftovers,
)


def files_of_attempt(
    storage: Storage, requested: str, listed: Iterable[FileStatus], marked: Iterable[FileStatus]
) -> list[str]:
    """Return the paths of the files of an attempt.

    Log files of layout 1 are named after their file slice, and log files named after a pending compaction
    belong to other writers: only markers and blocks tell which log files the attempt wrote.

    Args:
        storage: the table's files.
        requested: requested time of the compaction or log compaction.
        listed: all data files of the table.
        marked: the files that the attempt's markers name.

    Raises:
        UnsupportedError: another engine appended its blocks to a log file of another write, or a marked log
            file cannot be read.
    """
    bases = {each.path for each in listed if (base := BaseFile.parse(each)) and base.instant == requested}
    return sorted(bases | {each.path for each in marked if _is_own_log(storage, each, requested)})


def _is_own_log(storage: Storage, marked: FileStatus, requested: str) -> bool:
    log = LogFile.parse(marked)
    if log is None or not storage.exists(marked.path):
        return False
    if log.native is not None and log.instant == requested:
        return True
    owners = instants_in(storage, marked.path)
    if owners is None or owners - {requested}:
        raise UnsupportedError(
            "Another engine began this log compaction in a log file that cannot be read or has blocks of"
            " another write. Finish the log compaction there.",
            instant=requested,
            path=marked.path,
        )
    return True


def rollback_inflight_plan(context: RollbackContext, instant: Instant) -> Fence | Instant:
    """Take a plan over: no other process can complete it, and the files of a dead attempt are deleted.

    Args:
        context: the table, locked.
        instant: of the plan, requested or inflight.

    Returns:
        The claim that completes the instant; or the completed instant, if the attempt had already claimed
        the completion.

    Raises:
        CorruptTableError: the plan had been completed, and its files are needed.
    """
    if instant.state is State.REQUESTED:
        return context.store.fence(instant)
    timeline = context.store.load()
    refuse_built_on(context.store, timeline, instant)
    # Listed before the fence, so that files of another process that takes the plan over are not deleted.
    attempt_files = _attempt_files(context, instant)
    outcome = context.store.fence(instant)
    if isinstance(outcome, Fence):
        context.check()
        _clear_attempt(context, timeline, instant, attempt_files)
    return outcome


def unschedule_clustering(
    context: RollbackContext, instant: Instant, failed: FailedWrites = DEFAULT_FAILED_WRITES
) -> bool:
    """Take a pending clustering off the timeline, and delete all files named after it.

    Records written to its new buckets are deleted too: the old buckets have them as well.

    Args:
        context: the table, locked.
        instant: the clustering.
        failed: the greatest age of a live heartbeat of another engine.

    Returns:
        Whether it is gone; False if its runner had already claimed the completion, and it is completed now.

    Raises:
        ConflictError: another engine is running it.
        CorruptTableError: it had been completed, and its files are needed.
    """
    timeline = context.store.load()
    refuse_built_on(context.store, timeline, instant)
    refuse_live_writers(context.storage, context.clock, (instant,), failed)
    if not prevent_completion(context, instant):
        return False
    _clear_attempt(context, timeline, instant, _attempt_files(context, instant))
    requested = Instant(instant.requested, Action.CLUSTERING, State.REQUESTED)
    roll_back_files(context, requested, plan_rollback(gather_facts(context, requested)))
    return True


def unschedule_compaction(context: RollbackContext, instant: Instant) -> bool:
    """Take a pending compaction or log compaction off the timeline, and delete the files of its attempt.

    The caller makes sure that no write appended log files to the file slices that it was to create.

    Returns:
        Whether it is gone; False if its runner had already claimed the completion, and it is completed now.

    Raises:
        CorruptTableError: it had been completed, and its files are the only copy of their rows.
    """
    if not prevent_completion(context, instant):
        return False
    _clear_attempt(context, context.store.load(), instant, _attempt_files(context, instant))
    forget_instant(context, instant.requested, None)
    context.store.remove_pending(instant)
    return True


def files_of(context: RollbackContext, instant: Instant) -> list[str]:
    """Return the paths of the files that the rollback of a pending action deletes or appends commands to."""
    if instant.action in COMPACTION_ACTIONS:
        return _attempt_files(context, instant)
    return plan_rollback(gather_facts(context, instant)).paths()


def _attempt_files(context: RollbackContext, instant: Instant) -> list[str]:
    """Return the paths of the files of a plan's attempt."""
    listed, marked = data_files(context.storage), marked_files(context, instant)
    return files_of_attempt(context.storage, instant.requested, listed, marked)


def _clear_attempt(
    context: RollbackContext, timeline: Timeline, instant: Instant, paths: Sequence[str]
) -> None:
    if paths:
        refuse_inputs_gone(context.storage, context.config, context.store, timeline, instant)
    context.storage.delete(paths)
    context.storage.sync(folders_above(paths))
    STORED_INDEX_LIFECYCLE.rolled_back(context.storage, instant)
    context.store.revert_to_requested(instant)
    Markers(context.storage, instant.requested).remove()


_ADVICE_LIVE_WRITERS: Final = (
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
        refuse_live_writers(context.storage, context.clock, writes, failed, _ADVICE_LIVE_WRITERS)
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


def abort_write(context: RollbackContext, lock: HeldLock, instant: Instant, *, beside_others: bool) -> None:
    """Roll this process's own instant back; if that fails, another writer does it.

    Args:
        context: of the table.
        lock: the table lock, which may be lost.
        instant: begun by this process.
        beside_others: whether others leave the instant alone until its heartbeat expires; then the lock is
            taken again if it is lost.
    """
    try:
        if not _is_held(lock):
            if not beside_others:
                _discard_rolled_back(context, instant)
                return
            lock.regain()
        timeline = context.store.load()
        current = timeline.find(instant.requested)
        if current is None and not timeline.is_archived(instant.requested):
            delete_late_files(context, timeline, instant.requested)
        elif current is not None and not current.is_completed:
            rollback_failed_write(context, current)
    except (DrawstringError, OSError) as error:
        _log.warning(
            "The failed write %s could not be rolled back; the next writer will do it: %s",
            instant.requested,
            error,
        )


def settle_write(context: RollbackContext, lock: HeldLock, instant: Instant, error: ConflictError) -> Instant:
    """Find out what became of an own write beside others that stood still before its commit.

    Args:
        context: of the table.
        lock: the table lock, which may be lost; it is taken again.
        instant: begun by this process.
        error: why this process could not complete it.

    Returns:
        The completed instant, if others completed it for this process.

    Raises:
        LostRaceError: the instant has left the timeline and never completed: the write can run again.
        ConflictError: the error, if that is not certain.
    """
    abort_write(context, lock, instant, beside_others=True)
    try:
        lock.check()
        timeline = context.store.load()
    except (DrawstringError, OSError):
        raise error from error.__cause__
    known = timeline.find(instant.requested)
    if known is None and not timeline.is_archived(instant.requested) and not isinstance(error, DecidedError):
        raise LostRaceError(error.message, instant=instant.requested) from error
    done = timeline.write_at(instant.requested)
    if done is None or not isinstance(error, TakenOverError):
        raise error
    return done


def _is_held(lock: HeldLock) -> bool:
    try:
        lock.check()
    except ConflictError:
        return False
    return True


def _discard_rolled_back(context: RollbackContext, instant: Instant) -> None:
    """Delete the files that this process wrote after another one had rolled its write back."""
    _log.warning("The write %s lost the table lock; the next writer will roll it back.", instant.requested)
    timeline = context.store.load()
    if instant.requested in timeline.rolled_back:
        delete_late_files(context, timeline, instant.requested)
