"""Avro decimals: unscaled values in big-endian two's complement."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from drawstring.formats.avro.encode import binary_parts

Rows: TypeAlias = "npt.NDArray[Any]"

DECIMAL_BYTES: Final = 16
_STORED_BYTES_MAX: Final = 64
"""Largest stored size of a decimal; bytes beyond `DECIMAL_BYTES` must repeat the sign."""


def decimals_of_rows(rows: Rows, kind: pa.DataType, valid: pa.Buffer | None = None) -> pa.Array:
    """Return decimals, one for each row of a matrix of bytes.

    Args:
        rows: a matrix with at least one column of bytes.
        kind: a decimal type.
        valid: bitmap of the values that are not null.

    Raises:
        ValueError: a value takes more than 16 bytes.
    """
    extra = rows.shape[1] - DECIMAL_BYTES
    if rows.shape[1] > _STORED_BYTES_MAX:
        raise ValueError(f"a decimal is stored in {rows.shape[1]} bytes")
    if extra > 0:
        sign = np.where(rows[:, extra : extra + 1] > 127, 255, 0)
        if (rows[:, :extra] != sign).any():
            raise ValueError(f"a decimal takes more than {DECIMAL_BYTES} bytes")
        rows = rows[:, extra:]
    values = np.empty((len(rows), DECIMAL_BYTES), np.uint8)
    values[:, : rows.shape[1]] = rows[:, ::-1]
    values[:, rows.shape[1] :] = np.where(rows[:, :1] > 127, 255, 0)
    return pa.Array.from_buffers(kind, len(rows), [valid, pa.py_buffer(values)])


def decimals_of_bytes(array: pa.BinaryArray, kind: pa.DataType) -> pa.Array:
    """Return decimals from bytes of any length; empty bytes are 0.

    Raises:
        ValueError: a value takes more than 16 bytes.
    """
    offsets, data = binary_parts(array)
    sizes = np.diff(offsets)
    width = max(DECIMAL_BYTES, int(sizes.max(initial=0)))
    if width > _STORED_BYTES_MAX:
        raise ValueError(f"a decimal is stored in {width} bytes")
    at = offsets[1:, None] - width + np.arange(width)
    data = np.concatenate([data, np.zeros(1, np.uint8)])
    rows = data[np.clip(at, 0, len(data) - 1)]
    sign = np.where((sizes > 0) & (data[offsets[:-1]] > 127), 255, 0).astype(np.uint8)
    inside = np.arange(width) >= width - sizes[:, None]
    valid = array.is_valid().buffers()[1] if array.null_count else None
    return decimals_of_rows(np.where(inside, rows, sign[:, None]), kind, valid)
