"""Pairing the rows of two sides by their keys, without a loop over rows."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = "np.ndarray[Any, Any]"


def left_pairs(left: Array, right: Array, keys: int) -> tuple[Array, Array]:
    """Return the pairs of rows of a left join.

    Args:
        left: number of the key of each row on the left, -1 for a key that the right side lacks.
        right: number of the key of each row on the right.
        keys: how many numbers there are.

    Returns:
        Rows of the left side, ascending, each at least once, and with each the row of the right
        side, -1 for none.
    """
    # The slot after the last key is that of -1, and stays empty.
    counts = np.bincount(right, minlength=keys + 1)
    rows = np.arange(len(left), dtype=np.int64)
    if counts.max(initial=0) <= 1:
        partner_of = np.full(keys + 1, -1, dtype=np.int64)
        partner_of[right] = np.arange(len(right))
        return rows, partner_of[left]
    times = np.maximum(counts[left], 1)
    rows = np.repeat(rows, times)
    nth = np.arange(len(rows)) - np.repeat(np.cumsum(times) - times, times)
    starts = np.cumsum(counts) - counts
    by_key = np.append(np.argsort(right, kind="stable"), -1)
    is_paired = counts[left[rows]] > 0
    places = np.where(is_paired, starts[left[rows]] + nth, len(right))
    return rows, by_key[places]
