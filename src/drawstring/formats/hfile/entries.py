"""Entries of HFile data blocks. All numbers are big-endian.

4  key length
4  value length
   key: int16 row length, row, int8 family length (0), int64 timestamp, int8 type (4, put)
*  value
*  memory store timestamp, a vint, if the file information says so
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import UnsupportedError
from drawstring.formats.avro.datums import Array, Datums
from drawstring.formats.hfile.trailer import vint

_LENGTHS = struct.Struct(">ii")
_ROW_BYTES = 2
_AFTER_ROW_BYTES = 10
_PUT = 4


@dataclass(frozen=True, slots=True)
class HFileEntries:
    """Entries of one data block.

    Attributes:
        keys: their keys.
        block: the bytes of the block.
        starts: start of each value in the block.
        ends: end of each value in the block.
    """

    keys: pa.StringArray
    block: bytes
    starts: Array
    ends: Array

    def of(self, keys: pa.Array) -> HFileEntries:
        """Return the entries with some keys."""
        rows = np.flatnonzero(pc.is_in(self.keys, keys).to_numpy(zero_copy_only=False))
        return HFileEntries(self.keys.take(pa.array(rows)), self.block, self.starts[rows], self.ends[rows])

    def values(self) -> list[bytes]:
        """Return the values."""
        spans = zip(self.starts.tolist(), self.ends.tolist(), strict=True)
        return [self.block[start:end] for start, end in spans]


def decode_entries(block: bytes, with_timestamps: bool) -> HFileEntries:
    """Return the entries of a data block.

    Args:
        block: payload of the block.
        with_timestamps: whether memory store timestamps follow the values.

    Raises:
        ValueError or struct.error: the block is damaged.
        UnsupportedError: an entry is not a put, or has a column family; Hudi writes no such entries.
    """
    positions: list[int] = []
    at = 0
    while at < len(block):
        key_bytes, value_bytes = _LENGTHS.unpack_from(block, at)
        start = at + _LENGTHS.size + key_bytes
        end = start + value_bytes
        if key_bytes < _ROW_BYTES + _AFTER_ROW_BYTES or value_bytes < 0 or end > len(block):
            raise ValueError(f"an entry claims {key_bytes} and {value_bytes} bytes at {at} of {len(block)}")
        positions += at, start, end
        at = vint(block, end)[1] if with_timestamps else end
    bounds = np.array(positions, np.int64).reshape(-1, 3)
    return HFileEntries(_keys(block, bounds[:, 0], bounds[:, 1]), block, bounds[:, 1], bounds[:, 2])


def _keys(block: bytes, entries: Array, values: Array) -> pa.StringArray:
    datums = Datums(block, 0, len(block))
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
