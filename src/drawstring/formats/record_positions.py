r"""Positions of records in base files, as log files have them (specification: Log Format, RECORD_POSITIONS).

    inline blocks   base64 of a 64-bit Roaring bitmap in its portable form; records are in ascending order
    native files    base64 of a count (int32, big-endian) and unsigned varints, in the order of the records

A position is the number of a row in the base file, from 0. The portable form, little-endian:

    8  number of bitmaps, then for each: 4 bytes with the upper half of its numbers, and the bitmap
          4   12347 | (containers - 1) << 16, then a bit for each container: whether it has runs; or
              12346, then 4 bytes with the number of containers, of which none has runs
          4 x containers   key: the next 16 bits of the numbers, and how many they are - 1
          4 x containers   where they begin in the bitmap; left out with runs and fewer than 4 containers
          *   containers: up to 4096 numbers of 16 bits; 8192 bytes of bits; or runs: their number, then for
              each its first number and its length - 1
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import numpy as np

from drawstring.base.errors import REPAIR, CorruptTableError

Array: TypeAlias = "np.ndarray[Any, Any]"

_PLAIN: Final = 12346
_WITH_RUNS: Final = 12347
_OFFSETS_MIN: Final = 4
_NUMBERS_MAX: Final = 4096
"""Numbers up to which a container lists them."""

_BITS_BYTES: Final = 8192
_VARINT_BYTES_MAX: Final = 10


def encode_bitmap(positions: Array) -> str:
    """Return the header of an inline block.

    Args:
        positions: distinct, ascending.
    """
    parts = _divided(positions.astype(np.uint64), 32)
    data = [struct.pack("<q", len(parts))]
    for high, low in parts:
        data += [struct.pack("<I", high), _encode_32(low.astype(np.uint32))]
    return base64.b64encode(b"".join(data)).decode()


def decode_bitmap(text: str) -> Array:
    """Return the positions of an inline block, ascending.

    Raises:
        CorruptTableError: the header is damaged.
    """
    try:
        data = base64.b64decode(text, validate=True)
        (count,) = struct.unpack_from("<q", data)
        parts, at = [np.zeros(0, np.int64)], 8
        for _ in range(_checked(count, len(data))):
            (high,) = struct.unpack_from("<I", data, at)
            at += 4
            for numbers, end in _decode_32(data, at):
                parts.append(numbers | (high << 32))
                at = end
        positions = np.concatenate(parts)
    except (ValueError, struct.error, IndexError) as error:
        raise _damaged(error) from error
    if at != len(data) or bool((np.diff(positions) <= 0).any()):
        raise _damaged("its numbers do not ascend, or bytes are left")
    return positions


def encode_list(positions: Array) -> str:
    """Return the footer entry of a native log file; the positions are in the order of its records."""
    rest = positions.astype(np.uint64)
    digits = np.stack([rest >> np.uint64(7 * place) for place in range(_VARINT_BYTES_MAX)], axis=1)
    is_used = digits > 0
    is_used[:, 0] = True
    has_more = np.zeros_like(is_used)
    has_more[:, :-1] = is_used[:, 1:]
    varints = (digits & np.uint64(0x7F)).astype(np.uint8) | (has_more.astype(np.uint8) << 7)
    return base64.b64encode(struct.pack(">i", len(positions)) + varints[is_used].tobytes()).decode()


def decode_list(text: str) -> Array:
    """Return the positions of a native log file, in the order of its records.

    Raises:
        CorruptTableError: the entry is damaged.
    """
    try:
        data = base64.b64decode(text, validate=True)
        (count,) = struct.unpack_from(">i", data)
    except (ValueError, struct.error) as error:
        raise _damaged(error) from error
    varints = np.frombuffer(data, np.uint8, offset=4)
    ends = np.flatnonzero(varints < 0x80)
    starts = np.concatenate([np.zeros(min(1, len(ends)), np.int64), ends[:-1] + 1])
    lengths = ends + 1 - starts
    is_whole = len(ends) == count and int(lengths.sum()) == len(varints)
    if not is_whole or bool((lengths > _VARINT_BYTES_MAX - 1).any()):
        raise _damaged(f"it has {len(ends)} whole numbers instead of {count}")
    if not count:
        return np.zeros(0, np.int64)
    places = np.arange(len(varints)) - np.repeat(starts, lengths)
    shifted = (varints & 0x7F).astype(np.int64) << (7 * places)
    return np.asarray(np.add.reduceat(shifted, starts))


def _divided(numbers: Array, bits: int) -> list[tuple[int, Array]]:
    """Return the numbers by what is above some bits, ascending, without that part."""
    high = numbers >> numbers.dtype.type(bits)
    starts = np.flatnonzero(np.diff(high, prepend=high[:1] + high.dtype.type(1)))
    keys = high[starts].tolist()
    lows = np.split(numbers & numbers.dtype.type((1 << bits) - 1), starts[1:])
    return list(zip(keys, lows, strict=False)) if keys else []


def _encode_32(numbers: Array) -> bytes:
    """Return a bitmap of 32-bit numbers."""
    containers = _divided(numbers, 16)
    encoded = [_container(low.astype(np.uint16)) for _, low in containers]
    flags = [is_run for _, is_run in encoded]
    count = len(containers)
    if any(flags):
        head = struct.pack("<I", _WITH_RUNS | (count - 1) << 16)
        head += np.packbits(np.array(flags), bitorder="little").tobytes()
    else:
        head = struct.pack("<II", _PLAIN, count)
    head += b"".join(struct.pack("<HH", key, len(low) - 1) for key, low in containers)
    if count >= _OFFSETS_MIN or not any(flags):
        sizes = [len(data) for data, _ in encoded]
        first = len(head) + 4 * count
        head += (np.cumsum([first, *sizes[:-1]])).astype("<u4").tobytes()
    return head + b"".join(data for data, _ in encoded)


def _container(numbers: Array) -> tuple[bytes, bool]:
    """Return the smallest form of a container, and whether it has runs."""
    firsts = np.flatnonzero(np.diff(numbers.astype(np.int32), prepend=-2) != 1)
    plain_bytes = 2 * len(numbers) if len(numbers) <= _NUMBERS_MAX else _BITS_BYTES
    if 2 + 4 * len(firsts) < plain_bytes:
        lengths = np.diff(firsts, append=len(numbers)) - 1
        runs = np.stack([numbers[firsts], lengths.astype(np.uint16)], axis=1)
        return struct.pack("<H", len(firsts)) + runs.astype("<u2").tobytes(), True
    if len(numbers) <= _NUMBERS_MAX:
        return numbers.astype("<u2").tobytes(), False
    bits = np.zeros(8 * _BITS_BYTES, dtype=bool)
    bits[numbers] = True
    return np.packbits(bits, bitorder="little").tobytes(), False


def _decode_32(data: bytes, start: int) -> Iterator[tuple[Array, int]]:
    """Yield the numbers of each container of a bitmap, and where the container ends."""
    (cookie,) = struct.unpack_from("<I", data, start)
    at = start + 4
    if cookie & 0xFFFF == _WITH_RUNS:
        count = (cookie >> 16) + 1
        held = data[at : at + (count + 7) // 8]
        has_runs = np.unpackbits(np.frombuffer(held, np.uint8), bitorder="little").astype(bool)
        at += len(held)
    elif cookie == _PLAIN:
        (count,) = struct.unpack_from("<I", data, at)
        has_runs = np.zeros(_checked(count, len(data)), dtype=bool)
        at += 4
    else:
        raise ValueError(f"a bitmap begins with {cookie}")
    about = np.frombuffer(data, "<u2", 2 * count, at).reshape(count, 2).astype(np.int64)
    at += 4 * count * (2 if cookie == _PLAIN or count >= _OFFSETS_MIN else 1)
    for place, (key, last) in enumerate(about.tolist()):
        numbers, at = _numbers(data, at, last + 1, has_runs=bool(has_runs[place]))
        yield numbers | (key << 16), at


def _numbers(data: bytes, at: int, count: int, *, has_runs: bool) -> tuple[Array, int]:
    """Return the numbers of a container, and where it ends."""
    if has_runs:
        (runs,) = struct.unpack_from("<H", data, at)
        ends = np.frombuffer(data, "<u2", 2 * runs, at + 2).reshape(runs, 2).astype(np.int64)
        lengths = ends[:, 1] + 1
        _check_count(int(lengths.sum()), count)
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        numbers, at = np.repeat(ends[:, 0], lengths) + within, at + 2 + 4 * runs
    elif count <= _NUMBERS_MAX:
        numbers, at = np.frombuffer(data, "<u2", count, at).astype(np.int64), at + 2 * count
    else:
        bits = np.frombuffer(data, np.uint8, _BITS_BYTES, at)
        numbers, at = np.flatnonzero(np.unpackbits(bits, bitorder="little")), at + _BITS_BYTES
    _check_count(len(numbers), count)
    return numbers, at


def _check_count(found: int, expected: int) -> None:
    if found != expected:
        raise ValueError(f"a container has {found} numbers instead of {expected}")


def _checked(count: int, size: int) -> int:
    """Return the number of parts of some bytes, if they can have as many."""
    if not 0 <= count <= size:
        raise ValueError(f"{count} parts in {size} bytes")
    return count


def _damaged(why: object) -> CorruptTableError:
    return CorruptTableError(f"The record positions of a log block are damaged ({why}): {REPAIR}.")
