"""Compressed parts of an ORC file outside of its rows.

chunk    3 bytes: length * 2, + 1 if the data is not compressed | data
"""

from __future__ import annotations

import zlib
from typing import Final

import pyarrow as pa

from drawstring.base.errors import UnsupportedError
from drawstring.formats.protobuf import part, varint

UNCOMPRESSED: Final = "UNCOMPRESSED"
PART_BYTES_MAX: Final = 16 << 20
"""Largest size of a part."""

_ZLIB, _SNAPPY, _ZSTD = "ZLIB", "SNAPPY", "ZSTD"
_PLAIN: Final = 1
_HEAD_BYTES: Final = 3
_RAW_DEFLATE: Final = -15
_CHUNK_BYTES_MAX: Final = 1 << 23
"""Largest uncompressed size of a chunk, which the length in its header limits."""


def plain_part(stored: bytes, codec: str, chunk_bytes: int) -> bytes:
    """Return a decompressed part of a file.

    Args:
        stored: its bytes.
        codec: compression of its chunks, by Arrow's name.
        chunk_bytes: largest decompressed size of a chunk, as the file says.

    Raises:
        UnsupportedError: the compression is not supported.
        ValueError: the part is damaged.
    """
    if codec == UNCOMPRESSED:
        return stored
    plain, at = bytearray(), 0
    while at < len(stored):
        head = int.from_bytes(part(stored, at, _HEAD_BYTES), "little")
        chunk = part(stored, at + _HEAD_BYTES, head >> 1)
        is_plain = head & _PLAIN
        plain += chunk if is_plain else _decompressed(chunk, codec, min(chunk_bytes, _CHUNK_BYTES_MAX))
        if len(plain) > PART_BYTES_MAX:
            raise ValueError(f"a part of the file has more than {PART_BYTES_MAX} bytes")
        at += _HEAD_BYTES + (head >> 1)
    return bytes(plain)


def in_chunks(data: bytes, size_max: int) -> bytes:
    """Return bytes as chunks that are not compressed.

    Args:
        data: the bytes.
        size_max: largest size of a chunk.
    """
    out = bytearray()
    for at in range(0, len(data), size_max):
        chunk = part(data, at, min(size_max, len(data) - at))
        out += (len(chunk) << 1 | _PLAIN).to_bytes(_HEAD_BYTES, "little") + chunk
    return bytes(out)


def _decompressed(chunk: bytes, codec: str, size_max: int) -> bytes:
    """Return a decompressed chunk.

    Raises:
        ValueError: it decompresses to more than `size_max` bytes.
    """
    if codec == _ZLIB:
        unpacker = zlib.decompressobj(_RAW_DEFLATE)
        plain = unpacker.decompress(chunk, size_max + 1)
        if not unpacker.eof and len(plain) <= size_max:
            raise ValueError(f"a chunk of {len(chunk)} bytes is cut off")
    elif codec == _SNAPPY:
        size, _ = varint(chunk, 0)
        if size > size_max:
            raise ValueError(f"a chunk of {len(chunk)} bytes claims to decompress to {size}")
        plain = bytes(pa.decompress(chunk, size, codec="snappy"))
    elif codec == _ZSTD:
        plain = bytes(pa.CompressedInputStream(pa.BufferReader(chunk), "zstd").read(size_max + 1))
    else:
        raise UnsupportedError(
            f"Times in ORC files compressed with {codec} are not supported. Read the table with another"
            " engine."
        )
    if len(plain) > size_max:
        raise ValueError(f"a chunk of {len(chunk)} bytes decompresses to more than {size_max}")
    return plain
