"""Restores of a table to an earlier write: all later writes are undone, see `txn.rollback.restore`."""

from __future__ import annotations

from drawstring.base.clock import Stopwatch
from drawstring.base.errors import CorruptTableError, InvalidError
from drawstring.config.options.write_options import WriteOptions
from drawstring.formats.metadata.savepoint import decode_savepoint, encode_restore_plan
from drawstring.model.files import join_path
from drawstring.model.instant import Action, time_of
from drawstring.model.result import RestoreResult
from drawstring.model.savepoint import RestorePlan, Savepoint
from drawstring.services.savepoints.savepoint import check_retained, completed_write, recovered_table
from drawstring.timeline.archive.reader import open_archive
from drawstring.timeline.properties_store import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.live_work import refuse_live_work
from drawstring.txn.rollback.restore import plan_restore, run_restore
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import lock_table


def restore(context: TableContext, options: WriteOptions, instant: str) -> RestoreResult | None:
    """Restore the table to a write; all later writes are undone.

    Args:
        context: the open table.
        options: of writes: lock wait.
        instant: requested time of a write with a savepoint, or of one whose files were not cleaned.

    Returns:
        What was undone, None if there was nothing to undo.

    Raises:
        InvalidError: there is no such write, some of its files are gone, or there is a later savepoint.
        ConflictError: another writer holds the table, or another process writes or runs a service without the
            table lock.
    """
    watch = Stopwatch()
    with lock_table(context, options.locking) as locked:
        locked, timeline = recovered_table(locked, options)
        plan = _checked_plan(locked.context, locked.store, timeline, instant)
        if not plan.instants:
            return None
        refuse_live_work(context, timeline, options.failed_writes, "restore the table")
        time = locked.store.new_time(timeline)
        requested = locked.store.request(Action.RESTORE, time, encode_restore_plan(plan))
        completed, restored = run_restore(locked.rollback_context(), requested, plan)
    stats = [stat for each in restored.rollbacks.values() for rollback in each for stat in rollback.stats]
    return RestoreResult(
        instant=completed.requested,
        completed=completed.completed,
        restored_to=instant,
        undone=tuple(time for time, _ in plan.instants),
        files=sum(len(stat.deleted) for stat in stats),
        seconds=round(watch.seconds(), 3),
    )


def planned_restore(context: TableContext, instant: str) -> RestorePlan:
    """Return the plan of `restore`; the table is not changed. Raises the same errors."""
    store = TimelineStore(context.storage, load_config(context.storage), context.clock)
    return _checked_plan(context, store, store.load(), instant)


def _checked_plan(
    context: TableContext, store: TimelineStore, timeline: Timeline, instant: str
) -> RestorePlan:
    if not isinstance(instant, str):
        raise InvalidError(
            f"instant is {instant!r}. Give the requested time of a write: table.timeline.writes() has them."
        )
    target = completed_write(timeline, instant)
    savepoints = timeline.completed_of(Action.SAVEPOINT)
    later = [each.requested for each in savepoints if each.requested > instant]
    if later:
        raise InvalidError(
            f"There are savepoints after {instant} ({', '.join(later)}). Delete them first.",
            instant=instant,
        )
    own_savepoint = next((each for each in savepoints if each.requested == instant), None)
    if own_savepoint is None:
        check_retained(store, timeline, target)
    else:
        _check_present(context, decode_savepoint(store.read(own_savepoint)), instant)
    archived = open_archive(context.storage, load_config(context.storage))
    if any(each.is_write for each in archived.completed(time_of(target))):
        raise InvalidError(
            f"Writes after {instant} were archived (hoodie.archive.beyond.savepoint) and cannot be undone."
            " Restore to a later write.",
            instant=instant,
        )
    return plan_restore(timeline, target)


def _check_present(context: TableContext, saved: Savepoint, instant: str) -> None:
    for partition, names in saved.files.items():
        listed = {status.name for status in context.storage.list_files(partition)}
        for name in names:
            if name not in listed:
                raise CorruptTableError(
                    "A file of the savepoint is gone, so the table cannot be restored to it. Restore the file"
                    " from a backup, or restore the table to another write.",
                    instant=instant,
                    path=join_path(partition, name),
                )
