"""Finding of the log record of a base row by its key.

Record keys are texts. Where all key columns are integers, the columns themselves are compared: the texts of
the log records are taken apart once, and the long texts of all base rows are not read at all.

    log records   `l_orderkey:7,l_linenumber:1` ──> (7, 1) ──> hash ──┐
    base rows      l_orderkey   l_linenumber    ──> (7, 1) ──> hash ──┴── equal? ── equal numbers? ──> found

Most base rows have no log record. A table of flags, one for each value of the first bits of a hash, tells so
of nearly all of them, at a tenth of what looking a hash up costs. Where one of several columns nearly is a
key, a first such table is of that column alone: the others are looked at in the rows that it leaves over.

A text is taken apart only if it is the one that the numbers make, so that both ways find the same rows.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.config.table.config import TableConfig
from drawstring.config.table.kinds import KeyGeneratorType
from drawstring.keygen.keys import KeyGenerator
from drawstring.merge.order import Array
from drawstring.schema.meta import RECORD_KEY

_INTEGER: Final = "0|-?[1-9][0-9]*"
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_FLAGS_A_KEY: Final = 32
_FLAG_BITS_MAX: Final = 20
"""The flags take up to a megabyte, so that they stay in the cache of a core."""
_REPEATED_MAX: Final = 2
"""How often the values of a column repeat, on average, that is looked at before the others."""
_BLOCK_ROWS: Final = 8_192
"""Rows that are hashed at once: their numbers stay in the cache of a core, and take no fresh memory."""
_OF_ANY_COLUMNS: Final = (KeyGeneratorType.AUTO, KeyGeneratorType.USER_PROVIDED)
_NAMED_SOMETIMES: Final = (KeyGeneratorType.COMPLEX, KeyGeneratorType.GLOBAL_DELETE)
"""Generators whose keys of one column are `field:value` or `value`, by the release that wrote them."""


@dataclass(frozen=True, slots=True)
class KeyNumbers:
    """Keys of integer columns as numbers.

    Attributes:
        columns: the key columns.
        numbers: for each of them, the values of the log records.
        hashes: one for each log record; they are distinct.
        flags: by the first bits of a hash, whether a log record has one that begins with them.
        telling: the place of a column whose values hardly repeat in the log records; None without one.
        flags_of_telling: like `flags`, of hashes of that column alone.
    """

    columns: Sequence[str]
    numbers: Sequence[Array]
    hashes: pa.Array
    flags: Array
    telling: int | None = None
    flags_of_telling: Array | None = None

    @staticmethod
    def of(columns: Sequence[str], numbers: Sequence[Array]) -> KeyNumbers | None:
        """Return the keys of log records; None if two of them have the same hash.

        Args:
            columns: the key columns.
            numbers: for each of them, the values of the log records.
        """
        hashes = _hashes(numbers)
        if _distinct(hashes) < len(hashes):
            return None
        known = KeyNumbers(columns, numbers, pa.array(hashes), _flags(hashes))
        counts = [_distinct(each) for each in numbers]
        telling = int(np.argmax(counts))
        if len(columns) == 1 or counts[telling] * _REPEATED_MAX < len(hashes):
            return known
        return replace(known, telling=telling, flags_of_telling=_flags(_hashes([numbers[telling]])))

    def find(self, rows: pa.RecordBatch) -> tuple[Array, Array]:
        """Return the base rows that have a log record, and the numbers of those log records."""
        stored = [rows.column(name) for name in self.columns]
        values = [_numbers(column) for column in stored]
        maybe, hashes = self._flagged(values)
        places = pc.index_in(pa.array(hashes), value_set=self.hashes)
        is_found = places.is_valid().to_numpy(zero_copy_only=False)
        found, records = maybe[is_found], places.drop_null().to_numpy(zero_copy_only=False)
        is_same = np.ones(len(found), dtype=bool)
        for column, own, logged in zip(stored, values, self.numbers, strict=True):
            is_same &= own[found] == logged[records]
            if column.null_count:
                is_same &= column.is_valid().to_numpy(zero_copy_only=False)[found]
        return found[is_same], records[is_same]

    def _flagged(self, values: Sequence[Array]) -> tuple[Array, Array]:
        """Return the base rows whose hash begins like one of a log record, and their hashes."""
        if self.telling is None or self.flags_of_telling is None:
            return _flagged(values, self.flags)
        maybe, _ = _flagged([values[self.telling]], self.flags_of_telling)
        left, hashes = _flagged([column[maybe] for column in values], self.flags)
        return maybe[left], hashes


def key_numbers(
    keys: pa.Array, config: TableConfig, stored: pa.Schema, others: Collection[str]
) -> KeyNumbers | None:
    """Return the keys of log records as numbers; None if texts are to be compared.

    Args:
        keys: the record keys of the log records, distinct.
        config: the table.
        stored: the columns of the base file.
        others: columns of the base rows that are read anyway.
    """
    fields = config.record_key_fields
    costs_more = RECORD_KEY in others and not all(field in others for field in fields)
    return None if costs_more or not _are_integers(config, stored) else _taken_apart(keys, config)


def _are_integers(config: TableConfig, stored: pa.Schema) -> bool:
    """Return whether record keys are made of integer columns of a base file alone, always in one form."""
    fields, generator = config.record_key_fields, config.key_generator
    if not fields or generator in _OF_ANY_COLUMNS:
        return False
    if len(fields) == 1 and generator in _NAMED_SOMETIMES:
        return False
    return all(field in stored.names and pt.is_integer(stored.field(field).type) for field in fields)


def _taken_apart(keys: pa.Array, config: TableConfig) -> KeyNumbers | None:
    """Return keys as numbers; None if a key is not the text of numbers, or two have the same hash."""
    fields = config.record_key_fields
    is_prefixed = KeyGenerator(config).is_prefixed()
    parts = [
        f"{re.escape(field) + ':' if is_prefixed else ''}(?P<n{at}>{_INTEGER})"
        for at, field in enumerate(fields)
    ]
    found = pc.extract_regex(keys, f"^{','.join(parts)}$")
    if found.null_count:
        return None
    try:
        numbers = [_numbers(part.cast(pa.int64())) for part in found.flatten()]
    except pa.ArrowInvalid:
        return None
    return KeyNumbers.of(fields, numbers)


def _numbers(column: pa.Array) -> Array:
    """Return integers as numpy has them, in place of null any."""
    filled = column.fill_null(0) if column.null_count else column
    numbers: Array = filled.to_numpy(zero_copy_only=False)
    return numbers


def _hashes(columns: Sequence[Array]) -> Array:
    """Return a hash of the numbers of each row (uint64)."""
    first, *others = (column.astype(np.int64, copy=False).view(np.uint64) for column in columns)
    hashes: Array = first * _FACTOR
    for column in others:
        hashes += column
        hashes *= _FACTOR
    return hashes


def _flags(hashes: Array) -> Array:
    """Return by the first bits of a hash whether one of some hashes begins with them."""
    bits = min(_FLAG_BITS_MAX, (len(hashes) * _FLAGS_A_KEY).bit_length() or 1)
    flags = np.zeros(1 << bits, dtype=bool)
    flags[_first_bits(hashes, len(flags))] = True
    return flags


def _flagged(values: Sequence[Array], flags: Array) -> tuple[Array, Array]:
    """Return the rows whose hash begins like one that is flagged, and their hashes."""
    rows, hashes = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.uint64)]
    for start in range(0, len(values[0]), _BLOCK_ROWS):
        block = _hashes([column[start : start + _BLOCK_ROWS] for column in values])
        maybe = np.flatnonzero(flags.take(_first_bits(block, len(flags))))
        rows.append(maybe + start)
        hashes.append(block[maybe])
    return np.concatenate(rows), np.concatenate(hashes)


def _distinct(values: Array) -> int:
    """Return the number of distinct values."""
    ordered = np.sort(values)
    return int((ordered[1:] != ordered[:-1]).sum()) + 1 if len(ordered) else 0


def _first_bits(hashes: Array, values: int) -> Array:
    """Return the first bits of hashes, of which there are so many values."""
    return (hashes >> np.uint64(65 - values.bit_length())).view(np.int64)
