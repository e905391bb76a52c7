r"""Keys of records in the metadata table: hashes of columns, partitions and file names, and escaped values.

column_stats             b64(xxh64(column)) b64(xxh64(partition)) b64(md5(file name))
partition_stats          b64(xxh64(column)) b64(xxh64(partition))
bloom_filters            b64(xxh64(partition)) b64(md5(file name))
expr_index_<name>        one of the first and the last; of a partition
                         b64(xxh64(column)) b64(xxh64("__partition_stat__")) b64(xxh64(partition))
secondary_index_<name>   value "$" record key, in both of which \, $ and NUL are preceded by \;
                         a null value is one NUL
"""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Final

from drawstring.metadata.partitions import ROOT_PARTITION

NAME_HASH_CHARS: Final = 12
"""Length of the hash of a column or a partition."""

_SEED: Final = 0xFFFFFFFFDABADABA
_P1: Final = 0x9E3779B185EBCA87
_P2: Final = 0xC2B2AE3D27D4EB4F
_P3: Final = 0x165667B19E3779F9
_P4: Final = 0x85EBCA77C2B2AE63
_P5: Final = 0x27D4EB2F165667C5
_MASK: Final = (1 << 64) - 1
_STRIPE_BYTES: Final = 32
_SECONDARY: Final = re.compile(r"((?:[^\\$]|\\.)*)\$(.*)", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_TO_ESCAPE: Final = re.compile(r"[\\$\0]")
_NULL: Final = "\0"


def name_hash(name: str) -> str:
    """Return the hash of a column, or of a partition other than the root's, as keys have it."""
    return base64.b64encode(xxh64(name.encode()).to_bytes(8, "big")).decode()


def partition_hash(partition: str) -> str:
    """Return the hash of a partition path as keys have it; that of the root is empty."""
    return name_hash(partition or ROOT_PARTITION)


def file_hash(name: str) -> str:
    """Return the hash of a file name as keys have it."""
    return base64.b64encode(hashlib.md5(name.encode(), usedforsecurity=False).digest()).decode()


def encode_secondary_value(value: str) -> str:
    """Return the beginning of the keys with a value of a secondary index."""
    return _TO_ESCAPE.sub(r"\\\g<0>", value) + "$"


def decode_secondary_key(key: str) -> tuple[str | None, str]:
    """Return the value, None for null, and the record key of a key of a secondary index.

    Raises:
        ValueError: the key has no `$`.
    """
    match = _SECONDARY.fullmatch(key)
    if match is None:
        raise ValueError(f"the key {key!r} of a secondary index has no $")
    value, record_key = match.groups()
    return None if value == _NULL else _ESCAPED.sub(r"\1", value), _ESCAPED.sub(r"\1", record_key)


def xxh64(data: bytes, seed: int = _SEED) -> int:
    """Return the XXH64 hash of bytes, by default with the seed of the metadata table."""
    size = len(data)
    stripes_end, words_end, half_word_end = (size // each * each for each in (_STRIPE_BYTES, 8, 4))
    hashed = _stripes(data, stripes_end, seed) if stripes_end else seed + _P5
    hashed = hashed + size & _MASK
    for at in range(stripes_end, words_end, 8):
        hashed = _rotated(hashed ^ _round(0, _word(data, at, 8)), 27) * _P1 + _P4 & _MASK
    if half_word_end > words_end:
        hashed = _rotated(hashed ^ _word(data, words_end, 4) * _P1 & _MASK, 23) * _P2 + _P3 & _MASK
    for byte in data[half_word_end:]:
        hashed = _rotated(hashed ^ byte * _P5 & _MASK, 11) * _P1 & _MASK
    hashed = (hashed ^ hashed >> 33) * _P2 & _MASK
    hashed = (hashed ^ hashed >> 29) * _P3 & _MASK
    return hashed ^ hashed >> 32


def _stripes(data: bytes, end: int, seed: int) -> int:
    """Mix the bytes up to `end`, 32 at a time, in four lanes."""
    lanes = [seed + _P1 + _P2, seed + _P2, seed, seed - _P1]
    for start in range(0, end, _STRIPE_BYTES):
        lanes = [_round(lane, _word(data, start + 8 * number, 8)) for number, lane in enumerate(lanes)]
    hashed = sum(_rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
    for lane in lanes:
        hashed = (hashed ^ _round(0, lane)) * _P1 + _P4 & _MASK
    return hashed


def _round(lane: int, word: int) -> int:
    return _rotated(lane + word * _P2 & _MASK, 31) * _P1 & _MASK


def _word(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> 64 - bits) & _MASK
