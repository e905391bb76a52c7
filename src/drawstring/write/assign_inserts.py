"""Locations of new records: assigns each new key to one of the file groups with room.

A hash maps every record key to a place between 0 and 1; the file groups of its partition divide this range
in proportion to the number of records that each takes:

    0 ─────── small file ──────── .4 ──── new group +0 ──── .7 ──── new group +1 ──── 1

So tasks need no coordination, a retried task decides the same, and records of one key stay together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.java_compat import string_hash
from drawstring.index.protocol import LOCATION, Location, is_unknown
from drawstring.schema.fields import PARTITION_PATH, RECORD_KEY

Array: TypeAlias = "np.ndarray[Any, Any]"


@dataclass(frozen=True, slots=True)
class InsertBucket:
    """A file group, and how many of the new records of its partition it takes.

    Attributes:
        location: an existing or a new file group.
        rows: approximate number of records.
    """

    location: Location
    rows: float


_GOLDEN: Final = 0.6180339887498949
"""Multiples of it are spread evenly; they are the places of records whose keys are generated later."""

IS_NEW: Final = "_drawstring_is_new"
"""Column of rows of MERGE_ON_READ tables: only new records cause a rewrite of a small file."""

InsertBuckets: TypeAlias = Mapping[str, tuple[InsertBucket, ...]]
"""Insert buckets by partition path."""


@dataclass(frozen=True, slots=True)
class AssignInserts:
    """Batch function that fills in the locations of new records.

    Attributes:
        buckets: by partition; locations of records in other partitions stay unknown.
        marks: whether to add the column `IS_NEW`.
    """

    buckets: InsertBuckets
    marks: bool

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of the result."""
        added = [] if LOCATION in schema.names else [pa.field(LOCATION, pa.string())]
        marked = [pa.field(IS_NEW, pa.bool_())] if self.marks else []
        return pa.schema([*schema, *added, *marked])

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Fill in the unknown locations of a stream of batches."""
        targets = {path: _Targets(buckets) for path, buckets in self.buckets.items()}
        for batch in batches:
            if LOCATION not in batch.schema.names:
                batch = batch.append_column(LOCATION, pa.nulls(len(batch), pa.string()))
            at = batch.schema.get_field_index(LOCATION)
            is_new = is_unknown(batch.column(at))
            located = batch.set_column(at, batch.schema.field(at), _filled_in(batch, is_new, targets))
            yield located.append_column(IS_NEW, is_new) if self.marks else located


class _Targets:
    """The file groups of one partition, by the ends of their ranges."""

    def __init__(self, buckets: tuple[InsertBucket, ...]) -> None:
        self._ends = np.cumsum([bucket.rows for bucket in buckets])
        self._locations = pa.array([bucket.location.encode() for bucket in buckets])

    def of(self, keys: pa.Array) -> pa.Array:
        """Return the location of every key."""
        places = key_places(keys)
        is_missing = pc.equal(keys, "").to_numpy(zero_copy_only=False)
        places[is_missing] = np.arange(int(is_missing.sum())) * _GOLDEN % 1.0
        chosen = np.searchsorted(self._ends[:-1], places * self._ends[-1], side="right")
        return self._locations.take(pa.array(chosen))


def _filled_in(batch: pa.RecordBatch, is_new: pa.Array, targets: Mapping[str, _Targets]) -> pa.Array:
    """Return the locations of a batch, including those of new records."""
    paths = pc.dictionary_encode(batch.column(PARTITION_PATH))
    locations = batch.column(LOCATION)
    for number, path in enumerate(paths.dictionary.to_pylist()):
        if path in targets:
            chosen = pc.and_(is_new, pc.equal(paths.indices, number))
            keys = batch.column(RECORD_KEY).filter(chosen)
            locations = pc.replace_with_mask(locations, chosen, targets[path].of(keys))
    return locations


def key_places(keys: pa.Array) -> Array:
    """Return a hash from 0 to 1 for each key, evenly spread and deterministic."""
    mixed = string_hash(keys).astype(np.uint32).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(32)
    return (mixed >> np.uint64(11)) * 2.0**-53
