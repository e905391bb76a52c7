"""Hash and order of `java.lang.String`, computed on whole Arrow columns.

A Java string is a sequence of UTF-16 code units: `hashCode` is a polynomial in 31 over them modulo
2^32, and `compareTo` compares them, so that a character above U+FFFF (a pair of units from U+D800
on) sorts before U+E000.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Array: TypeAlias = "np.ndarray[Any, Any]"

_BLOCK_BYTES: Final = 1 << 16
_BLOCK_ROWS: Final = 1 << 13
_INVERSE_OF_31: Final = pow(31, -1, 1 << 32)

_FIRST_NOT_ASCII: Final = 0x80
_BYTES: Final = np.uint64(0x00FF00FF00FF00FF)
_PAIRS: Final = np.uint64(0x0000FFFF0000FFFF)
_31_TO_THE_8: Final = np.uint32(31**8 % (1 << 32))

# The number of UTF-16 code units that begin at each byte of UTF-8.
_UNITS = np.ones(256, np.int64)
_UNITS[0x80:0xC0] = 0
_UNITS[0xF0:] = 2

# UTF-8 sorts like UTF-16 except for the leading bytes EE and EF (U+E000 to U+FFFF), which have to come
# after F0 to F4 (characters above U+FFFF).
_FIRST_OUT_OF_ORDER: Final = 0xEE
_RANK = np.arange(256, dtype=np.uint8)
_RANK[[0xEE, 0xEF]] = [0xFD, 0xFE]


def string_hash(strings: pa.Array) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Return `String.hashCode` of each string; the hash of null is 0.

    Args:
        strings: an array of strings, dictionary-encoded or not.
    """
    if pa.types.is_dictionary(strings.type):
        hashes_of_values = pa.array(string_hash(strings.dictionary)).take(strings.indices)
        hashes: Array = hashes_of_values.fill_null(0).to_numpy(zero_copy_only=False)
        return hashes
    offsets, data = utf8_parts(strings)
    hashes = np.empty(len(strings), np.uint32)
    if (size := _common_length(offsets)) and data[offsets[0] : offsets[-1]].max() < _FIRST_NOT_ASCII:
        for first in range(0, len(hashes), _BLOCK_ROWS):
            block = hashes[first : first + _BLOCK_ROWS]
            block[:] = _hash_equal_lengths(data[offsets[first] :], len(block), size)
        return hashes.view(np.int32)
    tables = Powers()
    for first, last in blocks(offsets):
        units, bounds = _utf16(
            data[offsets[first] : offsets[last]], offsets[first : last + 1] - offsets[first]
        )
        hashes[first:last] = _polynomials(units, bounds, tables)
    return hashes.view(np.int32)


def java_min_max(strings: pa.Array) -> tuple[str | None, str | None]:
    """Return the smallest and the largest string in the order of `String.compareTo`; None if all are null.

    Args:
        strings: an array of strings; nulls are ignored.
    """
    if sorts_like_java(strings):
        ends = pc.min_max(strings)
        return ends["min"].as_py(), ends["max"].as_py()
    offsets, data = utf8_parts(strings)
    text = data[offsets[0] : offsets[-1]]
    buffers = [strings.is_valid().buffers()[1], pa.py_buffer(offsets - offsets[0]), pa.py_buffer(_RANK[text])]
    ends = pc.min_max(pa.Array.from_buffers(pa.large_binary(), len(strings), buffers))
    return _unranked(ends["min"].as_py()), _unranked(ends["max"].as_py())


def sorts_like_java(strings: pa.Array) -> bool:
    """Return whether Java orders the strings as Arrow and Python do, which compare UTF-8 and code points.

    Args:
        strings: an array of strings.
    """
    offsets, data = utf8_parts(strings)
    text = data[offsets[0] : offsets[-1]]
    return len(text) == 0 or bool(text.max() < _FIRST_OUT_OF_ORDER)


def utf8_parts(strings: pa.Array) -> tuple[Array, Array]:
    """Return a string array as its offsets (int64, one more than rows) and its UTF-8 bytes (uint8).

    A null becomes an empty text.
    """
    if not pa.types.is_large_string(strings.type):
        strings = strings.cast(pa.string())
    if strings.null_count:
        strings = strings.fill_null("")
    _, offsets, data = strings.buffers()
    width = np.int64 if pa.types.is_large_string(strings.type) else np.int32
    if offsets is None or len(strings) == 0:
        return np.zeros(len(strings) + 1, np.int64), np.empty(0, np.uint8)
    starts = np.frombuffer(offsets, width)[strings.offset : strings.offset + len(strings) + 1]
    bytes_of_all = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return starts.astype(np.int64), bytes_of_all


def _unranked(ranked: bytes | None) -> str | None:
    if ranked is None:
        return None
    return ranked.replace(b"\xfd", b"\xee").replace(b"\xfe", b"\xef").decode()


def _common_length(offsets: Array) -> int:
    """Return the length in bytes that all texts share, 0 if they differ."""
    lengths = np.diff(offsets)
    return int(lengths[0]) if len(lengths) and lengths.min() == lengths.max() else 0


def _hash_equal_lengths(text: Array, rows: int, size: int) -> Array:
    """Return the hashes of adjacent ASCII texts of one length, eight characters at a time.

    Each step combines neighbours within a 64-bit word: bytes to 16 bits, these to 32 bits, these to the hash.
    """
    hashes = np.zeros(rows, np.uint32)
    for place in range(0, size - 7, 8):
        words = np.ndarray(rows, "<u8", text, place, (size,))
        words = (words & _BYTES) * np.uint64(31) + (words >> np.uint64(8) & _BYTES)
        words = (words & _PAIRS) * np.uint64(31**2) + (words >> np.uint64(16) & _PAIRS)
        words = words * np.uint64(31**4) + (words >> np.uint64(32))
        hashes *= _31_TO_THE_8
        hashes += words.astype(np.uint32)
    for place in range(size // 8 * 8, size):
        hashes *= np.uint32(31)
        hashes += np.ndarray(rows, np.uint8, text, place, (size,))
    return hashes


class Powers:
    """Tables of 31^-i and 31^(i-1) modulo 2^32, grown to the longest block so far."""

    def __init__(self) -> None:
        self.inverse = np.ones(1, np.uint32)
        self.forward = np.full(1, _INVERSE_OF_31, np.uint32)

    def reach(self, length: int) -> None:
        """Grow the tables to a length."""
        if length >= len(self.inverse):
            self.inverse = _geometric(1, _INVERSE_OF_31, length + 1)
            self.forward = _geometric(_INVERSE_OF_31, 31, length + 1)


def _geometric(first: int, ratio: int, length: int) -> Array:
    steps = np.full(length, ratio, np.uint32)
    steps[0] = first
    powers: Array = np.multiply.accumulate(steps, dtype=np.uint32)
    return powers


def _polynomials(units: Array, bounds: Array, tables: Powers) -> Array:
    """Return the hash of each run of units."""
    return hashes_of_parts(running_sums(units, tables), bounds[:-1], bounds[1:], tables)


def running_sums(units: Array, tables: Powers) -> Array:
    """Return the sums of which the hash of any run of units is made, see `hashes_of_parts`.

    Args:
        units: UTF-16 code units; bytes if all are ASCII.
        tables: are grown as needed.
    """
    tables.reach(len(units))
    sums = np.zeros(len(units) + 1, np.uint32)
    np.cumsum(units * tables.inverse[: len(units)], dtype=np.uint32, out=sums[1:])
    return sums


def hashes_of_parts(sums: Array, starts: Array, ends: Array, tables: Powers) -> Array:
    """Return the hashes of runs of units, computed from differences of one running sum.

    31 is odd, so it has an inverse modulo 2^32: with S the running sum of unit[i] * 31^-i, the hash
    of units[a:b] is (S[b] - S[a]) * 31^(b-1).

    Args:
        sums: of the units.
        starts, ends: of the runs.
        tables: those of the sums.

    Returns:
        uint32, one for each run.
    """
    hashes: Array = (sums[ends] - sums[starts]) * tables.forward[ends]
    return hashes


def _utf16(text: Array, bounds: Array) -> tuple[Array, Array]:
    """Return UTF-8 bytes as UTF-16 code units (uint32), and where each row's units start and end."""
    if len(text) == 0 or text.max() < _FIRST_NOT_ASCII:
        return text.astype(np.uint32), bounds
    units = np.frombuffer(text.tobytes().decode().encode("utf-16-le"), "<u2").astype(np.uint32)
    before = np.zeros(len(text) + 1, np.int64)
    np.cumsum(_UNITS[text], out=before[1:])
    return units, before[bounds]


def blocks(offsets: Array) -> Iterator[tuple[int, int]]:
    """Divide the rows into runs whose text fits a CPU cache; a longer row is a run of its own."""
    rows = len(offsets) - 1
    first = 0
    while first < rows:
        last = int(np.searchsorted(offsets, offsets[first] + _BLOCK_BYTES, side="right")) - 1
        last = min(rows, max(last, first + 1))
        yield first, last
        first = last
