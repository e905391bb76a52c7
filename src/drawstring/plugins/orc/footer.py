"""Read the footer of an ORC file beyond Arrow's API, and write the end of a file with other entries.

    stripes | metadata: statistics of stripes | footer | postscript | 1 byte: length of the postscript

    footer       a protocol buffer message, in chunks if the file is compressed:
                 3 stripes: 1 offset, 2 length of the index, 3 of the data, 4 of the footer, 5 rows
                 4 types: 2 numbers of the nested types (packed); the first one has the columns
                 5 user metadata
                 6 rows
                 7 statistics of each type (`statistics`)
    postscript   a message: 1 length of the footer, 2 compression, 3 largest size of a chunk,
                 5 length of the metadata, ...
    chunk        3 bytes: length * 2, + 1 if the data is not compressed | data

A type is followed by those that are nested in it.

User metadata: Arrow reads it and cannot write it. Messages that follow each other are one message with the
fields of both. So `with_user_metadata` adds entries behind the footer as chunks of their own, and nothing
that Arrow wrote is decoded.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

import pyarrow as pa
from pyarrow import orc

from drawstring.base.errors import UnsupportedError
from drawstring.formats.hfile.blocks import encode_message, message_fields, take_bytes, varint
from drawstring.plugins.orc.statistics import plain_bytes

Fields: TypeAlias = Sequence[tuple[int, int | bytes]]

STRIPES, ROWS = 3, 6
_TAIL_FOOTER: Final = 2
_TYPES, _STATISTICS, _NESTED = 4, 7, 2
_OFFSET, _INDEX_BYTES, _DATA_BYTES, _FOOTER_BYTES, _STRIPE_ROWS = 1, 2, 3, 4, 5


@dataclass(frozen=True, slots=True)
class Stripe:
    """A stripe: where it is in the file, and the number of its rows.

    Attributes:
        footer_offset, footer_bytes: place of its footer.
        rows: number of rows.
        stored: the message in the file's footer.
    """

    footer_offset: int
    footer_bytes: int
    rows: int
    stored: bytes

    @staticmethod
    def of(stored: bytes) -> Stripe:
        """Return the stripe that a message describes."""
        fields = {number: value for number, value in message_fields(stored) if isinstance(value, int)}
        start, index, data = (fields.get(number, 0) for number in (_OFFSET, _INDEX_BYTES, _DATA_BYTES))
        rows = fields.get(_STRIPE_ROWS, 0)
        return Stripe(start + index + data, fields.get(_FOOTER_BYTES, 0), rows, stored)


@dataclass(frozen=True, slots=True)
class OrcFooter:
    """The footer of a file.

    Attributes:
        fields: numbers and values of its message.
        stripes: the stripes.
    """

    fields: Fields
    stripes: tuple[Stripe, ...]

    @staticmethod
    def of(opened: orc.ORCFile) -> OrcFooter:
        """Return the footer of a file that Arrow opened.

        Raises:
            ValueError: it is damaged.
        """
        tail = dict(message_fields(opened.reader.serialized_file_tail()))
        fields = tuple(message_fields(bytes_of(tail.get(_TAIL_FOOTER))))
        return OrcFooter(fields, tuple(Stripe.of(bytes_of(value)) for value in _all(fields, STRIPES)))

    def places(self, names: Sequence[str]) -> dict[str, range]:
        """Return by column the numbers of its type and of those nested in it.

        Args:
            names: the names of all columns of the file.
        """
        types = [bytes_of(value) for value in _all(self.fields, _TYPES)]
        starts = [*_packed(types[0] if types else b"", _NESTED), len(types)]
        return {name: range(*ends) for name, ends in zip(names, pairwise(starts), strict=False)}

    def plain_bytes(self, numbers: Sequence[int] | None = None) -> int:
        """Return about how much memory the values of some types take.

        Args:
            numbers: of the types; None for all.

        Raises:
            ValueError: the footer is damaged.
        """
        statistics = [bytes_of(value) for value in _all(self.fields, _STATISTICS)]
        chosen = range(len(statistics)) if numbers is None else numbers
        return sum(plain_bytes(statistics[number]) for number in chosen if number < len(statistics))


def bytes_of(value: int | bytes | None) -> bytes:
    """Return the value of a field that has bytes.

    Raises:
        ValueError: it has a number, or is missing.
    """
    if not isinstance(value, bytes):
        raise ValueError("a part of the file's footer is missing")
    return value


def _all(fields: Fields, wanted: int) -> list[int | bytes]:
    return [value for number, value in fields if number == wanted]


def _packed(message: bytes, wanted: int) -> list[int]:
    """Return the numbers in a field of a message, which writers store packed or one by one."""
    numbers: list[int] = []
    for number, value in message_fields(message):
        if number != wanted:
            continue
        if isinstance(value, int):
            numbers.append(value)
            continue
        at = 0
        while at < len(value):
            found, at = varint(value, at)
            numbers.append(found)
    return numbers


UNCOMPRESSED: Final = "UNCOMPRESSED"
PART_BYTES_MAX: Final = 16 << 20
"""Largest size of a part."""

_ZLIB, _SNAPPY, _ZSTD = "ZLIB", "SNAPPY", "ZSTD"
_PLAIN: Final = 1
_HEAD_BYTES: Final = 3
_RAW_DEFLATE: Final = -15
_CHUNK_BYTES_MAX: Final = 1 << 23
"""Largest uncompressed size of a chunk, which the length in its header limits."""


def decompressed(stored: bytes, codec: str, chunk_bytes: int) -> bytes:
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
        head = int.from_bytes(take_bytes(stored, at, _HEAD_BYTES), "little")
        chunk = take_bytes(stored, at + _HEAD_BYTES, head >> 1)
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
        chunk = take_bytes(data, at, min(size_max, len(data) - at))
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


_TAIL_BYTES, _COMPRESSION, _CHUNK_BYTES, _STATISTICS_BYTES = 1, 2, 3, 5
_FOOTER_ENTRY = 5
_NAME, _VALUE = 1, 2
_CHUNK_BYTES_DEFAULT: Final = 256 << 10


def with_user_metadata(end: bytes, entries: Mapping[str, str]) -> bytes:
    """Return the end of a file with more user metadata.

    Args:
        end: the last bytes of the file, its postscript and more of them.
        entries: names and values.
    """
    start, postscript = _postscript(end)
    added = _stored(encode_message((_FOOTER_ENTRY, _item(*each)) for each in entries.items()), postscript)
    size = int(dict(postscript).get(_TAIL_BYTES, 0)) + len(added)
    return end[:start] + added + _with_sizes(postscript, {_TAIL_BYTES: size})


def replaced_tail(end: bytes, footer: bytes) -> bytes:
    """Return the end of a file that follows its stripes, with another footer and no statistics of stripes.

    Args:
        end: the last bytes of the file, its postscript at least.
        footer: the message.
    """
    _, postscript = _postscript(end)
    stored = _stored(footer, postscript)
    return stored + _with_sizes(postscript, {_TAIL_BYTES: len(stored), _STATISTICS_BYTES: 0})


def _postscript(end: bytes) -> tuple[int, list[tuple[int, int | bytes]]]:
    """Return where the postscript begins, and its fields."""
    stop = len(end) - 1
    start = stop - end[stop]
    return start, list(message_fields(end[start:stop]))


def _stored(message: bytes, postscript: Sequence[tuple[int, int | bytes]]) -> bytes:
    known = dict(postscript)
    if not known.get(_COMPRESSION, 0):
        return message
    return in_chunks(message, int(known.get(_CHUNK_BYTES, _CHUNK_BYTES_DEFAULT)))


def _with_sizes(postscript: Iterable[tuple[int, int | bytes]], sizes: Mapping[int, int]) -> bytes:
    """Return a postscript with other sizes, and the byte that follows it."""
    changed = encode_message((number, sizes.get(number, value)) for number, value in postscript)
    return changed + bytes((len(changed),))


def _item(name: str, value: str) -> bytes:
    return encode_message(((_NAME, name.encode()), (_VALUE, value.encode())))


@contextmanager
def footer_errors(part: str) -> Iterator[None]:
    """Translate errors of damaged bytes in a part of a file into one of Arrow.

    Args:
        part: for the message.

    Raises:
        pa.ArrowInvalid: the part is damaged.
    """
    try:
        yield
    except (ValueError, zlib.error) as error:
        raise pa.ArrowInvalid(f"its {part} cannot be read: {error}") from error
