"""Consistent hashing bucket index: the hash of the key falls on a node of its partition's ring.

A partition's ring begins with `hoodie.bucket.index.num.buckets` equal nodes and changes when file groups
are split or merged, so that tables may grow without being written anew. MERGE_ON_READ only, as in Hudi.
While a resizing is pending, records of its buckets are written twice (`index.dual_write`).
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
from drawstring.index.base import Hashing
from drawstring.index.consistent.rings import Ring, RingLifecycle, load_ring, save_first_ring
from drawstring.index.dual_write import dual_write
from drawstring.index.lifecycle import DualWrite
from drawstring.index.location import Location
from drawstring.index.ring_hashes import key_hashes
from drawstring.index.written import WrittenTable
from drawstring.merge.order import Array
from drawstring.model.files import FileSlice, file_id_of, prefix_of
from drawstring.storage import open_spec
from drawstring.storage.protocol import Storage, StorageSpec
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline


class ConsistentIndex(RingLifecycle, Hashing):
    """File groups by ring. Picklable; rings that were read stay in their own process.

    Args:
        bucket_count: nodes of a new partition.
        hash_fields: the fields of a compound key that are hashed.
        storage: opens the table.
        timeline: which resizings completed.
        overwrite: the instant of a write that gives all partitions which it writes to new file groups.
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
        """Return what the ids of the keys' file groups begin with."""
        hashes = key_hashes(keys, self.hash_fields)
        paths = pc.dictionary_encode(partitions)
        locations = pa.nulls(len(keys), pa.string())
        for number, path in enumerate(paths.dictionary.to_pylist()):
            is_here = pc.equal(paths.indices, number)
            here = self.ring(path).prefixes_of(hashes[is_here.to_numpy(zero_copy_only=False)])
            locations = pc.replace_with_mask(locations, is_here, here.cast(pa.string()))
        return locations

    def slice_for(self, location: Location, slices: Sequence[FileSlice]) -> FileSlice | None:
        """Return the slice of a node, None where it has none yet.

        Raises:
            InvalidError: a file group of the partition is on no node.
        """
        for each in slices:
            if not self.has_group(each.partition, each.file_id):
                raise InvalidError(
                    f"file group {each.file_id} is not in the hashing metadata of its partition: the table"
                    " was written with another index; write with the same index settings as before",
                    path=each.partition,
                )
        return next((each for each in slices if prefix_of(each.file_id) == location.value), None)

    def new_file_id(self, location: Location, ids: Ids) -> str:
        """Name the file group of a node."""
        return file_id_of(location.value)

    def holds(self, file_slice: FileSlice, keys: pa.Array) -> Array:
        """Tell which keys are on the node of a slice."""
        places = pa.repeat(file_slice.partition, len(keys))
        is_here = pc.equal(self.locations(keys, places), prefix_of(file_slice.file_id))
        return np.asarray(is_here.to_numpy(zero_copy_only=False))

    def has_group(self, partition: str, file_id: str) -> bool:
        """Tell whether a file group is on the ring of its partition."""
        return prefix_of(file_id) in self.ring(partition).prefixes

    def files_written(self, storage: Storage, partitions: Iterable[str]) -> None:
        """Put the first ring of partitions that have none."""
        for partition in sorted(set(partitions)):
            if load_ring(storage, partition, self._timeline.has_completed, confirms=True) is None:
                save_first_ring(storage, partition, self.bucket_count)

    def overwriting(self, instant: str) -> Self:
        """Return the index with the rings to come of a write that replaces what is in its partitions."""
        return type(self)(self.bucket_count, self.hash_fields, self._storage, self._timeline, instant)

    def check_table(self, table: WrittenTable) -> None:
        """Refuse rings with file groups that were replaced: ids follow from the ring, and cannot come again.

        Raises:
            UnsupportedError: there are some.
        """
        lookup = SliceLookup(table.storage.spec, table.config, table.timeline)
        for partition, file_id in lookup.view().replaced_groups():
            if self.has_group(partition, file_id):
                raise UnsupportedError(
                    f"file group {file_id} of the consistent hashing index was replaced by another engine,"
                    " and no reader would see rows that are written to it: give the partition new file"
                    " groups first, by overwriting it (insert_overwrite)",
                    path=partition,
                )

    def dual_write(self, store: TimelineStore, timeline: Timeline, asked: Clustering) -> DualWrite | None:
        """Return how records of buckets that are being resized are written to the new ones too."""
        return dual_write(self.ring, self.hash_fields, store, timeline, asked)

    def ring(self, partition: str) -> Ring:
        """Return the ring of a partition as it is, or begins; of an overwrite as it is going to be."""
        if partition not in self._rings:
            found = load_ring(open_spec(self._storage), partition, self._timeline.has_completed)
            ring = found or Ring.first(partition, self.bucket_count)
            self._rings[partition] = ring.renewed(partition, self._overwrite) if self._overwrite else ring
        return self._rings[partition]
