r"""Merging column by column: the winner's values, and the losers' where the winner says nothing.

Hudi folds the versions of a key one by one, oldest first, and keeps one record that it patches:

    newer wins (it leads)   a column that it says nothing about keeps the record's value
    newer loses (it is late) it fills the columns that the record says nothing about
    delete that leads        forgets the record; what is late after it is lost

A version leads when its ordering value is not below those of all before it. So no loop is needed:
a column has the value of the last leading version that speaks about it, else of the first late one,
else there is none. Only versions since the first leading record after the last leading delete count.

    ordering value   3    5    4    5    2
    leads            x    x         x
    column           a    .    b    .    c      a: the last leading version that speaks
                     .    .    b    .    c      b: none of the leading ones does, b was there first
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
        ignores_nulls: whether null says nothing.
        defaults: by column, a value that says nothing, in the place of null; None for no such value.
        unavailable: a text that says nothing in columns of text or bytes.
        late_fills: whether a late version fills what the winner says nothing about.
        late_stamps: whether a late version that counts puts its meta columns on the record.
        ties_to_first: whether the earlier of two versions with one ordering value wins.
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
        """Lay the versions of each key over each other."""
        ranks = rank(versions.ordering) if versions.ordering else None
        fold = _Fold.of(
            _Lines(codes, ranks, versions.is_delete, versions.is_commit_delete), distinct, self.ties_to_first
        )
        winners = versions.take(fold.winners)
        columns, silent, is_patched = [], dict(winners.silent), np.zeros(distinct, dtype=bool)
        for name in versions.rows.column_names:
            sources = self._sources(fold, versions, name)
            if sources is None:
                columns.append(winners.rows.column(name))
                continue
            columns.append(versions.rows.column(name).take(pa.array(sources)))
            is_patched |= sources != fold.winners
            if name in silent:
                silent[name] = versions.silent[name][sources]
        return Versions(
            pa.table(columns, schema=versions.rows.schema),
            winners.keys,
            winners.ordering,
            fold.is_delete,
            winners.is_commit_delete,
            silent,
            np.where(is_patched, _NONE, fold.winners),
        )

    def _sources(self, fold: _Fold, versions: Versions, name: str) -> Array | None:
        """Return the rows that a column's values come from; None for the winners."""
        if self.late_stamps and name in META_COLUMNS:
            return fold.latest
        silent = self._silent(flat(versions.rows.column(name)), name)
        if name in versions.silent:
            silent = versions.silent[name] if silent is None else silent | versions.silent[name]
        if silent is None or not silent.any():
            return None
        return fold.sources(~silent, self.late_fills)

    def _silent(self, column: pa.Array, name: str) -> Array | None:
        """Tell which values say nothing; None where all speak."""
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
class _Lines:
    """What decides a fold, one of each for each version."""

    codes: Array
    ranks: Array | None
    is_delete: Array
    is_commit_delete: Array

    def sorted(self) -> tuple[Array, _Lines]:
        """Return the versions key by key, oldest first, and the row number of each."""
        order = np.argsort(self.codes, kind="stable")
        ranks = None if self.ranks is None else self.ranks[order]
        return order, _Lines(self.codes[order], ranks, self.is_delete[order], self.is_commit_delete[order])


@dataclass(frozen=True, slots=True)
class _Fold:
    """How versions come together; lines are sorted by key, oldest first.

    Attributes:
        order: row number of each line.
        codes: key of each line.
        leads: whether it wins over all before it.
        counts: whether it is a record that may give values.
        winners: by key, the row whose values are patched.
        latest: by key, the row of the last line that counts, of the winner for deletes.
        is_delete: by key, whether it is deleted.
    """

    order: Array
    codes: Array
    leads: Array
    counts: Array
    winners: Array
    latest: Array
    is_delete: Array

    @staticmethod
    def of(lines: _Lines, distinct: int, ties_to_first: bool) -> _Fold:
        order, lines = lines.sorted()
        codes, is_delete = lines.codes, lines.is_delete
        numbers = np.arange(len(codes), dtype=np.int64)
        leads = _leads(lines, ties_to_first)
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

    def sources(self, speaks: Array, late_fills: bool) -> Array:
        """Return, by key, the row that a column's value comes from.

        Args:
            speaks: by row, whether it says something about the column.
            late_fills: whether late versions give values.
        """
        distinct = len(self.winners)
        numbers = np.arange(len(self.codes), dtype=np.int64)
        counts = self.counts & speaks[self.order]
        found = _last(self.codes, numbers, counts & self.leads, distinct)
        if late_fills:
            late = _first(self.codes, numbers, counts & ~self.leads, distinct)
            found = np.where(found == _NONE, late, found)
        return np.where(found == _NONE, self.winners, self.order[found])


def _leads(lines: _Lines, ties_to_first: bool) -> Array:
    """Tell which lines win over all of their key before them, back to its last commit-time delete."""
    codes = lines.codes
    if lines.ranks is None or not len(codes):
        return np.ones(len(codes), dtype=bool)
    starts = np.ones(len(codes), dtype=bool)
    starts[1:] = codes[1:] != codes[:-1]
    starts |= lines.is_commit_delete
    distinct, dense = np.unique(lines.ranks, return_inverse=True)
    dense = np.where(lines.is_commit_delete, 0, dense + 1)
    heights = np.cumsum(starts) * (len(distinct) + 1) + dense
    highest = np.maximum.accumulate(heights)
    if not ties_to_first:
        return np.asarray(heights == highest)
    leads = starts.copy()
    leads[1:] |= heights[1:] > highest[:-1]
    return leads


def _last(codes: Array, numbers: Array, flags: Array, distinct: int) -> Array:
    """Return, by key, the last of the flagged lines."""
    found = np.full(distinct, _NONE, dtype=np.int64)
    found[codes[flags]] = numbers[flags]
    return found


def _first(codes: Array, numbers: Array, flags: Array, distinct: int) -> Array:
    """Return, by key, the first of the flagged lines."""
    found = np.full(distinct, _NONE, dtype=np.int64)
    found[codes[flags][::-1]] = numbers[flags][::-1]
    return found


def _takes(kind: pa.DataType, value: Any) -> bool:
    """Tell whether a default can be a value of a type; a column may have been widened since."""
    if isinstance(value, bool):
        return bool(pa.types.is_boolean(kind))
    return bool(pa.types.is_floating(kind) or (pa.types.is_integer(kind) and isinstance(value, int)))


def _equal(column: pa.Array, value: Any) -> Array:
    wanted = value.encode() if pa.types.is_binary(column.type) and isinstance(value, str) else value
    return _flags(pc.fill_null(pc.equal(column, pa.scalar(wanted, column.type)), False))


def _flags(column: pa.Array) -> Array:
    flags: Array = column.to_numpy(zero_copy_only=False)
    return flags
