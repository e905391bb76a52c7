"""Column readers of Avro datums: each reads or skips one field of all records at a time.

A schema becomes a tree of column readers, built once per block (`avro.decode`). Each moves the cursors of
all records over its field. A union reads its value with the cursors of the records that have one; an array
reads item by item, with the cursors of the records that have another item.
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
from drawstring.schema.logical_types import is_vector, vectors_of_bytes

_ITEMS_MAX = 10_000
"""Largest number of items of an array that fastavro cannot read record by record."""
_PATIENCE = 32
_FEW = 32
"""After `_PATIENCE` items, fewer records than this are read one by one: numpy is slow for few rows."""


class Column(Protocol):
    """A field of Avro datums."""

    def read(self, datums: Datums, at: Numbers) -> pa.Array:
        """Return the values at the cursors, and move the cursors past them."""
        ...

    def skip(self, datums: Datums, at: Numbers) -> None:
        """Move the cursors past the values."""
        ...


class NullColumn:
    """Nulls, which take no bytes."""

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
    """Ints and longs, also with a logical type."""

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
    """Fixed bytes, also decimals and vectors."""

    kind: pa.DataType
    size: int

    def read(self, datums: Datums, at: Numbers) -> pa.Array:
        if not self.size:
            return pa.array([b""] * len(at), self.kind)
        rows = datums.rows(at, self.size)
        if pt.is_decimal(self.kind):
            return decimals_of_rows(rows, self.kind)
        values = [None, pa.py_buffer(np.ascontiguousarray(rows))]
        if is_vector(self.kind):
            return vectors_of_bytes(pa.Array.from_buffers(pa.binary(self.size), len(rows), values), self.kind)
        return pa.Array.from_buffers(self.kind, len(rows), values)

    def skip(self, datums: Datums, at: Numbers) -> None:
        datums.advance(at, self.size)


@dataclass(frozen=True, slots=True)
class EnumColumn:
    """Enums, which store the index of their symbol."""

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
    """Records, as a sequence of fields."""

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
    """A union of one type with or without null.

    Attributes:
        value: the branch that is not null.
        kind: its type.
        value_branch: its index.
        branches: number of branches, one or two.
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
        """Return which values are null; None if none is."""
        is_null: Array = _branches(datums, at, self.branches) != self.value_branch
        return is_null if is_null.any() else None


@dataclass(frozen=True, slots=True)
class SeveralColumn:
    """A union of several types, read as a struct with a member for each.

    Attributes:
        kind: the struct type.
        members: the branches that are not null.
        null_branch: index of the null branch, None if there is none.
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
        """Return the member index of each value, -1 for null."""
        count = len(self.members) + (self.null_branch is not None)
        branch = _branches(datums, at, count).astype(np.int64)
        if self.null_branch is None:
            return branch
        return np.where(branch == self.null_branch, -1, branch - (branch > self.null_branch))


def _branches(datums: Datums, at: Numbers, count: int) -> Array:
    """Return the branch index of each value of a union."""
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
    indices = np.zeros(len(at), np.int32)
    indices[rows] = np.arange(len(rows), dtype=np.int32)
    return values.take(pa.array(indices, mask=~chosen))


def _skip_some(column: Column, datums: Datums, at: Numbers, chosen: Array) -> None:
    rows = np.flatnonzero(chosen)
    if len(rows):
        cursors = at[rows]
        column.skip(datums, cursors)
        at[rows] = cursors


@dataclass(frozen=True, slots=True)
class ItemsColumn:
    """Arrays, and maps as arrays of key-value records.

    Attributes:
        kind: a list or map type.
        item: column reader of an item.
        plain: the schema for fastavro, without logical types; None if fastavro cannot read it.
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
        """Yield the records that have another item; their cursors are at its start."""
        remaining = np.zeros(len(at), np.int64)
        rows: Array = np.arange(len(at))
        while len(rows):
            started = rows[remaining[rows] == 0]
            if len(started):
                cursors = at[started]
                remaining[started] = self._counts(datums, cursors)
                at[started] = cursors
                rows = rows[remaining[rows] > 0]
            if len(rows):
                yield rows
                remaining[rows] -= 1

    def _counts(self, datums: Datums, at: Numbers) -> Numbers:
        """Return the number of items of the next block, 0 after the last block."""
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
        values = []
        for row, start in enumerate(at.tolist()):
            stream.seek(start)
            values.append(fastavro.schemaless_reader(stream, self.plain, None))
            at[row] = stream.tell()
        datums.advance(at, 0)
        return values

    def _array(self, parts: list[pa.Array], owners: list[Array], rows: int) -> pa.Array:
        """Return the lists; the parts are the first items of all records, then the second ones, and so on."""
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
