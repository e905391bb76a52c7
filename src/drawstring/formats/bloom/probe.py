"""Lookup of a few keys in the base64 text of a bloom filter, without decoding all of it.

A filter of 60,000 keys has 430 KB of text, but the lookup of a key reads at most k bytes per row, and mostly
two or three.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pyarrow as pa

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
    key_positions,
)


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
        for position in key_positions(pa.array([key], pa.string()), self._shape):
            alive = [start for start in alive if self._bit(start, position)]
            if not alive:
                return False
        return True

    def _bit(self, start: int, position: int) -> int:
        return self._data.part(start + position // 8, 1)[0] >> position % 8 & 1
