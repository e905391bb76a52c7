"""Clustering: rewrite small or unsorted file groups into fewer, sorted ones.

    schedule   under the table lock: put a plan of groups on the timeline (`plan`) ──> requested
    run        without it: write the rows of each group into new base files (`task`)
               under the table lock again: check that the old groups were not written to ──> replacecommit

It runs like a compaction (`plan_runner`) while writers go on. If its file groups were written to since, it is
taken off the timeline, since its rows are outdated.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from drawstring.base.errors import ConflictError, CorruptTableError, InvalidError, UnsupportedError
from drawstring.config.keys.clustering import BASE_FILES, bare
from drawstring.config.options.write_options import WriteOptions
from drawstring.config.table.config import TableConfig
from drawstring.engine.protocol import Engine
from drawstring.filegroups.read.tasks import InstantRange
from drawstring.filegroups.view.lookup import SliceLookup
from drawstring.filegroups.write.settings import FileSettings
from drawstring.formats.metadata.base_file_compaction import base_files_in, base_files_of
from drawstring.formats.metadata.clustering_plan import decode_clustering_plan, encode_clustering_plan
from drawstring.index.consistent.rings import has_rings
from drawstring.model.clustering import ClusteringPlan
from drawstring.model.commit import CommitMetadata, WriteOperation, WriteStat
from drawstring.model.files import FileSlice
from drawstring.model.hashing import is_resizing
from drawstring.model.instant import Action, Instant, State
from drawstring.model.result import CommitResult
from drawstring.services.clustering.checks import check_clustering
from drawstring.services.clustering.plan import (
    BINARY_COPY,
    SINGLE_FILE_SORT,
    SORT_AND_SIZE,
    parameters,
    partitions_to_cluster,
    plan_clustering,
)
from drawstring.services.clustering.resizing import (
    ResizeGroup,
    are_written_twice,
    confirm_rings,
    plan_rings,
    save_rings,
)
from drawstring.services.clustering.resizing_plan import RESIZE
from drawstring.services.clustering.row_order import RowOrder
from drawstring.services.clustering.task import ClusterGroup
from drawstring.services.plan_runner import PlanRunner
from drawstring.services.progress import Progress, watched
from drawstring.services.service_files import file_settings
from drawstring.timeline.claims import Fence
from drawstring.timeline.properties_store import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.heartbeats import refuse_live_writers
from drawstring.txn.locks.service_lease import ServiceLease, service_lease
from drawstring.txn.missing_plans import NoPlanError
from drawstring.txn.rollback.withdrawal import cancel_clustering, restart
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import LockedTable, check_marked, lock_table, recover_and_load

_RUNNABLE: Final = frozenset(
    name.rpartition(".")[2].removeprefix("Spark").removeprefix("Java")
    for name in (SORT_AND_SIZE, SINGLE_FILE_SORT, BINARY_COPY, RESIZE)
)
_BYTES_MAX: Final = 1 << 62
_Planner = Callable[[dict[str, list[FileSlice]], WriteOptions, frozenset[str]], ClusteringPlan | None]
_log = logging.getLogger("drawstring")


def cluster(
    state: TableContext, options: WriteOptions, progress: Progress | None = None
) -> CommitResult | None:
    """Run the pending clusterings, then schedule one and run it.

    Clusterings that another process or engine runs are left to it.

    Args:
        state: the open table.
        options: which file groups, sizes, sort columns, lock wait.
        progress: called after each finished group.

    Returns:
        The result of the last clustering, None if there was nothing to do.

    Raises:
        ConflictError: another writer holds the table, or wrote to a file group while it was clustered.
        InvalidError: a sort column does not exist; nothing was written.
        UnsupportedError: the table has a bucket index, by which the key determines the file group.
    """

    def check(locked: LockedTable) -> None:
        check_clustering(locked, locked.store.load(), options)

    runner = _runner(state, options, progress)
    result = runner.run_pending(load_config(state.storage), Action.CLUSTERING, check=check)
    return cluster_at_once(state, options, progress) or result


def cluster_at_once(
    state: TableContext,
    options: WriteOptions,
    progress: Progress | None = None,
    planner: _Planner = plan_clustering,
) -> CommitResult | None:
    """Schedule a clustering and run it under one lease; see `cluster`.

    If this process dies in between, others find an abandoned lease and withdraw the plan.

    Args:
        state: the open table.
        options: which file groups, sizes, sort columns, lock wait.
        progress: called after each finished group.
        planner: makes the plan.
    """
    with ExitStack() as exit_stack:
        leases: list[ServiceLease] = []

        def hold(time: str) -> None:
            lease = exit_stack.enter_context(service_lease(state.storage, state.clock, state.ids, time))
            leases.extend([lease] if lease else [])

        scheduled = schedule_clustering(state, options, planner, hold)
        if scheduled is None or not leases:
            return None
        return _runner(state, options, progress).run_leased(scheduled, leases[0])


def run_pending(
    state: TableContext, options: WriteOptions, progress: Progress | None = None
) -> CommitResult | None:
    """Run the pending clusterings that no other process runs; see `cluster`."""
    return _runner(state, options, progress).run_pending(load_config(state.storage), Action.CLUSTERING)


def schedule_clustering(
    state: TableContext,
    options: WriteOptions,
    planner: _Planner = plan_clustering,
    before: Callable[[str], None] | None = None,
) -> str | None:
    """Put a clustering plan on the timeline, which any process may run; see `cluster`.

    Args:
        state: the open table.
        options: which file groups, sizes, sort columns, lock wait.
        planner: makes the plan.
        before: called with the requested time before the plan is on the timeline.

    Returns:
        The requested time, None if there is nothing to do.
    """
    with lock_table(state, options.lock_wait_ms) as locked:
        timeline = locked.store.load()
        check_clustering(locked, timeline, options)
        if timeline.latest_write() is None:
            return None
        session, timeline = recover_and_load(locked, options.failed_writes, timeline)
        plan = _make_plan(session, timeline, options, planner)
        if plan is None:
            return None
        content = encode_clustering_plan(plan, state.storage.full_uri(""))
        time = session.store.new_time(timeline)
        if before is not None:
            before(time)
        return session.store.request(Action.CLUSTERING, time, content).requested


def run_clustering(
    state: TableContext,
    requested: str,
    options: WriteOptions,
    progress: Progress | None = None,
    *,
    is_own: bool = False,
) -> CommitResult | None:
    """Run a pending clustering plan; writers go on meanwhile.

    Args:
        state: the open table.
        requested: requested time of the clustering.
        options: of writes: codec, sizes, lock wait.
        progress: called after each finished group.
        is_own: whether the caller has just planned it.

    Returns:
        The result; None if the clustering is already completed, or was withdrawn because its file groups were
        written to.

    Raises:
        ConflictError: another process or engine runs this clustering or withdrew it, or another writer holds
            the table.
        InvalidError: there is no such clustering.
    """
    return _runner(state, options, progress).run(requested, is_own=is_own)


def _runner(state: TableContext, options: WriteOptions, progress: Progress | None) -> PlanRunner:
    return PlanRunner("clustering", _claim, state, options, progress)


def _make_plan(
    session: LockedTable, timeline: Timeline, options: WriteOptions, planner: _Planner
) -> ClusteringPlan | None:
    clustering = options.clustering
    lookup = SliceLookup(session.state.storage.spec, session.config, timeline)
    hour = datetime.fromtimestamp(session.state.clock.now_ms() / 1000, UTC).hour
    partitions = partitions_to_cluster(clustering.partitions or lookup.partitions(), clustering, hour)
    if has_rings(session.state.storage):
        return plan_rings(session, lookup, timeline, partitions, options)
    busy = lookup.view().in_services()
    slices = {
        partition: [each for each in lookup.slices(partition) if (partition, each.file_id) not in busy]
        for partition in partitions
    }
    is_sorting = bare(clustering.plan_strategy) != BASE_FILES
    settled = _settled(session, timeline, slices, parameters(clustering)) if is_sorting else frozenset()
    return planner(slices, options, settled)


def _settled(
    session: LockedTable, timeline: Timeline, slices: dict[str, list[FileSlice]], order: dict[str, str]
) -> frozenset[str]:
    """Return the clusterings with the same sort order among the writes that created file slices."""
    times = {each.base_instant for partition in slices.values() for each in partition if not each.logs}
    plans = clusterings_among(session.store, timeline, times)
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
            yield time, decode_clustering_plan(store.read_requested(instant))


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A run of a clustering by this process.

    Attributes:
        instant: inflight.
        plan: the clustering plan.
        task: writes the base files of a group.
        schema_json: the table schema as Avro JSON.
        fence: the claim on an instant that another process tried first.
    """

    instant: Instant
    plan: ClusteringPlan
    task: ClusterGroup | ResizeGroup
    schema_json: str
    fence: Fence | None = None

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

    def complete(self, session: LockedTable, timeline: Timeline, stats: list[WriteStat]) -> Instant:
        """Replace the old file groups by the new ones, unless the old ones were written to meanwhile.

        Raises:
            ConflictError: they were, or another process rolled the attempt back.
        """
        storage, requested = session.state.storage, self.instant.requested
        if written_since(session, timeline, requested, self.plan):
            cancel_clustering(session.rollback_context(), self.instant)
            raise ConflictError(
                "File groups of this clustering were written to while it ran. Cluster the table again.",
                instant=requested,
            )
        check_marked(storage, requested, stats)
        if is_resizing(self.plan):
            save_rings(session, self.plan, timeline, requested)
        metadata = _metadata(self.plan, stats, self.schema_json)
        completed = session.finish(self.instant, metadata, self.fence)
        if is_resizing(self.plan):
            confirm_rings(storage, self.plan, timeline, requested)
        return completed


def _claim(
    locked: LockedTable, requested: str, options: WriteOptions, others_may_live: bool
) -> _Attempt | None:
    """Move a clustering to inflight, after deleting the files of a dead attempt; None if it is outdated.

    If another process that may only have stalled ran it, the plan is withdrawn and not run again: file groups
    that the stalled process still writes would count next to those of the new attempt.
    """
    session, timeline = recover_and_load(locked, options.failed_writes)
    instant = timeline.find(requested)
    if instant is None:
        raise NoPlanError.of("clustering", requested)
    if instant.action.completed_action is not Action.REPLACE_COMMIT:
        raise InvalidError("There is no clustering with this time on the timeline.", instant=requested)
    if instant.is_completed:
        return None
    plan = decode_clustering_plan(session.store.read_requested(instant))
    _check_runnable(plan, instant)
    refuse_live_writers(session.state.storage, session.state.clock, (instant,), options.failed_writes)
    if others_may_live or written_since(session, timeline, requested, plan):
        reason = "its process stalled or died" if others_may_live else "its file groups were written to"
        _log.info("Withdrawing the clustering %s: %s.", requested, reason)
        cancel_clustering(session.rollback_context(), instant, options.failed_writes)
        return None
    settings, schema_json = file_settings(session, timeline, requested, options)
    task = _task(session, timeline, plan, options, settings)
    fence = restart(session.rollback_context(), instant)
    if isinstance(fence, Instant):
        return None
    inflight = session.store.start(Instant(requested, Action.CLUSTERING, State.REQUESTED))
    return _Attempt(inflight, plan, task, schema_json, fence)


def written_since(session: LockedTable, timeline: Timeline, time: str, plan: ClusteringPlan) -> bool:
    """Return whether a file group of a plan was written to or replaced after the plan was made."""
    later = (each for each in timeline.writes() if max(each.requested, each.completed or "") > time)
    if is_resizing(plan):
        writes = (session.store.commit_metadata(each) for each in later)
        return not are_written_twice(session.state.storage, writes, plan)
    return any(session.store.commit_metadata(each).touched & plan.inputs for each in later)


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
            f" Withdraw it (rollback of {instant.requested}), and plan again.",
            instant=instant.requested,
        )


def _task(
    session: LockedTable,
    timeline: Timeline,
    plan: ClusteringPlan,
    options: WriteOptions,
    settings: FileSettings,
) -> ClusterGroup | ResizeGroup:
    clustering, config = options.clustering, session.config
    is_single_file = plan.strategy == SINGLE_FILE_SORT
    order = RowOrder.of(plan.parameters, clustering)
    order.check(settings.schema)
    task = ClusterGroup(
        replace(settings, base_file_bytes_max=_BYTES_MAX if is_single_file else clustering.target_file_bytes),
        InstantRange.of(timeline),
        order,
        plan.keeps_commit_times,
        session.state.ids,
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
