r"""Dual writes: records of buckets that a pending resizing splits or merges are also written to new buckets.

    rows of an old bucket --- unchanged -----------------> log file of the old file group
                         \--- hash on the new ring ------> log file of the new one, named by the resizing

The plan of the resizing names the new file groups, so a writer appends a log file to them as to any file
group. Because the log file carries the instant of the resizing, it becomes visible when the resizing
completes. It then belongs to the base file that the resizing wrote from the rows at planning time, and the
old file group is replaced. So neither waits for the other (RFC-42, and Hudi's
SparkConsistentBucketDuplicateUpdateStrategy).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import ConflictError
from drawstring.config.keys.clustering import Clustering
from drawstring.filegroups.view.lookup import SliceLookup
from drawstring.formats.metadata.clustering_plan import decode_clustering_plan
from drawstring.index.consistent.rings import Ring
from drawstring.index.location import LOCATION, Location
from drawstring.index.ring_hashes import key_hashes
from drawstring.model.commit import WriteStat
from drawstring.model.files import FileSlice, LogFile, file_id_of, prefix_of
from drawstring.model.hashing import is_resizing, nodes_of
from drawstring.model.instant import Action, Instant
from drawstring.schema.meta import PARTITION_PATH, RECORD_KEY
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Resized:
    """The new buckets of a partition in a pending resizing.

    Attributes:
        instant: requested time of the resizing.
        old: file id prefixes of the buckets that are replaced.
        new: file id prefixes of the buckets that replace them.
        ring: the ring after the resizing.
    """

    instant: str
    old: frozenset[str]
    new: frozenset[str]
    ring: Ring


@dataclass(frozen=True, slots=True)
class ResizingDualWrite:
    """Batch function that repeats the rows of old buckets with their locations on the new ring. Picklable.

    Attributes:
        partitions: the partitions in a pending resizing, by path.
        hash_fields: the fields of a compound key that are hashed.
    """

    partitions: Mapping[str, Resized]
    hash_fields: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield every batch, followed by copies of its rows that are written twice."""
        for batch in batches:
            yield batch
            paths = batch.column(PARTITION_PATH)
            for path in pc.unique(paths).to_pylist():
                if path in self.partitions:
                    yield from self._copies(batch.filter(pc.equal(paths, path)), self.partitions[path])

    def _copies(self, rows: pa.RecordBatch, resized: Resized) -> Iterator[pa.RecordBatch]:
        place = rows.schema.get_field_index(LOCATION)
        field = rows.schema.field(place)
        moving = rows.filter(pc.is_in(rows.column(place).cast(pa.string()), pa.array(sorted(resized.old))))
        if moving.num_rows:
            prefixes = resized.ring.prefixes_of(key_hashes(moving.column(RECORD_KEY), self.hash_fields))
            yield moving.set_column(place, field, prefixes.cast(field.type))

    def target(self, partition: str, location: Location, lookup: SliceLookup) -> FileSlice | None:
        """Return the slice of a new bucket with its log files; None for other locations."""
        resized = self.partitions.get(partition)
        if resized is None or location.value not in resized.new:
            return None
        file_id = file_id_of(location.value)
        parsed = (LogFile.parse(status) for status in lookup.view().listing.files(partition))
        logs = (log for log in parsed if log and (log.file_id, log.instant) == (file_id, resized.instant))
        ordered = sorted((log for log in logs if not log.is_cdc), key=lambda log: log.order)
        return FileSlice(partition, file_id, resized.instant, None, tuple(ordered))

    def once(self, stats: Sequence[WriteStat]) -> list[WriteStat]:
        """Return the statistics for the result of a write, without the copies."""
        return [
            replace(stat, num_writes=0, num_inserts=0, num_updates=0, num_deletes=0)
            if self._is_copy(stat)
            else stat
            for stat in stats
        ]

    def _is_copy(self, stat: WriteStat) -> bool:
        resized = self.partitions.get(stat.partition)
        return resized is not None and prefix_of(stat.file_id) in resized.new


def dual_write(
    ring_of: Callable[[str], Ring],
    hash_fields: tuple[str, ...],
    store: TimelineStore,
    timeline: Timeline,
    clustering: Clustering,
) -> ResizingDualWrite | None:
    """Return the dual write of a table; None if no bucket is being split or merged.

    Args:
        ring_of: returns the ring of a partition.
        hash_fields: the fields of a compound key that are hashed.
        store: reads the plans.
        timeline: timeline at the start of the write.
        clustering: policy for writes to file groups in a pending clustering.

    Raises:
        ConflictError: the policy rejects such writes, or another kind of clustering is pending.
    """
    if clustering.allows_updates:
        return None
    resized: dict[str, Resized] = {}
    for instant in timeline.pending_of(Action.CLUSTERING):
        plan = decode_clustering_plan(store.read_requested(instant))
        if clustering.rejects_updates or not is_resizing(plan):
            raise _refusal(instant)
        for partition in sorted({group.partition for group in plan.groups}):
            groups = [group for group in plan.groups if group.partition == partition]
            nodes = [node for group in groups for node in nodes_of(group)]
            old = {prefix_of(each.file_id) for group in groups for each in group.slices}
            new = {node.prefix for node in nodes if node.prefix is not None}
            ring = ring_of(partition).changed(nodes)
            if partition in resized:
                raise _refusal(instant)
            resized[partition] = Resized(instant.requested, frozenset(old), frozenset(new), ring)
    return ResizingDualWrite(resized, hash_fields) if resized else None


def _refusal(instant: Instant) -> ConflictError:
    return ConflictError(
        "A pending clustering splits or merges buckets of the table. Run that clustering (table.cluster(),"
        f" drawstring cluster) or roll it back (rollback of {instant.requested}), then write again. Or remove"
        " hoodie.clustering.updates.strategy, so that records are written to the old and the new buckets.",
        instant=instant.requested,
    )
