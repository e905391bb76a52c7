"""Record keys that name columns of whole numbers, such as `order:4711,line:3`.

All rows whose numbers have equally many digits are written at once, as columns of bytes:

    order:  4711  ,line:  3
    order:  2815  ,line:  7
      │      └ digits, four at a time from a table of them
      └ the same in all rows

That takes a quarter of the time of numbers that become texts, which are then joined.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import types as pt

from drawstring.base.digits import DIGITS, WIDTH_MAX

Array: TypeAlias = "np.ndarray[Any, Any]"

_ROWS_MIN: Final = 1_024
"""Number of rows from which on this takes less time than joining texts."""

_RUN_ROWS_MIN: Final = 64
"""Average number of rows with equally many digits from which on it does."""

_BYTES_MAX: Final = (1 << 31) - 1
_POWERS: Final = np.array([10**digits for digits in range(1, 19)])
_DIGITS_MAX: Final = 19
_COLUMNS_MAX: Final = 14
"""Number of columns whose widths fit into one whole number of 64 bits."""

_SIGNED: Final = (pt.is_int64, pt.is_int32, pt.is_int16, pt.is_int8)


def number_keys(columns: Sequence[pa.Array], fields: Sequence[str]) -> pa.Array | None:
    """Return the record keys of rows; None if they are to be joined of texts.

    Args:
        columns: the key columns.
        fields: their names.
    """
    rows = len(columns[0])
    if len(columns) > _COLUMNS_MAX or rows < _ROWS_MIN:
        return None
    if any(column.null_count or not _is_signed(column.type) for column in columns):
        return None
    numbers = [column.to_numpy().astype(np.int64, copy=False) for column in columns]
    ends = [(int(each.min()), int(each.max())) for each in numbers]
    size_bytes_max = rows * sum(len(field) * 4 + 2 + _DIGITS_MAX for field in fields)
    if min(low for low, _ in ends) < 0 or size_bytes_max > _BYTES_MAX:
        return None
    names = [f"{',' if at else ''}{field}:".encode() for at, field in enumerate(fields)]
    if all(len(str(low)) == len(str(high)) for low, high in ends):
        return _of_equal_widths(numbers, names, [len(str(high)) for _, high in ends])
    return _of_several_widths(numbers, names)


def _is_signed(kind: pa.DataType) -> bool:
    return any(matches(kind) for matches in _SIGNED)


def _of_several_widths(numbers: Sequence[Array], names: Sequence[bytes]) -> pa.Array | None:
    rows = len(numbers[0])
    widths = [np.searchsorted(_POWERS, each, side="right") + 1 for each in numbers]
    codes = np.zeros(rows, np.int64)
    for each in widths:
        codes = codes * (_DIGITS_MAX + 1) + each
    starts_of = np.unique(codes)
    if len(starts_of) * _RUN_ROWS_MIN > rows:
        return None
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], starts_of)
    runs = []
    for members in np.split(order, starts[1:]):
        run_widths = [int(each[members[0]]) for each in widths]
        runs.append(_of_equal_widths([each[members] for each in numbers], names, run_widths))
    places = np.empty(rows, np.int64)
    places[order] = np.arange(rows)
    return pa.concat_arrays(runs).take(pa.array(places))


def _of_equal_widths(numbers: Sequence[Array], names: Sequence[bytes], widths: Sequence[int]) -> pa.Array:
    rows = len(numbers[0])
    parts: list[Any] = []
    for each, name, width in zip(numbers, names, widths, strict=True):
        parts += [np.void(name), *_digits(each, width)]
    layout = np.dtype([(f"f{at}", part.dtype) for at, part in enumerate(parts)])
    data = pa.allocate_buffer(layout.itemsize * rows)
    texts = np.frombuffer(data, layout, rows)
    for at, part in enumerate(parts):
        texts[f"f{at}"] = part
    offsets = np.arange(rows + 1, dtype=np.int32) * np.int32(layout.itemsize)
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), data)


def _digits(numbers: Array, width: int) -> Iterator[Array]:
    """Yield the digits of numbers of a width, the first ones first."""
    if width > WIDTH_MAX:
        upper = numbers // 10**WIDTH_MAX
        yield from _digits(upper, width - WIDTH_MAX)
        numbers, width = numbers - upper * 10**WIDTH_MAX, WIDTH_MAX
    yield DIGITS[width - 1][numbers]
