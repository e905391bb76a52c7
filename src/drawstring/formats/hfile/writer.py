"""The HFile writer, with the layout of Hudi's own writer.

data blocks | root index | index of meta blocks (empty) | file information | trailer

Blocks are not compressed and have zeros instead of checksums.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.formats.hfile.blocks import DATA, FILE_INFO, ROOT_INDEX, Codec, encode_block
from drawstring.formats.hfile.trailer import encode_info, encode_trailer, encode_vint

Numbers: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.int64]]"

BLOCK_BYTES_MAX: Final = 1 << 20
"""Largest size of a data block; a longer entry gets a block of its own."""

_COMPARATOR: Final = b"org.apache.hudi.io.storage.HoodieHBaseKVComparator"
_INDEX_ENTRY, _ROW = struct.Struct(">qi"), struct.Struct(">h")
_NUMBER, _LONG = struct.Struct(">i"), struct.Struct(">q")
_HEAD: Final = np.dtype([("key", ">i4"), ("value", ">i4"), ("row", ">i2")])
"""What precedes the row of an entry: the lengths of key, value and row."""

_AFTER_ROW: Final = struct.pack(">bqb", 0, 2**63 - 1, 4)
"""The bytes of a key after its row: no column family, the latest timestamp, type put."""

_NO_STAMP: Final = b"\0"


def encode_hfile(keys: pa.Array, values: pa.Array, info: Mapping[bytes, bytes], created_ms: int) -> bytes:
    """Return an HFile.

    Args:
        keys: distinct keys, as text or bytes, in any order.
        values: the value of each key, as bytes.
        info: additional entries of the file information.
        created_ms: creation time, milliseconds since the epoch.
    """
    ordered = _Entries.of(keys, values)
    data, index, at = bytearray(), bytearray(), []
    for first, payload in ordered.payloads():
        block = encode_block(DATA, payload)
        at.append(len(data))
        key = _row(first)
        index += _INDEX_ENTRY.pack(len(data), len(block)) + encode_vint(len(key)) + key
        data += block
    indexes = encode_block(ROOT_INDEX, bytes(index)) + encode_block(ROOT_INDEX, b"")
    file_info = encode_block(FILE_INFO, encode_info({**ordered.info(created_ms), **info}))
    trailer = encode_trailer(
        {
            1: len(data) + len(indexes),
            2: len(data),
            3: len(index),
            5: len(at),
            6: 0,
            7: len(ordered.keys),
            8: 1,
            9: at[0] if at else 0,
            10: at[-1] if at else 0,
            11: _COMPARATOR,
            12: int(Codec.NONE),
        }
    )
    return bytes(data) + indexes + file_info + trailer


@dataclass(frozen=True, slots=True)
class _Entries:
    """Keys and values in the order of the keys' bytes, and the lengths of both."""

    keys: pa.LargeBinaryArray
    values: pa.LargeBinaryArray
    key_bytes: Numbers
    value_bytes: Numbers

    @staticmethod
    def of(keys: pa.Array, values: pa.Array) -> _Entries:
        keys = keys.cast(pa.large_binary())
        order = pc.sort_indices(keys)
        keys, values = keys.take(order), values.cast(pa.large_binary()).take(order)
        return _Entries(keys, values, _lengths(keys), _lengths(values))

    def payloads(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the first key and the payload of each data block."""
        around = _HEAD.itemsize + len(_AFTER_ROW) + len(_NO_STAMP)
        ends = np.cumsum(self.key_bytes + self.value_bytes + around)
        start = 0
        while start < len(ends):
            before = ends[start - 1] if start else 0
            end = max(start + 1, int(np.searchsorted(ends, before + BLOCK_BYTES_MAX, side="right")))
            yield self.keys[start].as_py(), self._encoded(start, end)
            start = end

    def _encoded(self, start: int, end: int) -> bytes:
        rows = slice(start, end)
        heads = np.empty(end - start, _HEAD)
        heads["row"] = self.key_bytes[rows]
        heads["key"] = self.key_bytes[rows] + _ROW.size + len(_AFTER_ROW)
        heads["value"] = self.value_bytes[rows]
        buffers = [None, pa.py_buffer(heads.tobytes())]
        head = pa.FixedSizeBinaryArray.from_buffers(pa.binary(_HEAD.itemsize), len(heads), buffers)
        entries = pc.binary_join_element_wise(
            head.cast(pa.large_binary()),
            self.keys.slice(start, end - start),
            _constant(_AFTER_ROW),
            self.values.slice(start, end - start),
            _constant(_NO_STAMP),
            _constant(b""),
        )
        offsets = np.frombuffer(entries.buffers()[1], np.int64)
        data: bytes = entries.buffers()[2][offsets[0] : offsets[len(entries)]].to_pybytes()
        return data

    def info(self, created_ms: int) -> dict[bytes, bytes]:
        """Return the entries of the file information that each HFile has."""
        count = max(1, len(self.keys))
        return {
            b"hfile.LASTKEY": _row(self.keys[-1].as_py()) if len(self.keys) else b"",
            b"hfile.AVG_KEY_LEN": _NUMBER.pack(int(self.key_bytes.sum()) // count),
            b"hfile.AVG_VALUE_LEN": _NUMBER.pack(int(self.value_bytes.sum()) // count),
            b"hfile.CREATE_TIME_TS": _LONG.pack(created_ms),
            b"KEY_VALUE_VERSION": _NUMBER.pack(1),
            b"MAX_MEMSTORE_TS_KEY": _LONG.pack(0),
        }


def _lengths(values: pa.LargeBinaryArray) -> Numbers:
    lengths: Numbers = pc.binary_length(values).to_numpy()
    return lengths


def _constant(data: bytes) -> pa.Scalar:
    return pa.scalar(data, pa.large_binary())


def _row(key: bytes) -> bytes:
    return _ROW.pack(len(key)) + key
