"""Which of several versions of a record wins (specification: Merge Modes).

A record's versions come in log order, oldest first. Each is laid over what the earlier ones left:

    commit-time ordering   the later version wins
    event-time ordering    the version with the greater ordering value wins, a tie goes to the later
    commit-time delete     wins over everything before it and loses to anything after it

Laying versions over each other one by one comes to the same as: forget what stands before a key's
last commit-time delete, let that delete have the lowest ordering value, and take the last of those
with the greatest one. That needs no loop. A null ordering value is lower than any other.

So it is among the versions that are merged at once. Log records are, and their winner is laid over the
base record then, as in Hudi: a row after a commit-time delete has taken its place, and loses against a
base record with a greater ordering value, which shows again.
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
    is_commit_delete: Array | None = None,
) -> Array:
    """Return which rows survive, one for each key.

    Args:
        keys: record key of each row, in log order.
        ordering: ordering columns, the most significant first; None for commit-time ordering.
        is_commit_delete: bool for each row: a delete that has no ordering value; None for none.

    Returns:
        int64 row numbers, ascending.
    """
    codes, distinct = number_keys(keys)
    return winning_rows(codes, distinct, ordering, is_commit_delete)


def winning_rows(
    codes: Array,
    distinct: int,
    ordering: Sequence[pa.Array | pa.ChunkedArray] | None = None,
    is_commit_delete: Array | None = None,
) -> Array:
    """Return which rows survive, as `winners` does.

    Args:
        codes: number of each row's key, in log order.
        distinct: how many keys there are.
        ordering, is_commit_delete: as for `winners`.
    """
    rows = np.arange(len(codes), dtype=np.int64)
    if ordering:
        candidates = _greatest(codes, distinct, rows, rank(ordering), is_commit_delete)
        codes, rows = codes[candidates], rows[candidates]
    last = np.empty(distinct, dtype=np.int64)
    last[codes] = rows
    return np.sort(last)


def repeated_deletes(codes: Array, is_of_block: Array, is_commit_delete: Array) -> Array:
    """Tell which deletes of delete blocks meet a commit-time delete: that one stays in their place.

    Args:
        codes: number of each row's key, in log order.
        is_of_block: whether a row stands in a delete block.
        is_commit_delete: whether it is a delete without ordering value.
    """
    dated = is_of_block & ~is_commit_delete
    if not (dated.any() and is_commit_delete.any()):
        return np.zeros(len(codes), dtype=bool)
    order = np.argsort(codes, kind="stable")
    numbers = np.arange(len(codes), dtype=np.int64)
    sorted_codes = codes[order]
    others = np.where(dated[order], -1, numbers)
    others[np.searchsorted(sorted_codes, sorted_codes)] = numbers[np.searchsorted(sorted_codes, sorted_codes)]
    meets = order[np.maximum.accumulate(others)]
    repeated = np.zeros(len(codes), dtype=bool)
    repeated[order] = dated[order] & is_commit_delete[meets]
    return repeated


def wins_over(newer: Sequence[pa.Array], older: Sequence[pa.Array]) -> Array:
    """Tell for each pair of versions whether the newer one wins by event time.

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
    """Return numbers that compare as the tuples of the columns' values do.

    Args:
        columns: the most significant first; null is lower than any value.

    Returns:
        int64, one for each row; only ranks of one call compare with each other.
    """
    ranks = _rank_of(columns[0])
    for column in columns[1:]:
        finer = _dense(_rank_of(column))
        ranks = _dense(ranks) * (int(finer.max(initial=0)) + 1) + finer
    return ranks


def number_keys(keys: pa.Array | pa.ChunkedArray) -> tuple[Array, int]:
    """Number the keys: equal keys have equal numbers, from 0; return also how many there are."""
    encoded = pc.dictionary_encode(_flat(keys))
    return encoded.indices.to_numpy(zero_copy_only=False), len(encoded.dictionary)


def _greatest(
    codes: Array, distinct: int, rows: Array, ranks: Array, is_commit_delete: Array | None
) -> Array:
    """Return the rows that have their key's greatest rank."""
    alive = np.ones(len(rows), dtype=bool)
    if is_commit_delete is not None and is_commit_delete.any():
        since = np.zeros(distinct, dtype=np.int64)
        since[codes[is_commit_delete]] = rows[is_commit_delete]
        alive = rows >= since[codes]
        ranks = np.where(is_commit_delete, _LOWEST, ranks)
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
    distinct = encoded.dictionary
    places = np.empty(len(distinct), dtype=np.int64)
    places[pc.sort_indices(distinct).to_numpy(zero_copy_only=False)] = np.arange(len(distinct))
    ranks = np.full(len(values), _LOWEST, dtype=np.int64)
    present = encoded.indices.is_valid().to_numpy(zero_copy_only=False)
    ranks[present] = places[encoded.indices.drop_null().to_numpy(zero_copy_only=False)]
    return ranks


def _dense(ranks: Array) -> Array:
    return np.unique(ranks, return_inverse=True)[1].astype(np.int64)


def _flat(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    flat = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return flat.cast(flat.type.value_type) if pa.types.is_dictionary(flat.type) else flat
