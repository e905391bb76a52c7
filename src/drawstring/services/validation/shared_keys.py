"""Which keys several slices have, told by 64 bits of each, in bounded memory.

add(slice, bits) ──> one of 64 parts by the highest bits ──> memory, or a file of the machine
shared()         ──> part by part: sort, neighbours of the same bits, the slices that they are of
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
"""Bytes of hashes that are kept in memory before they go to disk."""

_PARTS: Final = 64
_SHOWN: Final = 1000
_SORTED_AT_ONCE: Final = 1 << 20
_SCHEMA: Final = pa.schema([("bits", pa.uint64()), ("slice", pa.uint32())])


@dataclass(frozen=True, slots=True)
class Shared:
    """What several slices have in common.

    Attributes:
        keys: how many keys, as their bits tell.
        bits: of some of them.
        slices: numbers of the slices that have these.
    """

    keys: int
    bits: Hashes
    slices: frozenset[int] = field(default=frozenset())


class SharedKeys:
    """The keys of slices, compared.

    Args:
        limit_bytes: bytes kept in memory.
    """

    def __init__(self, limit_bytes: int = SHARED_KEYS_BYTES_MAX) -> None:
        self._parts = SpillingGroups(_SCHEMA, limit_bytes)
        self._new: list[tuple[Hashes, int]] = []
        self._new_count = 0

    def add(self, number: int, bits: Hashes) -> None:
        """Take the keys of a slice.

        Args:
            number: of the slice.
            bits: 64 of each of its keys; the highest ones spread evenly.
        """
        own = np.unique(bits)
        self._new.append((own, number))
        self._new_count += len(own)
        if self._new_count >= _SORTED_AT_ONCE:
            self._divide()

    def shared(self) -> Shared:
        """Return what several of the slices have; no more can be added then."""
        self._divide()
        count, bits, slices = 0, [np.empty(0, dtype=np.uint64)], set()
        for values, numbers in self._shared_by_part():
            distinct = np.unique(values)
            count += len(distinct)
            some = distinct[: max(0, _SHOWN - sum(map(len, bits)))]
            bits.append(some)
            slices.update(np.unique(numbers[np.isin(values, some)]).tolist())
        return Shared(count, np.concatenate(bits), frozenset(slices))

    def close(self) -> None:
        """Remove what lies on disk."""
        self._parts.close()

    def _divide(self) -> None:
        """Put what came into its parts."""
        if not self._new:
            return
        bits = np.concatenate([each for each, _ in self._new])
        numbers = np.repeat([number for _, number in self._new], [len(each) for each, _ in self._new])
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
