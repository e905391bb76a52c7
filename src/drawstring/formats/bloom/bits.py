"""The bits of one row of a bloom filter, in one of three representations.

text     base64 of a footer, until the first access
packed   bit i is bit i % 8 of byte i // 8; for setting and testing few bits
flags    one byte per bit; for setting and testing many bits
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np

from drawstring.formats.bloom.base64_parts import Base64Text

Array: TypeAlias = "np.ndarray[Any, Any]"

FEW: Final = 1 / 16
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
        if self._flags is None and touched > self._count * FEW:
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
