"""The distinct keys of rows: gathered once, for whoever looks for them in the table.

    part ─┐
    part ─┼─> keys by the values of the other columns ──> index: which file slices may have one
    part ─┘                                          └──> join: which rows of these slices match one

Too many keys for every task to have are told by their ends alone.
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
    """Where keys begin and end.

    Attributes:
        smallest, largest: in the order of UTF-8.
        sorts_like_java: whether that is the order of Java's strings too.
    """

    smallest: str
    largest: str
    sorts_like_java: bool

    @staticmethod
    def of(keys: pa.Array) -> KeyEnds:
        """Return the ends of some keys, of which there is at least one."""
        ends = pc.min_max(keys).as_py()
        return KeyEnds(ends["min"], ends["max"], sorts_like_java(keys))

    @staticmethod
    def around(ends: Sequence[KeyEnds]) -> KeyEnds:
        """Return the ends of all."""
        smallest, largest = min(each.smallest for each in ends), max(each.largest for each in ends)
        return KeyEnds(smallest, largest, all(each.sorts_like_java for each in ends))


@dataclass(frozen=True, slots=True)
class KeySet:
    """Distinct keys, at least one.

    Attributes:
        keys: each once, in no order; an array of text, or the ends of too many keys.
    """

    keys: pa.Array | KeyEnds

    @property
    def ends(self) -> KeyEnds:
        """Where they begin and end."""
        return self.keys if isinstance(self.keys, KeyEnds) else KeyEnds.of(self.keys)

    @staticmethod
    def union(sets: Sequence[KeySet]) -> KeySet:
        """Put sets together; one that tells its ends only makes all of them do so."""
        told = [each.keys for each in sets if not isinstance(each.keys, KeyEnds)]
        if len(told) < len(sets):
            return KeySet(KeyEnds.around([each.ends for each in sets]))
        return sets[0] if len(sets) == 1 else KeySet(pc.unique(pa.concat_arrays(told)))


KeySets: TypeAlias = Mapping[GroupKey, KeySet]
"""Keys by the values of the other key columns of their rows."""


def gather(batches: Iterator[pa.RecordBatch], on: Sequence[str], bytes_max: int) -> KeySets:
    """Return the distinct keys of a stream; rows without a key are left out.

    Args:
        batches: the rows.
        on: the key column, a text, and others that go with it.
        bytes_max: text of keys up to which they are told one by one.
    """
    first, *others = on
    found: dict[GroupKey, list[KeySet]] = defaultdict(list)
    size_bytes = 0
    for batch in batches:
        for group, part in split_by(batch.select(list(on)), others):
            keys = pc.unique(part.column(first).cast(pa.string())).drop_null()
            if len(keys):
                size_bytes += keys.nbytes
                found[group].append(KeySet(keys))
        if size_bytes > bytes_max:
            found = defaultdict(list, {group: [_ends_alone(sets)] for group, sets in found.items()})
    return {group: KeySet.union(sets) for group, sets in found.items()}


def together(parts: Sequence[KeySets], bytes_max: int) -> KeySets:
    """Put the keys of all parts together.

    Args:
        parts: what `gather` found in each.
        bytes_max: text of keys up to which they are told one by one.
    """
    found: dict[GroupKey, list[KeySet]] = defaultdict(list)
    for part in parts:
        for group, keys in part.items():
            found[group].append(keys)
    sets = {group: KeySet.union(some) for group, some in found.items()}
    size_bytes = told_bytes(sets)
    if size_bytes is not None and size_bytes <= bytes_max:
        return sets
    return {group: _ends_alone([keys]) for group, keys in sets.items()}


def told_bytes(sets: KeySets) -> int | None:
    """Return what the text of all keys takes, None where some are not told one by one."""
    told = [each.keys.nbytes for each in sets.values() if not isinstance(each.keys, KeyEnds)]
    return sum(told) if len(told) == len(sets) else None


def matching(batches: Iterator[pa.RecordBatch], on: Sequence[str], sets: KeySets) -> Iterator[pa.RecordBatch]:
    """Yield the rows whose key is in the sets, all of which tell their keys.

    Args:
        batches: rows with the key columns.
        on: as in `gather`.
        sets: the keys.
    """
    first, *others = on
    for batch in batches:
        for group, part in split_by(batch, others):
            wanted = sets.get(group)
            if wanted is not None:
                yield part.filter(pc.is_in(part.column(first), value_set=wanted.keys))


def _ends_alone(sets: Sequence[KeySet]) -> KeySet:
    return KeySet(KeyEnds.around([each.ends for each in sets]))
