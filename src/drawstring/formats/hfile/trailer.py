"""The trailer of an HFile, its file information, and the protocol buffers that both are written in.

Trailer, the last 4,096 bytes of the file:

     8  magic     TRABLK"$
     *  message   varint length, then the fields of `Trailer`
     *  zeros
     4  version   minor version in the first byte, major version 3 in the rest

Payload of the file information: "PBUF", varint length, then (field 1) messages of key and value.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from drawstring.base.errors import UnsupportedError
from drawstring.formats.hfile.blocks import Codec

TRAILER_BYTES: Final = 4096
_MAGIC: Final = b'TRABLK"$'
_MAJOR: Final = 3
_INFO_MAGIC: Final = b"PBUF"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED_BYTES = {_FIXED64: 8, _FIXED32: 4}


@dataclass(frozen=True, slots=True)
class Trailer:
    """What the end of an HFile says about it.

    Attributes:
        load_on_open_offset: where the root index, the index of meta blocks and the file information stand.
        data_index_count: entries of the root index.
        meta_index_count: entries of the index of meta blocks.
        entry_count: entries of the file.
        index_levels: levels of the index, 1 when the root names data blocks.
        codec: how blocks are compressed.
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
        data: the last bytes of the file, `TRAILER_BYTES` of them.

    Raises:
        ValueError: they are no trailer.
        UnsupportedError: another major version.
    """
    if not data.startswith(_MAGIC) or len(data) != TRAILER_BYTES:
        raise ValueError("it does not end with the trailer of an HFile")
    major = int.from_bytes(data[-3:], "big")
    if major != _MAJOR:
        raise UnsupportedError(f"HFiles of version {major} cannot be read; Hudi writes version {_MAJOR}.")
    size, at = _varint(data, len(_MAGIC))
    numbers = {
        number: value for number, value in _fields(_part(data, at, size)) if not isinstance(value, bytes)
    }
    codec = numbers.get(12, Codec.NONE)
    if codec not in set(Codec):
        raise ValueError(f"it names compression {codec}")
    return Trailer(
        load_on_open_offset=numbers.get(2, 0),
        data_index_count=numbers.get(5, 0),
        meta_index_count=numbers.get(6, 0),
        entry_count=numbers.get(7, 0),
        index_levels=numbers.get(8, 1),
        codec=Codec(codec),
    )


def decode_info(data: bytes) -> dict[bytes, bytes]:
    """Return the file information.

    Args:
        data: payload of its block.

    Raises:
        ValueError: it is damaged.
    """
    if not data.startswith(_INFO_MAGIC):
        raise ValueError("the file information has another form")
    size, at = _varint(data, len(_INFO_MAGIC))
    pairs = [dict(_fields(value)) for _, value in _fields(_part(data, at, size)) if isinstance(value, bytes)]
    return {
        key: value
        for pair in pairs
        if isinstance(key := pair.get(1, b""), bytes) and isinstance(value := pair.get(2, b""), bytes)
    }


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of the fields of a message."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, form = tag >> 3, tag & 7
        value: int | bytes
        if form == _VARINT:
            value, at = _varint(data, at)
        elif form == _BYTES:
            size, at = _varint(data, at)
            value = _part(data, at, size)
            at += size
        elif form in _FIXED_BYTES:
            value = _part(data, at, _FIXED_BYTES[form])
            at += len(value)
        else:
            raise ValueError(f"a message has a field of form {form}")
        yield number, value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("a number does not end")


def _part(data: bytes, at: int, size: int) -> bytes:
    if size > len(data) - at:
        raise ValueError("a message is longer than what holds it")
    return data[at : at + size]


def vint(data: bytes, at: int) -> tuple[int, int]:
    """Read a number as Hadoop's WritableUtils writes it; return it and where the next value starts.

    -112 to 127 take a byte; before others stands -113 - (bytes - 1), or -121 - (bytes - 1) when
    negative, then the magnitude.
    """
    first = struct.unpack_from(">b", data, at)[0]
    if first >= -112:
        return first, at + 1
    size = -112 - first if first >= -120 else -120 - first
    value = int.from_bytes(_part(data, at + 1, size), "big")
    return (value if first >= -120 else ~value), at + 1 + size
