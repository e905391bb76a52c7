"""Resizing of consistent hashing buckets, as part of clustering.

    schedule   rings, slices ── clustering_plan ──> groups with the nodes that change
    run        rows of a group ── hash of the key ──> base files of the new buckets, named by the plan
               rings with the new nodes, at the resizing's time ──> replacecommit ──> commit markers

New rings count once the resizing is completed; old rings stay for time travel until they are cleaned.

Every write since the plan that touched an old bucket must have its copies in the new ones, else the plan is
given up and no row is lost: a writer of another engine may not know the plan. The plan leaves the timeline
before the copies are deleted. Readers pass over copies whose resizing is gone. Rings stay as long as a
restore may go back to them. Extendible hashing is not built: Hudi reads no such table, and a ring splits
locally, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.config.options.write_options import WriteOptions
from drawstring.filegroups.base_file_writer import BaseFileWriter, as_stored, with_record_keys
from drawstring.filegroups.file_system_view import SliceLookup
from drawstring.filegroups.sorted_merge import sorted_by_key
from drawstring.formats.data_file import Selection, read_base
from drawstring.index.consistent_bucket import (
    HASH_MASK,
    Ring,
    clean_rings,
    confirm_ring,
    key_hashes,
    load_ring,
    save_ring,
)
from drawstring.model.commit import WriteStat
from drawstring.model.files import FileSlice, file_id_of, prefix_of
from drawstring.model.plans import ClusteringGroup, ClusteringPlan, nodes_of
from drawstring.schema.fields import RECORD_KEY
from drawstring.services.clustering_plan import RESIZE, SplitPolicy, middle_of_range, plan_resizing
from drawstring.services.clustering_task import ClusterGroup, Numbered, located
from drawstring.storage import open_spec
from drawstring.storage.protocol import Storage
from drawstring.timeline.timeline import Timeline
from drawstring.txn.transaction import LockedTable

_SAMPLE_ROWS: Final = 4_096


def plan_rings(
    locked: LockedTable,
    lookup: SliceLookup,
    timeline: Timeline,
    partitions: Iterable[str],
    options: WriteOptions,
) -> ClusteringPlan | None:
    """Return the splits and merges of partitions, None if there are none.

    Partitions with a pending clustering are skipped: a ring is changed by one resizing after the other.
    """
    storage, view = locked.context.storage, lookup.view()
    in_clustering = {partition for partition, _ in view.pending_clusterings()}
    in_compaction = view.pending_compactions()
    policy = _policy(storage, locked, options)
    groups: list[ClusteringGroup] = []
    for partition in partitions:
        ring = load_ring(storage, partition, timeline.has_completed)
        if ring is not None and partition not in in_clustering:
            free = [s for s in lookup.slices(partition) if (partition, s.file_id) not in in_compaction]
            groups += plan_resizing(ring, free, options, policy, locked.context.ids)
    limited = tuple(groups[: options.clustering.groups_max])
    return ClusteringPlan(limited, RESIZE) if limited else None


def save_rings(locked: LockedTable, plan: ClusteringPlan, timeline: Timeline, time: str) -> None:
    """Put the new rings of a resizing, which count once it is completed."""
    storage = locked.context.storage
    for partition in sorted({group.partition for group in plan.groups}):
        ring = load_ring(storage, partition, timeline.has_completed)
        nodes = [node for group in plan.groups if group.partition == partition for node in nodes_of(group)]
        if ring is not None:
            save_ring(storage, partition, ring.changed(nodes), time)


def confirm_rings(storage: Storage, plan: ClusteringPlan, timeline: Timeline, time: str) -> None:
    """Mark the rings of a completed resizing as committed, and delete rings that are no longer needed."""
    for partition in {group.partition for group in plan.groups}:
        confirm_ring(storage, partition, time)
        if timeline.start is not None:
            clean_rings(storage, partition, timeline.start)


@dataclass(frozen=True, slots=True)
class ResizeGroup:
    """A task that moves the rows of buckets to the buckets that replace them.

    Attributes:
        rows: reads the group, and has the settings of base files.
        hash_fields: hashed fields of a compound key.
    """

    rows: ClusterGroup
    hash_fields: tuple[str, ...]

    def __call__(self, numbered: Numbered) -> list[WriteStat]:
        """Write a base file for each new bucket that has rows."""
        number, group = numbered
        settings = self.rows.settings
        storage = open_spec(settings.storage)
        context = self.rows.context(number)
        ring = Ring.of(nodes_of(group))
        writers: dict[str, BaseFileWriter] = {}
        try:
            batches = self.rows.read(located(group, storage), tuple(settings.full_schema.names))
            if settings.config.has_sorted_files:
                batches = sorted_by_key(batches)
            for batch in batches:
                keys = with_record_keys(batch, settings.config).column(RECORD_KEY)
                prefixes = ring.prefixes_of(key_hashes(keys, self.hash_fields))
                for bucket_number, prefix in enumerate(ring.prefixes):
                    rows = batch.filter(pc.equal(prefixes.indices, bucket_number))
                    if rows.num_rows:
                        if prefix not in writers:
                            writers[prefix] = BaseFileWriter(
                                settings, storage, group.partition, file_id_of(prefix), context.write_token
                            )
                        writer = writers[prefix]
                        writer.write(as_stored(rows, writer.name, settings.config))
        except BaseException:
            for writer in writers.values():
                writer.abort()
            raise
        return [writer.close(inserts=writer.rows) for writer in writers.values()]


def _policy(storage: Storage, locked: LockedTable, options: WriteOptions) -> SplitPolicy:
    if options.clustering.split_policy != "EVEN":
        return middle_of_range
    fields = options.bucket_hash_fields or locked.config.bucket_hash_fields

    def even(ring: Ring, file_slice: FileSlice) -> int | None:
        keys = locked.config.record_key_fields
        return _median(storage, ring, file_slice, fields or keys) or middle_of_range(ring, file_slice)

    return even


def _median(storage: Storage, ring: Ring, file_slice: FileSlice, fields: tuple[str, ...]) -> int | None:
    """Return the median of the hashes of a sample; None if it does not divide the bucket."""
    if file_slice.base is None:
        return None
    sample = []
    for batch in read_base(storage, file_slice.base.status.path, Selection([RECORD_KEY])):
        keys = batch.column(RECORD_KEY)
        if keys.null_count:
            return None
        step = max(1, batch.num_rows // _SAMPLE_ROWS)
        picked_keys = keys.take(pa.array(np.arange(0, batch.num_rows, step)))
        sample.append(key_hashes(picked_keys, fields).astype(np.int64) & HASH_MASK)
    if not sample:
        return None
    number = ring.prefixes.index(prefix_of(file_slice.file_id))
    former, value = ring.values[number - 1], ring.values[number]
    # As offsets from the previous node, since the range may wrap around the end of the hash space.
    sorted_offsets = np.sort((np.concatenate(sample) - former - 1) % (HASH_MASK + 1))
    split_hash = int((sorted_offsets[len(sorted_offsets) // 2] + former + 1) % (HASH_MASK + 1))
    return None if split_hash in (former, value) else split_hash
