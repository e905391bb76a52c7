"""Schedule and run clusterings: rewrite small or unsorted file groups into fewer, sorted ones.

    schedule   under the table lock: put a plan of groups on the timeline (`clustering_plan`) ──> requested
    run        without it: write the rows of each group into new base files (`clustering_task`)
               under the table lock again: check that the old groups were not written to ──> replacecommit

A clustering runs like a compaction (`plan_runner`) while writers go on. If a write changed its file groups
after it was planned, the clustering leaves the timeline, since its rows are outdated.

`check_clustering` checks the options against the table's index and schema. `conflicting_writes` names the
writes that wrote to its file groups after it was planned, or do so now.

After a commit (`cluster_after_commit`):

| option | effect when due |
|---|---|
| `hoodie.clustering.inline` | the write plans a clustering and runs it |
| `hoodie.clustering.async.enabled` | the write plans one, and a thread of this process runs it |
| `hoodie.clustering.schedule.inline` | the write plans one, and another process runs it |
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from drawstring.base.errors import (
    ConflictError,
    CorruptTableError,
    InvalidError,
    LostRaceError,
    MissingFileError,
    UnsupportedError,
)
from drawstring.base.java_compat import simple_class_name
from drawstring.config.keys.concurrency import FailedWrites
from drawstring.config.keys.services import BASE_FILES, RESIZING, Layout
from drawstring.config.options.write_options import WriteOptions
from drawstring.config.table.storage_layout import LSM_TREE, STORAGE_LAYOUT
from drawstring.config.table_config import TableConfig
from drawstring.engine.protocol import Engine
from drawstring.filegroups.base_file_writer import FileSettings
from drawstring.filegroups.read_task import InstantRange
from drawstring.filegroups.sorted_merge import is_key_order
from drawstring.filegroups.write.markers import Markers
from drawstring.formats.metadata.plans import (
    base_files_in,
    base_files_of,
    decode_clustering_plan,
    encode_clustering_plan,
)
from drawstring.index.existing_writes import has_rings, is_bucketed, refuse_undeclared_bucket_index
from drawstring.model.commit import CommitMetadata, WriteOperation, WriteStat
from drawstring.model.files import FileSlice
from drawstring.model.instant import Action, Instant, State
from drawstring.model.plans import ClusteringGroup, ClusteringPlan, is_resizing, nodes_of
from drawstring.model.result import CommitResult
from drawstring.schema.fields import RECORD_KEY
from drawstring.services.background import run_in_background
from drawstring.services.clustering_plan import (
    BINARY_COPY,
    RESIZE,
    SINGLE_FILE_SORT,
    SORT_AND_SIZE,
    parameters,
    partitions_to_cluster,
    plan_clustering,
)
from drawstring.services.clustering_task import ClusterGroup, RowOrder
from drawstring.services.compaction_task import file_settings
from drawstring.services.consistent_bucket_resizing import ResizeGroup, confirm_rings, plan_rings, save_rings
from drawstring.services.plan_runner import PlanRunner
from drawstring.services.progress import Progress, watched
from drawstring.storage.protocol import Storage
from drawstring.timeline.change_detection import retry_on_archiving
from drawstring.timeline.claims import Fence
from drawstring.timeline.properties import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.heartbeat import alive_elsewhere, refuse_live_writers
from drawstring.txn.locks.service_lease import ServiceLease, service_lease
from drawstring.txn.plan_transitions import NoPlanError, pending_plans, request_plan, start_plan
from drawstring.txn.read_set import Groups, shown
from drawstring.txn.reservations import await_unreserved, reserved_parts
from drawstring.txn.rollback.recovery import rollback_inflight_plan, unschedule_clustering
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import LockedTable, check_marked, lock_table, recover_and_load
from drawstring.write.retry import await_begun
from drawstring.write.write_outcome import WriteOutcome


def check_clustering(locked: LockedTable, timeline: Timeline, options: WriteOptions) -> None:
    """Refuse a clustering that the table's index does not allow, or that sorts by missing columns."""
    _check_index(locked, timeline, options)
    _check_sorted_files(locked, options)
    if timeline.latest_write() is not None:
        order = RowOrder.of(parameters(options.clustering), options.clustering)
        order.check(file_settings(locked, timeline, "", options)[0].full_schema)


def _check_sorted_files(locked: LockedTable, options: WriteOptions) -> None:
    """Refuse another order than that of the record keys, if the table's files are sorted by them."""
    config, columns = locked.config, options.clustering.cluster_by
    is_linear = len(columns) < 2 or options.clustering.layout.upper() == Layout.LINEAR
    if config.has_sorted_files and not (is_linear and is_key_order(columns, config.record_key_fields)):
        how = "" if is_linear else f" along a curve ({options.clustering.layout})"
        raise InvalidError(
            f"The files of the table are sorted by record key ({STORAGE_LAYOUT}={LSM_TREE}), so they cannot"
            f" be sorted by {', '.join(columns)}{how}. Leave the sort columns out.",
            table=locked.context.storage.spec.uri,
        )


def _check_index(locked: LockedTable, timeline: Timeline, options: WriteOptions) -> None:
    """Refuse a plan that would move keys to file groups where the index does not look for them."""
    kind, strategy = (
        locked.config.index_type or options.index_type,
        simple_class_name(options.clustering.plan_strategy),
    )
    table, rings = locked.context.storage.spec.uri, has_rings(locked.context.storage)
    if rings and strategy not in ("", RESIZING):
        raise InvalidError(
            f"{strategy} does not fit a consistent hashing index. Leave the strategy out.", table=table
        )
    if strategy == RESIZING and not rings:
        raise InvalidError(
            f"{strategy} needs a consistent hashing index. Leave the strategy out.", table=table
        )
    if rings or timeline.latest_write() is None:
        return
    if kind is None:
        refuse_undeclared_bucket_index(
            locked.store,
            timeline,
            "Such a table cannot be clustered. Change the number of buckets with rescale_buckets instead",
        )
    elif kind == "BUCKET" and (locked.config.index_type or is_bucketed(locked.store, timeline)):
        raise UnsupportedError(
            "A table with a simple bucket index cannot be clustered, since the key determines the file group"
            " of a record. Change the number of buckets with rescale_buckets instead.",
            table=table,
        )
    elif kind == "BUCKET":
        raise InvalidError(
            "hoodie.index.type is BUCKET, but the file groups of the table are not buckets. Leave the option"
            " out.",
            table=table,
        )


_SHOWN: Final = 3


def conflicting_writes(
    locked: LockedTable,
    timeline: Timeline,
    clustering: Instant,
    plan: ClusteringPlan,
    gives_way_to: FailedWrites | None,
) -> str:
    """Return which writes are in the way of a clustering and in which file groups; empty if none is.

    Args:
        locked: the table.
        timeline: its timeline.
        clustering: the instant of the clustering.
        plan: its plan.
        gives_way_to: tells the live writers, to which the clustering gives way; None if it does not.
    """
    writes = _writes_since(locked, timeline, clustering.requested, plan)
    if not writes and gives_way_to is not None:
        running = _in_progress(locked, timeline, gives_way_to)
        writes = {each: groups & plan.inputs for each, groups in running.items() if groups & plan.inputs}
    if not writes:
        return ""
    ordered = sorted(writes, key=lambda each: each.requested)
    names = [f"the {each.action} {each.requested} in {shown(writes[each])}" for each in ordered]
    more = f"; and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return "; ".join(names[:_SHOWN]) + more


def groups_in_progress(locked: LockedTable, timeline: Timeline, failed: FailedWrites) -> Groups:
    """Return the file groups that live writers have begun files for, by their markers."""
    return frozenset().union(*_in_progress(locked, timeline, failed).values())


def _in_progress(locked: LockedTable, timeline: Timeline, failed: FailedWrites) -> dict[Instant, Groups]:
    storage = locked.context.storage
    alive = alive_elsewhere(storage, locked.context.clock, timeline.pending_writes(), failed)
    return {each: Markers(storage, each.requested).groups() for each in alive}


def _writes_since(
    locked: LockedTable, timeline: Timeline, time: str, plan: ClusteringPlan
) -> dict[Instant, Groups]:
    """Return the writes after a time that outdate a plan, with the file groups of it that they touched."""
    later = [each for each in timeline.writes() if max(each.requested, each.completed or "") > time]
    writes = {each: locked.store.commit_metadata(each) for each in later}
    if is_resizing(plan):
        paths = _paths(locked.context.storage, plan) if writes else frozenset()
        return {
            each: metadata.touched & plan.inputs
            for each, metadata in writes.items()
            if not _is_written_twice(metadata, plan.groups, paths)
        }
    touched = {each: metadata.touched & plan.inputs for each, metadata in writes.items()}
    return {each: groups for each, groups in touched.items() if groups}


def _paths(storage: Storage, plan: ClusteringPlan) -> frozenset[str]:
    """Return the files of a plan's partitions; those of writes to new buckets must still exist.

    A process that unscheduled the resizing may have died before it was off the timeline.
    """
    partitions = {group.partition for group in plan.groups}
    return frozenset(status.path for each in partitions for status in storage.list_files(each))


def _is_written_twice(
    metadata: CommitMetadata, groups: Iterable[ClusteringGroup], paths: Container[str]
) -> bool:
    """Return whether a write to old buckets also wrote its rows to the new ones (dual write)."""
    return all(_is_copied(metadata, group, paths) for group in groups)


def _is_copied(metadata: CommitMetadata, group: ClusteringGroup, paths: Container[str]) -> bool:
    old = {(each.partition, each.file_id) for each in group.slices}
    new = {(group.partition, node.file_id) for node in nodes_of(group) if node.prefix is not None}
    copies = [stat.path for stat in metadata.stats if (stat.partition, stat.file_id) in new]
    return all(path in paths for path in copies) and bool(copies or not metadata.touched & old)


_RUNNABLE: Final = frozenset(
    name.rpartition(".")[2].removeprefix("Spark").removeprefix("Java")
    for name in (SORT_AND_SIZE, SINGLE_FILE_SORT, BINARY_COPY, RESIZE)
)
_BYTES_MAX: Final = 1 << 62
_log = logging.getLogger("drawstring")


class LostClusteringError(LostRaceError):
    """A clustering gave way to a write; the table can be clustered by a new plan."""


@dataclass(frozen=True, slots=True)
class ClusteringAttempt:
    """A run of a clustering by this process.

    Attributes:
        instant: inflight.
        plan: the clustering plan.
        task: writes the base files of a group.
        schema_json: the table schema as Avro JSON.
        fence: the claim on an instant that another process tried first.
        gives_way_to: tells the live writers, to which the clustering gives way; None if it does not.
    """

    instant: Instant
    plan: ClusteringPlan
    task: ClusterGroup | ResizeGroup
    schema_json: str
    fence: Fence | None = None
    gives_way_to: FailedWrites | None = None

    @property
    def operation(self) -> str:
        """Name of the operation in the result."""
        return "cluster"

    @property
    def config(self) -> TableConfig:
        """Settings of the table that the tasks use."""
        task = self.task.rows if isinstance(self.task, ResizeGroup) else self.task
        return task.settings.config

    def write(self, engine: Engine, progress: Progress | None) -> list[WriteStat]:
        """Write the files of each group."""
        groups = list(enumerate(self.plan.groups))
        return [stat for each in watched(engine, self.task, groups, progress) for stat in each]

    def complete(self, locked: LockedTable, timeline: Timeline, stats: list[WriteStat]) -> Instant:
        """Replace the old file groups by the new ones, unless the old ones were written to meanwhile.

        Raises:
            LostClusteringError: they were, or they are being written to and writers are preferred.
            ConflictError: another process rolled the attempt back.
        """
        storage, requested = locked.context.storage, self.instant.requested
        if others := conflicting_writes(locked, timeline, self.instant, self.plan, self.gives_way_to):
            unschedule_clustering(locked.rollback_context(), self.instant)
            raise LostClusteringError(
                f"Another writer wrote to file groups of this clustering while it ran: {others}. The plan was"
                " taken off the timeline, and the table is as if it had not run. Cluster the table again.",
                instant=requested,
            )
        check_marked(storage, requested, stats)
        if is_resizing(self.plan):
            save_rings(locked, self.plan, timeline, requested)
        metadata = _metadata(self.plan, stats, self.schema_json)
        try:
            completed = locked.commit_instant(self.instant, metadata, self.fence)
        except ConflictError as error:
            if (overtaken := self._overtaken(locked)) is not None:
                raise overtaken from error
            raise
        if is_resizing(self.plan):
            confirm_rings(storage, self.plan, timeline, requested)
        return completed

    def _overtaken(self, locked: LockedTable) -> LostClusteringError | None:
        """Return the error of an attempt that lost the lock to a write to its file groups; None otherwise."""
        timeline = locked.store.load()
        if timeline.find(self.instant.requested) != self.instant:
            return None
        if not (others := conflicting_writes(locked, timeline, self.instant, self.plan, None)):
            return None
        return LostClusteringError(
            "Another writer wrote to file groups of this clustering while its process stood still, just"
            f" before it completed: {others}. Nothing of it counts. Cluster the table again: that takes the"
            " plan off the timeline.",
            instant=self.instant.requested,
        )


def claim_clustering(
    locked: LockedTable, requested: str, options: WriteOptions, others_may_live: bool
) -> ClusteringAttempt | None:
    """Move a clustering to inflight, after deleting the files of a dead attempt; None if it is outdated.

    If another process that may only have stalled ran it, the plan is unscheduled and not run again: file
    groups that the stalled process still writes would count next to those of the new attempt.
    """
    locked, timeline = recover_and_load(locked, options.failed_writes)
    instant = timeline.find(requested)
    if instant is None:
        raise NoPlanError.of("clustering", requested, timeline)
    if instant.action.completed_action is not Action.REPLACE_COMMIT:
        raise InvalidError(
            f"There is no clustering with this time on the timeline: the instant is a {instant.action}."
            f" {pending_plans('clustering', timeline)}",
            instant=requested,
        )
    if instant.is_completed:
        return None
    plan = decode_clustering_plan(locked.store.read_requested(instant))
    _check_runnable(plan, instant)
    refuse_live_writers(locked.context.storage, locked.context.clock, (instant,), options.failed_writes)
    gives_way_to = options.failed_writes if options.concurrency.prefers_writers else None
    others = conflicting_writes(locked, timeline, instant, plan, gives_way_to)
    if others_may_live or others:
        reason = f"its file groups were written to: {others}" if others else "its process stalled or died"
        _log.info("Unscheduling the clustering %s: %s.", requested, reason)
        unschedule_clustering(locked.rollback_context(), instant, options.failed_writes)
        return None
    settings, schema_json = file_settings(locked, timeline, requested, options)
    task = _task(locked, timeline, plan, options, settings)
    fence = rollback_inflight_plan(locked.rollback_context(), instant)
    if isinstance(fence, Instant):
        return None
    inflight = start_plan(locked, Instant(requested, Action.CLUSTERING, State.REQUESTED), fence)
    return ClusteringAttempt(inflight, plan, task, schema_json, fence, gives_way_to)


def _check_runnable(plan: ClusteringPlan, instant: Instant) -> None:
    name = plan.strategy.rpartition(".")[2].removeprefix("Spark").removeprefix("Java")
    if name not in _RUNNABLE:
        raise UnsupportedError(
            f"The plan of this clustering requires {plan.strategy}, which this release does not have. Run it"
            " with the engine that scheduled it.",
            instant=instant.requested,
        )
    base_files = base_files_of(plan)
    if base_files is not None and base_files != base_files_in(plan.groups):
        raise CorruptTableError(
            "The plan of a base-file compaction lists other files than the clustering that contains it."
            f" Unschedule it (rollback of {instant.requested}), and plan again.",
            instant=instant.requested,
        )


def _task(
    locked: LockedTable,
    timeline: Timeline,
    plan: ClusteringPlan,
    options: WriteOptions,
    settings: FileSettings,
) -> ClusterGroup | ResizeGroup:
    clustering, config = options.clustering, locked.config
    is_single_file = plan.strategy == SINGLE_FILE_SORT
    order = RowOrder.of(plan.parameters, clustering)
    order.check(settings.full_schema)
    if config.has_sorted_files:
        order = RowOrder((RECORD_KEY,))
    task = ClusterGroup(
        replace(settings, base_file_bytes_max=_BYTES_MAX if is_single_file else clustering.target_file_bytes),
        InstantRange.of(timeline),
        order,
        plan.keeps_commit_times,
        locked.context.ids,
    )
    if not is_resizing(plan):
        return task
    fields = options.bucket_hash_fields or config.bucket_hash_fields or config.record_key_fields
    return ResizeGroup(task, fields)


def _metadata(plan: ClusteringPlan, stats: list[WriteStat], schema_json: str) -> CommitMetadata:
    replaced: dict[str, list[str]] = {}
    for group in plan.groups:
        for each in group.slices:
            replaced.setdefault(each.partition, []).append(each.file_id)
    return CommitMetadata(
        stats=tuple(stats),
        operation=WriteOperation.CLUSTER,
        extra={"schema": schema_json},
        replaced={partition: tuple(ids) for partition, ids in replaced.items()},
    )


_Planner = Callable[[dict[str, list[FileSlice]], WriteOptions, frozenset[str]], ClusteringPlan | None]


def cluster(
    context: TableContext, options: WriteOptions, progress: Progress | None = None
) -> CommitResult | None:
    """Run the pending clusterings, then schedule one and run it, again if it gave way to a write.

    Clusterings that another process or engine runs are left to it.

    Args:
        context: the open table.
        options: which file groups, sizes, sort columns, lock wait.
        progress: called after each finished group.

    Returns:
        The result of the last clustering, None if there was nothing to do.

    Raises:
        ConflictError: another writer holds the table, or wrote to a file group each time it was clustered.
        InvalidError: a sort column does not exist; nothing was written.
        UnsupportedError: the table has a bucket index, by which the key determines the file group.
    """

    def check(locked: LockedTable) -> None:
        check_clustering(locked, locked.store.load(), options)

    def run() -> CommitResult | None:
        runner = _runner(context, options, progress)
        result = runner.run_pending(load_config(context.storage), Action.CLUSTERING, check=check)
        return cluster_at_once(context, options, progress) or result

    return retry_if_lost(options, run)


def retry_if_lost(options: WriteOptions, run: Callable[[], CommitResult | None]) -> CommitResult | None:
    """Plan and run a clustering that the user asked for, again if it gave way to a write, as writes are.

    Args:
        options: how often it runs again.
        run: plans a clustering and runs it.

    Returns:
        The result, None if there was nothing to do in the first place.

    Raises:
        LostClusteringError: it gave way each time, or what is left to do is being written to.
    """
    lost: LostClusteringError | None = None
    for _ in range(options.concurrency.retries_max + 1):
        try:
            result = run()
        except LostClusteringError as error:
            _log.info("A clustering gave way to a write and is planned again: %s", error)
            lost = error
            continue
        if result is None and lost is not None:
            break
        return result
    assert lost is not None
    raise lost


def cluster_at_once(
    context: TableContext,
    options: WriteOptions,
    progress: Progress | None = None,
    planner: _Planner = plan_clustering,
) -> CommitResult | None:
    """Schedule a clustering and run it under one lease; see `cluster`.

    If this process dies in between, others find an abandoned lease and unschedule the plan.

    Args:
        context: the open table.
        options: which file groups, sizes, sort columns, lock wait.
        progress: called after each finished group.
        planner: makes the plan.
    """
    with ExitStack() as exit_stack:
        leases: list[ServiceLease] = []

        def hold(time: str) -> None:
            lease = exit_stack.enter_context(service_lease(context.storage, context.clock, context.ids, time))
            leases.extend([lease] if lease else [])

        try:
            scheduled = schedule_clustering(context, options, planner, hold)
        except ConflictError:  # the plan is not on the timeline, or not any more
            for lease in leases:
                lease.forget()
            raise
        if scheduled is None or not leases:
            return None
        return _runner(context, options, progress).run_listed(scheduled, leases[0], is_own=True)


def run_pending(
    context: TableContext, options: WriteOptions, progress: Progress | None = None
) -> CommitResult | None:
    """Run the pending clusterings that no other process runs; see `cluster`."""
    return _runner(context, options, progress).run_pending(load_config(context.storage), Action.CLUSTERING)


def schedule_clustering(
    context: TableContext,
    options: WriteOptions,
    planner: _Planner = plan_clustering,
    before: Callable[[str], None] | None = None,
) -> str | None:
    """Put a clustering plan on the timeline, which any process may run; see `cluster`.

    Args:
        context: the open table.
        options: which file groups, sizes, sort columns, lock wait.
        planner: makes the plan.
        before: called with the requested time before the plan is on the timeline.

    Returns:
        The requested time, None if there is nothing to do.
    """
    await_unreserved(context, options)
    await_begun(context, options)  # Hudi refuses to write to file groups in a clustering
    with lock_table(context, options.locking) as locked:
        timeline = locked.store.load()
        check_clustering(locked, timeline, options)
        if timeline.latest_write() is None:
            return None
        locked, timeline = recover_and_load(locked, options.failed_writes, timeline)
        plan = _make_plan(locked, timeline, options, planner)
        if plan is None:
            return None
        content = encode_clustering_plan(plan, context.storage.full_uri(""))
        time = locked.store.new_time(timeline)
        if before is not None:
            before(time)
        return request_plan(locked, Action.CLUSTERING, time, content).requested


def run_clustering(
    context: TableContext,
    requested: str,
    options: WriteOptions,
    progress: Progress | None = None,
    *,
    is_own: bool = False,
) -> CommitResult | None:
    """Run a pending clustering plan; writers go on meanwhile.

    Args:
        context: the open table.
        requested: requested time of the clustering.
        options: of writes: codec, sizes, lock wait.
        progress: called after each finished group.
        is_own: whether the caller has just planned it.

    Returns:
        The result; None if the clustering is already completed, or was unscheduled because its file groups
        were written to.

    Raises:
        ConflictError: another process or engine runs this clustering or unscheduled it, or another writer
            holds the table.
        InvalidError: there is no such clustering.
    """
    return _runner(context, options, progress).run(requested, is_own=is_own)


def _runner(context: TableContext, options: WriteOptions, progress: Progress | None) -> PlanRunner:
    return PlanRunner("clustering", claim_clustering, context, options, progress)


def _make_plan(
    locked: LockedTable, timeline: Timeline, options: WriteOptions, planner: _Planner
) -> ClusteringPlan | None:
    clustering = options.clustering
    lookup = locked.context.lookup(locked.config, timeline)
    hour = datetime.fromtimestamp(locked.context.clock.now_ms() / 1000, UTC).hour
    reserved = reserved_parts(locked.context, timeline, options.failed_writes)
    partitions = partitions_to_cluster(clustering.partitions or lookup.partitions(), clustering, hour)
    partitions = [each for each in partitions if not reserved.has(each)]
    if has_rings(locked.context.storage):
        return plan_rings(locked, lookup, timeline, partitions, options)
    busy = set(lookup.view().in_services())
    if options.concurrency.prefers_writers:
        busy |= groups_in_progress(locked, timeline, options.failed_writes)
    slices = {
        partition: [each for each in lookup.slices(partition) if (partition, each.file_id) not in busy]
        for partition in partitions
    }
    is_sorting = simple_class_name(clustering.plan_strategy) != BASE_FILES
    clustered = _clustered(locked, timeline, slices, parameters(clustering)) if is_sorting else frozenset()
    return planner(slices, options, clustered)


def _clustered(
    locked: LockedTable, timeline: Timeline, slices: dict[str, list[FileSlice]], order: dict[str, str]
) -> frozenset[str]:
    """Return the clusterings with the same sort order among the writes that created file slices."""
    times = {each.base_instant for partition in slices.values() for each in partition if not each.logs}
    plans = clusterings_among(locked.store, timeline, times)
    return frozenset(time for time, plan in plans if dict(plan.parameters) == order)


def clusterings_among(
    store: TimelineStore, timeline: Timeline, times: Iterable[str]
) -> Iterator[tuple[str, ClusteringPlan]]:
    """Yield the requested times of the completed clusterings among some writes, with their plans.

    Args:
        store: reads commits and plans.
        timeline: the completed instants.
        times: requested times of writes; other writes are skipped.
    """
    for time in times:
        instant = timeline.write_at(time)
        if instant is None or instant.action is not Action.REPLACE_COMMIT:
            continue
        if store.commit_metadata(instant).operation == WriteOperation.CLUSTER:
            with suppress(MissingFileError):  # an archiver that lost the table lock is taking it away
                yield time, decode_clustering_plan(store.read_requested(instant))


def cluster_after_commit(written: WriteOutcome) -> None:
    """Cluster the table of a commit, or plan that, once enough commits follow the last clustering."""
    context, options = written.context, written.options
    clustering = options.clustering
    in_thread = clustering.background and not clustering.inline
    due_after = clustering.background_commits if in_thread else clustering.inline_commits
    if commits_since_clustering(written.store) < due_after:
        return
    if clustering.inline:
        cluster_at_once(context, options)
    elif schedule_clustering(context, options) is not None and in_thread:
        run_in_background(context, options, run_pending)


def commits_since_clustering(store: TimelineStore) -> int:
    """Return the number of completed writes after the last clustering, pending or completed."""
    return retry_on_archiving(store, lambda timeline: _commits_since_clustering(store, timeline))


def _commits_since_clustering(store: TimelineStore, timeline: Timeline) -> int:
    count = 0
    for instant in reversed(timeline.instants):
        if instant.action is Action.CLUSTERING:
            break
        if instant.is_write:
            replaces = instant.action is Action.REPLACE_COMMIT
            if replaces and store.commit_metadata(instant).operation == WriteOperation.CLUSTER:
                break
            count += 1
    return count
