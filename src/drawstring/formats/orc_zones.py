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
    return [
        _zone(_plain(file, _Place.of(value), stripes.compression))
        for number, value in message_fields(_bytes(tail.get(_TAIL_FOOTER)))
        if number == _FOOTER_STRIPE
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


def _plain(file: pa.NativeFile, place: _Place, codec: str) -> bytes:
    """Return a stripe's footer, decompressed."""
    stored: bytes = file.read_at(place.size_bytes, place.offset)
    if codec == _UNCOMPRESSED:
        return stored
    chunks, at = [], 0
    while at < len(stored):
        head = int.from_bytes(part(stored, at, _CHUNK_HEAD_BYTES), "little")
        chunk = part(stored, at + _CHUNK_HEAD_BYTES, head >> 1)
        chunks.append(chunk if head & 1 else _decompressed(chunk, codec))
        at += _CHUNK_HEAD_BYTES + (head >> 1)
    return b"".join(chunks)


def _decompressed(chunk: bytes, codec: str) -> bytes:
    if codec == _ZLIB:
        return zlib.decompress(chunk, _RAW_DEFLATE)
    if codec == _SNAPPY:
        size, _ = varint(chunk, 0)
        return bytes(pa.decompress(chunk, size, codec="snappy"))
    if codec == _ZSTD:
        return bytes(pa.CompressedInputStream(pa.BufferReader(chunk), "zstd").read())
    raise UnsupportedError(f"times in ORC files compressed with {codec} cannot be read")


def _zone(footer: bytes) -> str:
    return next(
        (_bytes(value).decode() for number, value in message_fields(footer) if number == _STRIPE_ZONE), ""
    )


def _bytes(value: int | bytes | None) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("a part of the file's end is missing")
    return value
