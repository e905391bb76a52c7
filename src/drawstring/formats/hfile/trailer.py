"""The trailer and the file information of an HFile.

The trailer is the last 4,096 bytes of the file:

     8  magic     TRABLK"$
     *  message   varint length, then the fields of `Trailer`
     *  zeros
     4  version   minor version in the first byte, major version 3 in the others

The payload of the file information is "PBUF", a varint length, and (as field 1) messages of key and value.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from drawstring.base.errors import UnsupportedError
from drawstring.formats.hfile.blocks import Codec
from drawstring.formats.protobuf import encode_message, encode_varint, message_fields, part, varint

TRAILER_BYTES: Final = 4096
_MAGIC: Final = b'TRABLK"$'
_MAJOR: Final = 3
_INFO_MAGIC: Final = b"PBUF"
_VERSION: Final = struct.Struct(">i")
_VINT_BYTE_MAX: Final = 127


@dataclass(frozen=True, slots=True)
class Trailer:
    """The fields of an HFile trailer.

    Attributes:
        load_on_open_offset: start of the root index, which the meta block index and file information follow.
        data_index_count: number of entries of the root index.
        meta_index_count: number of entries of the meta block index.
        entry_count: number of entries of the file.
        index_levels: number of index levels, 1 if the root refers to data blocks.
        codec: compression of blocks.
    """

    load_on_open_offset: int
    data_index_count: int
    meta_index_count: int
    entry_count: int
    index_levels: int
    codec: Codec


def decode_trailer(data: bytes) -> Trailer:
    """Return the trailer.

    Args:
        data: the last `TRAILER_BYTES` of the file.

    Raises:
        ValueError: the bytes are not a trailer.
        UnsupportedError: the major version is not supported.
    """
    if not data.startswith(_MAGIC) or len(data) != TRAILER_BYTES:
        raise ValueError("it does not end with the trailer of an HFile")
    major = int.from_bytes(data[-3:], "big")
    if major != _MAJOR:
        raise UnsupportedError(
            f"HFiles of version {major} are not supported, only version {_MAJOR}, which Hudi writes. Rewrite"
            " the file with Hudi."
        )
    size, at = varint(data, len(_MAGIC))
    numbers = {
        number: value
        for number, value in message_fields(part(data, at, size))
        if not isinstance(value, bytes)
    }
    codec = numbers.get(12, Codec.NONE)
    if codec not in set(Codec):
        raise ValueError(f"it has the unknown compression {codec}")
    return Trailer(
        load_on_open_offset=numbers.get(2, 0),
        data_index_count=numbers.get(5, 0),
        meta_index_count=numbers.get(6, 0),
        entry_count=numbers.get(7, 0),
        index_levels=numbers.get(8, 1),
        codec=Codec(codec),
    )


def encode_trailer(fields: Mapping[int, int | bytes]) -> bytes:
    """Return the trailer.

    Args:
        fields: values by field number of the message.
    """
    message = encode_message(fields.items())
    data = _MAGIC + encode_varint(len(message)) + message
    return data.ljust(TRAILER_BYTES - _VERSION.size, b"\0") + _VERSION.pack(_MAJOR)


def encode_info(info: Mapping[bytes, bytes]) -> bytes:
    """Return the payload of the block with the file information."""
    pairs = [(1, encode_message(((1, key), (2, info[key])))) for key in sorted(info)]
    message = encode_message(pairs)
    return _INFO_MAGIC + encode_varint(len(message)) + message


def decode_info(data: bytes) -> dict[bytes, bytes]:
    """Return the file information.

    Args:
        data: payload of its block.

    Raises:
        ValueError: the payload is damaged.
    """
    if not data.startswith(_INFO_MAGIC):
        raise ValueError("the file information does not start with its magic")
    size, at = varint(data, len(_INFO_MAGIC))
    pairs = [
        dict(message_fields(value))
        for _, value in message_fields(part(data, at, size))
        if isinstance(value, bytes)
    ]
    return {
        key: value
        for pair in pairs
        if isinstance(key := pair.get(1, b""), bytes) and isinstance(value := pair.get(2, b""), bytes)
    }


def vint(data: bytes, at: int) -> tuple[int, int]:
    """Read a number in the encoding of Hadoop's WritableUtils; return it and the start of the next value.

    -112 to 127 take one byte. Others have a first byte of -113 - (bytes - 1), or -121 - (bytes - 1) if
    negative, followed by the magnitude.
    """
    first = struct.unpack_from(">b", data, at)[0]
    if first >= -112:
        return first, at + 1
    size = -112 - first if first >= -120 else -120 - first
    value = int.from_bytes(part(data, at + 1, size), "big")
    return (value if first >= -120 else ~value), at + 1 + size


def encode_vint(value: int) -> bytes:
    """Return a non-negative number in the encoding of Hadoop's WritableUtils; see `vint`."""
    if value <= _VINT_BYTE_MAX:
        return bytes((value,))
    magnitude = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return struct.pack(">b", -112 - len(magnitude)) + magnitude
