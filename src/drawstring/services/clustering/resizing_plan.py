"""The plan of splits and merges of the buckets in a partition's hash ring (pure functions).

    bucket too large ── split at a hash ──> two nodes in its place
    small neighbours ── merge ──> the last of them takes their ranges of hashes

The rules are those of SparkConsistentBucketClusteringPlanStrategy: the size of a bucket includes its log
files, so that a bucket that is written all the time is resized with them.
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
    return _group([bucket.file_slice], nodes, ring)


def _merge(ring: Ring, buckets: Sequence[Bucket], ids: Ids) -> ClusteringGroup:
    removed = [NodeChange(ring.values[each.place], None) for each in buckets[:-1]]
    last = NodeChange(ring.values[buckets[-1].place], ids.uuid())
    return _group([each.file_slice for each in buckets], (*removed, last), ring)


def _group(slices: Sequence[FileSlice], nodes: Sequence[NodeChange], ring: Ring) -> ClusteringGroup:
    extra = {
        PARTITION_KEY: slices[0].partition,
        NODES_KEY: encode_nodes(nodes),
        SEQUENCE_KEY: str(ring.sequence),
    }
    return group_of(slices, sum(node.prefix is not None for node in nodes), extra)
