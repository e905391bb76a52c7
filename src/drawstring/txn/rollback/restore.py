"""Restore a table: undo every write after an instant, newest first (specification: Restore).

    plan   the writes and pending table services that came after the instant
    run    for each of them: remove the completed file from the timeline -> delete its files, in version 6
           append rollback commands -> remove the inflight and requested files from the timeline
           finally complete the restore

An instant that is off the timeline does not count, so each write disappears as a whole for readers. Each
step is idempotent: the next writer, also of Hudi, finishes an interrupted restore.

The plans of rollbacks and restores say what each removed from the timeline: `targets_of` reads a plan, and
`rollback_of` finds the rollback or restore of an instant.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from drawstring.base.clock import Stopwatch
from drawstring.base.errors import CorruptTableError, MissingFileError
from drawstring.filegroups.view.missing_files import named_otherwise
from drawstring.filegroups.write.markers import Markers
from drawstring.formats.metadata.rollback import decode_restore_plan, decode_rollback_plan, encode_restore
from drawstring.index.factory import STORED_INDEX_LIFECYCLE
from drawstring.model.files import FileStatus, LogFile
from drawstring.model.instant import FILE_ACTIONS, Action, Instant, State, time_of
from drawstring.model.plans import RestoreMetadata, RestorePlan, RollbackMetadata
from drawstring.storage.local import data_files
from drawstring.timeline.archive.writer import StateFile, state_files
from drawstring.timeline.claims import Fence
from drawstring.timeline.properties import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.foreign_features import switch_off_metadata_table
from drawstring.txn.heartbeat import HEARTBEAT_FOLDER
from drawstring.txn.rollback.file_owners import appended_logs
from drawstring.txn.rollback.rollback import (
    RollbackContext,
    RollbackFacts,
    carry_out,
    dual_write_files,
    plan_rollback,
    prevent_completion,
    table_root,
)

_log = logging.getLogger("drawstring")


def plan_restore(timeline: Timeline, target: Instant) -> RestorePlan:
    """Plan to undo what completed after a completed write, and what was requested later and is pending."""
    completed = time_of(target)
    later = [
        instant
        for instant in timeline.instants
        if instant.action in FILE_ACTIONS
        and (time_of(instant) > completed if instant.is_completed else instant.requested > target.requested)
    ]
    newest_first = sorted(later, key=_undo_order, reverse=True)
    return RestorePlan(
        tuple((instant.requested, str(instant.action)) for instant in newest_first), target.requested
    )


def _undo_order(instant: Instant) -> tuple[bool, str, str]:
    """Return a sort key by which pending instants are undone first: they may build on completed ones."""
    return not instant.is_completed, time_of(instant), instant.requested


def finish_restores(context: RollbackContext, timeline: Timeline) -> list[str]:
    """Finish interrupted restores of any engine; drop those that have undone nothing yet.

    Returns:
        The requested times of both.
    """
    done = []
    for pending in timeline.pending_of(Action.RESTORE):
        if not _is_begun(timeline, pending):
            _log.warning("Dropping the restore %s: its process had undone nothing yet.", pending.requested)
            if isinstance(context.store.fence(pending), Fence):
                context.store.remove_pending(pending)
            done.append(pending.requested)
            continue
        try:
            plan = decode_restore_plan(context.store.read_requested(pending))
        except CorruptTableError as error:
            _log.warning("Dropping the restore %s, which has no readable plan: %s", pending.requested, error)
            if isinstance(context.store.fence(pending), Fence):
                context.store.remove_pending(pending)
            continue
        fence = context.store.fence(pending)
        if isinstance(fence, Fence):
            run_restore(context, pending, plan, fence)
        done.append(pending.requested)
    return done


def _is_begun(timeline: Timeline, restore: Instant) -> bool:
    """Return whether a pending restore may have undone something.

    No process writes between its first step and its end. So if there are later writes, its process had
    stalled before the first step.
    """
    if restore.state is State.REQUESTED:
        return False
    return not any(instant.requested > restore.requested for instant in timeline.writes())


def run_restore(
    context: RollbackContext, restore: Instant, plan: RestorePlan, fence: Fence | None = None
) -> tuple[Instant, RestoreMetadata]:
    """Carry out a restore that is on the timeline; return the completed instant, and what it did.

    Args:
        context: the table, locked.
        restore: the instant of the restore.
        plan: the instants to undo.
        fence: the claim on the restore, if another process began it.
    """
    watch = Stopwatch()
    # A process that stalled before this point could undo instants that later writes build on.
    context.check()
    inflight = restore if restore.state is State.INFLIGHT else context.store.start(restore)
    context.check()
    # Completed writes disappear one by one, so a metadata table would be stale from the first one on.
    switch_off_metadata_table(context.storage, load_config(context.storage), context.clock)
    timeline = _without_pending(context, plan)
    instants = [_instant_of(timeline, requested, Action(action)) for requested, action in plan.instants]
    targets = [target for target in instants if target is not None]
    states = state_files(context.storage, context.config, targets)
    rollbacks = {instant.requested: (_undo(context, inflight, instant, states),) for instant in targets}
    metadata = RestoreMetadata(restore.requested, round(watch.seconds() * 1000), plan.instants, rollbacks)
    content = encode_restore(metadata, table_root(context.storage))
    return context.store.complete(inflight, content, fence), metadata


def _without_pending(context: RollbackContext, plan: RestorePlan) -> Timeline:
    """Make sure that no pending instant of the plan completes meanwhile; return the timeline afterwards."""
    timeline = context.store.load()
    for requested, action in plan.instants:
        target = _instant_of(timeline, requested, Action(action))
        if target is not None and not target.is_completed:
            prevent_completion(context, target)
    return context.store.load()


def _instant_of(timeline: Timeline, requested: str, action: Action) -> Instant | None:
    for instant in timeline.instants:
        if (instant.requested, instant.action.completed_action) == (requested, action.completed_action):
            return instant
    return None


def _undo(
    context: RollbackContext, restore: Instant, target: Instant, states: list[StateFile]
) -> RollbackMetadata:
    files = tuple(data_files(context.storage))
    marked = Markers(context.storage, target.requested).files()
    facts = RollbackFacts(target.requested, target.action, files, tuple(marked))
    if context.config.shares_log_files:
        plan = plan_rollback(replace(facts, appended=tuple(_appended(context, files, target))))
    else:
        plan = plan_rollback(replace(facts, copies=tuple(_copies(context, facts, target))))
    if target.is_completed:  # its writer may have stalled before it put the completed file, which others put
        context.store.note_rolled_back(target)
    own = [file for file in states if file.key == (target.requested, target.action.completed_action)]
    context.storage.delete([file.status.path for file in own if file.instant.is_completed])
    # Before the data files are deleted: a completed write without its files would be a damaged table.
    context.storage.sync([context.config.timeline_folder])
    done = carry_out(context, restore, plan)
    STORED_INDEX_LIFECYCLE.rolled_back(context.storage, target)
    context.storage.delete([f"{HEARTBEAT_FOLDER}/{target.requested}"])
    Markers(context.storage, target.requested).remove()
    for state in (State.INFLIGHT, State.REQUESTED):
        context.storage.delete([file.status.path for file in own if file.instant.state is state])
        context.storage.sync([context.config.timeline_folder])
    return done


def _written(context: RollbackContext, target: Instant) -> set[str] | None:
    """Return the paths that a completed write wrote to; None for a pending one.

    A process that stalled in the same restore may have taken the completed file away meanwhile.
    """
    if not target.is_completed:
        return None
    try:
        return {stat.path for stat in context.store.commit_metadata(target).stats}
    except MissingFileError:
        return None


def _copies(context: RollbackContext, facts: RollbackFacts, target: Instant) -> Iterator[str]:
    """Return the dual-write log files of a write: by commit metadata if completed, else by their blocks."""
    written = _written(context, target)
    if written is None:
        return dual_write_files(context.storage, context.store.load(), target, facts.files, facts.marked)
    listed = (status.path for status in facts.files if status.path in written)
    return (path for path in listed if named_otherwise(path, target.requested))


def _appended(context: RollbackContext, files: tuple[FileStatus, ...], target: Instant) -> Iterator[LogFile]:
    """Return the log files of version 6 that hold blocks of a write, by commit metadata if completed."""
    written = _written(context, target)
    if written is None:
        yield from appended_logs(context.storage, files, target.requested)
        return
    for status in files:
        log = LogFile.parse(status) if status.path in written else None
        if log is not None and not log.is_cdc and log.instant != target.requested:
            yield log


_Decoder = Callable[[bytes], tuple[str, ...]]


def _of_rollback(plan: bytes) -> tuple[str, ...]:
    return (decode_rollback_plan(plan, "").instant,)


def _of_restore(plan: bytes) -> tuple[str, ...]:
    return tuple(time for time, _ in decode_restore_plan(plan).instants)


_DECODERS: Final[dict[Action, _Decoder]] = {Action.ROLLBACK: _of_rollback, Action.RESTORE: _of_restore}


def targets_of(store: TimelineStore, instant: Instant) -> tuple[str, ...]:
    """Return the requested times of what a rollback or restore undoes or undid; none without a readable plan.

    Args:
        store: reads the plan.
        instant: of any action, pending or completed.
    """
    decode = _DECODERS.get(instant.action)
    if decode is None:
        return ()
    try:
        plan = store.read_requested(instant)
        return decode(plan) if plan else ()
    except (CorruptTableError, FileNotFoundError):
        return ()


def rollback_of(store: TimelineStore, timeline: Timeline, requested: str) -> Instant | None:
    """Return the newest rollback or restore that undoes or undid an instant; None if none is known.

    Args:
        store: reads the plans.
        timeline: of the table.
        requested: requested time of the instant.
    """
    later = (each for each in reversed(timeline.instants) if each.requested > requested)
    return next((each for each in later if requested in targets_of(store, each)), None)
