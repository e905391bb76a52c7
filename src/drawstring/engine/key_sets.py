"""Distinct record keys of a batch of rows, gathered once for the index lookup and the join.

    part ─┐
    part ─┼─> keys by the values of the other columns ──> index: which file slices may have one
    part ─┘                                          └──> join: which rows of these slices match one

When the keys are too many to send to every task, only their range (smallest and largest key) is kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.javahash import sorts_like_java
from drawstring.engine.grouping import GroupKey, split_by


@dataclass(frozen=True, slots=True)
class KeyEnds:
    """The range of some keys.

    Attributes:
        smallest, largest: in the order of UTF-8.
        sorts_like_java: whether Java strings have the same order.
    """

    smallest: str
    largest: str
    sorts_like_java: bool

    @staticmethod
    def of(keys: pa.Array) -> KeyEnds:
        """Return the range of keys, of which there is at least one."""
        ends = pc.min_max(keys).as_py()
        return KeyEnds(ends["min"], ends["max"], sorts_like_java(keys))

    @staticmethod
    def around(ends: Sequence[KeyEnds]) -> KeyEnds:
        """Return the smallest range that contains all given ones."""
        smallest, largest = min(each.smallest for each in ends), max(each.largest for each in ends)
        return KeyEnds(smallest, largest, all(each.sorts_like_java for each in ends))


@dataclass(frozen=True, slots=True)
class KeySet:
    """Distinct keys, at least one.

    Attributes:
        keys: an array of distinct texts in no order, or the range of the keys when they are too many.
    """

    keys: pa.Array | KeyEnds

    @property
    def ends(self) -> KeyEnds:
        """The range of the keys."""
        return self.keys if isinstance(self.keys, KeyEnds) else KeyEnds.of(self.keys)

    @staticmethod
    def union(sets: Sequence[KeySet]) -> KeySet:
        """Return the union of sets: a range if any of them is only a range."""
        arrays = [each.keys for each in sets if not isinstance(each.keys, KeyEnds)]
        if len(arrays) < len(sets):
            return KeySet(KeyEnds.around([each.ends for each in sets]))
        return sets[0] if len(sets) == 1 else KeySet(pc.unique(pa.concat_arrays(arrays)))


KeySets: TypeAlias = Mapping[GroupKey, KeySet]
"""Sets of keys by the values of the other key columns (such as the partition path) of their rows."""


def gather(batches: Iterator[pa.RecordBatch], on: Sequence[str], bytes_max: int) -> KeySets:
    """Return the distinct keys of a stream; rows without a key are ignored.

    Args:
        batches: the rows.
        on: name of the key column, a text, and of the columns that group the keys.
        bytes_max: bytes of keys up to which they are listed; beyond it only their ranges are kept.
    """
    first, *others = on
    gathered: dict[GroupKey, list[KeySet]] = defaultdict(list)
    size_bytes = 0
    for batch in batches:
        for group, part in split_by(batch.select(list(on)), others):
            keys = pc.unique(part.column(first).cast(pa.string())).drop_null()
            if len(keys):
                size_bytes += keys.nbytes
                gathered[group].append(KeySet(keys))
        if size_bytes > bytes_max:
            gathered = defaultdict(list, {group: [_range_of(sets)] for group, sets in gathered.items()})
    return {group: KeySet.union(sets) for group, sets in gathered.items()}


def together(parts: Sequence[KeySets], bytes_max: int) -> KeySets:
    """Return the union of the keys of all parts.

    Args:
        parts: the result of `gather` for each part.
        bytes_max: as in `gather`.
    """
    gathered: dict[GroupKey, list[KeySet]] = defaultdict(list)
    for part in parts:
        for group, keys in part.items():
            gathered[group].append(keys)
    sets = {group: KeySet.union(group_sets) for group, group_sets in gathered.items()}
    size_bytes = told_bytes(sets)
    if size_bytes is not None and size_bytes <= bytes_max:
        return sets
    return {group: _range_of([keys]) for group, keys in sets.items()}


def told_bytes(sets: KeySets) -> int | None:
    """Return the size in bytes of all keys, None if some sets are only ranges."""
    sizes = [each.keys.nbytes for each in sets.values() if not isinstance(each.keys, KeyEnds)]
    return sum(sizes) if len(sizes) == len(sets) else None


def matching(batches: Iterator[pa.RecordBatch], on: Sequence[str], sets: KeySets) -> Iterator[pa.RecordBatch]:
    """Yield the rows whose key is in one of the sets.

    Args:
        batches: rows with the key columns.
        on: as in `gather`.
        sets: the keys, none of them only a range.
    """
    first, *others = on
    for batch in batches:
        for group, part in split_by(batch, others):
            key_set = sets.get(group)
            if key_set is not None:
                yield part.filter(pc.is_in(part.column(first), value_set=key_set.keys))


def _range_of(sets: Sequence[KeySet]) -> KeySet:
    return KeySet(KeyEnds.around([each.ends for each in sets]))
