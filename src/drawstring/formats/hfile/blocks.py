"""Encode and decode the parts of an HFile: blocks, trailer, file information and entries. All big-endian.

Block:

    8  magic              type of the block
    4  stored size        bytes after this header: payload and checksums
    4  plain size         bytes of the decompressed payload
    8  previous block     not used
    1  checksum type      0 none, 1 CRC32, 2 CRC32C
    4  checksum chunk     bytes that one checksum covers
    4  payload end        counted from the start of the block
    *  payload            compressed as a whole
    *  checksums          4 bytes each

Trailer, the last 4,096 bytes of the file:

    8  magic     TRABLK"$
    *  message   varint length, then the fields of `Trailer`
    *  zeros
    4  version   minor version in the first byte, major version 3 in the others

The trailer's message is a protocol buffer message (`message_fields`, `encode_message`); `orc.footer` reads
the same encoding. The payload of the file information is "PBUF", a varint length, and (as field 1) messages
of key and value.

Entries of a data block:

    4  key length
    4  value length
       key: int16 row length, row, int8 family length (0), int64 timestamp, int8 type (4, put)
    *  value
    *  memory store timestamp, a vint, if the file information says so
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import UnsupportedError
from drawstring.base.resources import EXPANSION_MAX, PLAIN_BYTES_MAX
from drawstring.formats.avro.decoder import Array, Datums

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
        payload = _decompressed(self.take(offset + HEAD_BYTES, size), plain, self.codec)
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


def _decompressed(stored: bytes, size: int, codec: Codec) -> bytes:
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


_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED_BYTES = {_FIXED64: 8, _FIXED32: 4}


def message_fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of the fields of a message.

    Raises:
        ValueError: the message is damaged.
    """
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        number, form = tag >> 3, tag & 7
        value: int | bytes
        if form == _VARINT:
            value, at = varint(data, at)
        elif form == _BYTES:
            size, at = varint(data, at)
            value = take_bytes(data, at, size)
            at += size
        elif form in _FIXED_BYTES:
            value = take_bytes(data, at, _FIXED_BYTES[form])
            at += len(value)
        else:
            raise ValueError(f"a message has a field of the unknown wire type {form}")
        yield number, value


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Read a varint; return it and the start of the next value.

    Raises:
        ValueError: the varint does not end.
    """
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


def take_bytes(data: bytes, at: int, size: int) -> bytes:
    """Return `size` bytes of a message.

    Raises:
        ValueError: the message has fewer bytes.
    """
    if size > len(data) - at:
        raise ValueError("a message is longer than its container")
    return data[at : at + size]


def encode_message(fields: Iterable[tuple[int, int | bytes]]) -> bytes:
    """Return a message.

    Args:
        fields: number and value of each field, in order; values are not negative.
    """
    out = bytearray()
    for number, value in fields:
        if isinstance(value, bytes):
            out += encode_varint(number << 3 | _BYTES) + encode_varint(len(value)) + value
        else:
            out += encode_varint(number << 3 | _VARINT) + encode_varint(value)
    return bytes(out)


def encode_varint(value: int) -> bytes:
    """Return a non-negative number as a varint: seven bits per byte, lowest first."""
    out = bytearray()
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


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
        for number, value in message_fields(take_bytes(data, at, size))
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
        for _, value in message_fields(take_bytes(data, at, size))
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
    value = int.from_bytes(take_bytes(data, at + 1, size), "big")
    return (value if first >= -120 else ~value), at + 1 + size


def encode_vint(value: int) -> bytes:
    """Return a non-negative number in the encoding of Hadoop's WritableUtils; see `vint`."""
    if value <= _VINT_BYTE_MAX:
        return bytes((value,))
    magnitude = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return struct.pack(">b", -112 - len(magnitude)) + magnitude


_LENGTHS = struct.Struct(">ii")
_KEY_LENGTH_BYTES = 4
_ROW_BYTES = 2
_AFTER_ROW_BYTES = 10
_KEY_BYTES_MIN = _ROW_BYTES + _AFTER_ROW_BYTES
_AFTER_ROW = struct.pack(">bqb", 0, 2**63 - 1, 4)
"""What Hudi writes after every row: no column family, the latest timestamp, type put."""

_KEY_LENGTHS_MAX = 16
"""Number of lengths of keys in a block above which walking it takes less time."""

_PUT = 4
_JOINED_BYTES = 1 << 20
"""Size of values above which no more are joined."""


@dataclass(frozen=True, slots=True)
class HFileEntries:
    """Entries of a data block, or some of several, sorted by key.

    Attributes:
        keys: their keys.
        block: the bytes of the block, or the values of the entries.
        starts: start of each value in the block.
        ends: end of each value in the block.
    """

    keys: pa.StringArray
    block: bytes
    starts: Array
    ends: Array

    def of(self, keys: pa.BinaryArray) -> HFileEntries:
        """Return the entries with some keys, given as bytes."""
        found = pc.is_in(self.keys.cast(pa.binary()), value_set=keys)
        return self._at(np.flatnonzero(found.to_numpy(zero_copy_only=False)))

    def with_prefixes(self, prefixes: Sequence[bytes]) -> HFileEntries:
        """Return the entries whose keys begin with any of the given bytes."""
        keys, found = self.keys.cast(pa.binary()), np.zeros(len(self.keys), np.bool_)
        for size in {len(prefix) for prefix in prefixes}:
            wanted = pa.array([prefix for prefix in prefixes if len(prefix) == size], pa.binary())
            found |= pc.is_in(pc.binary_slice(keys, 0, size), wanted).to_numpy(zero_copy_only=False)
        return self._at(np.flatnonzero(found))

    def values(self) -> pa.BinaryArray:
        """Return the values."""
        return Datums(self.block, 0, len(self.block)).texts_of(
            self.starts.copy(), self.ends - self.starts, pa.binary()
        )

    def _at(self, rows: Array) -> HFileEntries:
        return HFileEntries(self.keys.take(pa.array(rows)), self.block, self.starts[rows], self.ends[rows])


def concat_entries(found: Iterable[HFileEntries]) -> Iterator[HFileEntries]:
    """Yield entries of several blocks as one, for a decoder takes as long for one record as for many.

    Args:
        found: some entries of each block; blocks may have none.
    """
    held: list[HFileEntries] = []
    size_bytes = 0
    for each in found:
        if len(each.keys):
            held.append(each)
            size_bytes += int((each.ends - each.starts).sum())
        if size_bytes > _JOINED_BYTES:
            yield _one(held)
            held, size_bytes = [], 0
    if held:
        yield _one(held)


def _one(parts: Sequence[HFileEntries]) -> HFileEntries:
    if len(parts) == 1:
        return parts[0]
    values = pa.concat_arrays([each.values() for each in parts]).cast(pa.large_binary())
    _, offsets, data = values.buffers()
    bounds = np.frombuffer(offsets, np.int64, len(values) + 1)
    keys = pa.concat_arrays([each.keys for each in parts])
    return HFileEntries(keys, data.to_pybytes() if data else b"", bounds[:-1], bounds[1:])


def decode_entries(block: bytes, with_timestamps: bool) -> HFileEntries:
    """Return the entries of a data block.

    Args:
        block: payload of the block.
        with_timestamps: whether memory store timestamps follow the values.

    Raises:
        ValueError, IndexError or struct.error: the block is damaged.
        UnsupportedError: an entry is not a put, or has a column family; Hudi writes no such entries.
    """
    datums = Datums(block, 0, len(block))
    at = _marked_starts(datums, int(with_timestamps))
    if at is None:
        at = _walked_starts(block, with_timestamps)
    values = at + _LENGTHS.size + datums.words(">i4", at).astype(np.int64)
    ends = values + datums.words(">i4", at + _KEY_LENGTH_BYTES).astype(np.int64)
    return HFileEntries(_keys(datums, at, values), block, values, ends)


def _marked_starts(datums: Datums, stamp_bytes: int) -> Array | None:
    """Return where the entries of a block start, found by what every key that Hudi writes ends with.

    Each round finds the entries whose keys have one length; the first one that is still missing starts after
    the one before it, and tells the length of the next round. What is found counts only if the entries follow
    each other from the first byte of the block to the last. None means that the block has to be walked.
    """
    values = _ends_of_marks(datums)
    starts, missing = np.full(len(values), -1, np.int64), np.arange(len(values))
    expected = 0
    for _ in range(_KEY_LENGTHS_MAX):
        if not len(missing) or expected >= datums.end:
            break
        length = max(_KEY_BYTES_MIN, int(datums.words(">i4", np.array([expected]))[0]))
        at = np.maximum(values[missing] - _LENGTHS.size - length, 0)
        fits = datums.words(">i4", at) == length
        fits &= datums.words(">i2", at + _LENGTHS.size) == length - _KEY_BYTES_MIN
        fits &= at + _LENGTHS.size + length == values[missing]
        if not fits.any():
            break
        starts[missing[fits]] = at[fits]
        missing = missing[~fits]
        before = slice(missing[0] - 1, missing[0]) if len(missing) and missing[0] else slice(0)
        expected = int(_ends(datums, starts[before], stamp_bytes).max(initial=0))
    if not len(values) or len(missing):
        return None
    ends = _ends(datums, starts, stamp_bytes)
    if starts[0] or (starts[1:] != ends[:-1]).any() or ends[-1] != datums.end:
        return None
    return None if stamp_bytes and (datums.data[ends - 1] > _VINT_BYTE_MAX).any() else starts


def _ends_of_marks(datums: Datums) -> Array:
    """Return where the bytes end that follow the row in each key, and others that only look so."""
    at = np.flatnonzero(datums.data[1 : datums.end] == _AFTER_ROW[1])
    at = at[datums.words("<u8", at) == int.from_bytes(_AFTER_ROW[:8], "little")]
    at = at[datums.words("<u2", at + 8) == int.from_bytes(_AFTER_ROW[8:], "little")]
    ends: Array = at + len(_AFTER_ROW)
    return ends


def _ends(datums: Datums, starts: Array, stamp_bytes: int) -> Array:
    """Return where entries end, never before they start; -1 for values of negative length."""
    key_bytes, value_bytes = (
        datums.words(">i4", starts + place).astype(np.int64) for place in (0, _KEY_LENGTH_BYTES)
    )
    ends = starts + _LENGTHS.size + key_bytes + value_bytes + stamp_bytes
    return np.where(value_bytes < 0, -1, ends)


def _walked_starts(block: bytes, with_timestamps: bool) -> Array:
    """Return where the entries of a block start, one after the other.

    Few pairs of lengths occur in a block; each is decoded once.
    """
    starts: list[int] = []
    steps: dict[bytes, int] = {}
    at, size = 0, len(block)
    while at < size:
        starts.append(at)
        lengths = block[at : at + _LENGTHS.size]
        step = steps.get(lengths)
        if step is None:
            step = steps[lengths] = _step(lengths)
        at += step
        if with_timestamps:
            at = at + 1 if block[at] <= _VINT_BYTE_MAX else vint(block, at)[1]
    if at != size:
        raise ValueError(f"the entry at byte {starts[-1]} is longer than the block")
    return np.array(starts, np.int64)


def _step(lengths: bytes) -> int:
    """Return the number of bytes of an entry without its timestamp, from its two lengths."""
    key_bytes, value_bytes = _LENGTHS.unpack(lengths)
    if key_bytes < _KEY_BYTES_MIN or value_bytes < 0:
        raise ValueError(f"an entry claims {key_bytes} and {value_bytes} bytes")
    return int(_LENGTHS.size + key_bytes + value_bytes)


def _keys(datums: Datums, entries: Array, values: Array) -> pa.StringArray:
    at = entries + _LENGTHS.size
    sizes = datums.words(">i2", at).astype(np.int64)
    at += _ROW_BYTES
    if (at + sizes + _AFTER_ROW_BYTES != values).any():
        raise UnsupportedError(
            "An HFile has keys with column families, which Hudi never writes. Restore it from a backup."
        )
    if (datums.data[values - 1] != _PUT).any():
        raise UnsupportedError(
            "An HFile has entries that are not puts, which Hudi never writes. Restore it from a backup."
        )
    keys = datums.texts_of(at, sizes, pa.string())
    keys.validate(full=True)
    return keys
