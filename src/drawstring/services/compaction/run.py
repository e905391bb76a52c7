"""Compaction: merge the log files of MERGE_ON_READ file slices into new base files.

    schedule   under the table lock: put a plan on the timeline, with one operation for each latest file slice
               with log files that the strategies choose (pure)
    run        take the lease of the instant -> under the lock: delete the files of a dead attempt, inflight
               -> without it: write the merged rows of each slice into a base file named after the instant
               -> under the lock: completed

Writers go on while a compaction runs (`plan_runner`): their log files belong to the slices that it creates.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Final

from drawstring.base.errors import CorruptTableError, InvalidError
from drawstring.config.options.write_options import WriteOptions
from drawstring.config.table.config import TableConfig
from drawstring.engine.protocol import Engine
from drawstring.filegroups.read.tasks import InstantRange
from drawstring.filegroups.write.log_compaction import check_rewritable, why_not_rewritable
from drawstring.formats.metadata.commit import decode_compaction_plan, encode_compaction_plan
from drawstring.model.commit import CommitMetadata, WriteOperation, WriteStat
from drawstring.model.instant import Action, Instant, State
from drawstring.model.plans import CompactionOperation, CompactionPlan
from drawstring.model.result import CommitResult
from drawstring.services.compaction.plan import check_compaction, compaction_plan, log_compaction_plan
from drawstring.services.compaction.strategies import is_to_be_planned
from drawstring.services.compaction.task import CompactSlice
from drawstring.services.plan_runner import PlanRunner
from drawstring.services.progress import Progress, watched
from drawstring.services.service_files import file_settings
from drawstring.timeline.claims import Fence
from drawstring.timeline.properties_store import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.live_work import refuse_live_writers
from drawstring.txn.missing_plans import NoPlanError
from drawstring.txn.planned_instants import request_plan, start_plan
from drawstring.txn.reservations import await_unreserved, reserved_parts
from drawstring.txn.rollback.unschedule import rollback_inflight_plan, unschedule_compaction
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import LockedTable, check_marked, lock_table, recover_and_load

_log: Final = logging.getLogger("drawstring")
_ACTIONS = (Action.LOG_COMPACTION, Action.COMPACTION)


def schedule_compaction(
    context: TableContext, options: WriteOptions, *, when_due: bool = False
) -> str | None:
    """Put a compaction plan on the timeline, which any process may run.

    Args:
        context: the open table.
        options: of writes: strategies, triggers, lock wait.
        when_due: whether to plan only if the triggers say so.

    Returns:
        The requested time of the compaction, None if there is nothing to compact.

    Raises:
        InvalidError: the table is COPY_ON_WRITE, or the strategy does not fit its partitions.
        ConflictError: another writer holds the table.
    """
    if not when_due:  # the next commit plans what is left out now
        await_unreserved(context, options)
    with lock_table(context, options.locking) as locked:
        _check_type(context, locked.config)
        timeline = locked.store.load()
        now = locked.store.new_time(timeline)
        if when_due and not is_to_be_planned(timeline, options.compaction, now):
            return None
        locked, timeline = recover_and_load(locked, options.failed_writes, timeline)
        return _schedule(
            locked, timeline, _by_itself(options, locked.config) if when_due else options, Action.COMPACTION
        )


def schedule_log_compaction(context: TableContext, options: WriteOptions) -> str | None:
    """Put a log compaction plan on the timeline; see `schedule_compaction`.

    Returns:
        The requested time, None if no file group has enough log blocks.

    Raises:
        InvalidError: the table is COPY_ON_WRITE.
        UnsupportedError: the table's merge mode has no log compaction.
        ConflictError: another writer holds the table.
    """
    await_unreserved(context, options)
    with lock_table(context, options.locking) as locked:
        _check_type(context, locked.config)
        check_rewritable(locked.config)
        locked, timeline = recover_and_load(locked, options.failed_writes)
        return _schedule(locked, timeline, options, Action.LOG_COMPACTION)


def run_compaction(
    context: TableContext,
    requested: str,
    options: WriteOptions,
    progress: Progress | None = None,
    *,
    is_own: bool = False,
) -> CommitResult | None:
    """Run a pending compaction plan; writers go on meanwhile.

    Args:
        context: the open table.
        requested: requested time of the compaction.
        options: of writes: codec, lock wait.
        progress: called after each finished file group.
        is_own: whether the caller has just planned it.

    Returns:
        The result; None if the compaction is already completed.

    Raises:
        ConflictError: another process or engine runs this compaction or unscheduled it, or another writer
            holds the table.
        InvalidError: there is no such compaction.
    """
    return _runner(context, options, progress).run(requested, is_own=is_own)


def compact(
    context: TableContext, options: WriteOptions, progress: Progress | None = None
) -> CommitResult | None:
    """Run the pending compactions, then plan and run one of the remaining log files.

    Compactions that another process or engine runs are left to it.

    Args:
        context: the open table.
        options: of writes: strategies, codec, lock wait.
        progress: called after each finished file group.

    Returns:
        The result of the last compaction, None if there was nothing to compact.

    Raises:
        InvalidError: the table is COPY_ON_WRITE.
        ConflictError: another writer holds the table.
    """
    result = run_pending(context, options, progress)
    scheduled = schedule_compaction(context, options)
    return result if scheduled is None else run_compaction(context, scheduled, options, progress, is_own=True)


def run_pending(
    context: TableContext,
    options: WriteOptions,
    progress: Progress | None = None,
    actions: tuple[Action, ...] = _ACTIONS,
) -> CommitResult | None:
    """Run the pending compactions that no other process runs; see `compact`.

    Args:
        context: the open table.
        options: of writes.
        progress: called after each finished file group.
        actions: compactions, log compactions or both.

    Raises:
        InvalidError: the table is COPY_ON_WRITE.
        UnsupportedError: the table does not support the options; nothing was run.
    """
    config = load_config(context.storage)
    _check_type(context, config)
    if Action.COMPACTION in actions:
        check_compaction(config, options.compaction)
    return _runner(context, options, progress).run_pending(config, *actions)


def log_compact(
    context: TableContext, options: WriteOptions, progress: Progress | None = None
) -> CommitResult | None:
    """Run the pending log compactions, then plan and run one of what has many log blocks; see `compact`."""
    check_rewritable(load_config(context.storage))
    result = run_pending(context, options, progress, (Action.LOG_COMPACTION,))
    scheduled = schedule_log_compaction(context, options)
    return result if scheduled is None else run_compaction(context, scheduled, options, progress, is_own=True)


def _runner(context: TableContext, options: WriteOptions, progress: Progress | None) -> PlanRunner:
    return PlanRunner("compaction", _claim, context, options, progress)


def _schedule(locked: LockedTable, timeline: Timeline, options: WriteOptions, action: Action) -> str | None:
    time = locked.store.new_time(timeline)
    is_log = action is Action.LOG_COMPACTION
    plan = (log_compaction_plan if is_log else compaction_plan)(locked, timeline, time, options.compaction)
    reserved = reserved_parts(locked.context, timeline, options.failed_writes)
    free = tuple(each for each in plan.operations if not reserved.has(each.partition))
    if not free:
        return None
    content = encode_compaction_plan(replace(plan, operations=free), is_log_compaction=is_log)
    return request_plan(locked, action, time, content).requested


def _by_itself(options: WriteOptions, config: TableConfig) -> WriteOptions:
    """Return the options of a compaction after a commit, which is hybrid in the layout `lsm_tree`."""
    is_hybrid = config.has_sorted_files and why_not_rewritable(config) is None
    if options.compaction.hybrid is not None or not is_hybrid:
        return options
    return replace(options, compaction=replace(options.compaction, hybrid=True))


def _check_type(context: TableContext, config: TableConfig) -> None:
    if not config.is_merge_on_read:
        raise InvalidError(
            "A COPY_ON_WRITE table has no log files to compact. Use base-file compaction or clustering.",
            table=context.storage.spec.uri,
        )


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A run of a compaction by this process.

    Attributes:
        instant: inflight.
        task: writes the file of an operation.
        operations: of the plan, numbered.
        fence: the claim on an instant that another process tried first.
    """

    instant: Instant
    task: CompactSlice
    operations: list[tuple[int, CompactionOperation]]
    fence: Fence | None = None

    @property
    def operation(self) -> str:
        """Name of the operation in the result."""
        return "log_compact" if self._is_log else "compact"

    @property
    def config(self) -> TableConfig:
        """Settings of the table that the tasks use."""
        return self.task.settings.config

    @property
    def _is_log(self) -> bool:
        return self.instant.action is Action.LOG_COMPACTION

    def write(self, engine: Engine, progress: Progress | None) -> list[WriteStat]:
        """Write the files of each operation."""
        return [stat for stats in watched(engine, self.task, self.operations, progress) for stat in stats]

    def complete(self, locked: LockedTable, timeline: Timeline, stats: list[WriteStat]) -> Instant:
        """Complete the compaction, so that new file slices begin with its files.

        Raises:
            ConflictError: another process rolled the attempt back.
        """
        metadata = CommitMetadata(
            stats=tuple(stats),
            operation=WriteOperation.LOG_COMPACT if self._is_log else WriteOperation.COMPACT,
            extra={"schema": self.task.schema_json},
            compacted=True,
        )
        check_marked(locked.context.storage, self.instant.requested, stats)
        return locked.commit_instant(self.instant, metadata, self.fence)


def _claim(
    locked: LockedTable, requested: str, options: WriteOptions, others_may_live: bool
) -> _Attempt | None:
    """Move a compaction to inflight, after deleting the files of a dead attempt.

    If another process that may only have stalled ran it, the plan is unscheduled, and what is due is planned
    again. In version 6, where log files may be named after the compaction, it is run again instead: if a
    slice gets two base files, they hold the same rows.

    File groups that were replaced since are left out: no reader needs them, and their files may be damaged or
    gone.
    """
    _check_type(locked.context, locked.config)
    locked, timeline = recover_and_load(locked, options.failed_writes)
    instant = timeline.find(requested)
    if instant is None or not (instant.is_completed or instant.action in _ACTIONS):
        raise NoPlanError.of("compaction", requested)
    plan = _plan_of(locked.store, instant)
    if instant.is_completed:
        return None
    refuse_live_writers(locked.context.storage, locked.context.clock, (instant,), options.failed_writes)
    if others_may_live and not locked.config.shares_log_files:
        _log.info("Unscheduling the compaction %s, whose process stalled or died.", requested)
        unschedule_compaction(locked.rollback_context(), instant)
        return None
    operations = _without_replaced(locked, timeline, plan)
    fence = rollback_inflight_plan(locked.rollback_context(), instant)
    if isinstance(fence, Instant):
        return None
    instant = Instant(requested, instant.action, State.REQUESTED)
    task = _task(locked, timeline, requested, options)
    if instant.action is Action.LOG_COMPACTION:
        operations = [(number, replace(each, logs_only=True)) for number, each in operations]
    return _Attempt(start_plan(locked, instant, fence), task, operations, fence)


def _plan_of(store: TimelineStore, instant: Instant) -> CompactionPlan:
    """Return the plan of a compaction, pending or completed.

    Raises:
        InvalidError: the instant is a write, which has no plan.
    """
    if instant.is_completed and instant.action not in {each.completed_action for each in _ACTIONS}:
        raise _not_a_compaction(instant.requested)
    try:
        data = store.read_requested(instant)
    except CorruptTableError:
        if instant.is_completed:
            raise _not_a_compaction(instant.requested) from None
        raise
    if not data:
        raise _not_a_compaction(instant.requested)
    return decode_compaction_plan(data)


def _not_a_compaction(requested: str) -> InvalidError:
    return InvalidError(
        "There is no compaction with this time on the timeline: the instant is a write. Choose a compaction.",
        instant=requested,
    )


def _without_replaced(
    locked: LockedTable, timeline: Timeline, plan: CompactionPlan
) -> list[tuple[int, CompactionOperation]]:
    """Return the numbered operations of a plan, without those on file groups that were replaced since."""
    lookup = locked.context.lookup(locked.config, timeline)
    replaced = lookup.view().replaced_groups()
    sources = locked.store.sources
    return [
        (number, replace(operation, source=sources.of(operation.partition, operation.base_file)))
        for number, operation in enumerate(plan.operations)
        if (operation.partition, operation.file_id) not in replaced
    ]


def _task(locked: LockedTable, timeline: Timeline, requested: str, options: WriteOptions) -> CompactSlice:
    settings, schema_json = file_settings(locked, timeline, requested, options)
    return CompactSlice(settings, schema_json, InstantRange.of(timeline), locked.context.ids)
