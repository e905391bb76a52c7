r"""Dual writes: records of buckets that a pending resizing splits or merges go to the new buckets too.

    rows of an old bucket --- as they are ---------------> log file of the old file group
                         \--- hash on the ring to come ---> log file of the new one, named by the resizing

The plan of the resizing names the new file groups, so nobody has to begin them: a writer appends a log file,
as to any file group. Named by the resizing it does not count before that completed; from then on it lies on
the base file that the resizing made of the rows as they were when it was planned, and the old file group
is gone. So neither waits for the other (RFC-42, and Hudi's SparkConsistentBucketDuplicateUpdateStrategy).
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
    """What a pending resizing makes of a partition.

    Attributes:
        instant: its requested time.
        old: what the ids of the file groups begin with whose rows go elsewhere.
        new: what those begin with that they go to.
        ring: as it is going to be.
    """

    instant: str
    old: frozenset[str]
    new: frozenset[str]
    ring: Ring


@dataclass(frozen=True, slots=True)
class ResizingDualWrite:
    """A batch function that repeats the rows of old buckets, with their locations on the new ring. Picklable.

    Attributes:
        partitions: those that are being resized.
        hash_fields: the fields of a compound key that are hashed.
    """

    partitions: Mapping[str, Resized]
    hash_fields: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield every batch, and after it what of it is written twice."""
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
        """Return the slice that a resizing is to begin, with its log files; None for other locations."""
        resized = self.partitions.get(partition)
        if resized is None or location.value not in resized.new:
            return None
        file_id = file_id_of(location.value)
        parsed = (LogFile.parse(status) for status in lookup.view().listing.files(partition))
        logs = (log for log in parsed if log and (log.file_id, log.instant) == (file_id, resized.instant))
        ordered = sorted((log for log in logs if not log.is_cdc), key=lambda log: log.order)
        return FileSlice(partition, file_id, resized.instant, None, tuple(ordered))

    def once(self, stats: Sequence[WriteStat]) -> list[WriteStat]:
        """Return the statistics of a write for people: what is written twice is counted once."""
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
    asked: Clustering,
) -> ResizingDualWrite | None:
    """Return how a write repeats rows, None where no bucket is being split or merged.

    Args:
        ring_of: the ring of a partition.
        hash_fields: the fields of a compound key that are hashed.
        store: reads the plans.
        timeline: as the write finds it.
        asked: what becomes of writes to file groups in a pending clustering.

    Raises:
        ConflictError: it is not to be written to such a table, or another kind of clustering is pending.
    """
    if asked.allows_updates:
        return None
    found: dict[str, Resized] = {}
    for instant in timeline.pending_of(Action.CLUSTERING):
        plan = decode_clustering_plan(store.read_requested(instant))
        if asked.rejects_updates or not is_resizing(plan):
            raise _refusal(instant)
        for partition in sorted({group.partition for group in plan.groups}):
            groups = [group for group in plan.groups if group.partition == partition]
            nodes = [node for group in groups for node in nodes_of(group)]
            old = {prefix_of(each.file_id) for group in groups for each in group.slices}
            new = {node.prefix for node in nodes if node.prefix is not None}
            ring = ring_of(partition).changed(nodes)
            if partition in found:
                raise _refusal(instant)
            found[partition] = Resized(instant.requested, frozenset(old), frozenset(new), ring)
    return ResizingDualWrite(found, hash_fields) if found else None


def _refusal(instant: Instant) -> ConflictError:
    return ConflictError(
        "buckets of the table are being split or merged: run that clustering (table.cluster(), drawstring"
        f" cluster) or withdraw it (rollback, of {instant.requested}), then write again; or leave"
        " hoodie.clustering.updates.strategy out, and records are written to the old and the new buckets",
        instant=instant.requested,
    )
