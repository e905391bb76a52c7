"""Merging the small files that appends leave, by a base-file compaction once that is worth it.

    append ── writes since the last one, small files of its own ──> not due: nothing is listed
           └─ due ──> the partitions that it wrote to ── plan ──> run, as any clustering

The work stays bounded by what was appended: only partitions that the append wrote to are looked at, and a
file that is larger than all smaller ones together waits until these have caught up. So whatever is merged
ends up in a file twice as large, and a row is copied as often as its file doubles while it is small.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from drawstring.base.errors import ConflictError
from drawstring.config.clustering_keys import BASE_FILES, PartitionFilter
from drawstring.config.options import WriteOptions
from drawstring.formats.base_file_compaction import base_files_of
from drawstring.formats.clustering_plan import decode_clustering_plan
from drawstring.model.clustering import ClusteringPlan
from drawstring.model.commit import WriteStat
from drawstring.model.files import FileSlice
from drawstring.model.instant import Action
from drawstring.services.clustering import run_clustering, schedule_clustering
from drawstring.services.clustering_plan import plan_base_files
from drawstring.services.committed import write_stands
from drawstring.timeline.properties_store import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.state import TableState

_log: Final = logging.getLogger("drawstring")


def merge_when_due(
    state: TableState, options: WriteOptions, timeline: Timeline, stats: Sequence[WriteStat]
) -> None:
    """Merge small files after an append, when that is due; the append stands whatever becomes of it.

    Args:
        state: the table; its lock is free.
        options: of the append.
        timeline: with the append on it.
        stats: of the append.
    """
    clustering = options.clustering
    if not options.appending.merges_appended or (
        clustering.inline or clustering.background or clustering.schedule_inline
    ):
        return
    with write_stands("merging small files", "a later append does it"):
        if timeline.pending_of(Action.CLUSTERING):
            _run_pending(state, options)
        partitions = _partitions_due(options, timeline, stats)
        if not partitions:
            return
        asked = replace(
            clustering,
            plan_strategy=BASE_FILES,
            cluster_by=(),
            partitions=partitions,
            partition_pattern=None,
            partition_filter=PartitionFilter.NONE,
        )
        found = replace(options, clustering=asked)
        scheduled = schedule_clustering(state, found, plan_appended)
        if scheduled is not None:
            run_clustering(state, scheduled, found)


def plan_appended(
    slices: Mapping[str, Sequence[FileSlice]], options: WriteOptions, settled: frozenset[str] = frozenset()
) -> ClusteringPlan | None:
    """Return which small base files of partitions are merged, None when it is not worth it.

    Args:
        slices: those that are free, by partition.
        options: how many files have to come together, which are small, and how large new ones are to be.
        settled: what else put rows in order; there is no order here.
    """
    worthwhile = {partition: _worthwhile(each, options) for partition, each in slices.items()}
    return plan_base_files(worthwhile, options)


def _worthwhile(slices: Sequence[FileSlice], options: WriteOptions) -> list[FileSlice]:
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


def _partitions_due(options: WriteOptions, timeline: Timeline, stats: Sequence[WriteStat]) -> tuple[str, ...]:
    """Return the partitions that may have enough small files, going by what is known without a listing.

    As many small files as this append wrote to a partition are taken to be of every write since files were
    replaced last.
    """
    limit_bytes = options.sizing.small_file_limit_bytes
    small = Counter(each.partition for each in stats if each.size_bytes < limit_bytes)
    writes = _writes_since_replaced(timeline)
    least = options.appending.merged_files_min
    return tuple(sorted(partition for partition, count in small.items() if count * writes >= least))


def _writes_since_replaced(timeline: Timeline) -> int:
    count = 0
    for instant in reversed(timeline.instants):
        if instant.action in (Action.CLUSTERING, Action.REPLACE_COMMIT):
            break
        count += instant.is_write
    return count


def _run_pending(state: TableState, options: WriteOptions) -> None:
    """Run base-file compactions that a process left behind when it died, which keep writers away."""
    store = TimelineStore(state.storage, load_config(state.storage), state.clock)
    for instant in store.load().pending_of(Action.CLUSTERING):
        if base_files_of(decode_clustering_plan(store.read_requested(instant))) is None:
            continue
        try:
            run_clustering(state, instant.requested, options)
        except ConflictError as error:
            _log.info("the pending base-file compaction %s is left alone: %s", instant.requested, error)
