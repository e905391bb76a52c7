"""The time zone that the times of an ORC file are told in: that of the JVM that wrote it.

Arrow returns what the writer's clock showed, without the zone, which stands at the end of each stripe:

    stripe   index | data | footer, in chunks:  3 bytes  length * 2 + 1 if stored as it is
                                                *        compressed
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc
from pyarrow import types as pt

from drawstring.base.errors import UnsupportedError
from drawstring.formats.protobuf import message_fields, part, varint

_UTC: Final = ("", "UTC", "GMT", "Etc/UTC", "Etc/GMT", "Z")
_TAIL_FOOTER, _FOOTER_STRIPE, _STRIPE_ZONE = 2, 3, 3
_OFFSET, _INDEX_BYTES, _DATA_BYTES, _FOOTER_BYTES = 1, 2, 3, 4
_CHUNK_HEAD_BYTES: Final = 3
_RAW_DEFLATE: Final = -15
_CHUNK_BYTES_MAX: Final = 1 << 23
"""Bytes of a chunk before it is compressed: more have no place in the length at its head."""
_FOOTER_BYTES_MAX: Final = 16 << 20
_UNCOMPRESSED, _ZLIB, _SNAPPY, _ZSTD = "UNCOMPRESSED", "ZLIB", "SNAPPY", "ZSTD"


def stripe_zones(stripes: orc.ORCFile, file: pa.NativeFile) -> list[str]:
    """Return the time zone of each stripe.

    Args:
        stripes: the file.
        file: its bytes.

    Raises:
        UnsupportedError: a compression that this release does not know.
        ValueError: the end of a stripe is damaged.
    """
    tail = dict(message_fields(stripes.reader.serialized_file_tail()))
    places = [
        _Place.of(value)
        for number, value in message_fields(_bytes(tail.get(_TAIL_FOOTER)))
        if number == _FOOTER_STRIPE
    ]
    size_bytes = file.size()
    if sum(place.size_bytes for place in places) > size_bytes:
        raise ValueError("the ends of its stripes are longer than the file")
    chunk_bytes_max = min(stripes.compression_size, _CHUNK_BYTES_MAX)
    return [
        _zone(_plain(file, each.within(size_bytes), stripes.compression, chunk_bytes_max)) for each in places
    ]


def has_times(kind: pa.DataType) -> bool:
    """Tell whether a type holds times without a zone, at any depth."""
    if pt.is_timestamp(kind):
        return kind.tz is None
    return any(has_times(kind.field(at).type) for at in range(kind.num_fields))


def in_utc(column: pa.Array, zone: str, name: str) -> pa.Array:
    """Return the instants of a column of times.

    Args:
        column: as Arrow reads it.
        zone: of the stripe.
        name: of the column.

    Raises:
        UnsupportedError: times within lists, maps or structs, told in another zone than UTC.
    """
    if zone in _UTC or not has_times(column.type):
        return column
    if not pt.is_timestamp(column.type):
        raise UnsupportedError(
            f"the times inside column {name!r} were written in the zone {zone}, and can be read in UTC only"
        )
    instants = pc.assume_timezone(column, zone, ambiguous="earliest", nonexistent="earliest")
    return instants.cast(pa.timestamp(column.type.unit, "UTC"))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a stripe's footer stands."""

    offset: int
    size_bytes: int

    @staticmethod
    def of(stripe: int | bytes) -> _Place:
        fields = {n: v for n, v in message_fields(_bytes(stripe)) if isinstance(v, int)}
        start, index, data = (fields.get(number, 0) for number in (_OFFSET, _INDEX_BYTES, _DATA_BYTES))
        return _Place(start + index + data, fields.get(_FOOTER_BYTES, 0))

    def within(self, size_bytes: int) -> _Place:
        """Return the place, having made sure that it is inside a file of so many bytes.

        Raises:
            ValueError: it is not.
        """
        if self.size_bytes > _FOOTER_BYTES_MAX or self.offset + self.size_bytes > size_bytes:
            raise ValueError(f"a stripe ends with {self.size_bytes} bytes at {self.offset} of {size_bytes}")
        return self


def _plain(file: pa.NativeFile, place: _Place, codec: str, chunk_bytes_max: int) -> bytes:
    """Return a stripe's footer, decompressed.

    Args:
        file: the file.
        place: of the footer.
        codec: that its chunks are compressed with.
        chunk_bytes_max: most bytes that a chunk may decompress to.
    """
    stored: bytes = file.read_at(place.size_bytes, place.offset)
    if codec == _UNCOMPRESSED:
        return stored
    plain, at = bytearray(), 0
    while at < len(stored):
        head = int.from_bytes(part(stored, at, _CHUNK_HEAD_BYTES), "little")
        chunk = part(stored, at + _CHUNK_HEAD_BYTES, head >> 1)
        plain += chunk if head & 1 else _decompressed(chunk, codec, chunk_bytes_max)
        if len(plain) > _FOOTER_BYTES_MAX:
            raise ValueError(f"the end of a stripe has more than {_FOOTER_BYTES_MAX} bytes")
        at += _CHUNK_HEAD_BYTES + (head >> 1)
    return bytes(plain)


def _decompressed(chunk: bytes, codec: str, size_max: int) -> bytes:
    """Return a chunk decompressed, no further than to one byte more than it may have.

    Raises:
        ValueError: it has more.
    """
    if codec == _ZLIB:
        unpacker = zlib.decompressobj(_RAW_DEFLATE)
        plain = unpacker.decompress(chunk, size_max + 1)
        if not unpacker.eof and len(plain) <= size_max:
            raise ValueError(f"a part of {len(chunk)} bytes is cut off")
    elif codec == _SNAPPY:
        size, _ = varint(chunk, 0)
        if size > size_max:
            raise ValueError(f"a part of {len(chunk)} bytes claims to decompress to {size}")
        plain = bytes(pa.decompress(chunk, size, codec="snappy"))
    elif codec == _ZSTD:
        plain = bytes(pa.CompressedInputStream(pa.BufferReader(chunk), "zstd").read(size_max + 1))
    else:
        raise UnsupportedError(f"times in ORC files compressed with {codec} cannot be read")
    if len(plain) > size_max:
        raise ValueError(f"a part of {len(chunk)} bytes decompresses to more than {size_max}")
    return plain


def _zone(footer: bytes) -> str:
    return next(
        (_bytes(value).decode() for number, value in message_fields(footer) if number == _STRIPE_ZONE), ""
    )


def _bytes(value: int | bytes | None) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("a part of the file's end is missing")
    return value
