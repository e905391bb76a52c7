"""The HFile writer, with the layout of Hudi's own writer.

data blocks | root index | index of meta blocks (empty) | file information | trailer

Blocks have zeros instead of checksums. Those of files are compressed by gzip, as by Hudi's default
(`hoodie.hfile.compression.algorithm`); small contents of log blocks are not.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Final, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base import limits
from drawstring.base.errors import UnsupportedError
from drawstring.base.resources import HFILE_KEY_BYTES_MAX
from drawstring.formats.hfile.blocks import (
    DATA,
    FILE_INFO,
    ROOT_INDEX,
    Codec,
    encode_block,
    encode_info,
    encode_trailer,
    encode_vint,
)

Numbers: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.int64]]"

_COMPARATOR: Final = b"org.apache.hudi.io.storage.HoodieHBaseKVComparator"
_INDEX_ENTRY, _ROW = struct.Struct(">qi"), struct.Struct(">h")
_NUMBER, _LONG = struct.Struct(">i"), struct.Struct(">q")
_HEAD: Final = np.dtype([("key", ">i4"), ("value", ">i4"), ("row", ">i2")])
"""What precedes the row of an entry: the lengths of key, value and row."""

_AFTER_ROW: Final = struct.pack(">bqb", 0, 2**63 - 1, 4)
"""The bytes of a key after its row: no column family, the latest timestamp, type put."""

_NO_STAMP: Final = b"\0"


class Sink(Protocol):
    """Takes the bytes of a file one after the other, as an open file does."""

    def write(self, data: bytes, /) -> object:
        """Append bytes."""
        ...


def encode_hfile(
    keys: pa.Array,
    values: pa.Array,
    info: Mapping[bytes, bytes],
    created_ms: int,
    codec: Codec = Codec.NONE,
) -> bytes:
    """Return an HFile.

    Args:
        keys: distinct keys, as text or bytes, in any order.
        values: the value of each key, as bytes.
        info: additional entries of the file information.
        created_ms: creation time, milliseconds since the epoch.
        codec: compression of its blocks.
    """
    keys = keys.cast(pa.large_binary())
    order = pc.sort_indices(keys)
    file = BytesIO()
    writer = HFileWriter(file, codec)
    writer.append(keys.take(order), values.cast(pa.large_binary()).take(order))
    writer.finish(info, created_ms)
    return file.getvalue()


class HFileWriter:
    """Writes an HFile of entries that come in the order of their keys; of them it holds less than a block.

    Args:
        sink: takes the bytes of the file.
        codec: compression of its blocks.
    """

    def __init__(self, sink: Sink, codec: Codec = Codec.GZ) -> None:
        self._sink = sink
        self._codec = codec
        self._size_bytes = 0
        self._held: _Entries | None = None
        self._index = bytearray()
        self._blocks: list[int] = []
        self._key_bytes = self._value_bytes = 0
        self.entries = 0
        self.first_key = self.last_key = b""

    def append(self, keys: pa.Array, values: pa.Array) -> None:
        """Append entries.

        Args:
            keys: ascending keys, as text or bytes, all greater than the ones before.
            values: the value of each key, as bytes.

        Raises:
            UnsupportedError: a key is too long.
        """
        if not len(keys):
            return
        more = _Entries.of(keys.cast(pa.large_binary()), values.cast(pa.large_binary()))
        self._key_bytes += int(more.key_bytes.sum())
        self._value_bytes += int(more.value_bytes.sum())
        self.last_key = more.keys[-1].as_py()
        if not self.entries:
            self.first_key = more.keys[0].as_py()
        self.entries += len(more.keys)
        blocks = (more if self._held is None else self._held.then(more)).blocks()
        for block in blocks[:-1]:
            self._write_block(block)
        self._held = blocks[-1]

    def finish(self, info: Mapping[bytes, bytes], created_ms: int) -> int:
        """Write what follows the entries, and return the size of the file in bytes.

        Args:
            info: additional entries of the file information.
            created_ms: creation time, milliseconds since the epoch.
        """
        if self._held is not None:
            self._write_block(self._held)
        data_bytes = self._size_bytes
        self._write(self._block(ROOT_INDEX, bytes(self._index)) + self._block(ROOT_INDEX, b""))
        trailer: dict[int, int | bytes] = {
            1: self._size_bytes,
            2: data_bytes,
            3: len(self._index),
            5: len(self._blocks),
            6: 0,
            7: self.entries,
            8: 1,
            9: self._blocks[0] if self._blocks else 0,
            10: self._blocks[-1] if self._blocks else 0,
            11: _COMPARATOR,
            12: int(self._codec),
        }
        self._write(self._block(FILE_INFO, encode_info({**self._info(created_ms), **info})))
        self._write(encode_trailer(trailer))
        return self._size_bytes

    def _write_block(self, entries: _Entries) -> None:
        block, key = self._block(DATA, entries.encoded()), _row(entries.keys[0].as_py())
        self._blocks.append(self._size_bytes)
        self._index += _INDEX_ENTRY.pack(self._size_bytes, len(block)) + encode_vint(len(key)) + key
        self._write(block)

    def _block(self, magic: bytes, payload: bytes) -> bytes:
        return encode_block(magic, payload, self._codec)

    def _write(self, data: bytes) -> None:
        self._sink.write(data)
        self._size_bytes += len(data)

    def _info(self, created_ms: int) -> dict[bytes, bytes]:
        """Return the entries of the file information that each HFile has."""
        count = max(1, self.entries)
        return {
            b"hfile.LASTKEY": _row(self.last_key) if self.entries else b"",
            b"hfile.AVG_KEY_LEN": _NUMBER.pack(self._key_bytes // count),
            b"hfile.AVG_VALUE_LEN": _NUMBER.pack(self._value_bytes // count),
            b"hfile.CREATE_TIME_TS": _LONG.pack(created_ms),
            b"KEY_VALUE_VERSION": _NUMBER.pack(1),
            b"MAX_MEMSTORE_TS_KEY": _LONG.pack(0),
        }


@dataclass(frozen=True, slots=True)
class _Entries:
    """Keys and values in the order of the keys' bytes, and the lengths of both."""

    keys: pa.LargeBinaryArray
    values: pa.LargeBinaryArray
    key_bytes: Numbers
    value_bytes: Numbers

    @staticmethod
    def of(keys: pa.LargeBinaryArray, values: pa.LargeBinaryArray) -> _Entries:
        key_bytes = _lengths(keys)
        if key_bytes.max() > HFILE_KEY_BYTES_MAX:
            raise UnsupportedError(
                f"A key of {key_bytes.max():,} bytes is too long for an index of the metadata table, whose"
                f" keys have at most {HFILE_KEY_BYTES_MAX:,} bytes. Shorten the record keys, or drop the"
                " index."
            )
        return _Entries(keys, values, key_bytes, _lengths(values))

    def then(self, later: _Entries) -> _Entries:
        """Return these entries and later ones."""
        return _Entries(
            pa.concat_arrays([self.keys, later.keys]),
            pa.concat_arrays([self.values, later.values]),
            np.concatenate([self.key_bytes, later.key_bytes]),
            np.concatenate([self.value_bytes, later.value_bytes]),
        )

    def blocks(self) -> list[_Entries]:
        """Return the entries of each data block; the last one may have room for more."""
        around = _HEAD.itemsize + len(_AFTER_ROW) + len(_NO_STAMP)
        ends = np.cumsum(self.key_bytes + self.value_bytes + around)
        blocks = []
        start = 0
        while start < len(ends):
            before = ends[start - 1] if start else 0
            end = max(
                start + 1,
                int(np.searchsorted(ends, before + limits.in_force.hfile_block_bytes_max, side="right")),
            )
            blocks.append(self._slice(start, end))
            start = end
        return blocks

    def _slice(self, start: int, end: int) -> _Entries:
        return _Entries(
            self.keys[start:end],
            self.values[start:end],
            self.key_bytes[start:end],
            self.value_bytes[start:end],
        )

    def encoded(self) -> bytes:
        """Return the payload of a data block."""
        heads = np.empty(len(self.keys), _HEAD)
        heads["row"] = self.key_bytes
        heads["key"] = self.key_bytes + _ROW.size + len(_AFTER_ROW)
        heads["value"] = self.value_bytes
        buffers = [None, pa.py_buffer(heads.tobytes())]
        head = pa.FixedSizeBinaryArray.from_buffers(pa.binary(_HEAD.itemsize), len(heads), buffers)
        entries = pc.binary_join_element_wise(
            head.cast(pa.large_binary()),
            self.keys,
            _constant(_AFTER_ROW),
            self.values,
            _constant(_NO_STAMP),
            _constant(b""),
        )
        offsets = np.frombuffer(entries.buffers()[1], np.int64)
        data: bytes = entries.buffers()[2][offsets[0] : offsets[len(entries)]].to_pybytes()
        return data


def _lengths(values: pa.LargeBinaryArray) -> Numbers:
    lengths: Numbers = pc.binary_length(values).to_numpy()
    return lengths


def _constant(data: bytes) -> pa.Scalar:
    return pa.scalar(data, pa.large_binary())


def _row(key: bytes) -> bytes:
    return _ROW.pack(len(key)) + key
