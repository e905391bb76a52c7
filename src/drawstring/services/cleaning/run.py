"""Cleaning: deletes file versions that no reader needs any more.

    plan   see `cleaning.plan`; put on the timeline as requested
    run    inflight -> delete the files -> completed

An interrupted clean is run again from its plan, since deleting is idempotent. No other action on the table
waits for it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final

from drawstring.base.clock import Stopwatch
from drawstring.base.errors import CorruptTableError
from drawstring.config.options.write_options import WriteOptions
from drawstring.formats.metadata.clean import encode_clean, encode_clean_plan
from drawstring.metadata.maintained.files import cleaned_files
from drawstring.model.clean import CleanedPartition, CleanMetadata, CleanPlan
from drawstring.model.instant import FILE_ACTIONS, Action, Instant, State
from drawstring.model.result import CleanResult
from drawstring.services.cleaning.plan import is_due, is_empty_after
from drawstring.services.cleaning.planner import CleanPlanner
from drawstring.services.cleaning.reader_needs import ReaderNeeds, drop_expired_holds
from drawstring.services.cleaning.unreadable_plans import readable_plan
from drawstring.storage import open_spec
from drawstring.storage.paths import folders_above
from drawstring.storage.protocol import Storage, StorageSpec
from drawstring.timeline.claims import Fence
from drawstring.timeline.properties_store import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.events import emit_clean
from drawstring.txn.heartbeats import expired
from drawstring.txn.rollback.dead_writes import rollback_expired
from drawstring.txn.rollback.temporary_files import own_folders, sweep_leftovers
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import LockedTable, lock_table, recover_and_load
from drawstring.write.write_outcome import WriteOutcome

_FILES_PER_TASK: Final = 512

_Planned = tuple[CleanPlan | None, ReaderNeeds]
_log = logging.getLogger("drawstring")


def clean(context: TableContext, options: WriteOptions) -> CleanResult | None:
    """Finish interrupted cleans, then delete old files.

    Args:
        context: the open table.
        options: of writes: what is retained, lock wait.

    Returns:
        The result of the last clean, None if there was nothing to delete.

    Raises:
        ConflictError: another writer holds the table.
    """
    with lock_table(context, options.locking) as locked:
        locked, timeline = recover_and_load(locked, options.failed_writes)
        return clean_table(locked, options, timeline)


def clean_after_commit(written: WriteOutcome) -> None:
    """Clean the table of a commit if enough was written since the last clean; see `clean`.

    The table lock is taken only if there is something to do, and what to do is planned before.
    """
    finds_work, planned = _looked(written)
    if not finds_work:
        return
    with ExitStack() as ends:
        if planned is not None and planned[0] is not None:
            content = _encoded_plan(written.context, planned[0])
            ends.callback(written.context.storage.stage([(written.config.timeline_folder, content)]))
        locked = ends.enter_context(lock_table(written.context, written.options.locking))
        locked, timeline = recover_and_load(locked, written.options.failed_writes)
        if not _stands(written.timeline, timeline):
            planned = None
        clean_table(locked, written.options, timeline, only_if_due=True, planned=planned)


def _looked(written: WriteOutcome) -> tuple[bool, _Planned | None]:
    """Return whether a clean that takes the table lock now is likely to do something; if known, its plan."""
    context, options, timeline = written.context, written.options, written.timeline
    pending = timeline.pending_writes()
    if timeline.pending_of(Action.CLEAN) or (
        pending and expired(context.storage, context.clock, pending, options.failed_writes)
    ):
        return True, None
    if options.failed_writes.expires_clusterings and timeline.pending_of(Action.CLUSTERING):
        return True, None
    planner = CleanPlanner(context, written.config, written.store, timeline, options.cleaning)
    try:
        facts = planner.facts()
        if facts is None or not is_due(facts, options.cleaning):
            return False, None
        needed = planner.needed()
        plan = planner.plan(facts, needed)
    except (CorruptTableError, FileNotFoundError):  # others may be cleaning or archiving
        return True, None
    return plan is not None or bool(needed.over), (plan, needed)


def _stands(then: Timeline, now: Timeline) -> bool:
    """Return whether a plan still holds: all that came since are writes, and services that will write.

    Whatever they read and keep is newer than what the plan deletes. Nothing has left the timeline, and what
    deletes files or keeps them is as it was.
    """
    are_there = {*now.instants}.issuperset(each for each in then.instants if each.is_completed)
    return are_there and _others(then) == _others(now)


def _others(timeline: Timeline) -> list[Instant]:
    return [each for each in timeline.instants if each.action not in FILE_ACTIONS]


def plan_clean(context: TableContext, options: WriteOptions) -> CleanPlan | None:
    """Return the plan of a clean now, None if there is nothing to delete; the table is not changed."""
    config = load_config(context.storage)
    store = TimelineStore(context.storage, config, context.clock)
    planner = CleanPlanner(context, config, store, store.load(), options.cleaning)
    facts = planner.facts()
    return None if facts is None else planner.plan(facts, planner.needed())


def clean_table(
    locked: LockedTable,
    options: WriteOptions,
    timeline: Timeline,
    *,
    only_if_due: bool = False,
    planned: _Planned | None = None,
) -> CleanResult | None:
    """Clean a locked table; see `clean`.

    Args:
        locked: the locked table.
        options: of writes: what is retained, and the policy for failed writes.
        timeline: the current timeline.
        only_if_due: whether to clean only if enough commits were made since the last clean.
        planned: what was planned for this timeline before the lock was taken.
    """
    undone = rollback_expired(locked.rollback_context(), timeline, options.failed_writes)
    result = finish_cleans(locked, timeline)
    timeline = locked.store.load() if result or undone else timeline
    planner = CleanPlanner(locked.context, locked.config, locked.store, timeline, options.cleaning)
    if planned is None or undone or result:
        facts = planner.facts()
        if facts is None or (only_if_due and not is_due(facts, options.cleaning)):
            return result
        needed = planner.needed()
        planned = planner.plan(facts, needed), needed
    plan, needed = planned
    done = None if plan is None else _carry_out(locked, planner, plan, needed)
    drop_expired_holds(locked.context, needed)
    return done or result


def finish_cleans(locked: LockedTable, timeline: Timeline) -> CleanResult | None:
    """Run the pending cleans of any process."""
    result = None
    for pending in timeline.pending_of(Action.CLEAN):
        plan = readable_plan(locked, pending)
        if plan is None:
            continue
        fence = locked.store.fence(pending)
        if isinstance(fence, Fence):
            result = _run(locked, pending, plan, fence)
    return result


def _carry_out(
    locked: LockedTable, planner: CleanPlanner, plan: CleanPlan, needed: ReaderNeeds
) -> CleanResult | None:
    """Put a plan on the timeline and run it, unless readers need more than when it was made."""
    store = locked.store
    content = _encoded_plan(locked.context, plan)
    requested = store.request(Action.CLEAN, store.new_time(planner.timeline), content)
    if planner.needed().reaches_before(needed):
        _log.info("Dropping the clean %s: a reader needs files that it would delete.", requested.requested)
        store.remove_pending(requested)
        return None
    done = _run(locked, requested, plan)
    return done if plan.files else None


def _run(locked: LockedTable, instant: Instant, plan: CleanPlan, fence: Fence | None = None) -> CleanResult:
    watch = Stopwatch()
    store, context = locked.store, locked.context
    inflight = instant if instant.state is State.INFLIGHT else store.start(instant, is_flushed=False)
    locked.lock.check()
    deleted = [path for paths in plan.files.values() for path in paths]
    _delete(context, deleted)
    sweep_leftovers(context.storage, context.clock, (*own_folders(locked.config), *plan.files))
    dropped = {each for each in plan.partitions_to_delete if _drop_partition(context.storage, each)}
    metadata = _metadata_of(instant, plan, dropped, watch)
    content = encode_clean(metadata)
    if not plan.partitions_to_delete:
        locked.lock.afterwards(locked.guard.stage(inflight, content, partial(cleaned_files, metadata)))
    # A replaced file that came back after its write was archived would count again.
    folders = {path.rpartition("/")[0] for path in deleted}
    context.storage.sync(folders_above(deleted) if plan.partitions_to_delete else folders)
    later = locked.lock.in_order_afterwards()
    completed = store.complete(inflight, content, fence, defer=later.append)
    result = CleanResult(
        instant=completed.requested,
        completed=completed.completed,
        files=plan.file_count,
        partitions=sum(bool(paths) for paths in plan.files.values()),
        partitions_deleted=len(dropped),
        earliest_retained=metadata.earliest,
        seconds=round(watch.seconds(), 3),
    )
    return emit_clean(context, locked.config, result)


def _metadata_of(
    instant: Instant, plan: CleanPlan, dropped: Collection[str], watch: Stopwatch
) -> CleanMetadata:
    return CleanMetadata(
        started=instant.requested,
        millis=round(watch.seconds() * 1000),
        policy=plan.policy,
        earliest=plan.earliest.requested if plan.earliest else "",
        last_completed=plan.last_completed,
        partitions={
            partition: CleanedPartition(
                tuple(path.rpartition("/")[2] for path in plan.files.get(partition, ())),
                is_gone=partition in dropped,
            )
            for partition in sorted({*plan.files, *plan.partitions_to_delete})
        },
        savepoints=plan.savepoints,
        versions_retained=plan.versions_retained,
        uncleaned_from=plan.uncleaned_from,
        is_filtered=plan.is_filtered,
    )


def _delete(context: TableContext, paths: list[str]) -> None:
    """Delete files, in tasks of the engine if there are many."""
    if len(paths) <= _FILES_PER_TASK:
        context.storage.delete(paths)
    else:
        starts = range(0, len(paths), _FILES_PER_TASK)
        parts = [tuple(paths[start : start + _FILES_PER_TASK]) for start in starts]
        context.engine.map(DeleteFiles(context.storage.spec), parts)


@dataclass(frozen=True, slots=True)
class DeleteFiles:
    """A task that deletes files."""

    storage: StorageSpec

    def __call__(self, paths: tuple[str, ...]) -> int:
        """Delete some files and return how many."""
        open_spec(self.storage).delete(paths)
        return len(paths)


def _drop_partition(storage: Storage, partition: str) -> bool:
    """Delete the metadata of a partition that has no other files; return False if it has by now."""
    listed = storage.list_files(partition)
    if not partition or not is_empty_after(listed, ()):
        return False
    metadata_files = {each.path: storage.read(each.path) for each in listed}
    storage.delete(metadata_files)
    is_free = is_empty_after(storage.list_files(partition), ())
    if is_free and (storage.list_folders(partition) or storage.delete_folder(partition)):
        return True
    # Another process writes to the partition, or wrote while this one stalled, so it needs its metadata.
    for path, data in metadata_files.items():
        storage.put_if_absent(path, data)
    return False


def _encoded_plan(context: TableContext, plan: CleanPlan) -> bytes:
    """Return a plan with addresses for Hudi, which takes a plain path to be on its default file system."""
    local = context.storage.local_path("")
    return encode_clean_plan(plan, f"file:{local}" if local else context.storage.full_uri(""))
