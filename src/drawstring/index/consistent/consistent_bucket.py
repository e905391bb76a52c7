"""Consistent hashing bucket index: maps the hash of the key to a node of the hash ring of its partition.

The ring of a partition starts with `hoodie.bucket.index.num.buckets` equal nodes and changes when buckets are
split or merged, so that tables can grow without being rewritten. MERGE_ON_READ only, as in Hudi. While a
resizing is pending, records of its buckets are written twice (`index.dual_write`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.clock import Ids
from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.keys.clustering import Clustering
from drawstring.filegroups.view.lookup import SliceLookup
from drawstring.index.base import HashingIndex
from drawstring.index.consistent.rings import Ring, RingLifecycle, load_ring, save_first_ring
from drawstring.index.dual_write import dual_write
from drawstring.index.existing_writes import ExistingWrites
from drawstring.index.lifecycle import DualWrite
from drawstring.index.location import Location
from drawstring.index.ring_hashes import key_hashes
from drawstring.merge.order import Array
from drawstring.model.files import FileSlice, file_id_of, prefix_of
from drawstring.storage import open_spec
from drawstring.storage.protocol import Storage, StorageSpec
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline


class ConsistentIndex(RingLifecycle, HashingIndex):
    """Index that determines the file group by a hash ring. Picklable; rings are cached per process.

    Args:
        bucket_count: number of nodes of a new partition.
        hash_fields: the fields of a compound key that are hashed.
        storage: opens the table.
        timeline: timeline with the completed resizings.
        overwrite: requested time of a write that creates new file groups in all its partitions; else empty.
    """

    def __init__(
        self,
        bucket_count: int,
        hash_fields: tuple[str, ...],
        storage: StorageSpec,
        timeline: Timeline,
        overwrite: str = "",
    ) -> None:
        self.bucket_count = bucket_count
        self.hash_fields = hash_fields
        self._storage = storage
        self._timeline = timeline
        self._overwrite = overwrite
        self._rings: dict[str, Ring] = {}

    def __getstate__(self) -> tuple[Any, ...]:
        return self.bucket_count, self.hash_fields, self._storage, self._timeline, self._overwrite

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.__init__(*state)  # type: ignore[misc]

    def locations(self, keys: pa.Array, partitions: pa.Array) -> pa.Array | None:
        """Return the file id prefixes of the keys' nodes."""
        hashes = key_hashes(keys, self.hash_fields)
        paths = pc.dictionary_encode(partitions)
        locations = pa.nulls(len(keys), pa.string())
        for number, path in enumerate(paths.dictionary.to_pylist()):
            is_here = pc.equal(paths.indices, number)
            here = self.ring(path).prefixes_of(hashes[is_here.to_numpy(zero_copy_only=False)])
            locations = pc.replace_with_mask(locations, is_here, here.cast(pa.string()))
        return locations

    def slice_for(self, location: Location, slices: Sequence[FileSlice]) -> FileSlice | None:
        """Return the slice of a node; None if it has none yet.

        Raises:
            InvalidError: a file group of the partition belongs to no node.
        """
        for each in slices:
            if not self.has_group(each.partition, each.file_id):
                raise InvalidError(
                    f"File group {each.file_id} is not in the hashing metadata of its partition, because the"
                    " table was written with another index. Use the index settings of the earlier writes.",
                    path=each.partition,
                )
        return next((each for each in slices if prefix_of(each.file_id) == location.value), None)

    def new_file_id(self, location: Location, ids: Ids) -> str:
        """Return the file id of a node."""
        return file_id_of(location.value)

    def owns_keys(self, file_slice: FileSlice, keys: pa.Array) -> Array:
        """Return which keys belong to the node of a slice."""
        places = pa.repeat(file_slice.partition, len(keys))
        is_here = pc.equal(self.locations(keys, places), prefix_of(file_slice.file_id))
        return np.asarray(is_here.to_numpy(zero_copy_only=False))

    def has_group(self, partition: str, file_id: str) -> bool:
        """Return whether a file group is on the ring of its partition."""
        return prefix_of(file_id) in self.ring(partition).prefixes

    def after_files_written(self, storage: Storage, partitions: Iterable[str]) -> None:
        """Write the first ring of partitions without one."""
        for partition in sorted(set(partitions)):
            if load_ring(storage, partition, self._timeline.has_completed, confirms=True) is None:
                save_first_ring(storage, partition, self.bucket_count)

    def for_overwrite(self, instant: str) -> Self:
        """Return the index with the new rings of a write that replaces its partitions."""
        return type(self)(self.bucket_count, self.hash_fields, self._storage, self._timeline, instant)

    def check_table(self, table: ExistingWrites) -> None:
        """Check that no file group of a ring was replaced: a node's file id is fixed and cannot be reused.

        Raises:
            UnsupportedError: a file group was replaced.
        """
        lookup = SliceLookup(table.storage.spec, table.config, table.timeline)
        for partition, file_id in lookup.view().replaced_groups():
            if self.has_group(partition, file_id):
                raise UnsupportedError(
                    f"Another engine replaced file group {file_id} of the consistent hashing index, so"
                    " readers would not see rows that are written to it. Overwrite the partition"
                    " (insert_overwrite) to give it new file groups.",
                    path=partition,
                )

    def dual_write(
        self, store: TimelineStore, timeline: Timeline, clustering: Clustering
    ) -> DualWrite | None:
        """Return the dual write for buckets that are being resized."""
        return dual_write(self.ring, self.hash_fields, store, timeline, clustering)

    def ring(self, partition: str) -> Ring:
        """Return the stored ring of a partition, or its first ring; for an overwrite, the new ring."""
        if partition not in self._rings:
            stored = load_ring(open_spec(self._storage), partition, self._timeline.has_completed)
            ring = stored or Ring.first(partition, self.bucket_count)
            self._rings[partition] = ring.renewed(partition, self._overwrite) if self._overwrite else ring
        return self._rings[partition]
