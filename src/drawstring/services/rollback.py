"""Roll back one pending action on the user's request, whichever process began it.

| pending action | effect |
|---|---|
| write | its files and log blocks are rolled back, and it leaves the timeline |
| compaction, log compaction, clustering | the files of an attempt are deleted, its plan leaves the timeline |

No committed row is lost, since pending instants do not count. Actions of live processes are left to them. A
plan is unscheduled only by its instant: unlike a failed write, it is pending on purpose.

`instant_states` lists the instants of the active timeline, with the rollback or restore that removed each,
and the process that works on each.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from drawstring.base.clock import Stopwatch
from drawstring.base.errors import ConflictError, InvalidError
from drawstring.config.keys.concurrency import FailedWrites, FailedWritesPolicy
from drawstring.config.options.write_options import WriteOptions
from drawstring.model.files import LogFile
from drawstring.model.instant import (
    COMPACTION_ACTIONS,
    FILE_ACTIONS,
    PLANNED_ACTIONS,
    Action,
    Instant,
    InstantStatus,
)
from drawstring.model.result import PlannedRollback, RollbackResult
from drawstring.storage.local import data_files
from drawstring.timeline.properties import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.heartbeat import active_instants, refuse_live_writers, runs_elsewhere
from drawstring.txn.locks.service_lease import is_leased, service_lease
from drawstring.txn.read_set import shown
from drawstring.txn.rollback.dependents import refuse_built_on
from drawstring.txn.rollback.recovery import files_of, unschedule_clustering, unschedule_compaction
from drawstring.txn.rollback.restore import targets_of
from drawstring.txn.rollback.rollback import RollbackContext, refuse_inputs_gone, rollback_instant
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import LockedTable, lock_table, recover_and_load


def roll_back(context: TableContext, options: WriteOptions, instant: str | None) -> RollbackResult | None:
    """Take one pending action off the timeline, with everything that it wrote.

    Args:
        context: the open table.
        options: of writes: lock wait, and the greatest age of a live heartbeat.
        instant: requested time of the action, None for the newest pending write.

    Returns:
        What was rolled back, None if no write is pending.

    Raises:
        InvalidError: there is no such pending action, or it cannot be rolled back.
        ConflictError: a live process works on it, other writes build on it, or another writer holds the
            table.
        CorruptTableError: it had been completed, and its files are needed.
    """
    watch = Stopwatch()
    with lock_table(context, options.locking) as locked:
        timeline = locked.store.load()
        target = _target(timeline, instant)
        if target is None:
            return None
        preview = _preview(locked.rollback_context(), timeline, target)
        leaving_others = _leaving_others(options)
        with _reserved(locked, target, leaving_others):
            locked, timeline = recover_and_load(locked, leaving_others, timeline)
            current = next((each for each in timeline.pending() if _is_same(each, target)), None)
            if current is not None:
                _undo(locked.rollback_context(), current, leaving_others, is_named=instant is not None)
            elif timeline.write_at(target.requested) is not None:
                raise _completed_meanwhile(target)
        return RollbackResult(preview.instant, preview.action, len(preview.files), round(watch.seconds(), 3))


def planned_rollback(
    context: TableContext, options: WriteOptions, instant: str | None
) -> PlannedRollback | None:
    """Return what `roll_back` would roll back; the table is not changed. Raises the same errors."""
    config = load_config(context.storage)
    store = TimelineStore(context.storage, config, context.clock)
    rollback_context = RollbackContext(context.storage, config, store, context.clock)
    timeline = store.load()
    target = _target(timeline, instant)
    if target is None:
        return None
    preview = _preview(rollback_context, timeline, target)
    failed = _leaving_others(options)
    others = (target, *timeline.pending_writes())
    refuse_live_writers(context.storage, context.clock, others, failed, only_reads=True)
    if target.action in PLANNED_ACTIONS and is_leased(
        context.storage, context.clock, context.ids, target.requested
    ):
        raise runs_elsewhere(context, target.action, target.requested, target)
    return preview


def _leaving_others(options: WriteOptions) -> FailedWrites:
    """Return a policy that leaves other failed writes pending: the next write rolls them back."""
    return replace(options.failed_writes, policy=FailedWritesPolicy.NEVER.value)


def _preview(context: RollbackContext, timeline: Timeline, target: Instant) -> PlannedRollback:
    """Return the files of a pending action, after checking that it can be rolled back."""
    _check_unused(context, target)
    refuse_built_on(context.store, timeline, target)
    files = files_of(context, target)
    if files and target.action in PLANNED_ACTIONS:
        refuse_inputs_gone(context.storage, context.config, context.store, timeline, target)
    return PlannedRollback(target.requested, str(target.action), tuple(files))


def _target(timeline: Timeline, instant: str | None) -> Instant | None:
    """Return the pending action to roll back; None if no instant is given and no write is pending."""
    if instant is None:
        return max(timeline.pending_writes(), key=lambda each: each.requested, default=None)
    pending = instants_to_roll_back(timeline)
    for each in pending:
        if each.requested == instant:
            return each
    raise _refusal(timeline, instant, [each.requested for each in pending])


def instants_to_roll_back(timeline: Timeline) -> list[Instant]:
    """Return the pending actions that can be rolled back."""
    return [each for each in timeline.pending() if each.action in FILE_ACTIONS]


def _refusal(timeline: Timeline, instant: str, pending: list[str]) -> InvalidError:
    instant_there = timeline.write_at(instant) or timeline.find(instant)
    if instant_there is None:
        pending_text = f"Pending: {', '.join(pending)}." if pending else "Nothing is pending."
        return InvalidError(
            f"There is no instant with this time on the timeline. {pending_text}", instant=instant
        )
    if not instant_there.is_completed:
        return InvalidError(
            f"A pending {instant_there.action} cannot be rolled back. The next write or service finishes it.",
            instant=instant,
        )
    if not instant_there.is_write:
        return InvalidError(
            f"A completed {instant_there.action} cannot be rolled back. Only pending actions can.",
            instant=instant,
        )
    earlier_writes = [each.requested for each in timeline.writes() if each.requested < instant]
    advice = (
        f"Restore the table to {earlier_writes[-1]}, the write before it."
        if earlier_writes
        else "It is the first write, so drop the table."
    )
    return InvalidError(
        f"This {instant_there.action} is completed, and only pending actions can be rolled back. {advice}",
        instant=instant,
    )


def _check_unused(context: RollbackContext, target: Instant) -> None:
    """Refuse to unschedule a compaction that has log files in its new slices (named by it in version 6)."""
    if target.action is not Action.COMPACTION or not context.config.shares_log_files:
        return
    for status in data_files(context.storage):
        log = LogFile.parse(status)
        if log is not None and not log.is_cdc and log.instant == target.requested:
            raise ConflictError(
                f"Other writes appended log files to the file slices of the compaction {target.requested},"
                f" as in {shown(frozenset({(status.folder, log.file_id)}))}, so it can no longer be rolled"
                " back. Run it (drawstring services compact).",
                instant=target.requested,
                path=status.path,
            )


@contextmanager
def _reserved(locked: LockedTable, target: Instant, failed: FailedWrites) -> Iterator[None]:
    """Make sure, for a block of code, that no live process works on an action.

    Raises:
        ConflictError: a live process works on it.
    """
    context = locked.context
    refuse_live_writers(context.storage, context.clock, (target,), failed)
    if target.action not in PLANNED_ACTIONS:
        yield
        return
    with service_lease(context.storage, context.clock, context.ids, target.requested) as lease:
        if lease is None:
            raise runs_elsewhere(context, target.action, target.requested, target)
        yield
        lease.forget()


def _is_same(known: Instant, target: Instant) -> bool:
    return (known.requested, known.action) == (target.requested, target.action)


def _undo(context: RollbackContext, target: Instant, failed: FailedWrites, *, is_named: bool) -> None:
    is_removed = True
    if target.action is Action.CLUSTERING:
        is_removed = unschedule_clustering(context, target, failed)
    elif target.action in COMPACTION_ACTIONS:
        is_removed = unschedule_compaction(context, target)
    else:
        rollback_instant(context, target, by_name=is_named)
    if not is_removed:
        raise _completed_meanwhile(target)


def _completed_meanwhile(target: Instant) -> ConflictError:
    return ConflictError(
        f"The process of this {target.action} had claimed its completion, and it is completed now. To undo"
        " it, restore the table to the write before it.",
        instant=target.requested,
    )


def instant_states(context: TableContext, last: int | None = None) -> tuple[InstantStatus, ...]:
    """Return the instants of the active timeline, oldest first; writes nothing.

    Args:
        context: the open table.
        last: how many of the newest ones; None for all.

    Raises:
        InvalidError: `last` is no number of at least 0.
    """
    asked: object = last
    if not (asked is None or (isinstance(asked, int) and asked >= 0)):
        raise InvalidError(f"last is {last!r}. Give the number of instants, or None for all.")
    store = TimelineStore(context.storage, load_config(context.storage), context.clock)
    instants = store.load().instants
    if last is not None:
        instants = instants[max(0, len(instants) - last) :]
    pending = [each for each in instants if not each.is_completed and each.action in FILE_ACTIONS]
    live = active_instants(context, pending)
    return tuple(
        InstantStatus(each, targets_of(store, each), each.requested in live if each in pending else None)
        for each in instants
    )
