"""Time zones of the times in ORC files.

ORC stores times as wall-clock times in the zone of the JVM that wrote the file. Arrow returns these without
the zone, which is in the footer of each stripe:

    stripe   index | data | footer, in chunks:  3 bytes  length * 2, + 1 if not compressed
                                                *        data
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
"""Largest uncompressed size of a chunk, which the length in its header limits."""
_FOOTER_BYTES_MAX: Final = 16 << 20
_UNCOMPRESSED, _ZLIB, _SNAPPY, _ZSTD = "UNCOMPRESSED", "ZLIB", "SNAPPY", "ZSTD"


def stripe_zones(stripes: orc.ORCFile, file: pa.NativeFile) -> list[str]:
    """Return the time zone of each stripe.

    Args:
        stripes: the ORC file.
        file: the same file, open for random access.

    Raises:
        UnsupportedError: the compression is not supported.
        ValueError: the footer of a stripe is damaged.
    """
    tail = dict(message_fields(stripes.reader.serialized_file_tail()))
    footers = [
        _FooterSpan.of(value)
        for number, value in message_fields(_bytes(tail.get(_TAIL_FOOTER)))
        if number == _FOOTER_STRIPE
    ]
    size_bytes = file.size()
    if sum(footer.size_bytes for footer in footers) > size_bytes:
        raise ValueError("the footers of its stripes are longer than the file")
    chunk_bytes_max = min(stripes.compression_size, _CHUNK_BYTES_MAX)
    return [
        _zone(_plain(file, footer.within(size_bytes), stripes.compression, chunk_bytes_max))
        for footer in footers
    ]


def has_times(kind: pa.DataType) -> bool:
    """Return whether a type has times without a zone, at any depth."""
    if pt.is_timestamp(kind):
        return kind.tz is None
    return any(has_times(kind.field(at).type) for at in range(kind.num_fields))


def in_utc(column: pa.Array, zone: str, name: str) -> pa.Array:
    """Convert a column of wall-clock times to UTC.

    Args:
        column: the column as Arrow reads it.
        zone: time zone of the stripe.
        name: name of the column, for errors.

    Raises:
        UnsupportedError: the column has nested times in a zone other than UTC.
    """
    if zone in _UTC or not has_times(column.type):
        return column
    if not pt.is_timestamp(column.type):
        raise UnsupportedError(
            f"The nested times of column {name!r} were written in the time zone {zone}, but only UTC is"
            " supported. Read the table with another engine."
        )
    times = pc.assume_timezone(column, zone, ambiguous="earliest", nonexistent="earliest")
    return times.cast(pa.timestamp(column.type.unit, "UTC"))


@dataclass(frozen=True, slots=True)
class _FooterSpan:
    """The position of a stripe's footer in the file."""

    offset: int
    size_bytes: int

    @staticmethod
    def of(stripe: int | bytes) -> _FooterSpan:
        fields = {n: v for n, v in message_fields(_bytes(stripe)) if isinstance(v, int)}
        start, index, data = (fields.get(number, 0) for number in (_OFFSET, _INDEX_BYTES, _DATA_BYTES))
        return _FooterSpan(start + index + data, fields.get(_FOOTER_BYTES, 0))

    def within(self, size_bytes: int) -> _FooterSpan:
        """Return the position after checking that it is inside a file of `size_bytes`.

        Raises:
            ValueError: it is not.
        """
        if self.size_bytes > _FOOTER_BYTES_MAX or self.offset + self.size_bytes > size_bytes:
            raise ValueError(
                f"a stripe footer claims {self.size_bytes} bytes at {self.offset} of {size_bytes}"
            )
        return self


def _plain(file: pa.NativeFile, place: _FooterSpan, codec: str, chunk_bytes_max: int) -> bytes:
    """Return the decompressed footer of a stripe.

    Args:
        file: the file.
        place: position of the footer.
        codec: compression of its chunks.
        chunk_bytes_max: largest decompressed size of a chunk.
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
            raise ValueError(f"a stripe footer has more than {_FOOTER_BYTES_MAX} bytes")
        at += _CHUNK_HEAD_BYTES + (head >> 1)
    return bytes(plain)


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


def _zone(footer: bytes) -> str:
    return next(
        (_bytes(value).decode() for number, value in message_fields(footer) if number == _STRIPE_ZONE), ""
    )


def _bytes(value: int | bytes | None) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("a part of the file's footer is missing")
    return value
