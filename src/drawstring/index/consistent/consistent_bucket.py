"""Consistent hashing bucket index: the hash of the key falls on a node of its partition's ring.

A partition's ring begins with `hoodie.bucket.index.num.buckets` equal nodes and changes when file groups
are split or merged, so that tables may grow without being written anew. MERGE_ON_READ only, as in Hudi.
While a resizing is pending, records of its buckets are written twice (`write.placement.dual_write`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.clock import Ids
from drawstring.base.errors import InvalidError
from drawstring.index.base import Hashing
from drawstring.index.bucket.simple_bucket import EMPTY, NULL, compound_hashes, is_compound
from drawstring.index.consistent.rings import Ring, load_ring, save_first_ring
from drawstring.index.consistent.xxhash import Hashes, xxhash32
from drawstring.index.location import Location
from drawstring.model.files import FileSlice, file_id_of, prefix_of
from drawstring.storage import open_spec
from drawstring.storage.protocol import Storage, StorageSpec
from drawstring.timeline.timeline import Timeline


class ConsistentIndex(Hashing):
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

    def has_group(self, partition: str, file_id: str) -> bool:
        """Tell whether a file group is on the ring of its partition."""
        return prefix_of(file_id) in self.ring(partition).prefixes

    def save_rings(self, storage: Storage, partitions: Iterable[str]) -> None:
        """Put the first ring of partitions that have none."""
        for partition in sorted(set(partitions)):
            if load_ring(storage, partition, self._timeline.has_completed, confirms=True) is None:
                save_first_ring(storage, partition, self.bucket_count)

    def overwriting(self, instant: str) -> ConsistentIndex:
        """Return the index of a write that replaces what is in its partitions.

        Args:
            instant: requested time of the write.
        """
        return ConsistentIndex(self.bucket_count, self.hash_fields, self._storage, self._timeline, instant)

    def ring(self, partition: str) -> Ring:
        """Return the ring of a partition as it is, or begins; of an overwrite as it is going to be."""
        if partition not in self._rings:
            found = load_ring(open_spec(self._storage), partition, self._timeline.has_completed)
            ring = found or Ring.first(partition, self.bucket_count)
            self._rings[partition] = ring.renewed(partition, self._overwrite) if self._overwrite else ring
        return self._rings[partition]


def key_hashes(keys: pa.Array, fields: tuple[str, ...]) -> Hashes:
    """Return the hash of every record key: of the whole key, or of the values of some fields together.

    Args:
        keys: record keys, text.
        fields: fields of a compound key that count.
    """
    keys = keys.cast(pa.string())
    hashes = xxhash32(keys)
    rows = np.flatnonzero(is_compound(keys))
    if len(rows):
        found = compound_hashes(keys.take(pa.array(rows)), fields, _joined_hash)
        hashes[rows] = found.astype(np.uint32)
    return hashes


def _joined_hash(values: list[pa.Array]) -> np.ndarray[Any, np.dtype[np.int64]]:
    columns = [
        pc.if_else(pc.equal(each, NULL), "null", pc.if_else(pc.equal(each, EMPTY), "", each))
        for each in values
    ]
    return xxhash32(pc.binary_join_element_wise(*columns, "")).astype(np.int64)
