"""Delete blocks read column by column, instead of record by record.

The records of the list have no lengths, so that where one begins is known only once the one before was read.
Each byte that may be the first one of a record is therefore taken for that, all at once, and the chain of
records is followed afterwards:

    bytes that say "a key follows" ── as if each began a record: its end ──> end by start ── from the first
    record on ──> starts of all records ──> keys of all records, ordering values of all records

Records of other forms, with several ordering values or decimals, are left to a reader of single records.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.formats.avro.columns import (
    BooleanColumn,
    Column,
    FloatColumn,
    NumberColumn,
    TextColumn,
    UnionColumn,
)
from drawstring.formats.avro.datums import Array, Datums, Numbers

RECORDS_MIN: Final = 96
"""Number of records from which on it pays."""

_PAD: Final = 16
_TEXT: Final = 2
"""Branch of a text in a union with null, as it is stored."""

_FIXED: Final[Mapping[int, int]] = {0: 0, 1: 1, 4: 4, 5: 8}
"""Sizes of ordering values by their branch: none, boolean, float, double."""

_VARINTS: Final = (2, 3, 8, 10, 11)
_TEXTS: Final = 7
_INT: Final = 2
_READERS: Final[Mapping[int, tuple[pa.DataType, Column]]] = {
    1: (pa.bool_(), BooleanColumn()),
    2: (pa.int32(), NumberColumn(pa.int32())),
    3: (pa.int64(), NumberColumn(pa.int64())),
    4: (pa.float64(), FloatColumn(pa.float32())),
    5: (pa.float64(), FloatColumn(pa.float64())),
    7: (pa.string(), TextColumn(pa.string())),
    8: (pa.date32(), NumberColumn(pa.date32())),
    10: (pa.time64("us"), NumberColumn(pa.time64("us"))),
    11: (pa.timestamp("us", "UTC"), NumberColumn(pa.timestamp("us", "UTC"))),
}


def read_delete_columns(
    payload: bytes,
) -> tuple[pa.Array, Mapping[pa.DataType, pa.Array], Array] | None:
    """Return the columns of a list of deletes; None if it is short or its records have another form.

    Args:
        payload: the list.

    Returns:
        The keys; the ordering values by their type, null in records with a value of another type; which
        records have none.

    Raises:
        ValueError: the bytes are damaged.
    """
    starts = _starts(payload)
    if starts is None:
        return None
    datums, at = Datums(payload, 0, len(payload)), starts
    datums.advance(at, 1)
    keys = datums.texts(at, pa.string())
    keys.validate(full=True)
    UnionColumn(TextColumn(pa.string()), pa.string(), 1, 2).skip(datums, at)
    branches = datums.sizes(at)
    is_absent = branches == 0
    values: dict[pa.DataType, pa.Array] = {}
    for branch in np.unique(branches[~is_absent]).tolist():
        kind, reader = _READERS[branch]
        rows = np.flatnonzero(branches == branch)
        read = reader.read(datums, at[rows]).cast(kind)
        if branch == _INT:
            is_zero = read.to_numpy() == 0
            is_absent[rows[is_zero]] = True
            rows, read = rows[~is_zero], read.filter(pa.array(~is_zero))
        if len(rows):
            spread = _spread(read, rows, len(keys))
            values[kind] = pc.coalesce(values[kind], spread) if kind in values else spread
    return keys, values, is_absent


def _spread(values: pa.Array, rows: Array, count: int) -> pa.Array:
    """Return values at the numbers of their rows, null elsewhere."""
    if len(rows) == count:
        return values
    places = np.zeros(count, np.int32)
    places[rows] = np.arange(len(rows), dtype=np.int32)
    is_other = np.ones(count, dtype=bool)
    is_other[rows] = False
    return values.take(pa.array(places, mask=is_other))


def _starts(payload: bytes) -> Numbers | None:
    """Return the starts of the records of a list."""
    data = np.zeros(len(payload) + _PAD, np.uint8)
    data[: len(payload)] = np.frombuffer(payload, np.uint8)
    begin, count, is_length = _length(data, np.zeros(1, np.int64))
    if not is_length[0] or count[0] < RECORDS_MIN:
        return None
    first = np.flatnonzero(data[: len(payload)] == _TEXT)
    ends, is_record = _ends(data, first)
    end_by_start = dict(zip(first[is_record].tolist(), ends[is_record].tolist(), strict=True))
    at: int | None = int(begin[0])
    starts = []
    for _ in range(min(int(count[0]), len(payload))):
        starts.append(at)
        at = end_by_start.get(at) if at is not None else None
    return np.array(starts, np.int64) if at == len(payload) - 1 and payload[-1] == 0 else None


def _ends(data: Array, starts: Numbers) -> tuple[Numbers, Array]:
    """Return where records end that begin at some places, and where there may be one."""
    at, is_record = _after_text(data, starts + 1)
    has_path = data[at] == _TEXT
    is_record &= has_path | (data[at] == 0)
    after_path, is_text = _after_text(data, at + 1)
    is_record &= is_text | ~has_path
    at = np.where(has_path, after_path, np.minimum(at + 1, len(data) - _PAD))
    stored = data[at]
    branch, at = stored >> 1, np.minimum(at + 1, len(data) - _PAD)
    is_known = np.zeros(len(at), dtype=bool)
    ends = at.copy()
    for each, size in _FIXED.items():
        is_known |= branch == each
        ends[branch == each] += size
    is_varint = np.isin(branch, _VARINTS)
    ends = np.where(is_varint, at + _varint_sizes(data, at), ends)
    after_text, is_text = _after_text(data, at)
    ends = np.where(branch == _TEXTS, after_text, ends)
    is_known |= is_varint | (is_text & (branch == _TEXTS))
    return ends, is_record & is_known & ((stored & 1) == 0) & (ends < len(data) - _PAD)


def _length(data: Array, at: Numbers) -> tuple[Numbers, Numbers, Array]:
    """Return where lengths end, what they are, and which are one, of up to three bytes."""
    low, middle, high = (data[at + place].astype(np.int64) for place in range(3))
    has_two = low > 0x7F
    has_three = has_two & (middle > 0x7F)
    raw = (low & 0x7F) | np.where(has_two, (middle & 0x7F) << 7, 0) | np.where(has_three, high << 14, 0)
    is_length = ((raw & 1) == 0) & ~(has_three & (high > 0x7F))
    return at + 1 + has_two + has_three, raw >> 1, is_length


def _after_text(data: Array, at: Numbers) -> tuple[Numbers, Array]:
    """Return where texts end, at most the end of the data, and which are texts."""
    begin, size, is_length = _length(data, at)
    ends = begin + size
    return np.minimum(ends, len(data) - _PAD), is_length & (ends < len(data) - _PAD)


def _varint_sizes(data: Array, at: Numbers) -> Numbers:
    """Return how many bytes numbers take."""
    sizes = np.ones(len(at), np.int64)
    goes_on = data[at] > 0x7F
    for place in range(1, 10):
        if not goes_on.any():
            break
        sizes += goes_on
        goes_on &= data[at + place] > 0x7F
    return sizes
