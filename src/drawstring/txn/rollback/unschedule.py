"""Pending plans of compactions, log compactions and clusterings: rolled back, or unscheduled.

rollback_inflight_plan   fence the attempt of another process off and delete its files; the plan can be run
                         again (Hudi: rollbackInflightCompaction, rollbackInflightClustering)
unschedule_...           make sure that the plan never completes, delete its files, and take it off the
                         timeline
"""

from __future__ import annotations

from collections.abc import Sequence

from drawstring.config.keys.failed_writes import DEFAULT_FAILED_WRITES, FailedWrites
from drawstring.filegroups.write.markers import Markers
from drawstring.index.stored import STORED_INDEX
from drawstring.model.instant import COMPACTION_ACTIONS, Action, Instant, State
from drawstring.storage.data_files import data_files
from drawstring.storage.paths import folders_above
from drawstring.timeline.claims import Fence
from drawstring.timeline.timeline import Timeline
from drawstring.txn.live_work import refuse_live_writers
from drawstring.txn.rollback.dead_attempts import files_of_attempt
from drawstring.txn.rollback.dependents import refuse_built_on
from drawstring.txn.rollback.plan_inputs import refuse_inputs_gone
from drawstring.txn.rollback.rollback import (
    RollbackContext,
    forget_instant,
    gather_facts,
    marked_files,
    plan_rollback,
    prevent_completion,
    roll_back_files,
)


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
    STORED_INDEX.rolled_back(context.storage, instant)
    context.store.revert_to_requested(instant)
    Markers(context.storage, instant.requested).remove()
