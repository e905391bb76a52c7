"""Plans that are taken over, or withdrawn: compactions, log compactions and clusterings.

restart    the attempt of another process is fenced off, and its files go; the plan can be run again
withdraw   the plan never completes, its files go, and it is off the timeline
"""

from __future__ import annotations

from collections.abc import Sequence

from drawstring.config.keys.failed_writes import EAGERLY, FailedWrites
from drawstring.filegroups.write.markers import Markers
from drawstring.index.stored import STORED_INDEX
from drawstring.model.instant import COMPACTION_ACTIONS, Action, Instant, State
from drawstring.storage.paths import folders_above
from drawstring.timeline.claims import Fence
from drawstring.timeline.timeline import Timeline
from drawstring.txn.heartbeats import refuse_live_writers
from drawstring.txn.rollback.dead_attempts import files_of_attempt
from drawstring.txn.rollback.dependents import refuse_built_on
from drawstring.txn.rollback.file_owners import data_files
from drawstring.txn.rollback.plan_inputs import refuse_inputs_gone
from drawstring.txn.rollback.rollback import (
    RollbackContext,
    forget_instant,
    gather_facts,
    marked_files,
    plan_rollback,
    roll_back_files,
    withdraw,
)


def restart(context: RollbackContext, instant: Instant) -> Fence | Instant:
    """Take a plan over: nobody else completes it, and what a dead attempt of it left is gone.

    Args:
        context: the table, locked.
        instant: the plan's, requested or inflight.

    Returns:
        What completing the instant takes; or the instant, completed: the attempt had come that far.

    Raises:
        CorruptTableError: it had been completed, and its files are needed.
    """
    if instant.state is State.REQUESTED:
        return context.store.fence(instant)
    timeline = context.store.load()
    refuse_built_on(context.store, timeline, instant)
    # What is deleted is listed before: files of another process that takes the plan over are not among it.
    left = _left_by_attempt(context, instant)
    outcome = context.store.fence(instant)
    if isinstance(outcome, Fence):
        context.check()
        _clear_attempt(context, timeline, instant, left)
    return outcome


def cancel_clustering(context: RollbackContext, instant: Instant, failed: FailedWrites = EAGERLY) -> bool:
    """Take a pending clustering off the timeline, with all files that bear its time.

    What was written to its new buckets goes too: the old ones have it.

    Returns:
        Whether it is gone; False when its runner had decided that it completes, and it is completed now.

    Args:
        context: the table, locked.
        instant: the clustering.
        failed: how old a sign of life of another engine may be.

    Raises:
        ConflictError: another engine is running it.
        CorruptTableError: it had been completed, and its files are needed.
    """
    timeline = context.store.load()
    refuse_built_on(context.store, timeline, instant)
    refuse_live_writers(context.storage, context.clock, (instant,), failed)
    if not withdraw(context, instant):
        return False
    _clear_attempt(context, timeline, instant, _left_by_attempt(context, instant))
    requested = Instant(instant.requested, Action.CLUSTERING, State.REQUESTED)
    roll_back_files(context, requested, plan_rollback(gather_facts(context, requested)))
    return True


def remove_compaction(context: RollbackContext, instant: Instant) -> bool:
    """Take a pending compaction or log compaction off the timeline, with what an attempt of it wrote.

    Nobody may have written log files for the slices that it was to make.

    Returns:
        Whether it is gone; False when its runner had decided that it completes, and it is completed now.

    Raises:
        CorruptTableError: it had been completed, and its files are all that there is.
    """
    if not withdraw(context, instant):
        return False
    _clear_attempt(context, context.store.load(), instant, _left_by_attempt(context, instant))
    forget_instant(context, instant.requested, None)
    context.store.remove_pending(instant)
    return True


def files_of(context: RollbackContext, instant: Instant) -> list[str]:
    """Return the paths of the files that rolling a pending action back deletes, or adds a command to."""
    if instant.action in COMPACTION_ACTIONS:
        return _left_by_attempt(context, instant)
    return plan_rollback(gather_facts(context, instant)).paths()


def _left_by_attempt(context: RollbackContext, instant: Instant) -> list[str]:
    """Return the paths of the files that an attempt of a plan left."""
    listed, marked = data_files(context.storage), marked_files(context, instant)
    return files_of_attempt(context.storage, instant.requested, listed, marked)


def _clear_attempt(
    context: RollbackContext, timeline: Timeline, instant: Instant, doomed: Sequence[str]
) -> None:
    if doomed:
        refuse_inputs_gone(context.storage, context.config, context.store, timeline, instant)
    context.storage.delete(doomed)
    context.storage.sync(folders_above(doomed))
    STORED_INDEX.rolled_back(context.storage, instant)
    context.store.stop(instant)
    Markers(context.storage, instant.requested).remove()
