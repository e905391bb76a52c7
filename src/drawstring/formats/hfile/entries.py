"""Entries of HFile data blocks. All numbers are big-endian.

4  key length
4  value length
   key: int16 row length, row, int8 family length (0), int64 timestamp, int8 type (4, put)
*  value
*  memory store timestamp, a vint, if the file information says so
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import UnsupportedError
from drawstring.formats.avro.datums import Array, Datums
from drawstring.formats.hfile.trailer import vint

_LENGTHS = struct.Struct(">ii")
_KEY_LENGTH_BYTES = 4
_ROW_BYTES = 2
_AFTER_ROW_BYTES = 10
_KEY_BYTES_MIN = _ROW_BYTES + _AFTER_ROW_BYTES
_AFTER_ROW = struct.pack(">bqb", 0, 2**63 - 1, 4)
"""What Hudi writes after every row: no column family, the latest timestamp, type put."""

_KEY_LENGTHS_MAX = 16
"""Number of lengths of keys in a block above which walking it takes less time."""

_PUT = 4
_VINT_BYTE_MAX = 127
_JOINED_BYTES = 1 << 20
"""Size of values above which no more are joined."""


@dataclass(frozen=True, slots=True)
class HFileEntries:
    """Entries of a data block, or some of several, sorted by key.

    Attributes:
        keys: their keys.
        block: the bytes of the block, or the values of the entries.
        starts: start of each value in the block.
        ends: end of each value in the block.
    """

    keys: pa.StringArray
    block: bytes
    starts: Array
    ends: Array

    def of(self, keys: pa.BinaryArray) -> HFileEntries:
        """Return the entries with some keys, given as bytes."""
        found = pc.is_in(self.keys.cast(pa.binary()), value_set=keys)
        return self._at(np.flatnonzero(found.to_numpy(zero_copy_only=False)))

    def with_prefixes(self, prefixes: Sequence[bytes]) -> HFileEntries:
        """Return the entries whose keys begin with any of the given bytes."""
        keys, found = self.keys.cast(pa.binary()), np.zeros(len(self.keys), np.bool_)
        for size in {len(prefix) for prefix in prefixes}:
            wanted = pa.array([prefix for prefix in prefixes if len(prefix) == size], pa.binary())
            found |= pc.is_in(pc.binary_slice(keys, 0, size), wanted).to_numpy(zero_copy_only=False)
        return self._at(np.flatnonzero(found))

    def values(self) -> pa.BinaryArray:
        """Return the values."""
        return Datums(self.block, 0, len(self.block)).texts_of(
            self.starts.copy(), self.ends - self.starts, pa.binary()
        )

    def _at(self, rows: Array) -> HFileEntries:
        return HFileEntries(self.keys.take(pa.array(rows)), self.block, self.starts[rows], self.ends[rows])


def joined(found: Iterable[HFileEntries]) -> Iterator[HFileEntries]:
    """Yield entries of several blocks as one, for a decoder takes as long for one record as for many.

    Args:
        found: some entries of each block; blocks may have none.
    """
    held: list[HFileEntries] = []
    size_bytes = 0
    for each in found:
        if len(each.keys):
            held.append(each)
            size_bytes += int((each.ends - each.starts).sum())
        if size_bytes > _JOINED_BYTES:
            yield _one(held)
            held, size_bytes = [], 0
    if held:
        yield _one(held)


def _one(parts: Sequence[HFileEntries]) -> HFileEntries:
    if len(parts) == 1:
        return parts[0]
    values = pa.concat_arrays([each.values() for each in parts]).cast(pa.large_binary())
    _, offsets, data = values.buffers()
    bounds = np.frombuffer(offsets, np.int64, len(values) + 1)
    keys = pa.concat_arrays([each.keys for each in parts])
    return HFileEntries(keys, data.to_pybytes() if data else b"", bounds[:-1], bounds[1:])


def decode_entries(block: bytes, with_timestamps: bool) -> HFileEntries:
    """Return the entries of a data block.

    Args:
        block: payload of the block.
        with_timestamps: whether memory store timestamps follow the values.

    Raises:
        ValueError, IndexError or struct.error: the block is damaged.
        UnsupportedError: an entry is not a put, or has a column family; Hudi writes no such entries.
    """
    datums = Datums(block, 0, len(block))
    at = _marked_starts(datums, int(with_timestamps))
    if at is None:
        at = _walked_starts(block, with_timestamps)
    values = at + _LENGTHS.size + datums.words(">i4", at).astype(np.int64)
    ends = values + datums.words(">i4", at + _KEY_LENGTH_BYTES).astype(np.int64)
    return HFileEntries(_keys(datums, at, values), block, values, ends)


def _marked_starts(datums: Datums, stamp_bytes: int) -> Array | None:
    """Return where the entries of a block start, found by what every key that Hudi writes ends with.

    Each round finds the entries whose keys have one length; the first one that is still missing starts after
    the one before it, and tells the length of the next round. What is found counts only if the entries follow
    each other from the first byte of the block to the last. None means that the block has to be walked.
    """
    values = _ends_of_marks(datums)
    starts, missing = np.full(len(values), -1, np.int64), np.arange(len(values))
    expected = 0
    for _ in range(_KEY_LENGTHS_MAX):
        if not len(missing) or expected >= datums.end:
            break
        length = max(_KEY_BYTES_MIN, int(datums.words(">i4", np.array([expected]))[0]))
        at = np.maximum(values[missing] - _LENGTHS.size - length, 0)
        fits = datums.words(">i4", at) == length
        fits &= datums.words(">i2", at + _LENGTHS.size) == length - _KEY_BYTES_MIN
        fits &= at + _LENGTHS.size + length == values[missing]
        if not fits.any():
            break
        starts[missing[fits]] = at[fits]
        missing = missing[~fits]
        before = slice(missing[0] - 1, missing[0]) if len(missing) and missing[0] else slice(0)
        expected = int(_ends(datums, starts[before], stamp_bytes).max(initial=0))
    if not len(values) or len(missing):
        return None
    ends = _ends(datums, starts, stamp_bytes)
    if starts[0] or (starts[1:] != ends[:-1]).any() or ends[-1] != datums.end:
        return None
    return None if stamp_bytes and (datums.data[ends - 1] > _VINT_BYTE_MAX).any() else starts


def _ends_of_marks(datums: Datums) -> Array:
    """Return where the bytes end that follow the row in each key, and others that only look so."""
    at = np.flatnonzero(datums.data[1 : datums.end] == _AFTER_ROW[1])
    at = at[datums.words("<u8", at) == int.from_bytes(_AFTER_ROW[:8], "little")]
    at = at[datums.words("<u2", at + 8) == int.from_bytes(_AFTER_ROW[8:], "little")]
    ends: Array = at + len(_AFTER_ROW)
    return ends


def _ends(datums: Datums, starts: Array, stamp_bytes: int) -> Array:
    """Return where entries end, never before they start; -1 for values of negative length."""
    key_bytes, value_bytes = (
        datums.words(">i4", starts + place).astype(np.int64) for place in (0, _KEY_LENGTH_BYTES)
    )
    ends = starts + _LENGTHS.size + key_bytes + value_bytes + stamp_bytes
    return np.where(value_bytes < 0, -1, ends)


def _walked_starts(block: bytes, with_timestamps: bool) -> Array:
    """Return where the entries of a block start, one after the other.

    Few pairs of lengths occur in a block; each is decoded once.
    """
    starts: list[int] = []
    steps: dict[bytes, int] = {}
    at, size = 0, len(block)
    while at < size:
        starts.append(at)
        lengths = block[at : at + _LENGTHS.size]
        step = steps.get(lengths)
        if step is None:
            step = steps[lengths] = _step(lengths)
        at += step
        if with_timestamps:
            at = at + 1 if block[at] <= _VINT_BYTE_MAX else vint(block, at)[1]
    if at != size:
        raise ValueError(f"the entry at byte {starts[-1]} is longer than the block")
    return np.array(starts, np.int64)


def _step(lengths: bytes) -> int:
    """Return the number of bytes of an entry without its timestamp, from its two lengths."""
    key_bytes, value_bytes = _LENGTHS.unpack(lengths)
    if key_bytes < _KEY_BYTES_MIN or value_bytes < 0:
        raise ValueError(f"an entry claims {key_bytes} and {value_bytes} bytes")
    return int(_LENGTHS.size + key_bytes + value_bytes)


def _keys(datums: Datums, entries: Array, values: Array) -> pa.StringArray:
    at = entries + _LENGTHS.size
    sizes = datums.words(">i2", at).astype(np.int64)
    at += _ROW_BYTES
    if (at + sizes + _AFTER_ROW_BYTES != values).any():
        raise UnsupportedError(
            "An HFile has keys with column families, which Hudi never writes. Restore it from a backup."
        )
    if (datums.data[values - 1] != _PUT).any():
        raise UnsupportedError(
            "An HFile has entries that are not puts, which Hudi never writes. Restore it from a backup."
        )
    keys = datums.texts_of(at, sizes, pa.string())
    keys.validate(full=True)
    return keys
