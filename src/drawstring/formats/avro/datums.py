"""Avro datums in one buffer, of which one field of all records is read at a time.

Each record has a cursor (`at`: positions in the buffer, ascending), and all cursors move together: reading
one varint, text or double of every record takes a few numpy operations.

Cursors never pass the end: every move checks the farthest one, so that gathers need no check; up to `_PAD`
meaningless bytes after the end may be read. A cursor may stray into the next record; callers that read whole
records compare the cursors with the ends of the records.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from drawstring.base.cached import cached_property

Numbers: TypeAlias = "npt.NDArray[np.int64]"
Array: TypeAlias = "npt.NDArray[Any]"

_PAD: Final = 16
_BYTES_MAX: Final = 2**31 - 2 * _PAD


class Datums:
    """A part of a block's content that consists of whole datums.

    Args:
        content: the content.
        start: start of the part, from which its positions count.
        stop: end of the part.
    """

    def __init__(self, content: bytes, start: int, stop: int) -> None:
        self.end = stop - start
        if self.end > _BYTES_MAX:
            raise ValueError(f"a record takes {self.end} bytes")
        if stop + _PAD <= len(content):
            self.data = np.frombuffer(content, np.uint8, self.end + _PAD, start)
        else:
            self.data = np.zeros(self.end + _PAD, np.uint8)
            self.data[: self.end] = np.frombuffer(content, np.uint8, self.end, start)

    @cached_property
    def bytes(self) -> bytes:
        """The bytes of the part, for readers of single values."""
        return self.data[: self.end].tobytes()

    @cached_property
    def _buffer(self) -> pa.Buffer:
        return pa.py_buffer(self.data)

    def words(self, kind: str, at: Numbers) -> Array:
        """Return the unaligned numbers at the cursors, of a numpy type of up to 16 bytes."""
        size = np.dtype(kind).itemsize
        overlapping: Array = np.ndarray(len(self.data) - size + 1, kind, self.data, strides=(1,))
        return overlapping[at]

    def rows(self, at: Numbers, size: int) -> Array:
        """Return `size` bytes of each record as a matrix, and move past them."""
        first = at.copy()
        self.advance(at, size)
        if not len(at):
            return np.zeros((0, size), np.uint8)
        return np.lib.stride_tricks.sliding_window_view(self.data, size)[first]

    def advance(self, at: Numbers, step: int | Array) -> None:
        """Move the cursors.

        Args:
            at: the cursors, changed in place.
            step: bytes, not negative and no more than 2**31.

        Raises:
            ValueError: a cursor would pass the end.
        """
        at += step
        if at.max(initial=0) > self.end:
            raise ValueError("a value is longer than the bytes that are left")

    def bytes_of(self, at: Numbers) -> npt.NDArray[np.uint8]:
        """Return one byte of each record, and move past it."""
        values = self.data.take(at)
        self.advance(at, 1)
        return values

    def longs(self, at: Numbers) -> Numbers:
        """Return an Avro int or long of each record, and move past it."""
        low = self.data.take(at)
        if low.max(initial=0) < 0x80:
            self.advance(at, 1)
            plain = low.astype(np.int64)
            return (plain >> 1) ^ -(plain & 1)
        raw = self._varints(at)
        return ((raw >> _ONE) ^ (~(raw & _ONE) + _ONE)).view(np.int64)

    def sizes(self, at: Numbers) -> Array:
        """Return an Avro long of each record that is a length or an index, and move past it.

        Raises:
            ValueError: a value is negative, or larger than any part.
        """
        low = self.data.take(at)
        if not np.bitwise_or.reduce(low, initial=0) & 0x81:
            self.advance(at, 1)
            return low >> 1
        values = self.longs(at)
        if values.min(initial=0) < 0 or values.max(initial=0) > _BYTES_MAX:
            raise ValueError(f"a length is {values.min()} or {values.max()}")
        return values

    def _varints(self, at: Numbers) -> npt.NDArray[np.uint64]:
        """Return varints of up to ten bytes; the first eight bytes are processed as one word."""
        words = self.words("<u8", at).astype(np.uint64, copy=False)
        stops = ~words & _STOPS
        last = stops & (~stops + _ONE)
        sizes = (np.bitwise_count(last - _ONE) + np.uint8(1)) >> 3
        raw = _squeezed(words & (last - _ONE) & ~_STOPS)
        long = np.flatnonzero(stops == 0)
        if len(long):
            ninth, tenth = (self.data.take(at[long] + place).astype(np.uint64) for place in (8, 9))
            is_ten = ninth > 0x7F
            if (is_ten & (tenth > 1)).any():
                raise ValueError("a number takes more than 64 bits")
            raw[long] |= (ninth & np.uint64(0x7F)) << np.uint64(56)
            raw[long] |= np.where(is_ten, tenth << np.uint64(63), np.uint64(0))
            sizes[long] = np.where(is_ten, 10, 9)
        self.advance(at, sizes)
        return raw

    def texts(self, at: Numbers, kind: pa.DataType) -> pa.Array:
        """Return Avro bytes or a string of each record, and move past them."""
        return self.texts_of(at, self.sizes(at), kind)

    def texts_of(self, at: Numbers, sizes: Array, kind: pa.DataType) -> pa.Array:
        """Return `sizes` bytes of each record, and move past them.

        The values are taken from an array over the same buffer, in which values and gaps alternate.
        """
        count = len(at)
        if not count:
            return pa.array([], kind)
        bounds = np.empty(2 * count, np.int32)
        bounds[0::2] = at
        self.advance(at, sizes)
        bounds[1::2] = at
        alternating = pa.Array.from_buffers(kind, 2 * count - 1, [None, pa.py_buffer(bounds), self._buffer])
        return alternating.take(_even(count))

    def pass_texts(self, at: Numbers) -> None:
        """Move past Avro bytes or a string of each record."""
        self.advance(at, self.sizes(at))


_ONE: Final = np.uint64(1)
_STOPS: Final = np.uint64(0x8080808080808080)


def _squeezed(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return words of eight times seven bits with the gaps removed."""
    for low, high, shift in _SQUEEZES:
        words = (words & low) | ((words & high) >> shift)
    return words


_SQUEEZES: Final = tuple(
    (np.uint64(low), np.uint64(high), np.uint64(shift))
    for low, high, shift in (
        (0x007F007F007F007F, 0x7F007F007F007F00, 1),
        (0x00003FFF00003FFF, 0x3FFF00003FFF0000, 2),
        (0x000000000FFFFFFF, 0x0FFFFFFF00000000, 4),
    )
)


@lru_cache(maxsize=4)
def _even(count: int) -> pa.Array:
    return pa.array(np.arange(0, 2 * count, 2, dtype=np.int32))
