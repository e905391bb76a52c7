"""Plan a clustering: which file slices form which groups (pure functions).

    partitions ── pattern, names, filter ──> slices with small base files
               ── largest first, until a group is full ──> groups ── up to a limit ──> plan

The rules are those of Hudi's SparkSizeBasedClusteringPlanStrategy and its partition filters.

`plan_resizing` plans the splits and merges of the buckets in a partition's hash ring:

    bucket too large ── split at a hash ──> two nodes in its place
    small neighbours ── merge ──> the last of them takes their ranges of hashes

The rules are those of SparkConsistentBucketClusteringPlanStrategy: the size of a bucket includes its log
files, so that a bucket that is written all the time is resized with them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from drawstring.base.clock import Ids
from drawstring.base.errors import InvalidError
from drawstring.base.java_compat import simple_class_name
from drawstring.config.keys.services import (
    BASE_FILES,
    RECENT_DAYS,
    SELECTED,
    SINGLE_FILE,
    Clustering,
    Layout,
    PartitionFilter,
)
from drawstring.config.keys.sizing import Sizing
from drawstring.config.options.write_options import WriteOptions
from drawstring.formats.metadata.plans import base_file_plan
from drawstring.index.consistent_bucket import Ring
from drawstring.model.files import FileSlice, prefix_of
from drawstring.model.plans import (
    NODES_KEY,
    PARTITION_KEY,
    SEQUENCE_KEY,
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    NodeChange,
    encode_nodes,
    slice_metrics,
)

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
    if simple_class_name(clustering.plan_strategy) == BASE_FILES:
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
    is_single_file = simple_class_name(clustering.plan_strategy) == SINGLE_FILE
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
    match simple_class_name(clustering.plan_strategy):
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
    if simple_class_name(clustering.plan_strategy) == SINGLE_FILE:
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
    is_single_file = simple_class_name(clustering.plan_strategy) == SINGLE_FILE
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


RESIZE: Final = (
    "org.apache.hudi.client.clustering.run.strategy.SparkConsistentBucketClusteringExecutionStrategy"
)

SplitPolicy = Callable[[Ring, FileSlice], int | None]
"""Returns the greatest hash of the lower half of a bucket; None if the bucket cannot be split."""


def middle_of_range(ring: Ring, file_slice: FileSlice) -> int | None:
    """Split a bucket in the middle of its range of hashes: several rounds make buckets even."""
    return ring.middle(prefix_of(file_slice.file_id))


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket of a ring that may be resized.

    Attributes:
        place: number of the bucket on the ring, in the order of hashes.
        file_slice: latest file slice of the bucket.
    """

    place: int
    file_slice: FileSlice


def plan_resizing(
    ring: Ring, slices: Sequence[FileSlice], options: WriteOptions, policy: SplitPolicy, ids: Ids
) -> list[ClusteringGroup]:
    """Return the splits and merges of one partition.

    Args:
        ring: of the partition.
        slices: its latest file slices that are in no other plan.
        options: thresholds, and the least and greatest number of buckets.
        policy: chooses the hash at which a bucket is split.
        ids: names new file groups.
    """
    clustering, target_bytes = options.clustering, options.sizing.base_file_size_max_bytes
    places = {prefix: number for number, prefix in enumerate(ring.prefixes)}
    prefixed_slices = [(prefix_of(each.file_id), each) for each in slices]
    buckets = sorted(
        (Bucket(places[prefix], each) for prefix, each in prefixed_slices if prefix in places),
        key=lambda bucket: bucket.place,
    )
    slots = (clustering.buckets_max or ring.buckets) - len(ring.values)
    oversized = [
        each for each in buckets if each.file_slice.size_bytes > target_bytes * clustering.split_threshold
    ]
    splits: list[tuple[Bucket, int]] = []
    for bucket in oversized:
        split_hash = policy(ring, bucket.file_slice)
        if split_hash is not None and len(splits) < slots:
            splits.append((bucket, split_hash))
    mergeable = len(ring.values) + len(splits) - (clustering.buckets_min or ring.buckets)
    split_places = {bucket.place for bucket, _ in splits}
    others = [each for each in buckets if each.place not in split_places]
    merges = _merges(others, int(target_bytes * clustering.merge_threshold), mergeable)
    return [
        *(_split(ring, bucket, split_hash, ids) for bucket, split_hash in splits),
        *(_merge(ring, buckets, ids) for buckets in merges),
    ]


def _merges(buckets: Sequence[Bucket], bytes_max: int, mergeable: int) -> list[list[Bucket]]:
    """Return runs of neighbours that are small together, removing at most `mergeable` buckets."""
    runs: list[list[Bucket]] = []
    run: list[Bucket] = []
    run_bytes = 0
    for each in buckets:
        size_bytes = each.file_slice.size_bytes
        extends_run = (
            bool(run)
            and each.place == run[-1].place + 1
            and run_bytes + size_bytes <= bytes_max
            and mergeable > 0
        )
        if extends_run:
            run.append(each)
            run_bytes += size_bytes
            mergeable -= 1
            continue
        runs.append(run)
        run, run_bytes = ([each], size_bytes) if size_bytes <= bytes_max else ([], 0)
    return [merged for merged in (*runs, run) if len(merged) > 1]


def _split(ring: Ring, bucket: Bucket, split_hash: int, ids: Ids) -> ClusteringGroup:
    nodes = (NodeChange(split_hash, ids.uuid()), NodeChange(ring.values[bucket.place], ids.uuid()))
    return _resizing_group([bucket.file_slice], nodes, ring)


def _merge(ring: Ring, buckets: Sequence[Bucket], ids: Ids) -> ClusteringGroup:
    removed = [NodeChange(ring.values[each.place], None) for each in buckets[:-1]]
    last = NodeChange(ring.values[buckets[-1].place], ids.uuid())
    return _resizing_group([each.file_slice for each in buckets], (*removed, last), ring)


def _resizing_group(slices: Sequence[FileSlice], nodes: Sequence[NodeChange], ring: Ring) -> ClusteringGroup:
    extra = {
        PARTITION_KEY: slices[0].partition,
        NODES_KEY: encode_nodes(nodes),
        SEQUENCE_KEY: str(ring.sequence),
    }
    return group_of(slices, sum(node.prefix is not None for node in nodes), extra)
