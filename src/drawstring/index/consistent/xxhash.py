"""XXH32 hashes of Arrow string columns, for the consistent hashing index.

Texts are grouped by length: all texts of one length go through the same steps, one column per word.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from drawstring.formats.bloom.filters import same_length

Hashes = np.ndarray[Any, np.dtype[np.uint32]]

_P1, _P2, _P3, _P4, _P5 = (
    np.uint32(prime) for prime in (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1)
)
_STRIPE: Final = 16


def xxhash32(texts: pa.Array) -> Hashes:
    """Return the XXH32 hash, with seed 0, of the UTF-8 bytes of each text.

    Args:
        texts: an array of strings without nulls.
    """
    hashes: Hashes = np.zeros(len(texts), np.uint32)
    for members, data in same_length(texts):
        hashes[members] = _of_one_length(data)
    return hashes


def _of_one_length(data: np.ndarray[Any, np.dtype[np.uint8]]) -> Hashes:
    rows, length = data.shape
    at = length // _STRIPE * _STRIPE
    hashed = np.full(rows, _P5, np.uint32) if at == 0 else _stripes(data, at)
    hashed += np.uint32(length)
    for start in range(at, length - 3, 4):
        hashed += _word(data, start) * _P3
        hashed = _rotated(hashed, 17) * _P4
    for column in range(length - length % 4, length):
        hashed += data[:, column].astype(np.uint32) * _P5
        hashed = _rotated(hashed, 11) * _P1
    hashed ^= hashed >> np.uint32(15)
    hashed *= _P2
    hashed ^= hashed >> np.uint32(13)
    hashed *= _P3
    hashed ^= hashed >> np.uint32(16)
    return hashed


def _stripes(data: np.ndarray[Any, np.dtype[np.uint8]], end: int) -> Hashes:
    """Mix the bytes up to `end`, 16 at a time, in four lanes."""
    starts = (int(_P1) + int(_P2), int(_P2), 0, -int(_P1))
    lanes = [np.full(len(data), start & 0xFFFFFFFF, np.uint32) for start in starts]
    for start in range(0, end, _STRIPE):
        for number, lane in enumerate(lanes):
            lanes[number] = _rotated(lane + _word(data, start + 4 * number) * _P2, 13) * _P1
    turned = [_rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)]
    return np.asarray(turned[0] + turned[1] + turned[2] + turned[3])


def _word(data: np.ndarray[Any, np.dtype[np.uint8]], start: int) -> Hashes:
    return np.ascontiguousarray(data[:, start : start + 4]).view("<u4").ravel().astype(np.uint32)


def _rotated(values: Hashes, bits: int) -> Hashes:
    return np.asarray((values << np.uint32(bits)) | (values >> np.uint32(32 - bits)))
