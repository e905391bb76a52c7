r"""The merger of partial updates: column by column, unset columns of the winner take older values.

A version may leave a column unset: by a null, a default or a marker value, or by lacking the column. Hudi
merges the versions of a key one by one, oldest first, into one record:

    newer wins (it leads)    a column that it leaves unset keeps the record's value
    newer loses (it is late) it fills the columns that are unset in the record
    delete that leads        drops the record; late versions after it are lost

A version leads if its ordering value is not below that of any earlier version. So no loop is needed: a
column has the value of the last leading version that sets it, else of the first late version that does,
else none. Only versions from the first leading record after the last leading delete count.

    ordering value   3    5    4    5    2
    leads            x    x         x
    column           a    .    b    .    c      a: the last leading version that sets the column
                     .    .    b    .    c      b: no leading version sets it, and b is the first late one
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.merge.order import Array, rank
from drawstring.merge.versions import Versions, flat
from drawstring.schema.meta import META_COLUMNS

_NONE = -1


@dataclass(frozen=True, slots=True)
class FieldMerger:
    """Merges versions column by column.

    Attributes:
        ignores_nulls: whether null means unset.
        defaults: by column, the value that means unset instead of null; None if no value does.
        unavailable: the text that means unset in columns of text or bytes.
        late_fills: whether a late version fills unset columns of the winner.
        late_stamps: whether the record takes the meta columns of a late version that counts.
        ties_to_first: whether the earlier of two versions with equal ordering values wins.
    """

    chooses_whole_records: ClassVar[bool] = False
    can_merge_logs_alone: ClassVar[bool] = False
    supports_cdc: ClassVar[bool] = False

    ignores_nulls: bool = False
    defaults: Mapping[str, Any] = field(default_factory=dict)
    unavailable: str | None = None
    late_fills: bool = True
    late_stamps: bool = False
    ties_to_first: bool = False

    def merge(self, versions: Versions, codes: Array, distinct: int) -> Versions:
        """Merge the versions of each key into one."""
        ranks = rank(versions.ordering) if versions.ordering else None
        fold = _Fold.of(
            _Inputs(codes, ranks, versions.is_delete, versions.is_commit_time_ordering_delete),
            distinct,
            self.ties_to_first,
        )
        winners = versions.take(fold.winners)
        columns, unset, is_patched = [], dict(winners.unset), np.zeros(distinct, dtype=bool)
        for name in versions.rows.column_names:
            sources = self._sources(fold, versions, name)
            if sources is None:
                columns.append(winners.rows.column(name))
                continue
            columns.append(versions.rows.column(name).take(pa.array(sources)))
            is_patched |= sources != fold.winners
            if name in unset:
                unset[name] = versions.unset[name][sources]
        return Versions(
            pa.table(columns, schema=versions.rows.schema),
            winners.keys,
            winners.ordering,
            fold.is_delete,
            winners.is_commit_time_ordering_delete,
            unset,
            np.where(is_patched, _NONE, fold.winners),
        )

    def _sources(self, fold: _Fold, versions: Versions, name: str) -> Array | None:
        """Return the row numbers that a column's values come from; None for the winners."""
        if self.late_stamps and name in META_COLUMNS:
            return fold.latest
        unset = self._unset(flat(versions.rows.column(name)), name)
        if name in versions.unset:
            unset = versions.unset[name] if unset is None else unset | versions.unset[name]
        if unset is None or not unset.any():
            return None
        return fold.sources(~unset, self.late_fills)

    def _unset(self, column: pa.Array, name: str) -> Array | None:
        """Return which values of a column mean unset; None if none does."""
        if self.unavailable is not None:
            is_text = pa.types.is_string(column.type) or pa.types.is_binary(column.type)
            return _equal(column, self.unavailable) if is_text else None
        if not self.ignores_nulls:
            return None
        if name in self.defaults:
            value = self.defaults[name]
            return None if value is None or not _takes(column.type, value) else _equal(column, value)
        return _flags(column.is_null()) if column.null_count else None


@dataclass(frozen=True, slots=True)
class _Inputs:
    """The properties of versions that decide a merge, one element per version."""

    codes: Array
    ranks: Array | None
    is_delete: Array
    is_commit_time_ordering_delete: Array

    def sorted(self) -> tuple[Array, _Inputs]:
        """Return the row number of each version sorted by key, oldest first, and the sorted versions."""
        order = np.argsort(self.codes, kind="stable")
        ranks = None if self.ranks is None else self.ranks[order]
        return order, _Inputs(
            self.codes[order], ranks, self.is_delete[order], self.is_commit_time_ordering_delete[order]
        )


@dataclass(frozen=True, slots=True)
class _Fold:
    """The outcome of a merge by key; versions are sorted by key, oldest first.

    Attributes:
        order: row number of each version.
        codes: number of the key of each version.
        leads: whether a version wins over all earlier ones of its key.
        counts: whether a version is a record whose values may be used.
        winners: by key, the row number of the winner.
        latest: by key, the row number of the last version that counts; of the winner for deletes.
        is_delete: by key, whether the record is deleted.
    """

    order: Array
    codes: Array
    leads: Array
    counts: Array
    winners: Array
    latest: Array
    is_delete: Array

    @staticmethod
    def of(inputs: _Inputs, distinct: int, ties_to_first: bool) -> _Fold:
        order, inputs = inputs.sorted()
        codes, is_delete = inputs.codes, inputs.is_delete
        numbers = np.arange(len(codes), dtype=np.int64)
        leads = _leads(inputs, ties_to_first)
        last_delete = _last(codes, numbers, leads & is_delete, distinct)
        begins = leads & ~is_delete & (numbers > last_delete[codes])
        first = _first(codes, numbers, begins, distinct)
        counts = ~is_delete & (first[codes] != _NONE) & (numbers >= first[codes])
        winners = _last(codes, numbers, leads, distinct)
        latest = _last(codes, numbers, counts, distinct)
        return _Fold(
            order,
            codes,
            leads,
            counts,
            order[winners],
            order[np.where(latest == _NONE, winners, latest)],
            first == _NONE,
        )

    def sources(self, is_set: Array, late_fills: bool) -> Array:
        """Return, by key, the row number that a column's value comes from.

        Args:
            is_set: by row, whether the version sets the column.
            late_fills: whether late versions fill unset columns.
        """
        distinct = len(self.winners)
        numbers = np.arange(len(self.codes), dtype=np.int64)
        counts = self.counts & is_set[self.order]
        chosen = _last(self.codes, numbers, counts & self.leads, distinct)
        if late_fills:
            late = _first(self.codes, numbers, counts & ~self.leads, distinct)
            chosen = np.where(chosen == _NONE, late, chosen)
        return np.where(chosen == _NONE, self.winners, self.order[chosen])


def _leads(inputs: _Inputs, ties_to_first: bool) -> Array:
    """Return which versions win over all earlier ones of their key, back to its last commit-time delete."""
    codes = inputs.codes
    if inputs.ranks is None or not len(codes):
        return np.ones(len(codes), dtype=bool)
    starts = np.ones(len(codes), dtype=bool)
    starts[1:] = codes[1:] != codes[:-1]
    starts |= inputs.is_commit_time_ordering_delete
    distinct, dense = np.unique(inputs.ranks, return_inverse=True)
    dense = np.where(inputs.is_commit_time_ordering_delete, 0, dense + 1)
    heights = np.cumsum(starts) * (len(distinct) + 1) + dense
    highest = np.maximum.accumulate(heights)
    if not ties_to_first:
        return np.asarray(heights == highest)
    leads = starts.copy()
    leads[1:] |= heights[1:] > highest[:-1]
    return leads


def _last(codes: Array, numbers: Array, flags: Array, distinct: int) -> Array:
    """Return, by key, the number of the last flagged version."""
    last = np.full(distinct, _NONE, dtype=np.int64)
    last[codes[flags]] = numbers[flags]
    return last


def _first(codes: Array, numbers: Array, flags: Array, distinct: int) -> Array:
    """Return, by key, the number of the first flagged version."""
    first = np.full(distinct, _NONE, dtype=np.int64)
    first[codes[flags][::-1]] = numbers[flags][::-1]
    return first


def _takes(kind: pa.DataType, value: Any) -> bool:
    """Return whether a default is a possible value of a type; the column may have been widened since."""
    if isinstance(value, bool):
        return bool(pa.types.is_boolean(kind))
    return bool(pa.types.is_floating(kind) or (pa.types.is_integer(kind) and isinstance(value, int)))


def _equal(column: pa.Array, value: Any) -> Array:
    encoded = value.encode() if pa.types.is_binary(column.type) and isinstance(value, str) else value
    return _flags(pc.fill_null(pc.equal(column, pa.scalar(encoded, column.type)), False))


def _flags(column: pa.Array) -> Array:
    flags: Array = column.to_numpy(zero_copy_only=False)
    return flags
