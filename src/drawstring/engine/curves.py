r"""Space-filling curves: sort keys that place rows with similar values in several columns near each other.

    column ── bits in the order of its values ──┐
    column ── bits in the order of its values ──┴─ interleaved ──> bytes to sort by   (z-order)
                                    Gray-coded and turned first ──> bytes to sort by   (Hilbert)

The bits are those of the values themselves, or of their ranks in a sample. Ranks give columns of very
different ranges equal weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import InvalidError

Bits: TypeAlias = "np.ndarray[Any, np.dtype[np.uint64]]"

RANK_BITS: Final = 12
"""Bits of a rank; a sample has no finer resolution."""

_SIGN: Final = np.uint64(1 << 63)
_WIDTH: Final = 64


def ordered_bits(column: pa.Array) -> Bits:
    """Return a number for each value, in the order of the values; null comes first.

    Args:
        column: numbers, decimals, times, booleans, texts or bytes; only the first eight bytes of the last
            two count.

    Raises:
        InvalidError: values of the type cannot be ordered.
    """
    bits = _bits(column)
    bits[column.is_null().to_numpy(zero_copy_only=False)] = 0
    return bits


def sample_cuts(sample: Bits) -> Bits:
    """Return distinct values that divide a sample into equal parts."""
    ordered = np.sort(sample)
    positions = np.linspace(0, len(ordered) - 1, min(len(ordered), 1 << RANK_BITS)).astype(int)
    return np.unique(ordered[positions])


def ranks(bits: Bits, cuts: Bits) -> Bits:
    """Return the rank of each value among the cuts of a sample, in the highest bits."""
    rank = np.searchsorted(cuts, bits) * (1 << RANK_BITS) // max(1, len(cuts))
    return np.minimum(rank, (1 << RANK_BITS) - 1).astype(np.uint64) << np.uint64(_WIDTH - RANK_BITS)


def curve(columns: Sequence[Bits], *, hilbert: bool) -> pa.Array:
    """Return the position of each row on a curve, as bytes that sort in curve order.

    Args:
        columns: bits of each column, all of the same length.
        hilbert: True for a Hilbert curve, False for z-order.
    """
    axes = _hilbert_axes([bits.copy() for bits in columns]) if hilbert else list(columns)
    stacked = np.stack(axes, axis=1).astype(">u8")
    rows, width = len(stacked), 8 * len(axes)
    single = np.unpackbits(stacked.view(np.uint8), axis=1).reshape(rows, len(axes), _WIDTH)
    interleaved = np.packbits(single.transpose(0, 2, 1).reshape(rows, 8 * width), axis=1)
    return pa.Array.from_buffers(pa.binary(width), rows, [None, pa.py_buffer(interleaved.tobytes())])


def _bits(column: pa.Array) -> Bits:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _bits(column.dictionary_decode())
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        numbers = pc.fill_null(column.cast(pa.float64(), safe=False), 0.0).to_numpy(zero_copy_only=False)
        bits = numbers.view(np.uint64).copy()
        ordered: Bits = np.where(bits & _SIGN, ~bits, bits | _SIGN)
        return ordered
    if pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_string(kind):
        return _first_bytes(column)
    if pa.types.is_fixed_size_binary(kind):
        return _first_bytes(column.cast(pa.binary()))
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        if pa.types.is_date32(kind) or pa.types.is_time32(kind):
            column = column.cast(pa.int32())
        whole = pc.fill_null(column.cast(pa.int64(), safe=False), 0).to_numpy(zero_copy_only=False)
        flipped: Bits = whole.view(np.uint64) ^ _SIGN
        return flipped
    raise InvalidError(f"A column of type {kind} cannot be sorted. Sort by other columns.")


def _first_bytes(column: pa.Array) -> Bits:
    data = pc.fill_null(column.cast(pa.binary()), b"")
    padded = pc.binary_join_element_wise(data, b"\0" * 8, b"")
    first = pc.binary_slice(padded, 0, 8).cast(pa.binary(8))
    start = first.offset * 8
    raw = np.frombuffer(first.buffers()[1], dtype=np.uint8)[start : start + 8 * len(first)]
    return raw.view(">u8").astype(np.uint64)


def _hilbert_axes(axes: list[Bits]) -> list[Bits]:
    """Transform coordinates into those of a Hilbert curve (Skilling, 2004, AxestoTranspose)."""
    for shift in range(_WIDTH - 1, 0, -1):
        bit = np.uint64(1 << shift)
        below = bit - np.uint64(1)
        for number, axis in enumerate(axes):
            is_set = (axis & bit) != 0
            swapped = np.where(is_set, np.uint64(0), (axes[0] ^ axis) & below)
            axes[0] = axes[0] ^ np.where(is_set, below, swapped)
            axes[number] = axes[number] ^ swapped if number else axes[0]
    for number in range(1, len(axes)):
        axes[number] = axes[number] ^ axes[number - 1]
    flip = np.zeros_like(axes[0])
    for shift in range(_WIDTH - 1, 0, -1):
        bit = np.uint64(1 << shift)
        flip ^= np.where((axes[-1] & bit) != 0, bit - np.uint64(1), np.uint64(0))
    return [axis ^ flip for axis in axes]
