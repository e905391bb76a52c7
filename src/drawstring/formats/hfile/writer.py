"""The HFile writer, with the layout of Hudi's own writer.

data blocks | root index | index of meta blocks (empty) | file information | trailer

Blocks are not compressed and have zeros instead of checksums.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from drawstring.formats.hfile.blocks import DATA, FILE_INFO, ROOT_INDEX, Codec, encode_block
from drawstring.formats.hfile.trailer import encode_info, encode_trailer, encode_vint

BLOCK_BYTES_MAX: Final = 1 << 20
"""Largest size of a data block; a longer entry gets a block of its own."""

_COMPARATOR: Final = b"org.apache.hudi.io.storage.HoodieHBaseKVComparator"
_INDEX_ENTRY, _LENGTHS, _ROW = struct.Struct(">qi"), struct.Struct(">ii"), struct.Struct(">h")
_NUMBER, _LONG = struct.Struct(">i"), struct.Struct(">q")
_AFTER_ROW: Final = struct.pack(">bqb", 0, 2**63 - 1, 4)
"""The bytes of a key after its row: no column family, the latest timestamp, type put."""

_NO_STAMP: Final = b"\0"


def encode_hfile(entries: Iterable[tuple[str, bytes]], info: Mapping[bytes, bytes], created_ms: int) -> bytes:
    """Return an HFile.

    Args:
        entries: distinct keys with values, in any order.
        info: additional entries of the file information.
        created_ms: creation time, milliseconds since the epoch.
    """
    ordered = sorted((key.encode(), value) for key, value in entries)
    data, index, at = bytearray(), bytearray(), []
    for first, payload in _payloads(ordered):
        block = encode_block(DATA, payload)
        at.append(len(data))
        key = _row(first)
        index += _INDEX_ENTRY.pack(len(data), len(block)) + encode_vint(len(key)) + key
        data += block
    indexes = encode_block(ROOT_INDEX, bytes(index)) + encode_block(ROOT_INDEX, b"")
    file_info = encode_block(FILE_INFO, encode_info({**_standard_info(ordered, created_ms), **info}))
    trailer = encode_trailer(
        {
            1: len(data) + len(indexes),
            2: len(data),
            3: len(index),
            5: len(at),
            6: 0,
            7: len(ordered),
            8: 1,
            9: at[0] if at else 0,
            10: at[-1] if at else 0,
            11: _COMPARATOR,
            12: int(Codec.NONE),
        }
    )
    return bytes(data) + indexes + file_info + trailer


def _payloads(ordered: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the first key and the payload of each data block."""
    first, payload = b"", bytearray()
    for key, value in ordered:
        row = _row(key)
        entry = _LENGTHS.pack(len(row) + len(_AFTER_ROW), len(value)) + row + _AFTER_ROW + value + _NO_STAMP
        if payload and len(payload) + len(entry) > BLOCK_BYTES_MAX:
            yield first, bytes(payload)
            payload.clear()
        first = first if payload else key
        payload += entry
    if payload:
        yield first, bytes(payload)


def _row(key: bytes) -> bytes:
    return _ROW.pack(len(key)) + key


def _standard_info(ordered: list[tuple[bytes, bytes]], created_ms: int) -> dict[bytes, bytes]:
    count = max(1, len(ordered))
    return {
        b"hfile.LASTKEY": _row(ordered[-1][0]) if ordered else b"",
        b"hfile.AVG_KEY_LEN": _NUMBER.pack(sum(len(key) for key, _ in ordered) // count),
        b"hfile.AVG_VALUE_LEN": _NUMBER.pack(sum(len(value) for _, value in ordered) // count),
        b"hfile.CREATE_TIME_TS": _LONG.pack(created_ms),
        b"KEY_VALUE_VERSION": _NUMBER.pack(1),
        b"MAX_MEMSTORE_TS_KEY": _LONG.pack(0),
    }
