"""Restore: undo every write after an instant, newest first (specification: Restore).

    plan   the writes, and the services under way, that came after the instant
    run    each of them: completed file off the timeline -> files deleted, in version 6 commands appended
           -> inflight and requested file off the timeline
           then the restore is completed

What is off the timeline does not count, so readers see one write after the other vanish whole. Each step can
be done twice: a restore that was cut short is finished by the next writer, Hudi's too.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace

from drawstring.base.clock import Stopwatch
from drawstring.base.errors import CorruptTableError
from drawstring.filegroups.view.dual_write_files import named_otherwise
from drawstring.filegroups.write.markers import Markers
from drawstring.formats.metadata.savepoint import decode_restore_plan, encode_restore
from drawstring.index.stored import STORED_INDEX
from drawstring.model.files import FileStatus, LogFile
from drawstring.model.instant import FILE_ACTIONS, Action, Instant, State, time_of
from drawstring.model.plans import RollbackMetadata
from drawstring.model.savepoint import RestoreMetadata, RestorePlan
from drawstring.timeline.archive.writer import StateFile, state_files
from drawstring.timeline.claims import Fence
from drawstring.timeline.properties_store import load_config
from drawstring.timeline.timeline import Timeline
from drawstring.txn.heartbeats import HEARTBEAT_FOLDER
from drawstring.txn.metadata_table import switch_off_metadata_table
from drawstring.txn.rollback.dual_writes import copies_of
from drawstring.txn.rollback.file_owners import appended_logs, data_files
from drawstring.txn.rollback.rollback import (
    RollbackContext,
    RollbackFacts,
    carry_out,
    plan_rollback,
    table_root,
    withdraw,
)

_log = logging.getLogger("drawstring")


def plan_restore(timeline: Timeline, target: Instant) -> RestorePlan:
    """Plan to undo what took effect after a completed write, and what is under way since."""
    completed = time_of(target)
    after = [
        each
        for each in timeline.instants
        if each.action in FILE_ACTIONS
        and (time_of(each) > completed if each.is_completed else each.requested > target.requested)
    ]
    newest_first = sorted(after, key=_order, reverse=True)
    return RestorePlan(tuple((each.requested, str(each.action)) for each in newest_first), target.requested)


def _order(instant: Instant) -> tuple[bool, str, str]:
    """What is pending goes first: it may build on everything else."""
    return not instant.is_completed, time_of(instant), instant.requested


def finish_restores(context: RollbackContext, timeline: Timeline) -> list[str]:
    """Finish restores that were cut short, whoever began them; drop those that undid nothing yet.

    Returns:
        The requested times of both.
    """
    done = []
    for pending in timeline.pending_of(Action.RESTORE):
        if not _is_begun(timeline, pending):
            _log.warning("The restore %s is dropped: its process undid nothing yet.", pending.requested)
            if isinstance(context.store.fence(pending), Fence):
                context.store.remove_pending(pending)
            done.append(pending.requested)
            continue
        try:
            plan = decode_restore_plan(context.store.read_requested(pending))
        except CorruptTableError as error:
            _log.warning("the restore %s has no whole plan and is dropped: %s", pending.requested, error)
            if isinstance(context.store.fence(pending), Fence):
                context.store.remove_pending(pending)
            continue
        fence = context.store.fence(pending)
        if isinstance(fence, Fence):
            run_restore(context, pending, plan, fence)
        done.append(pending.requested)
    return done


def _is_begun(timeline: Timeline, restore: Instant) -> bool:
    """Tell whether a pending restore may have undone something.

    While it has, nobody writes before it is finished. So where others wrote, its process stood still before.
    """
    if restore.state is State.REQUESTED:
        return False
    return not any(each.requested > restore.requested for each in timeline.writes())


def run_restore(
    context: RollbackContext, restore: Instant, plan: RestorePlan, fence: Fence | None = None
) -> tuple[Instant, RestoreMetadata]:
    """Carry out a restore that stands on the timeline; return it completed, and what it did.

    Args:
        context: the table, locked.
        restore: the restore's own instant.
        plan: what to undo.
        fence: of the restore, if another process began it.
    """
    watch = Stopwatch()
    # A process that stood still before this would undo what it knew of, beneath what others wrote since.
    context.check()
    inflight = restore if restore.state is State.INFLIGHT else context.store.start(restore)
    context.check()
    # Completed writes go one by one: a metadata table that lists their files misleads from the first one on.
    switch_off_metadata_table(context.storage, load_config(context.storage), context.clock)
    timeline = _without_pending(context, plan)
    found = [_find(timeline, requested, Action(action)) for requested, action in plan.instants]
    targets = [target for target in found if target is not None]
    states = state_files(context.storage, context.config, targets)
    rollbacks = {each.requested: (_undo(context, inflight, each, states),) for each in targets}
    metadata = RestoreMetadata(restore.requested, round(watch.seconds() * 1000), plan.instants, rollbacks)
    content = encode_restore(metadata, table_root(context.storage))
    return context.store.complete(inflight, content, fence), metadata


def _without_pending(context: RollbackContext, plan: RestorePlan) -> Timeline:
    """Make sure that nothing pending that is to be undone completes meanwhile; return the timeline then."""
    timeline = context.store.load()
    for requested, action in plan.instants:
        target = _find(timeline, requested, Action(action))
        if target is not None and not target.is_completed:
            withdraw(context, target)
    return context.store.load()


def _find(timeline: Timeline, requested: str, action: Action) -> Instant | None:
    for each in timeline.instants:
        if (each.requested, each.action.completed_action) == (requested, action.completed_action):
            return each
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
    own = [each for each in states if each.key == (target.requested, target.action.completed_action)]
    context.storage.delete([each.status.path for each in own if each.instant.is_completed])
    # Before its files go: a completed write without them would be a damaged table.
    context.storage.sync([context.config.timeline_folder])
    done = carry_out(context, restore, plan)
    STORED_INDEX.rolled_back(context.storage, target)
    context.storage.delete([f"{HEARTBEAT_FOLDER}/{target.requested}"])
    Markers(context.storage, target.requested).remove()
    for state in (State.INFLIGHT, State.REQUESTED):
        context.storage.delete([each.status.path for each in own if each.instant.state is state])
        context.storage.sync([context.config.timeline_folder])
    return done


def _copies(context: RollbackContext, facts: RollbackFacts, target: Instant) -> Iterator[str]:
    """Return the log files that a write put into buckets to come: a completed one says which."""
    if not target.is_completed:
        return copies_of(context.storage, context.store.load(), target, facts.files, facts.marked)
    written = {stat.path for stat in context.store.commit_metadata(target).stats}
    listed = (status.path for status in facts.files if status.path in written)
    return (path for path in listed if named_otherwise(path, target.requested))


def _appended(context: RollbackContext, files: tuple[FileStatus, ...], target: Instant) -> Iterator[LogFile]:
    """Return the log files of version 6 that hold blocks of a write: a completed one says which."""
    if not target.is_completed:
        yield from appended_logs(context.storage, files, target.requested)
        return
    written = {stat.path for stat in context.store.commit_metadata(target).stats}
    for status in files:
        log = LogFile.parse(status) if status.path in written else None
        if log is not None and not log.is_cdc and log.instant != target.requested:
            yield log
