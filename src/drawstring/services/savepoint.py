"""Make and delete savepoints, and restore a table to an earlier write.

A savepoint lists the files of the latest slices as of a write. Cleaning and archiving leave these files and
the write. A restore undoes all later writes (`txn.rollback.restore`).
"""

from __future__ import annotations

from typing import Final

from drawstring.base.clock import Stopwatch
from drawstring.base.errors import ConflictError, CorruptTableError, InvalidError
from drawstring.config.options.write_options import WriteOptions
from drawstring.filegroups.file_system_view import FileGroupView, table_view
from drawstring.formats.metadata.plans import decode_clean
from drawstring.formats.metadata.rollback import decode_savepoint, encode_restore_plan, encode_savepoint
from drawstring.model.files import FileSlice, join_path
from drawstring.model.instant import Action, Instant, State, time_of
from drawstring.model.plans import RestorePlan, Savepoint
from drawstring.model.result import RestoreResult
from drawstring.services.clean import finish_cleans
from drawstring.timeline.archive.reader import open_archive
from drawstring.timeline.properties import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.heartbeat import alive_elsewhere, describe_instant, refuse_live_work
from drawstring.txn.rollback.restore import plan_restore, run_restore
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import LockedTable, lock_table, recover_and_load

_BY: Final = "drawstring"


def savepoint(
    context: TableContext, options: WriteOptions, instant: str | None, comments: str, user: str = ""
) -> str:
    """Keep the table as it was after a write, until the savepoint is deleted.

    Args:
        context: the open table.
        options: of writes: lock wait.
        instant: requested time of a completed write, None for the newest.
        comments: a comment for the savepoint.
        user: who makes it; empty for nobody in particular.

    Returns:
        The requested time of the write.

    Raises:
        InvalidError: there is no such write, or some of its files were cleaned.
        ConflictError: another writer holds the table; in version 6 also, a write that began before this one
            still goes on.
    """
    with lock_table(context, options.locking) as locked:
        locked, timeline = recovered_table(locked, options)
        target = completed_write(timeline, instant)
        if not locked.config.layout.has_completion_times:
            _refuse_late_writers(locked, timeline, target, options)
        if any(each.requested == target.requested for each in timeline.completed_of(Action.SAVEPOINT)):
            return target.requested
        _refuse_archived(locked, timeline, target)
        check_retained(locked.store, timeline, target)
        metadata = Savepoint(user or _BY, context.clock.now_ms(), comments, _files(locked, timeline, target))
        begun = Instant(target.requested, Action.SAVEPOINT, State.INFLIGHT)
        fence = locked.store.fence(begun) if begun in timeline.instants else None
        if isinstance(fence, Instant):
            return target.requested
        if fence is None:
            locked.store.start(Instant(target.requested, Action.SAVEPOINT, State.REQUESTED))
        # A process that has the lock from now on finds the inflight file, and bars the savepoint.
        locked.lock.check()
        locked.store.complete(begun, encode_savepoint(metadata), fence)
        return target.requested


def _refuse_archived(locked: LockedTable, timeline: Timeline, target: Instant) -> None:
    """Refuse a write that is in the archive, and which an archiver still has to take off the timeline."""
    archive = open_archive(locked.context.storage, locked.config)
    archived = {each.requested for each in archive.completed(target.requested[:-1])}
    if target.requested in archived:
        left = [each.requested for each in timeline.writes() if each.requested not in archived]
        raise _unknown("write", target.requested, left)


def _refuse_late_writers(
    locked: LockedTable, timeline: Timeline, target: Instant, options: WriteOptions
) -> None:
    """Make sure that no write joins those before the target later: version 6 goes by requested times."""
    earlier = [each for each in timeline.pending_writes() if each.requested < target.requested]
    context = locked.context
    for each in alive_elsewhere(context.storage, context.clock, earlier, options.failed_writes):
        raise ConflictError(
            f"Another write, {describe_instant(context.storage, context.clock, each)}, began before"
            f" {target.requested}"
            " and still goes on. In version 6 it would be in half of the savepoint. Make the savepoint"
            " when it is done.",
            table=context.storage.spec.uri,
            instant=each.requested,
        )


def delete_savepoint(context: TableContext, options: WriteOptions, instant: str) -> None:
    """Delete a savepoint, so that its write may be cleaned and archived.

    Raises:
        InvalidError: there is no savepoint of that write.
        ConflictError: another writer holds the table.
    """
    with lock_table(context, options.locking) as locked:
        store, timeline = locked.store, locked.store.load()
        savepoints = [each for each in timeline.instants if each.action is Action.SAVEPOINT]
        for each in savepoints:
            if each.requested == instant:
                context.storage.delete([store.path(each)])
                begun = Instant(instant, Action.SAVEPOINT, State.INFLIGHT)
                context.storage.delete([store.path(begun)])
                store.forget_claim(begun)
                context.storage.sync([locked.config.timeline_folder])
                return
        raise _unknown("savepoint", instant, [each.requested for each in savepoints])


def check_retained(store: TimelineStore, timeline: Timeline, target: Instant) -> None:
    """Make sure that no clean deleted files that the table had after a write.

    Raises:
        InvalidError: files were cleaned; the message names the first write that still has all its files.
    """
    late = [
        write
        for write in timeline.writes()
        if write.requested < target.requested and time_of(write) > time_of(target)
    ]
    for clean in timeline.completed_of(Action.CLEAN):
        if clean.requested < target.requested:
            continue
        data = store.read(clean)
        done = decode_clean(data) if data else None
        if done is None or not done.took_something:
            continue
        if not done.earliest or target.requested < done.earliest:
            first = done.earliest or "the newest write before the next clean"
            raise InvalidError(
                f"Files of the table as of {target.requested} were cleaned away. Choose {first} or later, and"
                " make savepoints before files are cleaned.",
                instant=target.requested,
            )
        # A clean goes by requested times: for it the table as of the target has what these writes made.
        if overlapping := [write.requested for write in late if time_of(write) < clean.requested]:
            raise InvalidError(
                f"Files of the table as of {target.requested} were cleaned away, because"
                f" {', '.join(overlapping)} began before this write and completed after it. Choose a write"
                " that no other one overlaps.",
                instant=target.requested,
            )


def recovered_table(locked: LockedTable, options: WriteOptions) -> tuple[LockedTable, Timeline]:
    """Recover the table, and finish pending cleans, which may delete files that can no longer be kept."""
    locked, timeline = recover_and_load(locked, options.failed_writes)
    if not timeline.pending_of(Action.CLEAN):
        return locked, timeline
    finish_cleans(locked, timeline)
    return locked, locked.store.load()


def _files(locked: LockedTable, timeline: Timeline, target: Instant) -> dict[str, tuple[str, ...]]:
    timeline_then = timeline.completed_by(time_of(target))
    context = locked.context
    listing = context.listing(locked.config, timeline)
    view = table_view(context.storage, locked.config, timeline_then, locked.store, listing)
    files = {partition: _saved_files(view, partition, target) for partition in view.partitions()}
    return {partition: names for partition, names in files.items() if names}


def _saved_files(view: FileGroupView, partition: str, target: Instant) -> tuple[str, ...]:
    """Return what readers as of a write need, and what the table has after a restore to it.

    The latter includes writes that were requested after it and completed before it.
    """
    slices = (*view.slices(partition, target.requested), *view.slices(partition))
    return tuple(dict.fromkeys(name for each in slices for name in _names(each)))


def _names(file_slice: FileSlice) -> list[str]:
    base = [file_slice.base.status.name] if file_slice.base else []
    return base + [log.status.name for log in file_slice.logs]


def completed_write(timeline: Timeline, instant: str | None) -> Instant:
    """Return a completed write by its requested time; None for the newest.

    Raises:
        InvalidError: there is none.
    """
    target = timeline.latest_write() if instant is None else timeline.write_at(instant)
    if target is None:
        raise _unknown("write", instant, [each.requested for each in timeline.writes()])
    return target


def _unknown(kind: str, instant: str | None, known: list[str]) -> InvalidError:
    newest = ", ".join(known[-5:])
    problem = (
        f"There is no completed {kind} {instant} on the timeline."
        if instant
        else "The table has no writes yet."
    )
    advice = f" The newest are {newest}." if newest else f" There is no completed {kind}."
    return InvalidError(problem + (advice if instant else " Write to it first."), instant=instant)


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
        rolled_back=tuple(time for time, _ in plan.instants),
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
