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
from drawstring.filegroups.copies import named_otherwise
from drawstring.filegroups.markers import Markers
from drawstring.formats.savepoint_metadata import decode_restore_plan, encode_restore
from drawstring.index.rings import drop_rings
from drawstring.model.files import FileStatus, LogFile
from drawstring.model.instant import FILE_ACTIONS, Action, Instant, State, time_of
from drawstring.model.plans import RollbackMetadata
from drawstring.model.savepoint import RestoreMetadata, RestorePlan
from drawstring.services.heartbeats import HEARTBEAT_FOLDER
from drawstring.services.rollback import (
    RollbackContext,
    RollbackFacts,
    carry_out,
    plan_rollback,
    table_root,
)
from drawstring.services.whose_files import appended_logs, data_files
from drawstring.services.written_copies import copies_of
from drawstring.timeline.archive_writer import StateFile, state_files
from drawstring.timeline.properties_store import load_config
from drawstring.timeline.timeline import Timeline
from drawstring.txn.metadata_table import switch_off_metadata_table

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
    """Finish restores that were cut short, whoever began them.

    Returns:
        Their requested times.
    """
    done = []
    for pending in timeline.pending_of(Action.RESTORE):
        try:
            plan = decode_restore_plan(context.store.read_requested(pending))
        except CorruptTableError as error:
            _log.warning("the restore %s has no whole plan and is dropped: %s", pending.requested, error)
            context.store.remove_pending(pending)
            continue
        run_restore(context, pending, plan)
        done.append(pending.requested)
    return done


def run_restore(
    context: RollbackContext, restore: Instant, plan: RestorePlan
) -> tuple[Instant, RestoreMetadata]:
    """Carry out a restore that stands on the timeline; return it completed, and what it did."""
    watch = Stopwatch()
    inflight = restore if restore.state is State.INFLIGHT else context.store.start(restore)
    # Completed writes go one by one: a metadata table that lists their files misleads from the first one on.
    switch_off_metadata_table(context.storage, load_config(context.storage), context.clock)
    timeline = context.store.load()
    found = [_find(timeline, requested, Action(action)) for requested, action in plan.instants]
    targets = [target for target in found if target is not None]
    states = state_files(context.storage, context.config, targets)
    rollbacks = {each.requested: (_undo(context, inflight, each, states),) for each in targets}
    metadata = RestoreMetadata(restore.requested, round(watch.seconds() * 1000), plan.instants, rollbacks)
    context.store.sweep_claims()
    return context.store.complete(inflight, encode_restore(metadata, table_root(context.storage))), metadata


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
    done = carry_out(context, restore, plan)
    if target.action.completed_action is Action.REPLACE_COMMIT:
        drop_rings(context.storage, target.requested)
    context.storage.delete([f"{HEARTBEAT_FOLDER}/{target.requested}"])
    Markers(context.storage, target.requested).remove()
    for state in (State.INFLIGHT, State.REQUESTED):
        context.storage.delete([each.status.path for each in own if each.instant.state is state])
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
