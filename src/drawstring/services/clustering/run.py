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
from contextlib import ExitStack, suppress
from datetime import UTC, datetime

from drawstring.base.errors import ConflictError, MissingFileError
from drawstring.config.keys.clustering import BASE_FILES, bare
from drawstring.config.options.write_options import WriteOptions
from drawstring.formats.metadata.clustering_plan import decode_clustering_plan, encode_clustering_plan
from drawstring.index.existing_writes import has_rings
from drawstring.model.clustering import ClusteringPlan
from drawstring.model.commit import WriteOperation
from drawstring.model.files import FileSlice
from drawstring.model.instant import Action
from drawstring.model.result import CommitResult
from drawstring.services.clustering.attempt import (
    LostClusteringError,
    claim_clustering,
)
from drawstring.services.clustering.checks import check_clustering
from drawstring.services.clustering.plan import (
    parameters,
    partitions_to_cluster,
    plan_clustering,
)
from drawstring.services.clustering.resizing import (
    plan_rings,
)
from drawstring.services.clustering.rivals import groups_in_progress
from drawstring.services.plan_runner import PlanRunner
from drawstring.services.progress import Progress
from drawstring.timeline.properties_store import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.locks.service_lease import ServiceLease, service_lease
from drawstring.txn.planned_instants import request_plan
from drawstring.txn.reservations import await_unreserved, reserved_parts
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import LockedTable, lock_table, recover_and_load
from drawstring.write.attempts import await_begun

_Planner = Callable[[dict[str, list[FileSlice]], WriteOptions, frozenset[str]], ClusteringPlan | None]
_log = logging.getLogger("drawstring")


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

    return again_if_lost(options, run)


def again_if_lost(options: WriteOptions, run: Callable[[], CommitResult | None]) -> CommitResult | None:
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
    is_sorting = bare(clustering.plan_strategy) != BASE_FILES
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
