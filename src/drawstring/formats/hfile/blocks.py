"""Framing of HFile blocks. All numbers are big-endian.

8  magic              type of the block
4  stored size        bytes after this header: payload and checksums
4  plain size         bytes of the decompressed payload
8  previous block     not used
1  checksum type      0 none, 1 CRC32, 2 CRC32C
4  checksum chunk     bytes that one checksum covers
4  payload end        counted from the start of the block
*  payload            compressed as a whole
*  checksums          4 bytes each
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import pyarrow as pa

from drawstring.base.bounds import EXPANSION_MAX, PLAIN_BYTES_MAX
from drawstring.base.errors import UnsupportedError

DATA: Final = b"DATABLK*"
LEAF_INDEX: Final = b"IDXLEAF2"
INNER_INDEX: Final = b"IDXINTE2"
ROOT_INDEX: Final = b"IDXROOT2"
META: Final = b"METABLKc"
FILE_INFO: Final = b"FILEINF2"

_HEAD = struct.Struct(">8siiqBii")
_CHUNK_BYTES: Final = 16384
_CHECKSUM_BYTES: Final = 4
HEAD_BYTES: Final = _HEAD.size
_GZIP_WINDOW: Final = 31
_GZIP_LEVEL: Final = 1
"""Higher ones take twice the time for a fifth less."""


class Codec(IntEnum):
    """Compression of payloads; the values are those of the trailer."""

    LZO = 0
    GZ = 1
    NONE = 2
    SNAPPY = 3
    LZ4 = 4
    BZIP2 = 5
    ZSTD = 6


@dataclass(frozen=True, slots=True)
class BlockSource:
    """Reads blocks of an HFile.

    Attributes:
        file: the file with the HFile, open for random access.
        end: start of its trailer, counted from its own start.
        codec: compression of payloads.
        start: where it starts in the file, of which it may be a part.
    """

    file: pa.NativeFile
    end: int
    codec: Codec
    start: int = 0

    def block(self, offset: int, *magics: bytes) -> tuple[bytes, bytes, int]:
        """Return the magic and the payload of a block, and the start of the next block.

        Args:
            offset: start of the block.
            magics: accepted types of the block.

        Raises:
            ValueError: the block has another type or is damaged.
            UnsupportedError: its compression is not supported.
        """
        if not 0 <= offset <= self.end - HEAD_BYTES:
            raise ValueError(f"a block at byte {offset} is not inside the file")
        magic, stored, plain, _, _, _, payload_end = _HEAD.unpack(self.take(offset, HEAD_BYTES))
        if magic not in magics:
            raise ValueError(f"it has {magic!r} instead of {magics[0]!r} at byte {offset}")
        size = payload_end - HEAD_BYTES
        if not 0 <= size <= stored <= self.end - offset - HEAD_BYTES:
            raise ValueError(f"the block at byte {offset} claims {size} of {stored} bytes")
        if not 0 <= plain <= max(PLAIN_BYTES_MAX, EXPANSION_MAX * size):
            raise ValueError(f"the block at byte {offset} claims to decompress {size} bytes to {plain}")
        payload = _plain(self.take(offset + HEAD_BYTES, size), plain, self.codec)
        if len(payload) != plain:
            raise ValueError(f"the block at byte {offset} has {len(payload)} bytes instead of {plain}")
        return magic, payload, offset + HEAD_BYTES + stored

    def take(self, offset: int, size: int) -> bytes:
        """Return bytes of the file.

        Raises:
            EOFError: the file is too short.
        """
        self.file.seek(self.start + offset)
        data: bytes = self.file.read(size)
        if len(data) != size:
            raise EOFError(f"the file ends at byte {offset + len(data)}")
        return data


def encode_block(magic: bytes, payload: bytes, codec: Codec) -> bytes:
    """Return a block with zeros instead of checksums.

    Args:
        magic: type of the block.
        payload: its content.
        codec: `GZ` or `NONE`.
    """
    stored = payload
    if codec is Codec.GZ:
        deflate = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
        stored = deflate.compress(payload) + deflate.flush()
    end = HEAD_BYTES + len(stored)
    sums = bytes(_CHECKSUM_BYTES * -(-end // _CHUNK_BYTES))
    head = _HEAD.pack(magic, len(stored) + len(sums), len(payload), -1, 0, _CHUNK_BYTES, end)
    return b"".join((head, stored, sums))


def _plain(stored: bytes, size: int, codec: Codec) -> bytes:
    """Return the decompressed payload; decompression stops when it exceeds the stated size."""
    if codec is Codec.NONE:
        return stored
    if codec is not Codec.GZ:
        raise UnsupportedError(
            f"HFiles compressed with {codec.name} are not supported, only gzip, which Hudi writes, and none."
            " Rewrite the file with gzip."
        )
    try:
        return zlib.decompressobj(_GZIP_WINDOW).decompress(stored, size + 1)
    except zlib.error as error:
        raise ValueError(f"a block cannot be decompressed ({error})") from error
