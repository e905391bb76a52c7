"""Which file groups a clustering brings together (pure).

    partitions ── pattern, names, filter ──> slices with small base files
               ── largest first, until a group is full ──> groups ── at most so many ──> plan

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
from drawstring.services.compaction.plan import slice_metrics

SORT_COLUMNS: Final = "hoodie.clustering.plan.strategy.sort.columns"
LAYOUT: Final = "hoodie.layout.optimize.strategy"
CURVE_METHOD: Final = "hoodie.layout.optimize.curve.build.method"

_RUN: Final = "org.apache.hudi.client.clustering.run.strategy."
SORT_AND_SIZE: Final = f"{_RUN}SparkSortAndSizeExecutionStrategy"
BINARY_COPY: Final = f"{_RUN}SparkBinaryCopyClusteringExecutionStrategy"
SINGLE_FILE_SORT: Final = f"{_RUN}SparkSingleFileSortExecutionStrategy"

_HOURS: Final = 24


def partitions_to_cluster(partitions: Iterable[str], asked: Clustering, hour: int) -> list[str]:
    """Return the partitions that a plan looks at.

    Args:
        partitions: all partition paths.
        asked: what clustering was told.
        hour: of the day, for DAY_ROLLING.

    Raises:
        InvalidError: the pattern is none, or SELECTED_PARTITIONS lacks its bounds.
    """
    paths = sorted(partitions)
    if asked.partitions:
        paths = [path for path in paths if path in asked.partitions]
    elif asked.partition_pattern:
        pattern = _pattern(asked.partition_pattern)
        paths = [path for path in paths if pattern.fullmatch(path)]
    match _filter(asked):
        case PartitionFilter.RECENT_DAYS:
            skipped = asked.skipped_partitions
            return paths[::-1][skipped : skipped + asked.lookback_partitions]
        case PartitionFilter.SELECTED_PARTITIONS:
            begin, end = asked.begin_partition, asked.end_partition
            if not (begin and end):
                raise InvalidError(
                    "SELECTED_PARTITIONS needs hoodie.clustering.plan.strategy.cluster.begin.partition and"
                    " .cluster.end.partition: set both"
                )
            return [path for path in paths if begin <= path <= end]
        case PartitionFilter.DAY_ROLLING:
            return [path for number, path in enumerate(paths) if number % _HOURS == hour]
    return paths


def plan_clustering(
    slices: Mapping[str, Sequence[FileSlice]], options: WriteOptions, settled: frozenset[str] = frozenset()
) -> ClusteringPlan | None:
    """Return which slices come together, None when there is nothing to do.

    Args:
        slices: those that are free, by partition.
        options: sizes, sort columns.
        settled: clusterings that put rows in the same order: a file group by itself that one of them made
            is left alone.
    """
    asked = options.clustering
    if bare(asked.plan_strategy) == BASE_FILES:
        return plan_base_files(slices, options)
    candidates = (
        group
        for partition in slices.values()
        for group in _groups(partition, options)
        if not _is_settled(group, settled)
    )
    groups = tuple(_group(each, asked) for each in islice(candidates, asked.groups_max))
    if not groups:
        return None
    alone = bare(asked.plan_strategy) == SINGLE_FILE
    return ClusteringPlan(groups, SINGLE_FILE_SORT if alone else SORT_AND_SIZE, parameters(asked))


def plan_base_files(
    slices: Mapping[str, Sequence[FileSlice]], options: WriteOptions
) -> ClusteringPlan | None:
    """Return which small base files are put together as they are, None when there are none.

    Args:
        slices: those that are free, by partition; those with log files are left to compaction.
        options: which files are small, and how large new ones are to be.
    """
    sizing = options.sizing
    groups = tuple(
        group_of(together, 1)
        for partition in slices.values()
        for together in _filled(
            [s for s in partition if s.base and not s.logs], sizing.small_file_limit_bytes, sizing
        )
        if len(together) > 1
    )
    return ClusteringPlan(groups, BINARY_COPY, extra=base_file_plan(groups)) if groups else None


def _filled(slices: Iterable[FileSlice], limit_bytes: int, sizing: Sizing) -> Iterable[list[FileSlice]]:
    """Divide small slices so that those of a list make one file."""
    together: list[FileSlice] = []
    held_bytes = 0
    for each in sorted(slices, key=lambda each: each.base_instant):
        size_bytes = each.size_bytes
        if size_bytes >= limit_bytes:
            continue
        if together and held_bytes + size_bytes > sizing.base_file_size_max_bytes:
            yield together
            together, held_bytes = [], 0
        together.append(each)
        held_bytes += size_bytes
    yield together


def parameters(asked: Clustering) -> dict[str, str]:
    """Return what the runner has to know of the order of rows, under Hudi's keys."""
    if not asked.cluster_by:
        return {}
    order = {SORT_COLUMNS: ",".join(asked.cluster_by)}
    return order if asked.layout == Layout.LINEAR else order | _curve(asked)


def _curve(asked: Clustering) -> dict[str, str]:
    return {LAYOUT: asked.layout, CURVE_METHOD: asked.curve_method}


def _filter(asked: Clustering) -> str:
    match bare(asked.plan_strategy):
        case name if name == RECENT_DAYS:
            return PartitionFilter.RECENT_DAYS
        case name if name == SELECTED:
            return PartitionFilter.SELECTED_PARTITIONS
    return asked.partition_filter


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise InvalidError(f"the partition pattern {text!r} is no regular expression: {error}") from error


def _groups(slices: Sequence[FileSlice], options: WriteOptions) -> Iterable[list[FileSlice]]:
    """Divide the small slices of a partition, the largest first."""
    asked = options.clustering
    small = [each for each in slices if _base_bytes(each, 0) < asked.clusters_below_bytes]
    if bare(asked.plan_strategy) == SINGLE_FILE:
        yield from ([each] for each in small)
        return
    largest = options.sizing.base_file_size_max_bytes
    group: list[FileSlice] = []
    size_bytes = 0
    for each in sorted(small, key=lambda each: -_base_bytes(each, largest)):
        own_bytes = _base_bytes(each, largest)
        if group and size_bytes + own_bytes > asked.group_bytes_max:
            yield group
            group, size_bytes = [], 0
        group.append(each)
        size_bytes += own_bytes
    if len(group) > 1 or (group and asked.single_groups):
        yield group


def _is_settled(group: list[FileSlice], settled: frozenset[str]) -> bool:
    return len(group) == 1 and not group[0].logs and group[0].base_instant in settled


def _base_bytes(file_slice: FileSlice, without: int) -> int:
    """Return the size of a base file; of a slice that has none, the size that one aims at."""
    return file_slice.base.status.size_bytes if file_slice.base else without


def _group(slices: list[FileSlice], asked: Clustering) -> ClusteringGroup:
    size_bytes = sum(each.size_bytes for each in slices)
    alone = bare(asked.plan_strategy) == SINGLE_FILE
    outputs = 1 if alone else max(1, -(-size_bytes // asked.target_file_bytes))
    return group_of(slices, outputs)


def group_of(
    slices: Sequence[FileSlice], outputs: int, extra: Mapping[str, str] | None = None
) -> ClusteringGroup:
    """Return slices as a group of a plan.

    Args:
        slices: of one partition.
        outputs: how many file groups are to come out.
        extra: what the plan says of the group.
    """
    totals: dict[str, float] = {}
    for each in slices:
        for name, value in slice_metrics(each).items():
            totals[name] = round(totals.get(name, 0.0) + value, 3)
    return ClusteringGroup(tuple(map(ClusteringSlice.of, slices)), totals, outputs, extra)
