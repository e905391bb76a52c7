"""Which buckets of a partition's ring are split and merged (pure).

    bucket too large ── where to cut ──> two nodes in its place
    neighbours that are small together ──> the last of them takes their stretch of hashes

The rules are those of SparkConsistentBucketClusteringPlanStrategy. Buckets with log files are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from drawstring.base.clock import Ids
from drawstring.config.options.write_options import WriteOptions
from drawstring.index.consistent.rings import Ring
from drawstring.model.clustering import ClusteringGroup
from drawstring.model.files import FileSlice, prefix_of
from drawstring.model.hashing import NODES_KEY, PARTITION_KEY, SEQUENCE_KEY, NodeChange, encode_nodes
from drawstring.services.clustering.plan import group_of

RESIZE: Final = (
    "org.apache.hudi.client.clustering.run.strategy.SparkConsistentBucketClusteringExecutionStrategy"
)

SplitPolicy = Callable[[Ring, FileSlice], int | None]
"""Where a bucket is cut: the largest hash of the lower half; None for a bucket that cannot be."""


def middle_of_range(ring: Ring, file_slice: FileSlice) -> int | None:
    """Cut in the middle of the stretch of hashes: several rounds make buckets even."""
    return ring.middle(prefix_of(file_slice.file_id))


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket of a ring that is free to be resized.

    Attributes:
        place: its number on the ring, by hash.
        file_slice: its latest slice.
    """

    place: int
    file_slice: FileSlice


def plan_resizing(
    ring: Ring, slices: Sequence[FileSlice], options: WriteOptions, policy: SplitPolicy, ids: Ids
) -> list[ClusteringGroup]:
    """Return the splits and merges of one partition.

    Args:
        ring: of the partition.
        slices: its latest slices that are in no other plan.
        options: thresholds and bounds.
        policy: where a bucket is cut.
        ids: names new file groups.
    """
    asked, aim = options.clustering, options.sizing.base_file_size_max_bytes
    places = {prefix: number for number, prefix in enumerate(ring.prefixes)}
    named = [(prefix_of(each.file_id), each) for each in slices if not each.logs]
    buckets = sorted(
        (Bucket(places[prefix], each) for prefix, each in named if prefix in places),
        key=lambda bucket: bucket.place,
    )
    slots = (asked.buckets_max or ring.buckets) - len(ring.values)
    large = [each for each in buckets if each.file_slice.size_bytes > aim * asked.split_threshold]
    splits: list[tuple[Bucket, int]] = []
    for bucket in large:
        cut = policy(ring, bucket.file_slice)
        if cut is not None and len(splits) < slots:
            splits.append((bucket, cut))
    room = len(ring.values) + len(splits) - (asked.buckets_min or ring.buckets)
    taken = {bucket.place for bucket, _ in splits}
    rest = [each for each in buckets if each.place not in taken]
    merges = _merges(rest, int(aim * asked.merge_threshold), room)
    return [
        *(_split(ring, bucket, cut, ids) for bucket, cut in splits),
        *(_merge(ring, buckets, ids) for buckets in merges),
    ]


def _merges(buckets: Sequence[Bucket], bytes_max: int, room: int) -> list[list[Bucket]]:
    """Return runs of neighbours that are small together, with `room` for that many buckets to go."""
    found: list[list[Bucket]] = []
    together: list[Bucket] = []
    held_bytes = 0
    for each in buckets:
        size_bytes = each.file_slice.size_bytes
        goes_on = (
            bool(together)
            and each.place == together[-1].place + 1
            and held_bytes + size_bytes <= bytes_max
            and room > 0
        )
        if goes_on:
            together.append(each)
            held_bytes += size_bytes
            room -= 1
            continue
        found.append(together)
        together, held_bytes = ([each], size_bytes) if size_bytes <= bytes_max else ([], 0)
    return [run for run in (*found, together) if len(run) > 1]


def _split(ring: Ring, bucket: Bucket, cut: int, ids: Ids) -> ClusteringGroup:
    nodes = (NodeChange(cut, ids.uuid()), NodeChange(ring.values[bucket.place], ids.uuid()))
    return _group([bucket.file_slice], nodes, ring)


def _merge(ring: Ring, buckets: Sequence[Bucket], ids: Ids) -> ClusteringGroup:
    gone = [NodeChange(ring.values[each.place], None) for each in buckets[:-1]]
    kept = NodeChange(ring.values[buckets[-1].place], ids.uuid())
    return _group([each.file_slice for each in buckets], (*gone, kept), ring)


def _group(slices: Sequence[FileSlice], nodes: Sequence[NodeChange], ring: Ring) -> ClusteringGroup:
    extra = {
        PARTITION_KEY: slices[0].partition,
        NODES_KEY: encode_nodes(nodes),
        SEQUENCE_KEY: str(ring.sequence),
    }
    return group_of(slices, sum(node.prefix is not None for node in nodes), extra)
