"""Lookup of a few keys in the base64 text of a bloom filter, without decoding all of it.

A filter of 60,000 keys has 430 KB of text, but the lookup of a key reads at most k bytes per row, and mostly
two or three. So the hashes of a key are computed one at a time, in whole numbers: of two or three of them
arrays would take several times as long.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Final

from drawstring.formats.bloom.base64_parts import Base64Text
from drawstring.formats.bloom.filters import (
    DYNAMIC,
    DYNAMIC_HEAD,
    HASHES_MAX,
    MURMUR,
    SIMPLE,
    SIMPLE_HEAD,
    VERSION,
    BloomShape,
)

_M: Final = 0x5BD1E995
_BITS: Final = 0xFFFFFFFF
_SIGN: Final = 0x80000000
_KEYS_KNOWN: Final = 1_024
"""Keys whose words are remembered: a query asks many filters for the same few."""


def may_have_any(text: bytes, type_code: str, keys: Sequence[str]) -> bool:
    """Return whether any of a few keys may be in a filter; False is certain.

    Args:
        text: base64 of the filter. A damaged filter may have any key.
        type_code: `SIMPLE` or `DYNAMIC_V0`; a filter of another type may have any key.
        keys: record keys.
    """
    try:
        filters = _Rows(text, type_code)
        return any(filters.may_have(key) for key in keys)
    except (ValueError, IndexError, struct.error):
        return True


class _Rows:
    """The rows of a filter, each of which is a simple filter.

    Raises:
        ValueError, struct.error: the text is not a filter of this type.
    """

    def __init__(self, text: bytes, type_code: str) -> None:
        self._data = data = Base64Text(text)
        at, rows = 0, 1
        if type_code == DYNAMIC:
            head = DYNAMIC_HEAD.unpack(data.part(0, DYNAMIC_HEAD.size))
            at, rows = DYNAMIC_HEAD.size, head[-1]
        elif type_code != SIMPLE:
            raise ValueError(f"type {type_code}")
        version, hashes, kind, bits = SIMPLE_HEAD.unpack(data.part(at, SIMPLE_HEAD.size))
        size = SIMPLE_HEAD.size + (bits + 7) // 8
        if (version, kind) != (VERSION, MURMUR) or hashes > HASHES_MAX:
            raise ValueError(f"version {version}, hash type {kind}, {hashes} hashes")
        if min(bits, rows) < 1 or data.size != at + rows * size:
            raise ValueError(f"{rows} rows of {bits} bits do not fill {data.size} bytes")
        self._shape = BloomShape(bits, hashes)
        self._starts = [at + row * size + SIMPLE_HEAD.size for row in range(rows)]

    def may_have(self, key: str) -> bool:
        """Return whether a key may be in one of the rows."""
        alive = self._starts
        for position in _positions(key, self._shape):
            alive = [start for start in alive if self._bit(start, position)]
            if not alive:
                return False
        return True

    def _bit(self, start: int, position: int) -> int:
        return self._data.part(start + position // 8, 1)[0] >> position % 8 & 1


def _positions(key: str, shape: BloomShape) -> Iterator[int]:
    """Yield the bit positions of a key: `abs(hash % bits)` in Java, where the hash is signed."""
    for hashed in islice(_chained_hashes(key), shape.hashes):
        yield (hashed if hashed < _SIGN else 2 * _SIGN - hashed) % shape.bits


def _chained_hashes(key: str) -> Iterator[int]:
    """Yield the MurmurHash2 of a key again and again, each seeded by the previous one."""
    length, words, tail = _words(key)
    hashed = 0
    while True:
        hashed ^= length
        for word in words:
            hashed = (hashed * _M & _BITS) ^ word
        if tail is not None:
            hashed = (hashed ^ tail) * _M & _BITS
        hashed ^= hashed >> 13
        hashed = hashed * _M & _BITS
        hashed ^= hashed >> 15
        yield hashed


@lru_cache(_KEYS_KNOWN)
def _words(key: str) -> tuple[int, tuple[int, ...], int | None]:
    """Return the parts of a key's hashes that do not depend on the seed: length, mixed words, tail."""
    data = key.encode()
    whole = len(data) // 4
    words = []
    for word in struct.unpack_from(f"<{whole}I", data):
        word = word * _M & _BITS
        word ^= word >> 24
        words.append(word * _M & _BITS)
    tail = 0
    for place, byte in enumerate(struct.unpack(f"{len(data) % 4}b", data[4 * whole :])[::-1]):
        tail ^= byte << (8 * place)
    return len(data), tuple(words), tail & _BITS if len(data) % 4 else None
