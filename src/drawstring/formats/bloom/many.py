"""Bloom filters of many small files, filled at once.

The hashes of a key do not depend on the filter, only the remainder does that is its bit:

    keys of all filters ── hashed together ──> hash % bits of its filter + where the filter begins ──> flags
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from drawstring.formats.bloom.bits import BloomBits
from drawstring.formats.bloom.filters import Array, BloomFilter, blocks, chained_hashes


def fill_filters(filters: Sequence[tuple[BloomFilter, pa.Array]]) -> None:
    """Add keys to filters that have none; see `BloomFilter.add`.

    Args:
        filters: each with its keys (string, without nulls), no more than its capacity.
    """
    by_hashes: dict[int, list[tuple[BloomFilter, pa.Array]]] = defaultdict(list)
    for bloom, keys in filters:
        by_hashes[bloom.shape.hashes].append((bloom, keys))
    for hashes, alike in by_hashes.items():
        _fill(alike, hashes)


def _fill(filters: Sequence[tuple[BloomFilter, pa.Array]], hashes: int) -> None:
    sizes = np.array([bloom.shape.bits for bloom, _ in filters], np.int64)
    ends = np.cumsum(sizes)
    number = np.repeat(np.arange(len(filters)), [len(keys) for _, keys in filters])
    flags = np.zeros(ends[-1], np.bool_)
    for members, texts in blocks(pa.concat_arrays([keys for _, keys in filters])):
        bits, starts = sizes.astype(np.uint32)[number[members]], (ends - sizes)[number[members]]
        for hashed in chained_hashes(texts, hashes):
            flags[_remainders(hashed, bits) + starts] = True
    for (bloom, keys), end, size in zip(filters, ends.tolist(), sizes.tolist(), strict=True):
        bloom.restored([BloomBits.of_flags(flags[end - size : end])], len(keys))


def _remainders(hashed: Array, bits: Array) -> Array:
    """Return `abs(hash % bits)` like Java."""
    absolute = np.abs(hashed.view(np.int32)).view(np.uint32)
    return absolute - absolute // bits * bits
