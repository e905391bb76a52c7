"""Plan and run compactions: merge the log files of MERGE_ON_READ file slices into new base files.

    schedule   under the table lock: put a plan on the timeline, with one operation for each latest file slice
               with log files that the strategies choose (pure)
    run        take the lease of the instant -> under the lock: delete the files of a dead attempt, inflight
               -> without it: write the merged rows of each slice into a base file named after the instant
               -> under the lock: completed

Writers go on while a compaction runs (`plan_runner`): their log files belong to the slices that it creates.

Plans use the latest file slices with log files that are in no other plan:

    slices ── compaction ───────> a base file each, as the strategies choose
           ── log compaction ───> a log file each, where there are many blocks
           ── hybrid ───────────> a base file, a log file or nothing for each group

Strategies and triggers follow Hudi's rules. `partitions_to_plan` selects the partitions, and `choose` the
operations. Strategies are applied one after another, each to the result of the one before.

A hybrid compaction merges runs of a file group as in size-tiered LSM trees (`runs_to_merge`):

    older                          newer      at a limit of five runs
    [ 16 ][  7 ][ 3 ][ 1 ][ 1 ]               all: each is at most twice what is newer
    [ 40 ][  7 ][ 1 ][ 1 ][ 1 ]               the three newest: 7 is more than twice as much
    [ 40 ][  7 ][ 3 ][ 1 ][ 1 ][ 1 ][ 1 ]     the five newest: 7 is at most twice their size

A run is what one write or log compaction left in the log files (`LogRun`). Only the newest runs are merged,
so that the order in which versions of a key are merged stays as it is.

With the limit N a file group has fewer than N runs after a plan. An older run is merged with newer ones of
at least half its size, so the merged run is at least one and a half times as large as the run that a record
was in. So a record is rewritten about log1.5 of the number of writes between two base files, unless the
limit asks for more. With the limit 5 and plans after every five writes of one size it is 2.6 times for 50
writes, 3.9 for 200. Levels with a fixed ratio of sizes, as in RocksDB, would rewrite each record up to ten
times a level.

A base file is made once the log records have a share of its size
(`drawstring.compaction.hybrid.log.ratio`), all log files together are as large as it (`...space.ratio`), or
there are too many (`...log.files`).

A hybrid plan is a compaction on the timeline. Hudi does not know its mark and makes base files of
everything, which is correct too. In version 6 Hudi's readers would look for base files that never appear,
so version 6 refuses hybrid plans.

After a commit (`compact_after_commit`):

| option | effect when due |
|---|---|
| `hoodie.compact.inline` | the write plans a compaction and runs it; it runs pending ones in any case |
| `hoodie.datasource.compaction.async.enable` | the write plans one, and a thread of this process runs it |
| `hoodie.compact.schedule.inline` | the write plans one, and another process runs it |
| none of the three | the write plans one and runs pending ones, as Hudi's batch writes do by default |
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Final, TypeAlias

from drawstring.base.errors import CorruptTableError, InvalidError, UnsupportedError
from drawstring.config.keys.services import CompactionSettings, Strategy, Trigger
from drawstring.config.options.write_options import WriteOptions
from drawstring.config.table_config import TableConfig
from drawstring.engine.protocol import Engine
from drawstring.filegroups.read_task import InstantRange
from drawstring.filegroups.write.log_compaction import (
    LogRun,
    check_rewritable,
    log_runs,
    reason_not_rewritable,
)
from drawstring.formats.metadata.commit import decode_compaction_plan, encode_compaction_plan
from drawstring.model.commit import CommitMetadata, WriteOperation, WriteStat
from drawstring.model.files import FileSlice
from drawstring.model.instant import Action, Instant, State
from drawstring.model.plans import CompactionOperation, CompactionPlan, slice_metrics
from drawstring.model.result import CommitResult
from drawstring.services.background import run_in_background
from drawstring.services.compaction_task import CompactSlice, file_settings
from drawstring.services.plan_runner import PlanRunner
from drawstring.services.progress import Progress, watched
from drawstring.storage import open_spec
from drawstring.storage.protocol import StorageSpec
from drawstring.timeline.claims import Fence
from drawstring.timeline.properties import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline, day_of, instant_time, seconds_between
from drawstring.txn.heartbeat import refuse_live_writers
from drawstring.txn.plan_transitions import NoPlanError, pending_plans, request_plan, start_plan
from drawstring.txn.reservations import await_unreserved, reserved_parts
from drawstring.txn.rollback.recovery import rollback_inflight_plan, unschedule_compaction
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import LockedTable, check_marked, lock_table, recover_and_load
from drawstring.write.write_outcome import WriteOutcome

Operations: TypeAlias = Sequence[CompactionOperation]

_DAY: Final = re.compile(r"(\d{1,4})/(\d{1,2})/(\d{1,2})")
_HIVE_NAMES: Final = re.compile(r"(^|/)[^/=]*=")


def partitions_to_plan(partitions: Sequence[str], settings: CompactionSettings, today: date) -> list[str]:
    """Return the partitions whose file groups a plan may include, before any of them is listed.

    Args:
        partitions: all partition paths.
        settings: the strategies.
        today: the current day in the table's time zone.

    Raises:
        InvalidError: the strategy is day-based, and a partition path is not a day.
    """
    selected = list(partitions)
    for strategy in settings.strategies:
        if strategy is Strategy.PARTITION_REGEX:
            selected = [partition for partition in selected if re.search(settings.partition_regex, partition)]
        elif strategy is Strategy.DAY_BASED:
            selected = sorted(selected, key=_day, reverse=True)[: settings.partitions]
        elif strategy is Strategy.BOUNDED_PARTITIONS:
            selected = [partition for partition in selected if _is_recent(partition, settings, today)]
        elif strategy is Strategy.UNBOUNDED_PARTITIONS:
            selected = [partition for partition in selected if not _is_recent(partition, settings, today)]
    return selected


def choose(operations: Iterable[CompactionOperation], settings: CompactionSettings) -> Operations:
    """Return the operations that the strategies choose, in the order in which they run.

    Args:
        operations: one for each file slice with log files in the partitions to plan.
        settings: the strategies and their limits.
    """
    chosen: Operations = tuple(operations)
    for strategy in settings.strategies:
        chosen = _CHOOSERS.get(strategy, _all_of)(chosen, settings)
    return tuple(chosen)


def is_due(timeline: Timeline, settings: CompactionSettings, now: str) -> bool:
    """Return whether a compaction is due by its triggers.

    Args:
        timeline: of the table.
        settings: the triggers.
        now: the instant time at which it would be requested.
    """
    delta_commits = deltas_since_compaction(timeline)
    if not delta_commits:
        return False
    is_enough = len(delta_commits) >= settings.commits
    if settings.trigger is Trigger.COMMITS:
        return is_enough
    if settings.trigger is Trigger.COMMITS_SINCE_REQUEST:
        return len(deltas_since_compaction(timeline, requested=True)) >= settings.commits
    last = _last_compaction(timeline, requested=False)
    is_late = seconds_between(last or delta_commits[0], now) >= settings.seconds
    if settings.trigger is Trigger.SECONDS:
        return is_late
    return is_enough and is_late if settings.trigger is Trigger.COMMITS_AND_SECONDS else is_enough or is_late


def is_to_be_planned(timeline: Timeline, settings: CompactionSettings, now: str) -> bool:
    """Return whether a compaction is due and not planned yet.

    With default options a pending compaction counts as the last one: otherwise every write next to it would
    plan another one. With explicit options Hudi's triggers apply unchanged.

    Args:
        timeline: of the table.
        settings: the triggers.
        now: the instant time at which it would be requested.
    """
    if not is_due(timeline, settings, now):
        return False
    if not (settings.by_default and settings.trigger is Trigger.COMMITS):
        return True
    return len(deltas_since_compaction(timeline, requested=True)) >= settings.commits


def deltas_since_compaction(timeline: Timeline, *, requested: bool = False) -> list[str]:
    """Return the requested times of the delta commits after the last compaction.

    Args:
        timeline: of the table.
        requested: whether a pending compaction counts as the last one.
    """
    last = _last_compaction(timeline, requested=requested)
    return [
        instant.requested
        for instant in timeline.writes()
        if instant.action is Action.DELTA_COMMIT and (last is None or instant.requested > last)
    ]


def _last_compaction(timeline: Timeline, *, requested: bool) -> str | None:
    pending = timeline.pending_of(Action.COMPACTION) if requested else ()
    done = (instant for instant in timeline.writes() if instant.action is Action.COMMIT)
    return max((instant.requested for instant in (*done, *pending)), default=None)


def _by_log_size(operations: Operations, settings: CompactionSettings) -> Operations:
    large = (each for each in operations if _log_bytes(each) >= settings.log_bytes_min)
    return _bounded(sorted(large, key=_log_bytes, reverse=True), settings)


def _by_log_number(operations: Operations, settings: CompactionSettings) -> Operations:
    many = (each for each in operations if len(each.log_files) >= settings.log_files_min)
    return _bounded(sorted(many, key=lambda each: len(each.log_files), reverse=True), settings)


def _bounded(operations: Operations, settings: CompactionSettings) -> Operations:
    """Take operations until their I/O reaches the limit; the last one may exceed it."""
    remaining_mib = settings.target_io_mib
    chosen = []
    for operation in operations:
        if remaining_mib <= 0:
            break
        remaining_mib -= int(operation.metrics["TOTAL_IO_MB"])
        chosen.append(operation)
    return chosen


def _newest_day_first(operations: Operations, _: CompactionSettings) -> Operations:
    return sorted(operations, key=lambda each: _day(each.partition), reverse=True)


def _all_of(operations: Operations, _: CompactionSettings) -> Operations:
    return operations


_CHOOSERS: Final[Mapping[Strategy, Callable[[Operations, CompactionSettings], Operations]]] = {
    Strategy.LOG_FILE_SIZE: _by_log_size,
    Strategy.LOG_FILE_NUMBER: _by_log_number,
    Strategy.BOUNDED_IO: _bounded,
    Strategy.DAY_BASED: _newest_day_first,
    Strategy.BOUNDED_PARTITIONS: _newest_day_first,
}


def _log_bytes(operation: CompactionOperation) -> float:
    return operation.metrics["TOTAL_LOG_FILES_SIZE"]


def _is_recent(partition: str, settings: CompactionSettings, today: date) -> bool:
    return _day(partition) >= today - timedelta(days=settings.partitions)


def _day(partition: str) -> date:
    """Return the day of a partition path such as `2024/01/31` or `year=2024/month=01/day=31`."""
    match = _DAY.match(_HIVE_NAMES.sub(r"\1", partition))
    try:
        if match:
            return date(*map(int, match.groups()))
    except ValueError:
        pass
    raise InvalidError(
        f"The partition {partition!r} is not a day of the form yyyy/MM/dd, which this"
        " hoodie.compaction.strategy requires. Choose another strategy."
    )


_GROWTH: Final = 2
"""An older run is merged with newer ones of at least half its size."""


def runs_to_merge(sizes: Sequence[int], limit: int) -> int:
    """Return how many of the newest runs to merge into one; 0 if the file group has fewer than the limit.

    Args:
        sizes: bytes of the runs, the oldest first.
        limit: number of runs from which on they are merged, at least 2.
    """
    if len(sizes) < limit:
        return 0
    newest_first = sizes[::-1]
    count, total = 1, newest_first[0]
    least = len(sizes) - limit + 2
    while count < len(sizes) and (count < least or newest_first[count] <= _GROWTH * total):
        total += newest_first[count]
        count += 1
    return count


ReadLogRuns = Callable[[Sequence[FileSlice]], list[list[LogRun]]]
"""Reads what the log files of file slices hold, see `log_runs`."""


def plan_compaction(slices: Iterable[FileSlice]) -> CompactionPlan:
    """Return one operation for each file slice with log files."""
    return CompactionPlan(
        tuple(
            CompactionOperation(
                partition=s.partition,
                file_id=s.file_id,
                base_instant=s.base_instant,
                base_file=s.base.status.name if s.base else None,
                log_files=tuple(log.status.name for log in s.logs),
                source=s.base.source if s.base else None,
                metrics=slice_metrics(s),
            )
            for s in slices
            if s.logs
        )
    )


def plan_log_compaction(
    slices: Iterable[FileSlice], settings: CompactionSettings, read_runs: ReadLogRuns
) -> CompactionPlan:
    """Return one operation for each file slice with enough log blocks."""
    candidates = [each for each in slices if each.logs]
    due = [
        candidate
        for candidate, runs in zip(candidates, read_runs(candidates), strict=True)
        if sum(run.blocks for run in runs) >= settings.log_blocks
        and len(runs) > 1
        and not any(run.is_partial for run in runs)
    ]
    return CompactionPlan(tuple(map(_of_logs, due)))


def plan_hybrid_compaction(
    slices: Iterable[FileSlice], settings: CompactionSettings, read_runs: ReadLogRuns
) -> CompactionPlan:
    """Return a plan that gives each file slice a base file, a log file, or nothing, depending on its logs.

    | bounded | a file slice gets |
    |---|---|
    | what a reader merges | one log file of its newest runs, from a number of runs on (`runs_to_merge`) |
    | what compactions write | a base file only once its runs are a good part of the size of the base file |
    | space | a base file once all its log files are larger than the base file, or very many |
    """
    candidates = [each for each in slices if each.logs]
    full, others = [], []
    for each in candidates:
        if _has_too_many_files(each, settings):
            full.append(each)
        elif _may_be_due(each, settings):
            others.append(each)
    logs_only: list[CompactionOperation] = []
    for file_slice, runs in zip(others, read_runs(others), strict=True):
        count = runs_to_merge([run.size_bytes for run in runs], settings.log_blocks)
        newest = runs[len(runs) - count :]
        if _is_large(file_slice, sum(run.size_bytes for run in runs), settings.full_log_ratio) or any(
            run.is_partial for run in newest
        ):
            full.append(file_slice)
        elif newest:
            logs_only.append(_of_logs(_of_runs(file_slice, newest) if count < len(runs) else file_slice))
    return CompactionPlan((*choose(plan_compaction(full).operations, settings), *logs_only))


def _of_runs(file_slice: FileSlice, runs: Sequence[LogRun]) -> FileSlice:
    names = {name for run in runs for name in run.files}
    return replace(file_slice, logs=tuple(log for log in file_slice.logs if log.status.name in names))


def _of_logs(file_slice: FileSlice) -> CompactionOperation:
    (operation,) = plan_compaction([file_slice]).operations
    return replace(operation, logs_only=True)


def compaction_plan(
    locked: LockedTable, timeline: Timeline, time: str, settings: CompactionSettings
) -> CompactionPlan:
    """Plan a compaction of a locked table.

    Args:
        locked: the locked table.
        timeline: of the table.
        time: the requested time that the compaction will have.
        settings: strategies and thresholds.

    Raises:
        InvalidError: a strategy does not fit the table's partitions.
        UnsupportedError: the table cannot have hybrid compactions.
    """
    check_compaction(locked.config, settings)
    slices = _free_slices(locked, timeline, settings, time)
    if settings.hybrid:
        return plan_hybrid_compaction(slices, settings, _read_log_runs(locked, timeline))
    return CompactionPlan(tuple(choose(plan_compaction(slices).operations, settings)))


def log_compaction_plan(
    locked: LockedTable, timeline: Timeline, time: str, settings: CompactionSettings
) -> CompactionPlan:
    """Plan a log compaction of a locked table; see `compaction_plan`.

    Raises:
        UnsupportedError: the table's merge mode has no log compaction.
    """
    check_rewritable(locked.config)
    slices = _free_slices(locked, timeline, settings, time)
    return plan_log_compaction(slices, settings, _read_log_runs(locked, timeline))


def _free_slices(
    locked: LockedTable, timeline: Timeline, settings: CompactionSettings, time: str
) -> list[FileSlice]:
    """Return the latest file slices that are in no pending plan."""
    lookup = locked.context.lookup(locked.config, timeline)
    taken = lookup.view().in_services()
    partitions = partitions_to_plan(lookup.partitions(), settings, day_of(time))
    return [s for each in partitions for s in lookup.slices(each) if (s.partition, s.file_id) not in taken]


def _has_too_many_files(file_slice: FileSlice, settings: CompactionSettings) -> bool:
    if file_slice.base is None or len(file_slice.logs) >= settings.full_log_files:
        return True
    return _is_large(file_slice, _planned_log_bytes(file_slice), settings.full_space_ratio)


def _may_be_due(file_slice: FileSlice, settings: CompactionSettings) -> bool:
    """Return whether a file slice may need anything, from the names and sizes of its files."""
    is_large = _is_large(file_slice, _planned_log_bytes(file_slice), settings.full_log_ratio)
    return is_large or len({log.instant for log in file_slice.logs}) >= settings.log_blocks


def _is_large(file_slice: FileSlice, log_bytes: int, ratio: float) -> bool:
    return file_slice.base is None or log_bytes >= ratio * file_slice.base.status.size_bytes


def _planned_log_bytes(file_slice: FileSlice) -> int:
    return sum(log.status.size_bytes for log in file_slice.logs)


def check_compaction(config: TableConfig, settings: CompactionSettings) -> None:
    """Refuse compaction settings that the table does not support.

    Raises:
        UnsupportedError: the table cannot have hybrid compactions.
    """
    if not settings.hybrid:
        return
    if not config.rules.has_log_only_plans:
        raise UnsupportedError(
            "Hybrid compaction (drawstring.compaction.hybrid) needs table version 8 or later: in version 6"
            " readers would miss the log files of such a plan. Leave the option out."
        )
    check_rewritable(config)


def _read_log_runs(locked: LockedTable, timeline: Timeline) -> ReadLogRuns:
    engine: Engine = locked.context.engine
    task = _LogRuns(locked.context.storage.spec, locked.config, InstantRange.of(timeline))
    return lambda slices: engine.map(task, slices)


@dataclass(frozen=True, slots=True)
class _LogRuns:
    """A task that reads the runs of a file slice."""

    storage: StorageSpec
    config: TableConfig
    instants: InstantRange

    def __call__(self, file_slice: FileSlice) -> list[LogRun]:
        return log_runs(open_spec(self.storage), self.config, file_slice, self.instants)


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
            locked,
            timeline,
            _options_after_commit(options, locked.config) if when_due else options,
            Action.COMPACTION,
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


def _options_after_commit(options: WriteOptions, config: TableConfig) -> WriteOptions:
    """Return the options of a compaction after a commit, which is hybrid in the layout `lsm_tree`."""
    is_hybrid = config.has_sorted_files and reason_not_rewritable(config) is None
    if options.compaction.hybrid is not None or not is_hybrid:
        return options
    return replace(options, compaction=replace(options.compaction, hybrid=True))


def _check_type(context: TableContext, config: TableConfig) -> None:
    if not config.is_merge_on_read:
        raise InvalidError(
            "A COPY_ON_WRITE table has no log files to compact. Combine its small files with"
            " table.services.compact_base_files() or table.services.cluster().",
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
        raise NoPlanError.of("compaction", requested, timeline)
    plan = _plan_of(locked.store, instant, timeline)
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


def _plan_of(store: TimelineStore, instant: Instant, timeline: Timeline) -> CompactionPlan:
    """Return the plan of a compaction, pending or completed.

    Raises:
        InvalidError: the instant is a write, which has no plan.
    """
    if instant.is_completed and instant.action not in {each.completed_action for each in _ACTIONS}:
        raise _not_a_compaction(instant, timeline)
    try:
        data = store.read_requested(instant)
    except CorruptTableError:
        if instant.is_completed:
            raise _not_a_compaction(instant, timeline) from None
        raise
    if not data:
        raise _not_a_compaction(instant, timeline)
    return decode_compaction_plan(data)


def _not_a_compaction(instant: Instant, timeline: Timeline) -> InvalidError:
    return InvalidError(
        "There is no compaction with this time on the timeline: the instant is a write."
        f" {pending_plans('compaction', timeline)}",
        instant=instant.requested,
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


def compact_after_commit(written: WriteOutcome) -> None:
    """Plan a compaction that is due, and run what is pending, as the options of the write say.

    Args:
        written: a write after which a compaction is due (`services.table_services.compaction_is_due`).
    """
    context, options = written.context, written.options
    compaction = options.compaction
    now = instant_time(context.clock.now_ms(), written.config.timezone)
    planned = is_to_be_planned(written.timeline, compaction, now)
    scheduled = schedule_compaction(context, options, when_due=True) if planned else None
    if compaction.inline:
        run_pending(context, options)
    elif compaction.background and scheduled is not None:
        run_in_background(context, options, run_pending)
