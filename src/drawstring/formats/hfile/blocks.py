"""Blocks of an HFile. All numbers are big-endian.

8  magic              what the block holds
4  stored bytes       that follow this head: the payload and its checksums
4  plain bytes        of the payload
8  previous block     not used
1  checksum type      0 none, 1 CRC32, 2 CRC32C
4  bytes a checksum   covers
4  payload's end      from the start of the block
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


class Codec(IntEnum):
    """How payloads are compressed; values are those of the trailer."""

    LZO = 0
    GZ = 1
    NONE = 2
    SNAPPY = 3
    LZ4 = 4
    BZIP2 = 5
    ZSTD = 6


@dataclass(frozen=True, slots=True)
class BlockSource:
    """Where blocks are read from.

    Attributes:
        file: the HFile, open for random access.
        end: where its trailer starts.
        codec: how payloads are compressed.
    """

    file: pa.NativeFile
    end: int
    codec: Codec

    def block(self, offset: int, *magics: bytes) -> tuple[bytes, bytes, int]:
        """Return the magic and the payload of a block, and where the next one starts.

        Args:
            offset: where the block starts.
            magics: what it may be.

        Raises:
            ValueError: it is something else, or damaged.
            UnsupportedError: it is compressed in a way that is not read.
        """
        if not 0 <= offset <= self.end - HEAD_BYTES:
            raise ValueError(f"a block at byte {offset} is not inside the file")
        magic, stored, plain, _, _, _, payload_end = _HEAD.unpack(self.take(offset, HEAD_BYTES))
        if magic not in magics:
            raise ValueError(f"at byte {offset} stands {magic!r} instead of {magics[0]!r}")
        size = payload_end - HEAD_BYTES
        if not 0 <= size <= stored <= self.end - offset - HEAD_BYTES:
            raise ValueError(f"the block at byte {offset} claims {size} of {stored} bytes")
        if not 0 <= plain <= max(PLAIN_BYTES_MAX, EXPANSION_MAX * size):
            raise ValueError(f"the block at byte {offset} claims to unpack {size} bytes to {plain}")
        payload = _plain(self.take(offset + HEAD_BYTES, size), plain, self.codec)
        if len(payload) != plain:
            raise ValueError(f"the block at byte {offset} holds {len(payload)} bytes instead of {plain}")
        return magic, payload, offset + HEAD_BYTES + stored

    def take(self, offset: int, size: int) -> bytes:
        """Return bytes of the file.

        Raises:
            EOFError: the file ends before.
        """
        self.file.seek(offset)
        data: bytes = self.file.read(size)
        if len(data) != size:
            raise EOFError(f"the file ends at byte {offset + len(data)}")
        return data


def encode_block(magic: bytes, payload: bytes) -> bytes:
    """Return a block that is not compressed and has no checksums, but zeros in their place.

    Args:
        magic: what it holds.
        payload: its content.
    """
    end = HEAD_BYTES + len(payload)
    sums = bytes(_CHECKSUM_BYTES * -(-end // _CHUNK_BYTES))
    return (
        _HEAD.pack(magic, len(payload) + len(sums), len(payload), -1, 0, _CHUNK_BYTES, end) + payload + sums
    )


def _plain(stored: bytes, size: int, codec: Codec) -> bytes:
    """Return the payload; a block that unpacks to more than it says is not unpacked further."""
    if codec is Codec.NONE:
        return stored
    if codec is not Codec.GZ:
        raise UnsupportedError(
            f"HFiles compressed with {codec.name} cannot be read; gzip, which Hudi writes, and none can."
        )
    try:
        return zlib.decompressobj(_GZIP_WINDOW).decompress(stored, size + 1)
    except zlib.error as error:
        raise ValueError(f"a block cannot be unpacked ({error})") from error
