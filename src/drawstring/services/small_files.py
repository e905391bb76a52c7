"""Merge the small files that appends leave, by a base-file compaction that runs when it pays off.

    append ── the name of a small file selects ──> list its partition, without the lock
           └─ enough small files there ──> plan, under the lock ──> run like any clustering

Base-file compaction merges the small base files of a partition into files of the target size. It is a
clustering without sorting. Its plan goes by size alone, over file groups without log files. It copies row
groups where schemas agree (`clustering_task`). On the timeline it is a replacecommit like any clustering,
so every reader and writer of the table understands it.

When an append checks: no state is kept between appends, and no file is read to decide when to check. A hash
of the file id selects one of so many small files, and the partition of a selected file is checked. So
checking costs a fixed share of appending, for any number of partitions and with any other writes in
between.

The cost of merging is bounded by what was appended. Only partitions that the append wrote to are checked,
and a file that is larger than all smaller ones together waits until these have caught up. So a merged file
ends up in a file twice as large, and a row is copied as often as its file doubles while it is small.

Nobody asked for such a plan, so it gives way: a write to one of its file groups cancels it. A merge that
fails is withdrawn, and the next append runs a merge whose process died.
"""

from __future__ import annotations

import logging
import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from drawstring.base.errors import ConflictError, DrawstringError, InvalidError, MissingFileError
from drawstring.config.keys.services import BASE_FILES, PartitionFilter
from drawstring.config.options.write_options import WriteOptions
from drawstring.formats.metadata.plans import (
    CANCELLED_BY_WRITES,
    base_files_of,
    decode_clustering_plan,
    is_cancelled_by_writes,
)
from drawstring.model.commit import WriteStat
from drawstring.model.files import FileSlice
from drawstring.model.instant import Action
from drawstring.model.plans import ClusteringPlan
from drawstring.model.result import CommitResult
from drawstring.services.clustering import (
    cluster_at_once,
    clusterings_among,
    retry_if_lost,
    run_clustering,
    schedule_clustering,
)
from drawstring.services.clustering_plan import SORT_COLUMNS, plan_base_files
from drawstring.services.progress import Progress
from drawstring.services.rollback import roll_back
from drawstring.timeline.properties import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.plan_transitions import NoPlanError, pending_plans
from drawstring.txn.table_context import TableContext
from drawstring.write.write_outcome import WriteOutcome

_CHECKS_PER_MERGE: Final = 3
"""How often, on average, a partition is checked while the files of one merge accumulate."""

_log: Final = logging.getLogger("drawstring")


def merge_small_files(appended: WriteOutcome) -> None:
    """Merge the small files of the partitions that an append wrote to, where that is worth it."""
    options, clustering = appended.options, appended.options.clustering
    _run_pending_merges(appended)
    chosen = _chosen(appended, partitions_to_look_at(appended.stats, options))
    if not chosen:
        return
    merge_clustering = replace(
        clustering,
        plan_strategy=BASE_FILES,
        cluster_by=(),
        partitions=tuple(sorted({each.partition for each in chosen})),
        partition_pattern=None,
        partition_filter=PartitionFilter.NONE,
    )
    merge_options = replace(options, clustering=merge_clustering)
    scheduled = schedule_clustering(
        appended.context, merge_options, _ChosenPlanner(frozenset(map(_name, chosen)))
    )
    if scheduled is not None:
        _run(appended.context, scheduled, merge_options)


def partitions_to_look_at(stats: Sequence[WriteStat], options: WriteOptions) -> list[str]:
    """Return the partitions of an append that are checked for small files (pure).

    Args:
        stats: write statistics of the append.
        options: the least number of files to merge, and the size of small files.
    """
    limit_bytes, files_min = options.sizing.small_file_limit_bytes, options.appending.merged_files_min
    small: dict[str, list[str]] = defaultdict(list)
    for each in stats:
        if each.size_bytes < limit_bytes:
            small[each.partition].append(each.file_id)
    check_every = max(files_min // _CHECKS_PER_MERGE, 1)
    return sorted(
        partition
        for partition, file_ids in small.items()
        if len(file_ids) >= files_min
        or any(zlib.crc32(each.encode()) % check_every == 0 for each in file_ids)
    )


def worth_merging(slices: Sequence[FileSlice], options: WriteOptions) -> list[FileSlice]:
    """Return the small base files of a partition to merge, none if it does not pay off (pure).

    Args:
        slices: the file slices that may be merged.
        options: the least number of files to merge, and the size of small files.
    """
    limit_bytes = options.sizing.small_file_limit_bytes
    small = [each for each in slices if each.base and not each.logs and each.size_bytes < limit_bytes]
    small.sort(key=lambda each: each.size_bytes)
    smaller_bytes = sum(each.size_bytes for each in small)
    while small:
        smaller_bytes -= small[-1].size_bytes
        if small[-1].size_bytes <= smaller_bytes:
            break
        small.pop()
    return small if len(small) >= options.appending.merged_files_min else []


def _name(file_slice: FileSlice) -> tuple[str, str, str]:
    return file_slice.partition, file_slice.file_id, file_slice.base_instant


@dataclass(frozen=True, slots=True)
class _ChosenPlanner:
    """Plans the merge of those chosen file slices that are still there and free, under the table lock."""

    chosen: frozenset[tuple[str, str, str]]

    def __call__(
        self, slices: Mapping[str, Sequence[FileSlice]], options: WriteOptions, clustered: frozenset[str]
    ) -> ClusteringPlan | None:
        mergeable = {
            partition: worth_merging([each for each in candidates if _name(each) in self.chosen], options)
            for partition, candidates in slices.items()
        }
        plan = plan_base_files(mergeable, options)
        return None if plan is None else replace(plan, extra={**plan.extra, **CANCELLED_BY_WRITES})


def _chosen(appended: WriteOutcome, partitions: Sequence[str]) -> list[FileSlice]:
    if not partitions:
        return []
    store = appended.store
    timeline = store.load()  # read again: the append may have archived instants that it knew
    lookup = appended.context.lookup(appended.config, timeline)
    in_services = lookup.view().in_services()
    chosen: list[FileSlice] = []
    for partition in partitions:
        free = [each for each in lookup.slices(partition) if (partition, each.file_id) not in in_services]
        if worth_merging(free, appended.options):
            plans = clusterings_among(store, timeline, {each.base_instant for each in free})
            in_order = {time for time, plan in plans if plan.parameters.get(SORT_COLUMNS)}
            unsorted = [each for each in free if each.base_instant not in in_order]
            chosen += worth_merging(unsorted, appended.options)
    return chosen


def _run_pending_merges(appended: WriteOutcome) -> None:
    """Run pending merges that a dead process left."""
    pending = appended.timeline.pending_of(Action.CLUSTERING)
    if not pending:
        return
    store = appended.store
    for instant in store.load().pending_of(Action.CLUSTERING):
        try:
            plan = store.read_requested(instant)
        except MissingFileError:
            continue  # another process completed or unscheduled it
        if not is_cancelled_by_writes(decode_clustering_plan(plan)):
            continue
        try:
            _run(appended.context, instant.requested, appended.options)
        except (ConflictError, NoPlanError) as error:
            _log.info("The pending merge %s is skipped: %s", instant.requested, error)


def _run(context: TableContext, requested: str, options: WriteOptions) -> None:
    """Run a merge; unschedule it if it fails, so that it does not fail every later append."""
    try:
        run_clustering(context, requested, options)
    except (ConflictError, NoPlanError):  # another process runs it, wrote to its files, or holds the table
        raise
    except Exception:
        try:
            roll_back(context, options, requested)
        except (DrawstringError, OSError) as error:
            _log.info("The merge %s could not be unscheduled and stays for now: %s", requested, error)
        raise


def schedule_base_file_compaction(context: TableContext, options: WriteOptions) -> str | None:
    """Put a base-file compaction plan on the timeline, which any process may run.

    Args:
        context: the open table.
        options: the size of small files and of new ones; lock wait.

    Returns:
        The requested time, None if there is nothing to do.

    Raises:
        ConflictError: another writer holds the table.
        UnsupportedError: the table has a bucket index, by which the key determines the file group.
    """
    return schedule_clustering(context, _by_size(options))


def compact_base_files(
    context: TableContext, options: WriteOptions, progress: Progress | None = None
) -> CommitResult | None:
    """Schedule a base-file compaction and run it; see `schedule_base_file_compaction`.

    Args:
        context: the open table.
        options: the size of small files and of new ones; lock wait.
        progress: called after each new file.

    Returns:
        The result, None if there was nothing to do.
    """
    return retry_if_lost(options, lambda: cluster_at_once(context, _by_size(options), progress))


def _by_size(options: WriteOptions) -> WriteOptions:
    return replace(options, clustering=replace(options.clustering, plan_strategy=BASE_FILES, cluster_by=()))


def run_base_file_compaction(
    context: TableContext, requested: str, options: WriteOptions, progress: Progress | None = None
) -> CommitResult | None:
    """Run a pending base-file compaction, and no other clustering.

    Args:
        context: the open table.
        requested: requested time of the plan.
        options: of writes: codec, sizes, lock wait.
        progress: called after each new file.

    Returns:
        The result; None if it is already completed, or its file groups were written to since.

    Raises:
        ConflictError: another process runs it, or another writer holds the table.
        InvalidError: there is no base-file compaction with this time.
        CorruptTableError: the plan contradicts itself.
    """
    _check_plan(context, requested)
    return run_clustering(context, requested, options, progress)


def _check_plan(context: TableContext, requested: str) -> None:
    store = TimelineStore(context.storage, load_config(context.storage), context.clock)
    timeline = store.load()
    instant = timeline.find(requested)
    if instant is None or instant.action.completed_action is not Action.REPLACE_COMMIT:
        raise _no_base_file_compaction(requested, timeline)
    if base_files_of(decode_clustering_plan(store.read_requested(instant))) is None:
        raise _no_base_file_compaction(requested, timeline)


def _no_base_file_compaction(requested: str, timeline: Timeline) -> InvalidError:
    return InvalidError(
        "There is no base-file compaction with this time on the timeline."
        f" {pending_plans('base-file compaction', timeline)}",
        instant=requested,
    )
