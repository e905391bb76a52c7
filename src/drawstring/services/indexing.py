"""Indexing: an index of the metadata table is built while writers go on (as Apache Hudi 1.2.0).

    schedule   lock:     the definition of the index, and a plan: `<T>.indexing.requested`
    run        lease of the instant, held to the end; a hold on the files of the table
               lock:     inflight, empty file groups, registered as being built: writers add their records
               no lock:  the records of the files that the table had then ──> base files
               lock:     completed, registered as complete

The base files come before all log files in the order of the metadata table, whenever they are written. So
nothing has to be caught up with. Writers of Hudi that began before the index did may not know of it: then
the plan has to be run again.
If the process dies, the plan stays, and the next run begins anew, or finishes what was complete.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from drawstring.base.errors import ConflictError, CorruptTableError, InvalidError
from drawstring.config.options.write_options import WriteOptions
from drawstring.formats.metadata.indexing import encode_index_plan, encode_indexing
from drawstring.metadata.building import BegunPartition, fill_partition
from drawstring.metadata.maintained.indexing_plans import BUILD, has_files, pending_plans
from drawstring.metadata.maintained.kinds import maintainers_of
from drawstring.metadata.maintained.protocol import TableFacts
from drawstring.metadata.metadata_table import building_of, open_metadata_table
from drawstring.metadata.writer import is_of_drawstring
from drawstring.model.index_plan import IndexedPartition, IndexPlan
from drawstring.model.instant import Action, Instant, State
from drawstring.model.table_index import TableIndex
from drawstring.services.indexes import IndexRequest, check_background, prepared
from drawstring.services.shown_indexes import table_indexes
from drawstring.timeline.claims import Fence
from drawstring.timeline.properties_store import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.holds import Holds
from drawstring.txn.live_work import runs_elsewhere
from drawstring.txn.locks.service_lease import service_lease
from drawstring.txn.locks.table_lock import conflict_if_lost
from drawstring.txn.planned_instants import request_plan
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import LockedTable, lock_table, recover

_HOLD_HOURS: Final = 24.0
_REMOVING: Final = (Action.CLEAN, Action.ROLLBACK, Action.RESTORE)
_NEVER: Final = "00000000000000000"
_log = logging.getLogger("drawstring")


def schedule_index(context: TableContext, options: WriteOptions, request: IndexRequest) -> str:
    """Put the plan of an index on the timeline, which any process may run.

    Args:
        context: the open table.
        options: of writes: lock wait, policy for failed writes.
        request: the index.

    Returns:
        The requested time of the indexing action.

    Raises:
        ConflictError: another writer holds the table.
        InvalidError: there is such an index, or it cannot be of this column or table.
        UnsupportedError: the version of the table has no such indexes, or builds none in the background.
        MetadataTableError: the metadata table is damaged.
    """
    with lock_table(context, options.locking) as locked:
        check_background(locked.config)
        locked, wanted = prepared(locked, options, request)
        for maintainer in wanted.values():
            maintainer.define(context.storage, load_config(context.storage))
        timeline = locked.store.load()
        plan = IndexPlan(tuple(IndexedPartition(name, _up_to(timeline)) for name in sorted(wanted)))
        time = locked.store.new_time(timeline)
        return request_plan(locked, Action.INDEXING, time, encode_index_plan(plan)).requested


def run_indexing(
    context: TableContext, options: WriteOptions, requested: str | None = None
) -> list[TableIndex]:
    """Run pending indexing actions, while writers go on.

    Args:
        context: the open table.
        options: of writes: lock wait.
        requested: requested time of one; None for all that no other process runs.

    Returns:
        The indexes that were built.

    Raises:
        ConflictError: another process runs it or dropped the index, or another writer holds the table.
        InvalidError: there is no such action.
        CorruptTableError: a file of the table is missing or damaged.
    """
    built: set[str] = set()
    with lock_table(context, options.locking) as locked:
        built |= locked.keeper.settle()
        pending = [instant.requested for instant in locked.store.load().pending_of(Action.INDEXING)]
    if requested is not None and requested not in pending:
        raise InvalidError(
            f"There is no pending indexing {requested}. Pending are: {', '.join(pending) or 'none'}."
        )
    for each in pending if requested is None else [requested]:
        with service_lease(context.storage, context.clock, context.ids, each) as lease:
            if lease is not None:
                with conflict_if_lost(lease):
                    built.update(_run(context, options, each, lease.check))
                lease.forget()
            elif requested is not None:
                raise runs_elsewhere(context, "indexing", each, None, "Wait until it is done.")
    return [each for each in table_indexes(context) if each.name in built]


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A run of a plan by this process.

    Attributes:
        instant: inflight.
        fence: the claim on it, if another process tried before.
        plan: the partitions.
        begun: the partitions with empty file groups; None if they are complete.
        early: requested times of what was pending then.
        known: requested times of all instants then.
    """

    instant: Instant
    fence: Fence | None
    plan: IndexPlan
    begun: tuple[BegunPartition, ...] = ()
    early: frozenset[str] = frozenset()
    known: frozenset[str] = frozenset()


def _run(
    context: TableContext, options: WriteOptions, requested: str, check: Callable[[], None]
) -> Collection[str]:
    with ExitStack() as ends:
        with lock_table(context, options.locking) as locked:
            ends.enter_context(_files_held(context))
            attempt = _claim(recover(locked, options.failed_writes), requested)
            if attempt is None:  # a process that died had decided to complete it
                return locked.keeper.settle()
        storage, clock, ids = context.storage, context.clock, context.ids
        with _conflict_if_removed(context, attempt):
            paths = [path for each in attempt.begun for path in fill_partition(storage, clock, ids, each)]
        with lock_table(context, options.locking) as locked:
            check()
            _complete(locked, attempt, paths)
        return attempt.plan.names


@contextmanager
def _conflict_if_removed(context: TableContext, attempt: _Attempt) -> Iterator[None]:
    """Blame missing files on what removed files of the table meanwhile.

    Raises:
        ConflictError: something did.
    """
    try:
        yield
    except (CorruptTableError, FileNotFoundError) as error:
        store = TimelineStore(context.storage, load_config(context.storage), context.clock)
        removing = (each for each in store.load().instants if each.action in _REMOVING)
        later = next((each for each in removing if each.requested not in attempt.known), None)
        if later is None:
            raise
        raise ConflictError(
            f"The {later.action} {later.requested} removed files that the index is built of. Run the indexing"
            " again, or schedule it again if it is not pending.",
            instant=attempt.instant.requested,
        ) from error


@contextmanager
def _files_held(context: TableContext) -> Iterator[None]:
    """Keep cleaning and archiving of drawstring from the files of the table, older ones included."""
    holds = Holds(context.storage, context.clock, context.ids)
    hold = holds.put(f"indexing-{context.ids.uuid()}", _NEVER, _HOLD_HOURS, is_scan=True)
    try:
        yield
    finally:
        holds.release(hold.name)


def _claim(locked: LockedTable, requested: str) -> _Attempt | None:
    """Begin a plan, from the beginning if a process died; None if that is complete by now."""
    timeline = locked.store.load()
    plans = dict(pending_plans(locked.store, timeline))
    instant = next((each for each in plans if each.requested == requested), None)
    if instant is None:
        raise ConflictError(
            f"The indexing {requested} is not pending any more: another process completed or dropped it. Look"
            " at the indexes of the table, and schedule it again if it is missing.",
            instant=requested,
        )
    plan, fence = plans[instant], None
    if instant.state is State.INFLIGHT:
        taken = locked.store.fence(instant)
        if isinstance(taken, Instant):
            return None
        fence = taken
    begun = locked.keeper.begin(maintainers_of(plan.names))
    if instant.state is State.REQUESTED:
        instant = locked.store.start(instant)
    early = frozenset(each.requested for each in timeline.pending() if each.action is not Action.INDEXING)
    built = tuple(IndexedPartition(each.name, _up_to(timeline), {BUILD: each.requested}) for each in begun)
    known = frozenset(each.requested for each in timeline.instants)
    return _Attempt(instant, fence, IndexPlan(built), tuple(begun), early, known)


def _complete(locked: LockedTable, attempt: _Attempt, paths: Sequence[str]) -> None:
    """Complete an attempt, so that readers use the index."""
    context, requested = locked.context, attempt.instant.requested
    timeline = locked.store.load()
    registered = building_of(load_config(context.storage))
    is_pending = any(each.requested == requested for each in timeline.pending_of(Action.INDEXING))
    gone = not all(has_files(context.storage, each.name, each.requested) for each in attempt.begun)
    if not is_pending or gone or not {*attempt.plan.names} <= {*registered}:
        raise ConflictError(
            f"{', '.join(attempt.plan.names)} was dropped, or the table restored, while it was built."
            f" {'Run the indexing again.' if is_pending else 'Schedule it again.'}",
            instant=requested,
        )
    _check_early_writes(locked, attempt, timeline)
    locked.lock.check()
    facts = TableFacts(context.storage, load_config(context.storage), context.clock)
    metadata = open_metadata_table(facts.storage, facts.config, timeline, facts.clock).with_building()
    for each in attempt.begun:
        each.initial.complete(facts, metadata)
    locked.store.complete(attempt.instant, encode_indexing(attempt.plan), attempt.fence)
    locked.keeper.finish(attempt.plan.names)
    _log.info("Built %s of %d files.", ", ".join(attempt.plan.names), len(paths))


def _check_early_writes(locked: LockedTable, attempt: _Attempt, timeline: Timeline) -> None:
    """Make sure that no writer of another engine, which began before the index did, left it out.

    Writers of drawstring look for the partitions when they commit.

    Raises:
        ConflictError: one may have done so, or may still do so.
    """
    context = locked.context
    config = load_config(context.storage)
    metadata = open_metadata_table(context.storage, config, timeline, context.clock)
    for instant in metadata.own_timeline.instants:
        if instant.requested in attempt.early and instant.action is Action.DELTA_COMMIT:
            if instant.is_completed and is_of_drawstring(metadata.store.commit_metadata(instant)):
                continue
            raise ConflictError(
                f"Another engine began the write {instant.requested} before the index, and may have left it"
                " out. Run the indexing again when that write is complete.",
                instant=attempt.instant.requested,
            )


def _up_to(timeline: Timeline) -> str:
    """Return the requested time of the last write before which none is pending."""
    first = min((each.requested for each in timeline.pending_writes()), default=None)
    writes = (each.requested for each in timeline.writes() if first is None or each.requested < first)
    return max(writes, default=_NEVER)
