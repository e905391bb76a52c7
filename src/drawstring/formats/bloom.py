"""Encode, decode and query bloom filters of record keys, bit-compatible with Hudi's.

    simple       int32 -1 | int32 k | int8 1 | int32 m | ceil(m/8) bytes, bit i = byte i/8, LSB first
    DYNAMIC_V0   int32 -1 | int32 k | int8 1 | int32 m | int32 capacity | int32 count | int32 rows
                 | rows x simple

All integers are big-endian, and the whole is base64 text (wire format: Base files, Bloom filters). A dynamic
filter adds `capacity` keys to each row until it has its maximum number of rows. Then it distributes further
keys over the rows in turn.

Hashes: the k positions of a key come from chained hashes, each seeded by the previous one. Hashing proceeds
one position at a time over blocks of keys of equal length.

Size: Hudi makes each filter for 60,000 keys at a rate of false positives of 10⁻⁹: 431 KB of base64, even for
a few keys. Here a file with fewer keys gets a filter for their number, at the same rate; larger files get the
rows that the JVM writes. A filter has its own size and number of hashes, so readers need not know them.
Tables with an index that reads no filter have a rate of 10⁻³ (`index.factory.bloom_rate`).

Bits of one row (`BloomBits`) have three representations:

    text     base64 of a footer, until the first access
    packed   bit i is bit i % 8 of byte i // 8; for setting and testing few bits
    flags    one byte per bit; for setting and testing many bits

Lookup of a few keys (`may_have_any`): a filter of 60,000 keys has 430 KB of text, but the lookup of a key
reads at most k bytes per row, and mostly two or three. So the lookup decodes only parts of the base64 text:

    base64   AAAA BBBB CCCC    byte n is byte n % 3 of quartet n // 3

It computes the hashes of a key one at a time as Python integers; arrays of two or three hashes would take
several times as long.

Filters of many small files (`fill_filters`): the hashes of a key do not depend on the filter, only their
remainders do.

    keys of all filters ── hashed together ──> hash % bits of its filter + where the filter begins ──> flags
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from drawstring.base.errors import REPAIR, CorruptTableError, UnsupportedError
from drawstring.base.java_compat import utf8_parts

_QUARTET: Final = 4
_TRIPLET: Final = 3
_ALPHABET: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


class Base64Text:
    """Bytes encoded as base64.

    Args:
        text: the base64 text, with its padding.
    """

    def __init__(self, text: bytes) -> None:
        self._text = text
        self.size = len(text) // _QUARTET * _TRIPLET - text[-2:].count(b"=")
        """Number of decoded bytes."""

    @property
    def is_whole(self) -> bool:
        """Whether the whole text is valid base64; this takes a seventh of the time of decoding."""
        padding = len(self._text) // _QUARTET * _TRIPLET - self.size
        return len(self._text) % _QUARTET == 0 and (
            self._text.translate(None, _ALPHABET) == b"=" * padding == self._text[len(self._text) - padding :]
        )

    def part(self, start: int, count: int) -> bytes:
        """Return a part of the decoded bytes.

        Raises:
            ValueError: the text is damaged in this part.
        """
        quartet, skipped = divmod(start, _TRIPLET)
        end = -(-(start + count) // _TRIPLET)
        data = binascii.a2b_base64(self._text[quartet * _QUARTET : end * _QUARTET], strict_mode=True)
        return data[skipped : skipped + count]


Array: TypeAlias = "np.ndarray[Any, Any]"

PACKED_SHARE_MAX: Final = 1 / 16
"""Fraction of a row's bits up to which they stay packed; unpacking takes as long as accessing so many."""


class BloomBits:
    """A set of bits that can be set but not cleared.

    Args:
        count: number of bits.
        text: base64 text of the initial bits; None for no bit set.
        start: start of the bits in the decoded text.
    """

    def __init__(self, count: int, text: Base64Text | None = None, start: int = 0) -> None:
        self._count = count
        self._text = text
        self._start = start
        self._packed: Array | None = None
        self._flags: Array | None = np.zeros(count, np.bool_) if text is None else None

    @staticmethod
    def of_flags(flags: Array) -> BloomBits:
        """Return bits of which those with a flag are set."""
        bits = BloomBits(0)
        bits._count, bits._flags = len(flags), flags
        return bits

    def expect(self, touched: int) -> None:
        """Unpack the bits if so many will be set or tested that unpacking is faster."""
        if self._flags is None and touched > self._count * PACKED_SHARE_MAX:
            unpacked = np.unpackbits(self._stored(), count=self._count, bitorder="little")
            self._flags, self._packed = unpacked.view(np.bool_), None

    def set(self, positions: Array) -> None:
        """Set bits."""
        if self._flags is not None:
            self._flags[positions] = True
        else:
            masks = np.left_shift(1, positions & 7).astype(np.uint8)
            np.bitwise_or.at(self._stored(), positions >> 3, masks)

    def are_set(self, positions: Array) -> Array:
        """Return which bits are set."""
        if self._flags is not None:
            return np.asarray(self._flags[positions])
        shifted = self._stored()[positions >> 3] >> (positions & 7).astype(np.uint8)
        return np.asarray((shifted & 1).view(np.bool_))

    def image(self) -> bytes:
        """Return the packed bits."""
        packed = self._stored() if self._flags is None else np.packbits(self._flags, bitorder="little")
        return packed.tobytes()

    def _stored(self) -> Array:
        if self._packed is None:
            assert self._text is not None
            image = self._text.part(self._start, (self._count + 7) // 8)
            self._packed = np.frombuffer(bytearray(image), np.uint8)
        return self._packed


SIMPLE: Final = "SIMPLE"
DYNAMIC: Final = "DYNAMIC_V0"

VERSION: Final = -1
MURMUR: Final = 1
SIMPLE_HEAD: Final = struct.Struct(">iibi")
DYNAMIC_HEAD: Final = struct.Struct(">iibiiii")
_BLOCK_KEYS: Final = 16_384
HASHES_MAX: Final = 1_024
"""Largest number of hashes that a reader accepts; a false positive rate of 1e-9 needs 30."""
_FIRST_BITS: Final = 3
"""Index of the hash after which keys that missed a bit are removed from the lookup."""


@dataclass(frozen=True, slots=True)
class BloomShape:
    """The number of bits of a row, and of hashes per key."""

    bits: int
    hashes: int

    @staticmethod
    def of(keys: int, false_positives: float) -> BloomShape:
        """Return the shape with a rate of false positives at a number of keys."""
        bits = math.ceil(keys * (-math.log(false_positives) / math.log(2) ** 2))
        return BloomShape(bits, math.ceil(math.log(2) * bits / keys))


class BloomFilter:
    """A bloom filter of record keys; it has false positives but no false negatives."""

    DEFAULT_CAPACITY: Final = 60_000
    DEFAULT_KEYS_MAX: Final = 100_000
    DEFAULT_RATE: Final = 1e-9
    LOOSE_KEYS_MAX: Final = 240_000
    LOOSE_RATE: Final = 1e-3
    """For files that are asked for few keys: such a filter has a third of the bits and of the hashes."""

    def __init__(self, shape: BloomShape, capacity: int, keys_max: int, type_code: str = DYNAMIC) -> None:
        self.shape = shape
        self.type_code = type_code
        self.capacity = capacity
        self._rows_max = max(1, -(-keys_max // capacity))
        self._rows = [BloomBits(shape.bits)]
        self._added = 0
        self._count = 0
        self._text = ""

    @property
    def keys(self) -> int:
        """The number of keys added, including repeated ones."""
        return self._added

    @staticmethod
    def empty(
        capacity: int = DEFAULT_CAPACITY,
        keys_max: int = DEFAULT_KEYS_MAX,
        false_positives: float = DEFAULT_RATE,
    ) -> BloomFilter:
        """Return a dynamic filter without keys.

        Args:
            capacity: number of keys per row.
            keys_max: number of keys up to which rows are added.
            false_positives: rate of false positives of a full row.
        """
        return BloomFilter(BloomShape.of(capacity, false_positives), capacity, keys_max)

    @staticmethod
    def of_large_file(false_positives: float) -> BloomFilter:
        """Return a filter without keys for a file of more than `DEFAULT_CAPACITY` rows."""
        keys_max = _keys_max(is_loose=false_positives > BloomFilter.DEFAULT_RATE)
        return BloomFilter.empty(keys_max=keys_max, false_positives=false_positives)

    def is_as_exact_as(self, false_positives: float) -> bool:
        """Return whether the filter has no more false positives than a rate allows."""
        return self.shape.hashes >= BloomShape.of(self.DEFAULT_CAPACITY, false_positives).hashes

    @staticmethod
    def build(keys: pa.Array, capacity: int = DEFAULT_CAPACITY) -> BloomFilter:
        """Return a dynamic filter of keys.

        Args:
            keys: record keys, without nulls; their order matters for the bytes of the filter.
            capacity: number of keys per row.
        """
        bloom = BloomFilter.empty(capacity)
        bloom.add(keys)
        return bloom

    @staticmethod
    def decode(text: str, type_code: str) -> BloomFilter:
        """Return the filter of a footer; its bits are decoded on first access.

        Args:
            text: base64 of the filter.
            type_code: `SIMPLE` or `DYNAMIC_V0`.

        Raises:
            CorruptTableError: the text is not a filter of this type.
            UnsupportedError: the type is unknown.
        """
        if type_code not in (SIMPLE, DYNAMIC):
            raise UnsupportedError(
                f"Bloom filters of type {type_code!r} are not supported. Write the file with a type that Hudi"
                " has."
            )
        try:
            data = Base64Text(text.encode("ascii"))
            if not data.is_whole:
                raise ValueError("it is not base64")
            bloom = _decode_simple(data) if type_code == SIMPLE else _decode_dynamic(data)
        except (struct.error, ValueError) as error:
            raise CorruptTableError(
                f"A bloom filter of type {type_code} is damaged ({error}). To repair the table, {REPAIR}."
            ) from error
        bloom._text = text
        return bloom

    def encode(self) -> str:
        """Return the base64 text of the filter, as in a footer."""
        if self._text:
            return self._text
        images = [_encode_row(self.shape, row) for row in self._rows]
        if self.type_code == DYNAMIC:
            head = DYNAMIC_HEAD.pack(
                VERSION,
                self.shape.hashes,
                MURMUR,
                self.shape.bits,
                self.capacity,
                self._count,
                len(self._rows),
            )
            images.insert(0, head)
        return base64.b64encode(b"".join(images)).decode()

    def add(self, keys: pa.Array) -> None:
        """Add keys.

        Args:
            keys: record keys, without nulls.
        """
        if not len(keys):
            return
        self._text = ""
        for row, part in self._placed(keys):
            bits = self._rows[row]
            bits.expect(len(part) * self.shape.hashes)
            for _, texts in key_blocks(part):
                for positions in _positions(texts, self.shape):
                    bits.set(positions)

    def contains(self, keys: pa.Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return, for each key, whether it may be in the filter; False is certain."""
        results: Array = np.zeros(len(keys), np.bool_)
        for bits in self._rows:
            bits.expect(len(keys) * self.shape.hashes)
        for members, texts in key_blocks(keys):
            results[members] = self._contains(texts)
        return results

    def contains_any(self, keys: pa.Array) -> bool:
        """Return whether any of the keys may be in the filter; False is certain."""
        return any(self._contains(texts).any() for _, texts in key_blocks(keys))

    def _contains(self, texts: Array, *, narrows: bool = True) -> Array:
        """Look up texts of equal length; most absent ones miss one of the first few bits."""
        matches: Array = np.ones((len(self._rows), len(texts)), np.bool_)
        for step, positions in enumerate(_positions(texts, self.shape)):
            for row, bits in enumerate(self._rows):
                matches[row] &= bits.are_set(positions)
            if step == _FIRST_BITS and narrows:
                remaining = np.flatnonzero(matches.any(axis=0))
                if len(remaining) * 2 <= len(texts):
                    results: Array = np.zeros(len(texts), np.bool_)
                    if len(remaining):
                        results[remaining] = self._contains(texts[remaining], narrows=False)
                    return results
        return np.asarray(matches.any(axis=0))

    def restored(self, rows: list[BloomBits], count: int) -> BloomFilter:
        """Set the rows of a decoded filter, the last of which has `count` keys."""
        self._rows = rows
        self._count = count
        self._added = (len(rows) - 1) * self.capacity + count
        return self

    def _placed(self, keys: pa.Array) -> Iterator[tuple[int, pa.Array]]:
        """Yield the rows that the next keys are added to, with the keys of each; create missing rows."""
        start, room = self._added, self._rows_max * self.capacity
        self._added += len(keys)
        row_count = min(self._rows_max, max(1, -(-self._added // self.capacity)))
        self._rows.extend(BloomBits(self.shape.bits) for _ in range(row_count - len(self._rows)))
        self._count = self._added - (row_count - 1) * self.capacity
        for row in range(start // self.capacity, row_count):
            first = max(start, row * self.capacity)
            yield row, keys.slice(first - start, max(0, (row + 1) * self.capacity - first))
        if self._added > room:
            index = np.arange(max(start, room), self._added)
            in_turn = np.maximum(index - room - 1, 0) % self._rows_max
            rest = keys.slice(max(0, room - start))
            yield from ((row, rest.filter(pa.array(in_turn == row))) for row in np.unique(in_turn).tolist())


def _encode_row(shape: BloomShape, bits: BloomBits) -> bytes:
    return SIMPLE_HEAD.pack(VERSION, shape.hashes, MURMUR, shape.bits) + bits.image()


def _decode_simple(data: Base64Text) -> BloomFilter:
    shape, bits = _decode_row(data, 0)
    return BloomFilter(shape, 1, 1, SIMPLE).restored([bits], 0)


def _decode_dynamic(data: Base64Text) -> BloomFilter:
    _, hashes, _, bits, capacity, count, rows = DYNAMIC_HEAD.unpack(data.part(0, DYNAMIC_HEAD.size))
    shape = BloomShape(bits, hashes)
    row_bytes = SIMPLE_HEAD.size + (bits + 7) // 8
    if min(capacity, rows) < 1 or rows * row_bytes != data.size - DYNAMIC_HEAD.size:
        raise ValueError(f"{rows} rows of {bits} bits do not fill {data.size} bytes")
    images = [_decode_row(data, DYNAMIC_HEAD.size + row * row_bytes) for row in range(rows)]
    if any(other != shape for other, _ in images):
        raise ValueError("its rows differ in shape")
    keys_max = rows * capacity
    if capacity == BloomFilter.DEFAULT_CAPACITY:
        is_loose = shape == BloomShape.of(capacity, BloomFilter.LOOSE_RATE)
        keys_max = max(keys_max, _keys_max(is_loose=is_loose))
    return BloomFilter(shape, capacity, keys_max).restored([row for _, row in images], count)


def _keys_max(*, is_loose: bool) -> int:
    return BloomFilter.LOOSE_KEYS_MAX if is_loose else BloomFilter.DEFAULT_KEYS_MAX


def _decode_row(data: Base64Text, start: int) -> tuple[BloomShape, BloomBits]:
    version, hashes, kind, bits = SIMPLE_HEAD.unpack(data.part(start, SIMPLE_HEAD.size))
    start += SIMPLE_HEAD.size
    is_known = (version, kind) == (VERSION, MURMUR) and hashes <= HASHES_MAX
    if not is_known or bits < 1 or data.size < start + (bits + 7) // 8:
        raise ValueError(f"version {version}, hash type {kind}, {hashes} hashes, {bits} bits")
    return BloomShape(bits, hashes), BloomBits(bits, data, start)


def key_blocks(keys: pa.Array) -> Iterator[tuple[Array, Array]]:
    """Yield blocks of keys of equal length and bounded number: their indices, and their bytes as a matrix."""
    for members, texts in same_length(keys):
        for start in range(0, len(texts), _BLOCK_KEYS):
            yield members[start : start + _BLOCK_KEYS], texts[start : start + _BLOCK_KEYS]


def _positions(texts: Array, shape: BloomShape) -> Iterator[Array]:
    """Yield, for each hash, the bit position of every text.

    The next step overwrites the yielded array.
    """
    remainder = _Remainder(shape.bits, len(texts))
    for hashed in chained_hashes(texts, shape.hashes):
        yield remainder.of(hashed)


class _Remainder:
    """Computes `abs(hash % bits)` like Java, as indices; in numpy division is faster than `%`."""

    def __init__(self, bits: int, length: int) -> None:
        self._bits = np.uint32(bits)
        self._absolute = np.empty(length, np.int32)
        self._quotient = np.empty(length, np.uint32)
        self._indices = np.empty(length, np.intp)

    def of(self, hashed: Array) -> Array:
        """Return the positions; the next call overwrites the array."""
        np.abs(hashed.view(np.int32), out=self._absolute)
        absolute = self._absolute.view(np.uint32)
        np.floor_divide(absolute, self._bits, out=self._quotient)
        self._quotient *= self._bits
        return np.subtract(absolute, self._quotient, out=self._indices, casting="unsafe")


def same_length(keys: pa.Array) -> Iterator[tuple[Array, Array]]:
    """Yield groups of keys of equal length: their indices, and their bytes as a matrix."""
    offsets, data = utf8_parts(keys)
    lengths = np.diff(offsets)
    order = np.arange(len(lengths))
    if len(lengths) and lengths.min() != lengths.max():
        order = np.argsort(lengths, kind="stable")
        offsets, data = utf8_parts(keys.take(pa.array(order)))
    sizes, firsts, counts = np.unique(lengths[order], return_index=True, return_counts=True)
    for size, first, count in zip(sizes.tolist(), firsts.tolist(), counts.tolist(), strict=True):
        texts = data[offsets[first] : offsets[first + count]].reshape(count, size)
        yield order[first : first + count], texts


_M: Final = np.uint32(0x5BD1E995)


def chained_hashes(texts: Array, hashes: int) -> Iterator[Array]:
    """Yield the MurmurHash2 of each text (a row of bytes) `hashes` times, seeded by the previous one.

    The parts that do not depend on the seed (mixed words, the tail) are computed once. The next step
    overwrites the yielded array.
    """
    length = np.uint32(texts.shape[1])
    words = [_once(_mixed_word(texts, start)) for start in range(0, texts.shape[1] - 3, 4)]
    if texts.shape[1] % 4:
        words.append(_once(_tail(texts)))
    hashed = np.zeros(len(texts), np.uint32)
    shifted = np.empty_like(hashed)
    for _ in range(hashes):
        hashed ^= length
        for word in words[: texts.shape[1] // 4]:
            hashed *= _M
            hashed ^= word
        for word in words[texts.shape[1] // 4 :]:
            hashed ^= word
            hashed *= _M
        hashed ^= np.right_shift(hashed, 13, out=shifted)
        hashed *= _M
        hashed ^= np.right_shift(hashed, 15, out=shifted)
        yield hashed


def _once(words: Array) -> Any:
    """Return the word that all texts have, such as part of the name of a key column; else all words."""
    return words[0] if (words == words[0]).all() else words


def _mixed_word(texts: Array, start: int) -> Array:
    width = texts.shape[1]
    word = np.ndarray(len(texts), "<u4", np.ascontiguousarray(texts), start, (width,)).astype(np.uint32)
    word *= _M
    word ^= word >> 24
    word *= _M
    return word


def _tail(texts: Array) -> Array:
    """Return the last one to three bytes of each text, big-endian; the bytes are signed, so they overlap."""
    tail = np.zeros(len(texts), np.int32)
    for index in range(texts.shape[1] // 4 * 4, texts.shape[1]):
        tail ^= texts[:, index].view(np.int8).astype(np.int32) << (8 * (texts.shape[1] - 1 - index))
    return tail.view(np.uint32)


_M_INT: Final = 0x5BD1E995
_BITS: Final = 0xFFFFFFFF
_SIGN: Final = 0x80000000
_KEYS_KNOWN: Final = 1_024
"""Keys whose words are remembered: a query asks many filters for the same few."""


def may_have_any(text: bytes, type_code: str, keys: Sequence[str]) -> bool:
    """Return whether any of a few keys may be in a filter; False is certain.

    Args:
        text: base64 of the filter. A damaged filter may have any key.
        type_code: `SIMPLE` or `DYNAMIC_V0`; a filter of another type may have any key.
        keys: record keys.
    """
    try:
        filters = _FilterRows(text, type_code)
        return any(filters.may_have(key) for key in keys)
    except (ValueError, IndexError, struct.error):
        return True


class _FilterRows:
    """The rows of a filter, each of which is a simple filter.

    Raises:
        ValueError, struct.error: the text is not a filter of this type.
    """

    def __init__(self, text: bytes, type_code: str) -> None:
        self._data = data = Base64Text(text)
        at, rows = 0, 1
        if type_code == DYNAMIC:
            head = DYNAMIC_HEAD.unpack(data.part(0, DYNAMIC_HEAD.size))
            at, rows = DYNAMIC_HEAD.size, head[-1]
        elif type_code != SIMPLE:
            raise ValueError(f"type {type_code}")
        version, hashes, kind, bits = SIMPLE_HEAD.unpack(data.part(at, SIMPLE_HEAD.size))
        size = SIMPLE_HEAD.size + (bits + 7) // 8
        if (version, kind) != (VERSION, MURMUR) or hashes > HASHES_MAX:
            raise ValueError(f"version {version}, hash type {kind}, {hashes} hashes")
        if min(bits, rows) < 1 or data.size != at + rows * size:
            raise ValueError(f"{rows} rows of {bits} bits do not fill {data.size} bytes")
        self._shape = BloomShape(bits, hashes)
        self._starts = [at + row * size + SIMPLE_HEAD.size for row in range(rows)]

    def may_have(self, key: str) -> bool:
        """Return whether a key may be in one of the rows."""
        alive = self._starts
        for position in _probe_positions(key, self._shape):
            alive = [start for start in alive if self._bit(start, position)]
            if not alive:
                return False
        return True

    def _bit(self, start: int, position: int) -> int:
        return self._data.part(start + position // 8, 1)[0] >> position % 8 & 1


def _probe_positions(key: str, shape: BloomShape) -> Iterator[int]:
    """Yield the bit positions of a key: `abs(hash % bits)` in Java, where the hash is signed."""
    for hashed in islice(_chained_hashes_of_key(key), shape.hashes):
        yield (hashed if hashed < _SIGN else 2 * _SIGN - hashed) % shape.bits


def _chained_hashes_of_key(key: str) -> Iterator[int]:
    """Yield the MurmurHash2 of a key again and again, each seeded by the previous one."""
    length, words, tail = _words(key)
    hashed = 0
    while True:
        hashed ^= length
        for word in words:
            hashed = (hashed * _M_INT & _BITS) ^ word
        if tail is not None:
            hashed = (hashed ^ tail) * _M_INT & _BITS
        hashed ^= hashed >> 13
        hashed = hashed * _M_INT & _BITS
        hashed ^= hashed >> 15
        yield hashed


@lru_cache(_KEYS_KNOWN)
def _words(key: str) -> tuple[int, tuple[int, ...], int | None]:
    """Return the parts of a key's hashes that do not depend on the seed: length, mixed words, tail."""
    data = key.encode()
    whole = len(data) // 4
    words = []
    for word in struct.unpack_from(f"<{whole}I", data):
        word = word * _M_INT & _BITS
        word ^= word >> 24
        words.append(word * _M_INT & _BITS)
    tail = 0
    for place, byte in enumerate(struct.unpack(f"{len(data) % 4}b", data[4 * whole :])[::-1]):
        tail ^= byte << (8 * place)
    return len(data), tuple(words), tail & _BITS if len(data) % 4 else None


def fill_filters(filters: Sequence[tuple[BloomFilter, pa.Array]]) -> None:
    """Add keys to filters that have none; see `BloomFilter.add`.

    Args:
        filters: each with its keys (string, without nulls), no more than its capacity.
    """
    by_hashes: dict[int, list[tuple[BloomFilter, pa.Array]]] = defaultdict(list)
    for bloom, keys in filters:
        by_hashes[bloom.shape.hashes].append((bloom, keys))
    for hashes, alike in by_hashes.items():
        _fill(alike, hashes)


def _fill(filters: Sequence[tuple[BloomFilter, pa.Array]], hashes: int) -> None:
    sizes = np.array([bloom.shape.bits for bloom, _ in filters], np.int64)
    ends = np.cumsum(sizes)
    number = np.repeat(np.arange(len(filters)), [len(keys) for _, keys in filters])
    flags = np.zeros(ends[-1], np.bool_)
    for members, texts in key_blocks(pa.concat_arrays([keys for _, keys in filters])):
        bits, starts = sizes.astype(np.uint32)[number[members]], (ends - sizes)[number[members]]
        for hashed in chained_hashes(texts, hashes):
            flags[_remainders(hashed, bits) + starts] = True
    for (bloom, keys), end, size in zip(filters, ends.tolist(), sizes.tolist(), strict=True):
        bloom.restored([BloomBits.of_flags(flags[end - size : end])], len(keys))


def _remainders(hashed: Array, bits: Array) -> Array:
    """Return `abs(hash % bits)` like Java."""
    absolute = np.abs(hashed.view(np.int32)).view(np.uint32)
    return absolute - absolute // bits * bits
