"""The hash by which Hudi's implicit lock providers name the lock of a table: XXH64 of its address."""

from __future__ import annotations

import re
from typing import Final

_P1, _P2, _P3, _P4, _P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_MASK: Final = (1 << 64) - 1
_HUDI_SEED: Final = -625288518 & _MASK


def address_hash(uri: str) -> str:
    """Return the hash of a table's address, 16 digits in upper case; s3a:// and s3:// are the same.

    Args:
        uri: address of the table, written as the other writers write it.
    """
    address = re.sub(r"^s3a://", "s3://", uri, flags=re.IGNORECASE)
    return f"{xxhash64(address.encode(), _HUDI_SEED):016X}"


def xxhash64(data: bytes, seed: int) -> int:
    """Return the XXH64 hash of some bytes."""
    end = len(data) // 32 * 32
    hashed = _stripes(data, end, seed) if end else (seed + _P5) & _MASK
    hashed = (hashed + len(data)) & _MASK
    while end + 8 <= len(data):
        hashed = _rotated(hashed ^ _round(0, _word(data, end, 8)), 27) * _P1 + _P4 & _MASK
        end += 8
    if end + 4 <= len(data):
        hashed = _rotated(hashed ^ (_word(data, end, 4) * _P1 & _MASK), 23) * _P2 + _P3 & _MASK
        end += 4
    for byte in data[end:]:
        hashed = _rotated(hashed ^ (byte * _P5 & _MASK), 11) * _P1 & _MASK
    hashed = (hashed ^ hashed >> 33) * _P2 & _MASK
    hashed = (hashed ^ hashed >> 29) * _P3 & _MASK
    return hashed ^ hashed >> 32


def _stripes(data: bytes, end: int, seed: int) -> int:
    """Mix the bytes up to `end`, 32 at a time, in four lanes."""
    lanes = [(seed + start) & _MASK for start in (_P1 + _P2, _P2, 0, -_P1)]
    for at in range(0, end, 32):
        lanes = [_round(lane, _word(data, at + 8 * number, 8)) for number, lane in enumerate(lanes)]
    hashed = sum(_rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
    for lane in lanes:
        hashed = ((hashed ^ _round(0, lane)) * _P1 + _P4) & _MASK
    return hashed


def _round(lane: int, word: int) -> int:
    return _rotated((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> 64 - bits) & _MASK


def _word(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")
