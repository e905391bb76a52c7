"""Winning versions of records, by commit time or event time (specification: Merge Modes).

The versions of a record are in log order, oldest first. Each is merged with the result of the earlier ones:

    commit-time ordering   the later version wins
    event-time ordering    the version with the greater ordering value wins, the later one on a tie
    commit-time delete     wins over everything before it and loses to everything after it

Merging one by one is equivalent to the following, which needs no loop: drop all versions before a key's
last commit-time delete, give that delete the lowest ordering value, and take the last version with the
greatest value. A null ordering value is lower than any other.

This holds among versions that are merged together. Log records are merged first and their winner then
with the base record, as in Hudi: a row after a commit-time delete replaces the delete, and may lose against
a base record with a greater ordering value, which then becomes visible again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Array: TypeAlias = "np.ndarray[Any, Any]"

_LOWEST = np.iinfo(np.int64).min


def winners(
    keys: pa.Array | pa.ChunkedArray,
    ordering: Sequence[pa.Array | pa.ChunkedArray] | None = None,
    is_commit_time_ordering_delete: Array | None = None,
) -> Array:
    """Return the winning row of each key.

    Args:
        keys: record key of each row, in log order.
        ordering: ordering columns, the most significant first; None for commit-time ordering.
        is_commit_time_ordering_delete: for each row, whether it is a delete without ordering value; None if
            none is.

    Returns:
        int64 row numbers, ascending.
    """
    codes, distinct = number_keys(keys)
    return winning_rows(codes, distinct, ordering, is_commit_time_ordering_delete)


def winning_rows(
    codes: Array,
    distinct: int,
    ordering: Sequence[pa.Array | pa.ChunkedArray] | None = None,
    is_commit_time_ordering_delete: Array | None = None,
) -> Array:
    """Return the winning rows, like `winners`.

    Args:
        codes: number of each row's key, in log order.
        distinct: number of distinct keys.
        ordering, is_commit_time_ordering_delete: as in `winners`.
    """
    rows = np.arange(len(codes), dtype=np.int64)
    if ordering:
        candidates = _greatest(codes, distinct, rows, rank(ordering), is_commit_time_ordering_delete)
        codes, rows = codes[candidates], rows[candidates]
    last = np.empty(distinct, dtype=np.int64)
    last[codes] = rows
    return np.sort(last)


def repeated_deletes(codes: Array, is_of_block: Array, is_commit_time_ordering_delete: Array) -> Array:
    """Return which deletes of delete blocks follow a commit-time delete, which remains in effect.

    Args:
        codes: number of each row's key, in log order.
        is_of_block: for each row, whether it belongs to a delete block.
        is_commit_time_ordering_delete: for each row, whether it is a delete without ordering value.
    """
    dated = is_of_block & ~is_commit_time_ordering_delete
    if not (dated.any() and is_commit_time_ordering_delete.any()):
        return np.zeros(len(codes), dtype=bool)
    order = np.argsort(codes, kind="stable")
    numbers = np.arange(len(codes), dtype=np.int64)
    sorted_codes = codes[order]
    others = np.where(dated[order], -1, numbers)
    others[np.searchsorted(sorted_codes, sorted_codes)] = numbers[np.searchsorted(sorted_codes, sorted_codes)]
    meets = order[np.maximum.accumulate(others)]
    repeated = np.zeros(len(codes), dtype=bool)
    repeated[order] = dated[order] & is_commit_time_ordering_delete[meets]
    return repeated


def wins_over(newer: Sequence[pa.Array], older: Sequence[pa.Array]) -> Array:
    """Return, for each pair of versions, whether the newer one wins by event time.

    Args:
        newer, older: ordering columns of the two sides, row by row.

    Returns:
        One bool for each row.
    """
    both = [pa.concat_arrays([new, old.cast(new.type)]) for new, old in zip(newer, older, strict=True)]
    ranks = rank(both)
    rows = len(ranks) // 2
    return np.asarray(ranks[:rows] >= ranks[rows:])


def rank(columns: Sequence[pa.Array | pa.ChunkedArray]) -> Array:
    """Return numbers in the order of the tuples of the columns' values.

    Args:
        columns: the most significant first; null is lower than any value.

    Returns:
        int64, one for each row; only ranks of the same call are comparable.
    """
    ranks = _rank_of(columns[0])
    for column in columns[1:]:
        finer = _dense(_rank_of(column))
        ranks = _dense(ranks) * (int(finer.max(initial=0)) + 1) + finer
    return ranks


def number_keys(keys: pa.Array | pa.ChunkedArray, *, in_order: bool = False) -> tuple[Array, int]:
    """Return a number from 0 for each row, equal for equal keys, and the number of distinct keys.

    Args:
        keys: the keys.
        in_order: whether greater keys have greater numbers.
    """
    encoded = pc.dictionary_encode(_flat(keys))
    codes: Array = encoded.indices.to_numpy(zero_copy_only=False)
    return (_places(encoded.dictionary)[codes] if in_order else codes), len(encoded.dictionary)


def _greatest(
    codes: Array, distinct: int, rows: Array, ranks: Array, is_commit_time_ordering_delete: Array | None
) -> Array:
    """Return the rows with the greatest rank of their key."""
    alive = np.ones(len(rows), dtype=bool)
    if is_commit_time_ordering_delete is not None and is_commit_time_ordering_delete.any():
        since = np.zeros(distinct, dtype=np.int64)
        since[codes[is_commit_time_ordering_delete]] = rows[is_commit_time_ordering_delete]
        alive = rows >= since[codes]
        ranks = np.where(is_commit_time_ordering_delete, _LOWEST, ranks)
    greatest = np.full(distinct, _LOWEST, dtype=np.int64)
    np.maximum.at(greatest, codes[alive], ranks[alive])
    return np.flatnonzero(alive & (ranks == greatest[codes]))


def _rank_of(column: pa.Array | pa.ChunkedArray) -> Array:
    """Map the values of a column to int64 in their order, null to the lowest."""
    values = _flat(column)
    kind = values.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return _filled(values.cast(pa.int64()))
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return _filled(values.cast(pa.int32()).cast(pa.int64()))
    if pa.types.is_temporal(kind):
        return _filled(values.cast(pa.int64()))
    if pa.types.is_floating(kind):
        return _float_rank(values)
    if pa.types.is_null(kind):
        return np.full(len(values), _LOWEST, dtype=np.int64)
    return _compared(values)


def _filled(values: pa.Array) -> Array:
    numbers: Array = values.fill_null(int(_LOWEST)).to_numpy(zero_copy_only=False)
    return numbers


def _float_rank(values: pa.Array) -> Array:
    """Order floats as Java does: -0.0 before 0.0, NaN after everything."""
    numbers = values.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
    bits = np.where(np.isnan(numbers), np.nan, numbers).view(np.int64)
    ranks = np.where(bits < 0, bits ^ np.iinfo(np.int64).max, bits)
    ranks[values.is_null().to_numpy(zero_copy_only=False)] = _LOWEST
    return np.asarray(ranks)


def _compared(values: pa.Array) -> Array:
    """Order text, bytes and decimals by sorting their distinct values."""
    encoded = pc.dictionary_encode(values)
    places = _places(encoded.dictionary)
    ranks = np.full(len(values), _LOWEST, dtype=np.int64)
    present = encoded.indices.is_valid().to_numpy(zero_copy_only=False)
    ranks[present] = places[encoded.indices.drop_null().to_numpy(zero_copy_only=False)]
    return ranks


def _places(distinct: pa.Array) -> Array:
    """Return the place of each of some distinct values in their order."""
    places = np.empty(len(distinct), dtype=np.int64)
    places[pc.sort_indices(distinct).to_numpy(zero_copy_only=False)] = np.arange(len(distinct))
    return places


def _dense(ranks: Array) -> Array:
    return np.unique(ranks, return_inverse=True)[1].astype(np.int64)


def _flat(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    flat = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return flat.cast(flat.type.value_type) if pa.types.is_dictionary(flat.type) else flat
