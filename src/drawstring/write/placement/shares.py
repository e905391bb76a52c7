"""Routes of new records: which file group, among those that there is room in, takes a new key.

Every record key falls on a place between 0 and 1, by a hash; the file groups of its partition divide
that stretch between them by how many records each is to take:

    0 ─────── small file ──────── .4 ──── new group +0 ──── .7 ──── new group +1 ──── 1

So no task needs to know of the others, one that is run again decides alike, and records of one key
stay together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.javahash import string_hash
from drawstring.index.protocol import ROUTE
from drawstring.schema.meta import PARTITION_PATH, RECORD_KEY

Array: TypeAlias = "np.ndarray[Any, Any]"

NEW_GROUP: Final = "+"
"""How routes begin that mean a new file group; file ids never do."""


@dataclass(frozen=True, slots=True)
class Share:
    """What one file group takes of the new records of its partition.

    Attributes:
        route: the file id, or a text with `NEW_GROUP` in front for a new file group.
        rows: how many records, about.
    """

    route: str
    rows: float

    @property
    def is_new(self) -> bool:
        """Whether it is a new file group."""
        return self.route.startswith(NEW_GROUP)


_GOLDEN: Final = 0.6180339887498949
"""Multiples of it are spread evenly: the places of records whose keys are only made when they are written."""

IS_NEW: Final = "_drawstring_is_new"
"""A column of rows of MERGE_ON_READ tables: only new records are a reason to write a small file anew."""

Shares: TypeAlias = Mapping[str, tuple[Share, ...]]
"""Shares by partition path."""


@dataclass(frozen=True, slots=True)
class RouteNew:
    """A batch function that gives new records their routes.

    Attributes:
        shares: of the partitions that have any; records of the others keep no route.
        marks: whether rows get the column `IS_NEW`.
    """

    shares: Shares
    marks: bool

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the columns of the batches that come out."""
        added = [] if ROUTE in schema.names else [pa.field(ROUTE, pa.string())]
        marked = [pa.field(IS_NEW, pa.bool_())] if self.marks else []
        return pa.schema([*schema, *added, *marked])

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Route a stream of batches."""
        targets = {path: _Targets(shares) for path, shares in self.shares.items()}
        for batch in batches:
            if ROUTE not in batch.schema.names:
                batch = batch.append_column(ROUTE, pa.nulls(len(batch), pa.string()))
            at = batch.schema.get_field_index(ROUTE)
            known = batch.column(at)
            routed = batch.set_column(at, batch.schema.field(at), _routed(batch, known, targets))
            yield routed.append_column(IS_NEW, known.is_null()) if self.marks else routed


class _Targets:
    """The file groups of one partition, by where their stretches end."""

    def __init__(self, shares: tuple[Share, ...]) -> None:
        self._ends = np.cumsum([share.rows for share in shares])
        self._routes = pa.array([share.route for share in shares])

    def of(self, keys: pa.Array) -> pa.Array:
        """Return the route of every key."""
        places = key_places(keys)
        is_missing = pc.equal(keys, "").to_numpy(zero_copy_only=False)
        places[is_missing] = np.arange(int(is_missing.sum())) * _GOLDEN % 1.0
        chosen = np.searchsorted(self._ends[:-1], places * self._ends[-1], side="right")
        return self._routes.take(pa.array(chosen))


def _routed(batch: pa.RecordBatch, known: pa.Array, targets: Mapping[str, _Targets]) -> pa.Array:
    paths = pc.dictionary_encode(batch.column(PARTITION_PATH))
    is_new = known.is_null()
    routes = known
    for number, path in enumerate(paths.dictionary.to_pylist()):
        if path in targets:
            chosen = pc.and_(is_new, pc.equal(paths.indices, number))
            routes = pc.replace_with_mask(
                routes, chosen, targets[path].of(batch.column(RECORD_KEY).filter(chosen))
            )
    return routes


def key_places(keys: pa.Array) -> Array:
    """Return a number from 0 to 1 for each key, spread evenly, the same in every process."""
    mixed = string_hash(keys).astype(np.uint32).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(32)
    return (mixed >> np.uint64(11)) * 2.0**-53
