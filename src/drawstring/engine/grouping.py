"""Group, count and concatenate the rows of record batches, and gather their distinct record keys.

A write needs the row counts (`GroupCounts`) before it assigns rows to file groups. `KeySet` has the distinct
record keys of some rows for the index lookup and the join:

    part ─┐
    part ─┼─> keys by the values of the other columns ──> index: which file slices may have one
    part ─┘                                          └──> join: which rows of these slices match one

If there are too many keys to send to every task, it has only their range (smallest and largest key).
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base import limits
from drawstring.base.java_compat import sorts_like_java
from drawstring.base.resources import BATCH_ROWS

Array: TypeAlias = "np.ndarray[Any, Any]"
GroupKey = tuple[Any, ...]

_FEW_CODES: Final = 1 << 16

_AHEAD_BYTES_MAX: Final = 8 << 20
SMALL_BYTES_MAX: Final = 256 << 10
"""Number of groups that are known ahead, bytes of their rows in memory, and of those of a small one."""


def row_codes(batch: pa.RecordBatch, by: Sequence[str]) -> tuple[np.ndarray[Any, Any], list[pa.Array]]:
    """Give rows with equal values equal codes; codes may have gaps.

    Args:
        batch: any record batch.
        by: names of text columns; null counts as a value.

    Returns:
        One code per row and, by column, the dictionary of values that the code refers to.
    """
    codes: np.ndarray[Any, Any] = np.zeros(batch.num_rows, dtype=np.int64)
    values: list[pa.Array] = []
    for name in by:
        column = batch.column(name)
        if not pa.types.is_dictionary(column.type):
            column = pc.dictionary_encode(column, null_encoding="encode")
        codes = codes * len(column.dictionary) + column.indices.to_numpy(zero_copy_only=False)
        values.append(column.dictionary)
    return codes, values


def group_codes(batch: pa.RecordBatch, by: Sequence[str]) -> tuple[np.ndarray[Any, Any], list[GroupKey]]:
    """Number the groups of a batch from 0, without gaps.

    Args:
        batch: any record batch.
        by: names of text columns; null counts as a value.

    Returns:
        One code per row and, by code, the tuple of values.
    """
    codes, dictionaries = row_codes(batch, by)
    values = [dictionary.to_pylist() for dictionary in dictionaries]
    if batch.num_rows and all(len(column) == 1 for column in values):
        return codes, [_unpack(0, values)]
    present, dense = _without_gaps(codes, math.prod(map(len, values)))
    return dense, [_unpack(int(code), values) for code in present]


def _without_gaps(codes: Array, bound: int) -> tuple[Array, Array]:
    """Return the codes that occur, sorted, and for each row its code's position; codes are below `bound`."""
    if bound > max(len(codes), _FEW_CODES):
        return np.unique(codes, return_inverse=True)
    occurs = np.bincount(codes, minlength=bound) > 0
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[codes]


def split_by(batch: pa.RecordBatch, by: Sequence[str]) -> list[tuple[GroupKey, pa.RecordBatch]]:
    """Split a batch into one batch per group; rows keep their order within a group."""
    if batch.num_rows == 0:
        return []
    codes, keys = group_codes(batch, by)
    if len(keys) == 1:
        return [(keys[0], batch)]
    order = np.argsort(codes.astype(np.uint16 if len(keys) < 65536 else np.int64), kind="stable")
    ordered = _reordered(batch, pa.array(order))
    ends = np.cumsum(np.bincount(codes, minlength=len(keys)))
    starts = np.concatenate(([0], ends[:-1]))
    return [
        (key, ordered.slice(int(start), int(end - start)))
        for key, start, end in zip(keys, starts, ends, strict=True)
    ]


def _reordered(batch: pa.RecordBatch, order: pa.Array) -> pa.RecordBatch:
    """Reorder the rows; text columns that share memory, such as a key and its source column, still do."""
    first_columns: dict[tuple[Any, ...], int] = {}
    sources = [
        first_columns.setdefault(_memory(column, number), number)
        for number, column in enumerate(batch.columns)
    ]
    distinct = sorted(set(sources))
    if len(distinct) == batch.num_columns:
        return batch.take(order)
    taken = dict(zip(distinct, batch.select(distinct).take(order).columns, strict=True))
    return pa.RecordBatch.from_arrays([taken[source] for source in sources], schema=batch.schema)


def _memory(column: pa.Array, number: int) -> tuple[Any, ...]:
    """Return what identifies a column's memory: text columns in the same memory have the same values."""
    if not pa.types.is_string(column.type):
        return (number,)
    return (column.offset, *(None if buffer is None else buffer.address for buffer in column.buffers()))


def contiguous_groups(
    batches: Iterator[pa.RecordBatch], by: Sequence[str]
) -> Iterator[tuple[GroupKey, Iterator[pa.RecordBatch]]]:
    """Iterate over the groups of a stream in which the rows of a group are contiguous.

    Yields:
        The values of `by` and the stream of the group's batches. Read a group's stream before advancing to
        the next group; unread batches are skipped.
    """
    runs = _Runs(batches, by)
    while (key := runs.next_key()) is not None:
        yield key, runs.take(key)
        for _ in runs.take(key):
            pass


def grouped_ahead(
    groups: Iterator[tuple[GroupKey, Iterator[pa.RecordBatch]]],
) -> Iterator[list[tuple[GroupKey, Iterator[pa.RecordBatch]]]]:
    """Yield groups in lists: small ones, which are in memory, and a large one at most, which is the last.

    Args:
        groups: as `contiguous_groups` yields them; read those of a list before you go on to the next one.
    """
    held: list[tuple[GroupKey, Iterator[pa.RecordBatch]]] = []
    held_bytes = 0
    for key, rows in groups:
        taken, size_bytes = first_batches(rows, SMALL_BYTES_MAX)
        if held and (
            len(held) == limits.in_force.groups_ahead_max or held_bytes + size_bytes > _AHEAD_BYTES_MAX
        ):
            yield held
            held, held_bytes = [], 0
        held.append((key, itertools.chain(taken, rows)))
        held_bytes += size_bytes
        if size_bytes > SMALL_BYTES_MAX:
            yield held
            held, held_bytes = [], 0
    if held:
        yield held


def first_batches(batches: Iterator[pa.RecordBatch], bytes_max: int) -> tuple[list[pa.RecordBatch], int]:
    """Take batches off a stream until they are larger than a bound, or the stream ends.

    Args:
        batches: the stream; what is not taken stays there.
        bytes_max: bytes that the batches have together, unless there are more.

    Returns:
        The batches, and their size in bytes.
    """
    taken: list[pa.RecordBatch] = []
    size_bytes = 0
    for batch in batches:
        taken.append(batch)
        size_bytes += batch.nbytes
        if size_bytes > bytes_max:
            break
    return taken, size_bytes


class _Runs:
    """Runs of equal keys across batch boundaries, with one run of look-ahead."""

    def __init__(self, batches: Iterator[pa.RecordBatch], by: Sequence[str]) -> None:
        self._runs = (run for batch in batches for run in _runs_of(batch, by))
        self._ahead: tuple[GroupKey, pa.RecordBatch] | None = next(self._runs, None)

    def next_key(self) -> GroupKey | None:
        return self._ahead[0] if self._ahead else None

    def take(self, key: GroupKey) -> Iterator[pa.RecordBatch]:
        while self._ahead is not None and self._ahead[0] == key:
            batch = self._ahead[1]
            self._ahead = next(self._runs, None)
            yield batch


def _runs_of(batch: pa.RecordBatch, by: Sequence[str]) -> Iterator[tuple[GroupKey, pa.RecordBatch]]:
    if batch.num_rows == 0:
        return
    if all(_has_one_value(batch.column(name)) for name in by):
        yield tuple(batch.column(name)[0].as_py() for name in by), batch
        return
    codes, keys = group_codes(batch, by)
    starts = np.concatenate(([0], np.flatnonzero(np.diff(codes)) + 1, [batch.num_rows]))
    for start, end in itertools.pairwise(starts):
        yield keys[int(codes[start])], batch.slice(int(start), int(end - start))


def _has_one_value(column: pa.Array) -> bool:
    """Return whether all rows have the same value, as those of a group after an exchange."""
    if column.null_count or pa.types.is_dictionary(column.type):
        return len(column) in (1, column.null_count)
    first, last = column[0], column[-1]
    return bool(first == last and pc.all(pc.equal(column, first)).as_py())


def _unpack(code: int, values: list[list[Any]]) -> GroupKey:
    parts: list[Any] = []
    for column in reversed(values):
        code, position = divmod(code, len(column))
        parts.append(column[position])
    return tuple(reversed(parts))


COALESCED_BYTES_MAX: Final = 16 << 20
"""Largest size in bytes of a batch that is copied together from several."""


def coalesced(
    batches: Iterator[pa.RecordBatch], rows_max: int = BATCH_ROWS, bytes_max: int = COALESCED_BYTES_MAX
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a stream in batches as large as the bounds allow.

    Args:
        batches: the stream; a batch that fits together with no neighbour is passed on without a copy.
        rows_max: largest number of rows in a concatenated batch.
        bytes_max: largest size in bytes of a concatenated batch.
    """
    pending: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if batch.num_rows == 0:
            continue
        batch_bytes = batch.nbytes  # walks all columns
        if pending and (rows + batch.num_rows > rows_max or size + batch_bytes > bytes_max):
            yield _concatenated(pending)
            pending, rows, size = [], 0, 0
        pending.append(batch)
        rows += batch.num_rows
        size += batch_bytes
    if pending:
        yield _concatenated(pending)


def _concatenated(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


@dataclass(frozen=True, slots=True)
class GroupCounts:
    """Numbers of rows by group.

    Attributes:
        rows: number of rows by the values of the grouping columns.
        size_bytes: size of all rows in memory.
    """

    rows: Mapping[GroupKey, int]
    size_bytes: int

    @property
    def row_bytes(self) -> float:
        """Average size of a row in memory, in bytes."""
        return self.size_bytes / max(1, sum(self.rows.values()))

    @staticmethod
    def of(batches: Iterable[pa.RecordBatch], by: Sequence[str]) -> GroupCounts:
        """Count the rows of a stream by text columns; null counts as a value."""
        counts: Counter[GroupKey] = Counter()
        size_bytes = 0
        for batch in batches:
            size_bytes += batch.nbytes
            codes, keys = group_codes(batch, by)
            rows = np.bincount(codes, minlength=len(keys)).tolist()
            counts.update(dict(zip(keys, rows, strict=True)))
        return GroupCounts(dict(counts), size_bytes)

    @staticmethod
    def sum(tallies: Iterable[GroupCounts]) -> GroupCounts:
        """Add up the counts of several parts of the rows."""
        counts: Counter[GroupKey] = Counter()
        size_bytes = 0
        for tally in tallies:
            counts.update(tally.rows)
            size_bytes += tally.size_bytes
        return GroupCounts(dict(counts), size_bytes)


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The range of some keys.

    Attributes:
        smallest, largest: in the order of UTF-8.
        sorts_like_java: whether Java strings have the same order.
    """

    smallest: str
    largest: str
    sorts_like_java: bool

    @staticmethod
    def of(keys: pa.Array) -> KeyRange:
        """Return the range of keys, of which there is at least one."""
        ends = pc.min_max(keys).as_py()
        return KeyRange(ends["min"], ends["max"], sorts_like_java(keys))

    @staticmethod
    def around(ends: Sequence[KeyRange]) -> KeyRange:
        """Return the smallest range that contains all given ones."""
        smallest, largest = min(each.smallest for each in ends), max(each.largest for each in ends)
        return KeyRange(smallest, largest, all(each.sorts_like_java for each in ends))


@dataclass(frozen=True, slots=True)
class KeySet:
    """Distinct keys, at least one.

    Attributes:
        keys: an array of distinct texts in no order, or the range of the keys when they are too many.
    """

    keys: pa.Array | KeyRange

    @property
    def ends(self) -> KeyRange:
        """The range of the keys."""
        return self.keys if isinstance(self.keys, KeyRange) else KeyRange.of(self.keys)

    @staticmethod
    def union(sets: Sequence[KeySet]) -> KeySet:
        """Return the union of sets: a range if any of them is only a range."""
        arrays = [each.keys for each in sets if not isinstance(each.keys, KeyRange)]
        if len(arrays) < len(sets):
            return KeySet(KeyRange.around([each.ends for each in sets]))
        return sets[0] if len(sets) == 1 else KeySet(pc.unique(pa.concat_arrays(arrays)))


KeySets: TypeAlias = Mapping[GroupKey, KeySet]
"""Sets of keys by the values of the other key columns (such as the partition path) of their rows."""


def gather_keys(batches: Iterator[pa.RecordBatch], on: Sequence[str], bytes_max: int) -> KeySets:
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


def union_of_parts(parts: Sequence[KeySets], bytes_max: int) -> KeySets:
    """Return the union of the keys of all parts.

    Args:
        parts: the result of `gather_keys` for each part.
        bytes_max: as in `gather_keys`.
    """
    gathered: dict[GroupKey, list[KeySet]] = defaultdict(list)
    for part in parts:
        for group, keys in part.items():
            gathered[group].append(keys)
    sets = {group: KeySet.union(group_sets) for group, group_sets in gathered.items()}
    size_bytes = keys_size_bytes(sets)
    if size_bytes is not None and size_bytes <= bytes_max:
        return sets
    return {group: _range_of([keys]) for group, keys in sets.items()}


def keys_size_bytes(sets: KeySets) -> int | None:
    """Return the size in bytes of all keys, None if some sets are only ranges."""
    sizes = [each.keys.nbytes for each in sets.values() if not isinstance(each.keys, KeyRange)]
    return sum(sizes) if len(sizes) == len(sets) else None


def matching(batches: Iterator[pa.RecordBatch], on: Sequence[str], sets: KeySets) -> Iterator[pa.RecordBatch]:
    """Yield the rows whose key is in one of the sets.

    Args:
        batches: rows with the key columns.
        on: as in `gather_keys`.
        sets: the keys, none of them only a range.
    """
    first, *others = on
    for batch in batches:
        for group, part in split_by(batch, others):
            key_set = sets.get(group)
            if key_set is not None:
                yield part.filter(pc.is_in(part.column(first), value_set=key_set.keys))


def _range_of(sets: Sequence[KeySet]) -> KeySet:
    return KeySet(KeyRange.around([each.ends for each in sets]))
