"""Search for keys that several file slices have in common, by 64-bit hashes and in bounded memory.

add(slice, bits) ──> one of 64 parts by the highest bits ──> memory, or a file on the local disk
shared()         ──> part by part: sort, find equal neighbours, return the slices that have them
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from drawstring.engine.spill import SpillingGroups

Hashes: TypeAlias = "np.ndarray[Any, np.dtype[np.uint64]]"

SHARED_KEYS_BYTES_MAX: Final = 256 << 20
"""Greatest number of bytes of hashes kept in memory before they are spilled to disk."""

_PARTS: Final = 64
_KEYS_REPORTED: Final = 1000
_BITS_PER_SORT: Final = 1 << 20
_SCHEMA: Final = pa.schema([("bits", pa.uint64()), ("slice", pa.uint32())])


@dataclass(frozen=True, slots=True)
class Shared:
    """The keys that several slices have in common.

    Attributes:
        keys: number of such keys, by their hashes.
        bits: hashes of some of them.
        slices: numbers of the slices that have these.
    """

    keys: int
    bits: Hashes
    slices: frozenset[int] = field(default=frozenset())


class SharedKeys:
    """Collects and compares the keys of slices.

    Args:
        limit_bytes: greatest number of bytes kept in memory.
    """

    def __init__(self, limit_bytes: int = SHARED_KEYS_BYTES_MAX) -> None:
        self._parts = SpillingGroups(_SCHEMA, limit_bytes)
        self._new: list[tuple[Hashes, int]] = []
        self._new_count = 0

    def add(self, number: int, bits: Hashes) -> None:
        """Add the keys of a slice.

        Args:
            number: of the slice.
            bits: a 64-bit hash of each key, with evenly distributed high bits.
        """
        distinct_bits = np.unique(bits)
        self._new.append((distinct_bits, number))
        self._new_count += len(distinct_bits)
        if self._new_count >= _BITS_PER_SORT:
            self._divide()

    def shared(self) -> Shared:
        """Return the keys that several slices share; call it after the last `add`."""
        self._divide()
        count, bits, slices = 0, [np.empty(0, dtype=np.uint64)], set()
        for values, numbers in self._shared_by_part():
            distinct = np.unique(values)
            count += len(distinct)
            reported = distinct[: max(0, _KEYS_REPORTED - sum(map(len, bits)))]
            bits.append(reported)
            slices.update(np.unique(numbers[np.isin(values, reported)]).tolist())
        return Shared(count, np.concatenate(bits), frozenset(slices))

    def close(self) -> None:
        """Delete the spilled files."""
        self._parts.close()

    def _divide(self) -> None:
        """Distribute the new hashes among the parts."""
        if not self._new:
            return
        bits = np.concatenate([slice_bits for slice_bits, _ in self._new])
        numbers = np.repeat(
            [number for _, number in self._new], [len(slice_bits) for slice_bits, _ in self._new]
        )
        order = np.argsort(bits, kind="stable")
        bits, numbers = bits[order], numbers[order].astype(np.uint32)
        edges = np.arange(1, _PARTS, dtype=np.uint64) << np.uint64(64 - 6)
        cuts = [0, *np.searchsorted(bits, edges).tolist(), len(bits)]
        for part, (start, stop) in enumerate(pairwise(cuts)):
            if stop > start:
                columns = [pa.array(bits[start:stop]), pa.array(numbers[start:stop])]
                self._parts.add(part, pa.record_batch(columns, schema=_SCHEMA))
        self._new, self._new_count = [], 0

    def _shared_by_part(self) -> Iterator[tuple[Hashes, np.ndarray[Any, np.dtype[np.uint32]]]]:
        for part in self._parts.groups():
            table = pa.Table.from_batches(self._parts.batches(part), _SCHEMA)
            self._parts.drop(part)
            bits = table["bits"].to_numpy()
            order = np.argsort(bits, kind="stable")
            bits, numbers = bits[order], table["slice"].to_numpy()[order]
            same = bits[1:] == bits[:-1]
            is_shared = np.concatenate([same, [False]]) | np.concatenate([[False], same])
            yield bits[is_shared], numbers[is_shared]
