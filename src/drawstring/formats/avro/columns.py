"""Columns of Avro datums: how the values of one field are read from, or passed over in, all records.

A schema is a tree of columns, made once a block (`avro_decode`). Each moves the cursors over its
field; what a union leaves out, it reads with the cursors of the other records only. An array goes on
item by item, with the cursors of the records that have one more.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import fastavro
import numpy as np
import pyarrow as pa
from pyarrow import types as pt

from drawstring.formats.avro.datums import Array, Datums, Numbers
from drawstring.formats.avro.decimals import decimals_of_bytes, decimals_of_rows
from drawstring.formats.avro.single import arrow_of

_ITEMS_MAX = 10_000
"""Items of an array that cannot go on one by one."""
_PATIENCE = 32
_FEW = 32
"""After so many items, fewer records than this go on one by one: numpy pays for many only."""


class Column(Protocol):
    """A field of Avro datums."""

    def read(self, datums: Datums, at: Numbers) -> pa.Array:
        """Return the values at the cursors, and move the cursors behind them."""
        ...

    def skip(self, datums: Datums, at: Numbers) -> None:
        """Move the cursors behind the values."""
        ...


class NullColumn:
    """Nothing."""

    def read(self, datums: Datums, at: Numbers) -> pa.Array:
        return pa.nulls(len(at))

    def skip(self, datums: Datums, at: Numbers) -> None:
        pass


class BooleanColumn:
    """One byte, 0 or 1."""

    def read(self, datums: Datums, at: Numbers) -> pa.Array:
        values = datums.bytes_of(at)
        if values.max(initial=0) > 1:
            raise ValueError("a boolean is neither 0 nor 1")
        return pa.array(values.view(np.bool_))

    def skip(self, datums: Datums, at: Numbers) -> None:
        datums.advance(at, 1)


@dataclass(frozen=True, slots=True)
class NumberColumn:
    """Ints and longs, and what they stand for by a logical type."""

    kind: pa.DataType

    def read(self, datums: Datums, at: Numbers) -> pa.Array:
        values: Array = datums.longs(at)
        if self.kind.bit_width == 32:
            narrow = values.astype(np.int32)
            if not np.array_equal(narrow, values):
                raise ValueError("an int takes more than 32 bits")
            values = narrow
        return pa.Array.from_buffers(self.kind, len(values), [None, pa.py_buffer(values)])

    def skip(self, datums: Datums, at: Numbers) -> None:
        datums.longs(at)


@dataclass(frozen=True, slots=True)
class FloatColumn:
    """Floats and doubles, little-endian."""

    kind: pa.DataType

    def read(self, datums: Datums, at: Numbers) -> pa.Array:
        values = datums.words("<f4" if self.kind.bit_width == 32 else "<f8", at)
        self.skip(datums, at)
        return pa.Array.from_buffers(self.kind, len(values), [None, pa.py_buffer(values)])

    def skip(self, datums: Datums, at: Numbers) -> None:
        datums.advance(at, self.kind.bit_width // 8)


@dataclass(frozen=True, slots=True)
class TextColumn:
    """Strings, bytes, and decimals in bytes."""

    kind: pa.DataType

    def read(self, datums: Datums, at: Numbers) -> pa.Array:
        if pt.is_decimal(self.kind):
            return decimals_of_bytes(datums.texts(at, pa.binary()), self.kind)
        return datums.texts(at, self.kind)

    def skip(self, datums: Datums, at: Numbers) -> None:
        datums.pass_texts(at)


@dataclass(frozen=True, slots=True)
class FixedColumn:
    """Fixed bytes, and decimals in them."""

    kind: pa.DataType
    size: int

    def read(self, datums: Datums, at: Numbers) -> pa.Array:
        if not self.size:
            return pa.array([b""] * len(at), self.kind)
        rows = datums.rows(at, self.size)
        if pt.is_decimal(self.kind):
            return decimals_of_rows(rows, self.kind)
        return pa.Array.from_buffers(self.kind, len(rows), [None, pa.py_buffer(np.ascontiguousarray(rows))])

    def skip(self, datums: Datums, at: Numbers) -> None:
        datums.advance(at, self.size)


@dataclass(frozen=True, slots=True)
class EnumColumn:
    """The text of a symbol, stored as its number."""

    symbols: pa.Array

    def read(self, datums: Datums, at: Numbers) -> pa.Array:
        numbers = datums.sizes(at)
        if numbers.max(initial=0) >= len(self.symbols) and len(numbers):
            raise ValueError(f"an enum of {len(self.symbols)} symbols has number {numbers.max()}")
        return self.symbols.take(pa.array(numbers))

    def skip(self, datums: Datums, at: Numbers) -> None:
        datums.sizes(at)


@dataclass(frozen=True, slots=True)
class RecordColumn:
    """Fields one after the other."""

    kind: pa.StructType
    fields: tuple[Column, ...]

    def read(self, datums: Datums, at: Numbers) -> pa.Array:
        if not self.fields:
            return pa.array([{}] * len(at), self.kind)
        columns = [field.read(datums, at) for field in self.fields]
        return pa.StructArray.from_arrays(columns, fields=self.kind.fields)

    def skip(self, datums: Datums, at: Numbers) -> None:
        for field in self.fields:
            field.skip(datums, at)


@dataclass(frozen=True, slots=True)
class UnionColumn:
    """A value, or null.

    Attributes:
        value: the branch that is not null.
        kind: its type.
        value_branch: its number.
        branches: how many there are, one or two.
    """

    value: Column
    kind: pa.DataType
    value_branch: int
    branches: int

    def read(self, datums: Datums, at: Numbers) -> pa.Array:
        is_null = self._nulls(datums, at)
        if is_null is None:
            return self.value.read(datums, at)
        return _read_some(self.value, self.kind, datums, at, ~is_null)

    def skip(self, datums: Datums, at: Numbers) -> None:
        is_null = self._nulls(datums, at)
        if is_null is None:
            self.value.skip(datums, at)
        else:
            _skip_some(self.value, datums, at, ~is_null)

    def _nulls(self, datums: Datums, at: Numbers) -> Array | None:
        """Tell which values are null; None when none is."""
        is_null: Array = _branches(datums, at, self.branches) != self.value_branch
        return is_null if is_null.any() else None


@dataclass(frozen=True, slots=True)
class SeveralColumn:
    """A union of several types: a struct with a member for each.

    Attributes:
        kind: the struct.
        members: the branches that are not null.
        null_branch: the number of the null branch, if there is one.
    """

    kind: pa.StructType
    members: tuple[Column, ...]
    null_branch: int | None

    def read(self, datums: Datums, at: Numbers) -> pa.Array:
        member = self._members(datums, at)
        columns = [
            _read_some(column, field.type, datums, at, member == place)
            for place, (column, field) in enumerate(zip(self.members, self.kind.fields, strict=True))
        ]
        mask = pa.array(member < 0)
        return pa.StructArray.from_arrays(columns, fields=self.kind.fields, mask=mask)

    def skip(self, datums: Datums, at: Numbers) -> None:
        member = self._members(datums, at)
        for place, column in enumerate(self.members):
            _skip_some(column, datums, at, member == place)

    def _members(self, datums: Datums, at: Numbers) -> Array:
        """Return which member each value is, -1 for null."""
        count = len(self.members) + (self.null_branch is not None)
        branch = _branches(datums, at, count).astype(np.int64)
        if self.null_branch is None:
            return branch
        return np.where(branch == self.null_branch, -1, branch - (branch > self.null_branch))


def _branches(datums: Datums, at: Numbers, count: int) -> Array:
    """Return which branch of a union each value is."""
    branches = datums.sizes(at)
    if branches.max(initial=0) >= count:
        raise ValueError(f"a union of {count} types has number {branches.max()}")
    return branches


def _read_some(column: Column, kind: pa.DataType, datums: Datums, at: Numbers, chosen: Array) -> pa.Array:
    """Read the values of some records; the others are null."""
    rows = np.flatnonzero(chosen)
    if not len(rows):
        return pa.nulls(len(at), kind)
    cursors = at[rows]
    values = column.read(datums, cursors)
    at[rows] = cursors
    places = np.zeros(len(at), np.int32)
    places[rows] = np.arange(len(rows), dtype=np.int32)
    return values.take(pa.array(places, mask=~chosen))


def _skip_some(column: Column, datums: Datums, at: Numbers, chosen: Array) -> None:
    rows = np.flatnonzero(chosen)
    if len(rows):
        cursors = at[rows]
        column.skip(datums, cursors)
        at[rows] = cursors


@dataclass(frozen=True, slots=True)
class ItemsColumn:
    """Arrays, and maps, whose items are records of key and value.

    Attributes:
        kind: a list or map type.
        item: one item.
        plain: the whole as fastavro takes it, without logical types; None where it cannot.
    """

    kind: pa.DataType
    item: Column
    plain: Any

    def read(self, datums: Datums, at: Numbers) -> pa.Array:
        first = at.copy()
        parts, owners = [], []
        for step, rows in enumerate(self._steps(datums, at)):
            if self._is_slow(step, rows):
                at[:] = first
                return arrow_of(self._one_by_one(datums, at), self.kind)
            cursors = at[rows]
            parts.append(self.item.read(datums, cursors))
            owners.append(rows)
            at[rows] = cursors
        return self._array(parts, owners, len(at))

    def skip(self, datums: Datums, at: Numbers) -> None:
        first = at.copy()
        for step, rows in enumerate(self._steps(datums, at)):
            if self._is_slow(step, rows):
                at[:] = first
                self._one_by_one(datums, at)
                return
            cursors = at[rows]
            self.item.skip(datums, cursors)
            at[rows] = cursors

    def _is_slow(self, step: int, rows: Array) -> bool:
        if self.plain is None and step >= _ITEMS_MAX:
            raise ValueError(f"an array of unions has more than {_ITEMS_MAX} items")
        return self.plain is not None and step >= _PATIENCE and len(rows) < _FEW

    def _steps(self, datums: Datums, at: Numbers) -> Iterator[Array]:
        """Yield the records that have one more item, whose cursors then stand before it."""
        left = np.zeros(len(at), np.int64)
        rows: Array = np.arange(len(at))
        while len(rows):
            started = rows[left[rows] == 0]
            if len(started):
                cursors = at[started]
                left[started] = self._counts(datums, cursors)
                at[started] = cursors
                rows = rows[left[rows] > 0]
            if len(rows):
                yield rows
                left[rows] -= 1

    def _counts(self, datums: Datums, at: Numbers) -> Numbers:
        """Return how many items the next block holds, 0 behind the last one."""
        counts = datums.longs(at)
        sized = np.flatnonzero(counts < 0)
        if len(sized):
            cursors = at[sized]
            datums.sizes(cursors)
            at[sized] = cursors
            counts[sized] = -counts[sized]
        if ((counts < 0) | (counts > datums.end - at)).any():
            raise ValueError("an array claims more items than bytes are left")
        return counts

    def _one_by_one(self, datums: Datums, at: Numbers) -> list[Any]:
        stream = io.BytesIO(datums.bytes)
        found = []
        for row, place in enumerate(at.tolist()):
            stream.seek(place)
            found.append(fastavro.schemaless_reader(stream, self.plain, None))
            at[row] = stream.tell()
        datums.advance(at, 0)
        return found

    def _array(self, parts: list[pa.Array], owners: list[Array], rows: int) -> pa.Array:
        """Return the lists; the parts hold the first items of all records, then the second ones."""
        offsets = np.zeros(rows + 1, np.int32)
        if not parts:
            items = self.item.read(Datums(b"", 0, 0), np.zeros(0, np.int64))
        else:
            owner = np.concatenate(owners)
            np.cumsum(np.bincount(owner, minlength=rows), out=offsets[1:])
            items = pa.concat_arrays(parts)
            if len(parts) > 1:
                items = items.take(pa.array(np.argsort(owner, kind="stable")))
        if pt.is_map(self.kind):
            return pa.MapArray.from_arrays(pa.array(offsets), items.field(0), items.field(1), type=self.kind)
        return pa.ListArray.from_arrays(pa.array(offsets), items, type=self.kind)
