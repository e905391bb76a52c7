"""The plan of a clustering: which file slices form which groups (pure functions).

    partitions ── pattern, names, filter ──> slices with small base files
               ── largest first, until a group is full ──> groups ── up to a limit ──> plan

The rules are those of Hudi's SparkSizeBasedClusteringPlanStrategy and its partition filters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Final

from drawstring.base.errors import InvalidError
from drawstring.config.keys.clustering import (
    BASE_FILES,
    RECENT_DAYS,
    SELECTED,
    SINGLE_FILE,
    Clustering,
    Layout,
    PartitionFilter,
    bare,
)
from drawstring.config.keys.sizing import Sizing
from drawstring.config.options.write_options import WriteOptions
from drawstring.formats.metadata.base_file_compaction import base_file_plan
from drawstring.model.clustering import ClusteringGroup, ClusteringPlan, ClusteringSlice
from drawstring.model.files import FileSlice
from drawstring.model.plans import slice_metrics

SORT_COLUMNS: Final = "hoodie.clustering.plan.strategy.sort.columns"
LAYOUT: Final = "hoodie.layout.optimize.strategy"
CURVE_METHOD: Final = "hoodie.layout.optimize.curve.build.method"

_RUN: Final = "org.apache.hudi.client.clustering.run.strategy."
SORT_AND_SIZE: Final = f"{_RUN}SparkSortAndSizeExecutionStrategy"
BINARY_COPY: Final = f"{_RUN}SparkBinaryCopyClusteringExecutionStrategy"
SINGLE_FILE_SORT: Final = f"{_RUN}SparkSingleFileSortExecutionStrategy"

_HOURS: Final = 24


def partitions_to_cluster(partitions: Iterable[str], clustering: Clustering, hour: int) -> list[str]:
    """Return the partitions to plan.

    Args:
        partitions: all partition paths.
        clustering: the clustering options.
        hour: of the day, for DAY_ROLLING.

    Raises:
        InvalidError: the pattern is not a regular expression, or SELECTED_PARTITIONS lacks its bounds.
    """
    paths = sorted(partitions)
    if clustering.partitions:
        paths = [path for path in paths if path in clustering.partitions]
    elif clustering.partition_pattern:
        pattern = _pattern(clustering.partition_pattern)
        paths = [path for path in paths if pattern.fullmatch(path)]
    match _filter(clustering):
        case PartitionFilter.RECENT_DAYS:
            skipped = clustering.skipped_partitions
            return paths[::-1][skipped : skipped + clustering.lookback_partitions]
        case PartitionFilter.SELECTED_PARTITIONS:
            begin, end = clustering.begin_partition, clustering.end_partition
            if not (begin and end):
                raise InvalidError(
                    "SELECTED_PARTITIONS needs hoodie.clustering.plan.strategy.cluster.begin.partition and"
                    " .cluster.end.partition. Set both."
                )
            return [path for path in paths if begin <= path <= end]
        case PartitionFilter.DAY_ROLLING:
            return [path for number, path in enumerate(paths) if number % _HOURS == hour]
    return paths


def plan_clustering(
    slices: Mapping[str, Sequence[FileSlice]], options: WriteOptions, clustered: frozenset[str] = frozenset()
) -> ClusteringPlan | None:
    """Return the plan of a clustering, None if there is nothing to do.

    Args:
        slices: the free file slices, by partition.
        options: sizes, sort columns.
        clustered: requested times of clusterings with the same sort order: a single file group that one of
            them made is skipped.
    """
    clustering = options.clustering
    if bare(clustering.plan_strategy) == BASE_FILES:
        return plan_base_files(slices, options)
    candidates = (
        group
        for partition in slices.values()
        for group in _groups(partition, options)
        if not _is_clustered(group, clustered)
    )
    groups = tuple(_group(each, clustering) for each in islice(candidates, clustering.groups_max))
    if not groups:
        return None
    is_single_file = bare(clustering.plan_strategy) == SINGLE_FILE
    return ClusteringPlan(
        groups, SINGLE_FILE_SORT if is_single_file else SORT_AND_SIZE, parameters(clustering)
    )


def plan_base_files(
    slices: Mapping[str, Sequence[FileSlice]], options: WriteOptions
) -> ClusteringPlan | None:
    """Return a plan that merges small base files as they are, None if there are none.

    Args:
        slices: the free file slices, by partition; those with log files are skipped.
        options: the size of small files, and of new ones.
    """
    sizing = options.sizing
    groups = tuple(
        group_of(together, 1)
        for partition in slices.values()
        for together in _target_sized(
            [s for s in partition if s.base and not s.logs], sizing.small_file_limit_bytes, sizing
        )
        if len(together) > 1
    )
    return ClusteringPlan(groups, BINARY_COPY, extra=base_file_plan(groups)) if groups else None


def _target_sized(slices: Iterable[FileSlice], limit_bytes: int, sizing: Sizing) -> Iterable[list[FileSlice]]:
    """Divide small file slices into lists of the size of one file."""
    group: list[FileSlice] = []
    group_bytes = 0
    for each in sorted(slices, key=lambda each: each.base_instant):
        size_bytes = each.size_bytes
        if size_bytes >= limit_bytes:
            continue
        if group and group_bytes + size_bytes > sizing.base_file_size_max_bytes:
            yield group
            group, group_bytes = [], 0
        group.append(each)
        group_bytes += size_bytes
    yield group


def parameters(clustering: Clustering) -> dict[str, str]:
    """Return the parameters of the sort order under Hudi's keys."""
    if not clustering.cluster_by:
        return {}
    order = {SORT_COLUMNS: ",".join(clustering.cluster_by)}
    return order if clustering.layout == Layout.LINEAR else order | _curve(clustering)


def _curve(clustering: Clustering) -> dict[str, str]:
    return {LAYOUT: clustering.layout, CURVE_METHOD: clustering.curve_method}


def _filter(clustering: Clustering) -> str:
    match bare(clustering.plan_strategy):
        case name if name == RECENT_DAYS:
            return PartitionFilter.RECENT_DAYS
        case name if name == SELECTED:
            return PartitionFilter.SELECTED_PARTITIONS
    return clustering.partition_filter


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise InvalidError(
            f"The partition pattern {text!r} is not a regular expression: {error}. Correct it."
        ) from error


def _groups(slices: Sequence[FileSlice], options: WriteOptions) -> Iterable[list[FileSlice]]:
    """Divide the small file slices of a partition into groups, the largest first."""
    clustering = options.clustering
    small = [each for each in slices if _base_bytes(each, 0) < clustering.clusters_below_bytes]
    if bare(clustering.plan_strategy) == SINGLE_FILE:
        yield from ([each] for each in small)
        return
    target_bytes = options.sizing.base_file_size_max_bytes
    group: list[FileSlice] = []
    size_bytes = 0
    for each in sorted(small, key=lambda each: -_base_bytes(each, target_bytes)):
        own_bytes = _base_bytes(each, target_bytes)
        if group and size_bytes + own_bytes > clustering.group_bytes_max:
            yield group
            group, size_bytes = [], 0
        group.append(each)
        size_bytes += own_bytes
    if len(group) > 1 or (group and clustering.single_groups):
        yield group


def _is_clustered(group: list[FileSlice], clustered: frozenset[str]) -> bool:
    return len(group) == 1 and not group[0].logs and group[0].base_instant in clustered


def _base_bytes(file_slice: FileSlice, without: int) -> int:
    """Return the size of the base file of a slice, or a default for a slice without one."""
    return file_slice.base.status.size_bytes if file_slice.base else without


def _group(slices: list[FileSlice], clustering: Clustering) -> ClusteringGroup:
    size_bytes = sum(each.size_bytes for each in slices)
    is_single_file = bare(clustering.plan_strategy) == SINGLE_FILE
    outputs = 1 if is_single_file else max(1, -(-size_bytes // clustering.target_file_bytes))
    return group_of(slices, outputs)


def group_of(
    slices: Sequence[FileSlice], outputs: int, extra: Mapping[str, str] | None = None
) -> ClusteringGroup:
    """Return file slices as a group of a plan.

    Args:
        slices: of one partition.
        outputs: number of file groups to create.
        extra: extra metadata of the group.
    """
    totals: dict[str, float] = {}
    for each in slices:
        for name, value in slice_metrics(each).items():
            totals[name] = round(totals.get(name, 0.0) + value, 3)
    return ClusteringGroup(tuple(map(ClusteringSlice.of, slices)), totals, outputs, extra)
