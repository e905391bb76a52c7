"""Rolling one pending action back because somebody asks for it, whoever began it.

| pending action | what becomes of it |
|---|---|
| write | its files and log blocks are taken back, and it is off the timeline |
| compaction, log compaction, clustering | what an attempt wrote is deleted, its plan is off the timeline |

Nobody loses a row by it: what is pending does not count. What a live process works on is left to it. Plans
are withdrawn by name only: they are no accident.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from drawstring.base.clock import Stopwatch
from drawstring.base.errors import ConflictError, InvalidError
from drawstring.config.keys.failed_writes import FailedWrites, FailedWritesPolicy
from drawstring.config.options.write_options import WriteOptions
from drawstring.model.files import LogFile
from drawstring.model.instant import COMPACTION_ACTIONS, FILE_ACTIONS, PLANNED_ACTIONS, Action, Instant
from drawstring.model.result import PlannedRollback, RollbackResult
from drawstring.timeline.properties_store import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.heartbeats import refuse_live_writers
from drawstring.txn.locks.service_lease import is_leased, service_lease
from drawstring.txn.rollback.dependents import refuse_built_on
from drawstring.txn.rollback.file_owners import data_files
from drawstring.txn.rollback.plan_inputs import refuse_inputs_gone
from drawstring.txn.rollback.rollback import RollbackContext, rollback_instant
from drawstring.txn.rollback.withdrawal import (
    cancel_clustering,
    files_of,
    remove_compaction,
)
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import LockedTable, lock_table, recover_and_load


def roll_back(state: TableContext, options: WriteOptions, instant: str | None) -> RollbackResult | None:
    """Take one pending action off the timeline, with everything that it wrote.

    Args:
        state: the table.
        options: of writes: lock wait, and how old a sign of life may be.
        instant: its requested time, None for the newest write that is pending.

    Returns:
        What was rolled back, None when no write is pending.

    Raises:
        InvalidError: there is no such pending action, or it is one that cannot be rolled back.
        ConflictError: a live process works on it, others wrote on top of it, or another writer holds the
            table.
        CorruptTableError: it had been completed, and its files are needed.
    """
    watch = Stopwatch()
    with lock_table(state, options.lock_wait_ms) as found:
        timeline = found.store.load()
        target = _target(timeline, instant)
        if target is None:
            return None
        planned = _preview(found.rollback_context(), timeline, target)
        left = _left(options)
        with _free(found, target, left):
            session, timeline = recover_and_load(found, left, timeline)
            current = next((each for each in timeline.pending() if _is_same(each, target)), None)
            if current is not None:
                _undo(session.rollback_context(), current, left, is_named=instant is not None)
            elif timeline.write_at(target.requested) is not None:
                raise _decided(target)
        return RollbackResult(planned.instant, planned.action, len(planned.files), round(watch.seconds(), 3))


def planned_rollback(
    state: TableContext, options: WriteOptions, instant: str | None
) -> PlannedRollback | None:
    """Return what `roll_back` would take back; the table stays as it is. Raises as it does."""
    config = load_config(state.storage)
    context = RollbackContext(
        state.storage, config, TimelineStore(state.storage, config, state.clock), state.clock
    )
    timeline = context.store.load()
    target = _target(timeline, instant)
    if target is None:
        return None
    planned = _preview(context, timeline, target)
    failed = _left(options)
    refuse_live_writers(state.storage, state.clock, (target, *timeline.pending_writes()), failed)
    if target.action in PLANNED_ACTIONS and is_leased(
        state.storage, state.clock, state.ids, target.requested
    ):
        raise _running(target)
    return planned


def _left(options: WriteOptions) -> FailedWrites:
    """Other dead writes are not what was asked for: the next write takes them back."""
    return replace(options.failed_writes, policy=FailedWritesPolicy.NEVER.value)


def _preview(context: RollbackContext, timeline: Timeline, target: Instant) -> PlannedRollback:
    """Return what goes with a pending action, if nobody needs it."""
    _check_unused(context, target)
    refuse_built_on(context.store, timeline, target)
    files = files_of(context, target)
    if files and target.action in PLANNED_ACTIONS:
        refuse_inputs_gone(context.storage, context.config, context.store, timeline, target)
    return PlannedRollback(target.requested, str(target.action), tuple(files))


def _target(timeline: Timeline, instant: str | None) -> Instant | None:
    """Return the pending action to roll back; None where no instant is named and no write is pending."""
    if instant is None:
        return max(timeline.pending_writes(), key=lambda each: each.requested, default=None)
    pending = undoable(timeline)
    for each in pending:
        if each.requested == instant:
            return each
    raise _refusal(timeline, instant, [each.requested for each in pending])


def undoable(timeline: Timeline) -> list[Instant]:
    """Return the pending actions that can be rolled back."""
    return [each for each in timeline.pending() if each.action in FILE_ACTIONS]


def _refusal(timeline: Timeline, instant: str, pending: list[str]) -> InvalidError:
    known = timeline.write_at(instant) or timeline.find(instant)
    if known is None:
        some = f"pending are {', '.join(pending)}" if pending else "nothing is pending"
        return InvalidError(f"there is nothing of this time on the timeline: {some}", instant=instant)
    if not known.is_completed:
        return InvalidError(
            f"a pending {known.action} is not rolled back: the next write or service finishes it",
            instant=instant,
        )
    if not known.is_write:
        return InvalidError(f"a completed {known.action} is not rolled back", instant=instant)
    before = [each.requested for each in timeline.writes() if each.requested < instant]
    way = (
        f"restore the table to {before[-1]}, the write before it"
        if before
        else "it is the first, so drop the table"
    )
    return InvalidError(
        f"this {known.action} is completed, and only what is pending is rolled back: {way}", instant=instant
    )


def _check_unused(context: RollbackContext, target: Instant) -> None:
    """Refuse to take a compaction away whose slices have log files already (version 6 names them by it)."""
    if target.action is not Action.COMPACTION or not context.config.shares_log_files:
        return
    for status in data_files(context.storage):
        log = LogFile.parse(status)
        if log is not None and not log.is_cdc and log.instant == target.requested:
            raise ConflictError(
                "others wrote log files on top of this compaction since it was planned, so it cannot be taken"
                " back any more: run it",
                instant=target.requested,
                path=status.path,
            )


@contextmanager
def _free(found: LockedTable, target: Instant, failed: FailedWrites) -> Iterator[None]:
    """Make sure, for a block of code, that no live process works on an action.

    Raises:
        ConflictError: one does.
    """
    state = found.state
    refuse_live_writers(state.storage, state.clock, (target,), failed)
    if target.action not in PLANNED_ACTIONS:
        yield
        return
    with service_lease(state.storage, state.clock, state.ids, target.requested) as lease:
        if lease is None:
            raise _running(target)
        yield
        lease.forget()


def _running(target: Instant) -> ConflictError:
    return ConflictError(
        f"another process runs this {target.action}: wait until it is done, or end that process",
        instant=target.requested,
    )


def _is_same(known: Instant, target: Instant) -> bool:
    return (known.requested, known.action) == (target.requested, target.action)


def _undo(context: RollbackContext, target: Instant, failed: FailedWrites, *, is_named: bool) -> None:
    is_gone = True
    if target.action is Action.CLUSTERING:
        is_gone = cancel_clustering(context, target, failed)
    elif target.action in COMPACTION_ACTIONS:
        is_gone = remove_compaction(context, target)
    else:
        rollback_instant(context, target, by_name=is_named)
    if not is_gone:
        raise _decided(target)


def _decided(target: Instant) -> ConflictError:
    return ConflictError(
        f"The process of this {target.action} had decided that it completes, and it is completed now. Restore"
        " the table to the write before it to take it back.",
        instant=target.requested,
    )
