"""Merging the small files that appends leave, by a base-file compaction once that is worth it.

    append ── a small file of its own draws the lot ──> its partition is listed, without the lock
           └─ enough small files there ──> plan, under the lock ──> run, as any clustering

Nothing is kept from one append to the next, and nothing is read to tell when to look: of so many small files
one, by its name, has its partition looked at. So the work of looking is a fixed share of that of appending,
over however many partitions and between whatever other writes.

The work of merging stays bounded by what was appended: only partitions that the append wrote to are looked
at, and a file that is larger than all smaller ones together waits until these have caught up. So whatever is
merged ends up in a file twice as large, and a row is copied as often as its file doubles while it is small.
"""

from __future__ import annotations

import logging
import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from drawstring.base.errors import ConflictError, DrawstringError, MissingFileError
from drawstring.config.keys.clustering import BASE_FILES, PartitionFilter
from drawstring.config.options.write_options import WriteOptions
from drawstring.filegroups.view.lookup import SliceLookup
from drawstring.formats.metadata.base_file_compaction import GIVES_WAY, gives_way
from drawstring.formats.metadata.clustering_plan import decode_clustering_plan
from drawstring.model.clustering import ClusteringPlan
from drawstring.model.commit import WriteStat
from drawstring.model.files import FileSlice
from drawstring.model.instant import Action
from drawstring.services.clustering.plan import SORT_COLUMNS, plan_base_files
from drawstring.services.clustering.run import clusterings_among, run_clustering, schedule_clustering
from drawstring.services.manual_rollback import roll_back
from drawstring.txn.missing_plans import NoPlanError
from drawstring.txn.table_context import TableContext
from drawstring.write.committed import Committed

_LOOKS: Final = 3
"""How often a partition is looked at while the files of one merge come together, by and large."""

_log: Final = logging.getLogger("drawstring")


def merge_small_files(appended: Committed) -> None:
    """Merge the small files of the partitions that an append wrote to, where that is worth it."""
    options, clustering = appended.options, appended.options.clustering
    _run_left(appended)
    chosen = _chosen(appended, partitions_to_look_at(appended.stats, options))
    if not chosen:
        return
    asked = replace(
        clustering,
        plan_strategy=BASE_FILES,
        cluster_by=(),
        partitions=tuple(sorted({each.partition for each in chosen})),
        partition_pattern=None,
        partition_filter=PartitionFilter.NONE,
    )
    found = replace(options, clustering=asked)
    scheduled = schedule_clustering(appended.state, found, _PlanOf(frozenset(map(_name, chosen))))
    if scheduled is not None:
        _run(appended.state, scheduled, found)


def partitions_to_look_at(stats: Sequence[WriteStat], options: WriteOptions) -> list[str]:
    """Return the partitions, of those that an append wrote to, that are looked at for small files (pure).

    Args:
        stats: of the append.
        options: how many files have to come together, and which are small.
    """
    limit_bytes, least = options.sizing.small_file_limit_bytes, options.appending.merged_files_min
    small: dict[str, list[str]] = defaultdict(list)
    for each in stats:
        if each.size_bytes < limit_bytes:
            small[each.partition].append(each.file_id)
    one_in = max(least // _LOOKS, 1)
    return sorted(
        partition
        for partition, file_ids in small.items()
        if len(file_ids) >= least or any(zlib.crc32(each.encode()) % one_in == 0 for each in file_ids)
    )


def worth_merging(slices: Sequence[FileSlice], options: WriteOptions) -> list[FileSlice]:
    """Return which small base files of a partition are merged, none when it is not worth it (pure).

    Args:
        slices: those that may be merged.
        options: how many files have to come together, and which are small.
    """
    limit_bytes = options.sizing.small_file_limit_bytes
    small = [each for each in slices if each.base and not each.logs and each.size_bytes < limit_bytes]
    small.sort(key=lambda each: each.size_bytes)
    rest_bytes = sum(each.size_bytes for each in small)
    while small:
        rest_bytes -= small[-1].size_bytes
        if small[-1].size_bytes <= rest_bytes:
            break
        small.pop()
    return small if len(small) >= options.appending.merged_files_min else []


def _name(file_slice: FileSlice) -> tuple[str, str, str]:
    return file_slice.partition, file_slice.file_id, file_slice.base_instant


@dataclass(frozen=True, slots=True)
class _PlanOf:
    """Plans the merge of those chosen slices that are there and free still, once the table is locked."""

    chosen: frozenset[tuple[str, str, str]]

    def __call__(
        self, slices: Mapping[str, Sequence[FileSlice]], options: WriteOptions, settled: frozenset[str]
    ) -> ClusteringPlan | None:
        left = {
            partition: worth_merging([each for each in found if _name(each) in self.chosen], options)
            for partition, found in slices.items()
        }
        plan = plan_base_files(left, options)
        return None if plan is None else replace(plan, extra={**plan.extra, **GIVES_WAY})


def _chosen(appended: Committed, partitions: Sequence[str]) -> list[FileSlice]:
    if not partitions:
        return []
    store = appended.store
    timeline = store.load()  # as it is by now: the append may have archived some of what it knew
    lookup = SliceLookup(appended.state.storage.spec, appended.config, timeline)
    taken = lookup.view().in_services()
    chosen: list[FileSlice] = []
    for partition in partitions:
        free = [each for each in lookup.slices(partition) if (partition, each.file_id) not in taken]
        if worth_merging(free, appended.options):
            plans = clusterings_among(store, timeline, {each.base_instant for each in free})
            in_order = {time for time, plan in plans if plan.parameters.get(SORT_COLUMNS)}
            unsorted = [each for each in free if each.base_instant not in in_order]
            chosen += worth_merging(unsorted, appended.options)
    return chosen


def _run_left(appended: Committed) -> None:
    """Run the merges that a process left behind when it died."""
    pending = appended.timeline.pending_of(Action.CLUSTERING)
    if not pending:
        return
    store = appended.store
    for instant in store.load().pending_of(Action.CLUSTERING):
        try:
            plan = store.read_requested(instant)
        except MissingFileError:
            continue  # another process completed or withdrew it
        if not gives_way(decode_clustering_plan(plan)):
            continue
        try:
            _run(appended.state, instant.requested, appended.options)
        except (ConflictError, NoPlanError) as error:
            _log.info("the pending merge %s is left alone: %s", instant.requested, error)


def _run(state: TableContext, requested: str, options: WriteOptions) -> None:
    """Run a merge; one that fails is withdrawn, so that it does not fail every append after this one."""
    try:
        run_clustering(state, requested, options)
    except (ConflictError, NoPlanError):  # another process has it, or wrote to its files, or holds the table
        raise
    except Exception:
        try:
            roll_back(state, options, requested)
        except (DrawstringError, OSError) as error:
            _log.info("the merge %s stays for now: %s", requested, error)
        raise
