"""Decode Avro datums into Arrow batches, column by column.

    block ── parts that fit a CPU cache ──> `Datums`, a cursor per record ── column readers ──> Arrow columns

Columns that are not requested are skipped, and those after the last requested column are not read at all.
Blocks of few records are read record by record.

Cursors: each record has one (`at`: positions in the buffer, ascending), and all cursors move together.
Reading one varint, text or double of every record takes a few numpy operations. Cursors never pass the end:
every move checks the farthest one, so gathers need no check. Up to `_PAD` meaningless bytes after the end may
be read. A cursor may stray into the next record; callers that read whole records compare the cursors with the
ends of the records.

Column readers: a schema becomes a tree of `Column` objects, built once per block. Each reads or skips one
field of all records and moves their cursors over it. A union reads its value with the cursors of the records
that have one. An array reads item by item, with the cursors of the records that have another item.

Short blocks, and arrays of very different lengths, are decoded value by value with fastavro. It reads without
logical types (dates and decimals remain numbers and bytes). Arrow converts the values to columns, and kernels
cast these to the final types.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from functools import lru_cache
from typing import Any, Final, Protocol, TypeAlias

import fastavro
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types as pt

from drawstring.base import limits
from drawstring.base.lazy import cached_property
from drawstring.formats.avro.checks import PRIMITIVES, check_bounded
from drawstring.formats.avro.container import DAMAGE
from drawstring.formats.avro.encoder import decimals_of_bytes, decimals_of_rows
from drawstring.schema.avro import full_name, known_name, union_branches
from drawstring.schema.logical_types import is_vector, vector_width, vectors_of_bytes

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


class PlainSchemas:
    """Converts schemas for fastavro: without logical types, and with maps as arrays of entries.

    Types get new names, so that one type can occur in several places.

    Attributes:
        has_unions: whether a schema has a union of several types; fastavro does not return which one it read.
    """

    def __init__(self) -> None:
        self._ids = itertools.count()
        self.has_unions = False

    def of(self, avro: Any, named: dict[str, Any], space: str) -> Any:
        """Return the schema without logical types.

        Args:
            avro: a schema as parsed from JSON.
            named: the named types so far, by full name; those of the schema are added.
            space: the enclosing namespace.
        """
        if isinstance(avro, list):
            self.has_unions |= len(union_branches(avro)) > 1
            return [self.of(each, named, space) for each in avro]
        if isinstance(avro, str):
            if avro in PRIMITIVES:
                return avro
            full = known_name(avro, space, named)
            return self.of(named[full], named, full.rpartition(".")[0])
        kind = avro["type"]
        if kind in ("record", "enum", "fixed"):
            return self._named(avro, named, space)
        if kind == "array":
            return {"type": "array", "items": self.of(avro["items"], named, space)}
        if kind == "map":
            value = self.of(avro["values"], named, space)
            fields = [{"name": "key", "type": "string"}, {"name": "value", "type": value}]
            return {"type": "array", "items": {"type": "record", "name": self._name(), "fields": fields}}
        return self.of(kind, named, space)

    def _named(self, avro: dict[str, Any], named: dict[str, Any], space: str) -> Any:
        full = full_name(avro, space)
        named[full] = avro
        plain = {"type": avro["type"], "name": self._name()}
        if avro["type"] == "enum":
            return plain | {"symbols": avro["symbols"]}
        if avro["type"] == "fixed":
            return plain | {"size": avro["size"]}
        inner = full.rpartition(".")[0]
        fields = [{"name": f["name"], "type": self.of(f["type"], named, inner)} for f in avro["fields"]]
        return plain | {"fields": fields}

    def _name(self) -> str:
        return f"t{next(self._ids)}"


def arrow_of(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Return values that fastavro read with a plain schema as an array of the final type."""
    return _finish(pa.array(values, type=_plain_type(kind)), kind)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of a column that fastavro read."""
    if pt.is_struct(kind):
        return pa.struct([field.with_type(_plain_type(field.type)) for field in kind.fields])
    if pt.is_map(kind):
        value = kind.item_field.with_type(_plain_type(kind.item_type))
        return pa.list_(pa.struct([pa.field("key", pa.string(), False), value]))
    if pt.is_list(kind):
        return pa.list_(kind.value_field.with_type(_plain_type(kind.value_type)))
    if is_vector(kind):
        return pa.binary(vector_width(kind))
    if pt.is_decimal(kind):
        return pa.binary()
    if pt.is_temporal(kind):
        return pa.int32() if kind.bit_width == 32 else pa.int64()
    return kind


def _finish(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the array in its final type, with logical types at every depth."""
    if array.type == kind:
        return array
    if is_vector(kind):
        return vectors_of_bytes(array, kind)
    if pt.is_decimal(kind):
        return decimals_of_bytes(array, kind)
    if pt.is_struct(kind):
        parts = [_finish(array.field(at), field.type) for at, field in enumerate(kind.fields)]
        return pa.StructArray.from_arrays(parts, fields=kind.fields, mask=array.is_null())
    if pt.is_map(kind):
        keys, items = array.values.flatten()
        finished = _finish(items, kind.item_type)
        return pa.MapArray.from_arrays(array.offsets, keys, finished, type=kind, mask=_mask(array))
    if pt.is_list(kind):
        values = _finish(array.values, kind.value_type)
        return pa.ListArray.from_arrays(array.offsets, values, type=kind, mask=_mask(array))
    return array.view(kind)


def _mask(array: pa.Array) -> pa.BooleanArray | None:
    return array.is_null() if array.null_count else None


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
class MultiUnionColumn:
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


__all__ = ["DAMAGE", "RowDecoder", "Spans", "decode_rows"]

_PART_BYTES: Final = 2 << 20
_PART_ROWS: Final = 16_384


@dataclass(frozen=True, slots=True)
class Spans:
    """Start and end positions of the datums in a block's content."""

    content: bytes
    starts: Array
    ends: Array

    def parts(self) -> Iterator[Spans]:
        """Yield runs of datums that are read together."""
        first = 0
        while first < len(self.starts):
            far = np.searchsorted(self.ends, self.starts[first] + _PART_BYTES, "right")
            stop = max(first + 1, min(first + _PART_ROWS, int(far)))
            yield Spans(self.content, self.starts[first:stop], self.ends[first:stop])
            first = stop


def decode_rows(
    spans: Spans, avro: dict[str, Any], schema: pa.Schema, columns: Collection[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the records of a block's content.

    Args:
        spans: the datums.
        avro: their Avro schema as parsed from JSON.
        schema: the equivalent Arrow schema.
        columns: names of the columns to read, in any order; None for all. If the schema has none of them, all
            are read.

    Raises:
        ValueError or another of `DAMAGE`: the bytes do not fit the schema.
    """
    yield from RowDecoder.of(avro, schema, columns).decode(spans)


@dataclass(frozen=True, slots=True)
class RowDecoder:
    """Decodes records of one schema; see `decode_rows`."""

    schema: pa.Schema
    requested: Sequence[str]
    plain: Any
    has_unions: bool
    columns: tuple[Column, ...]

    @staticmethod
    def of(avro: dict[str, Any], schema: pa.Schema, columns: Collection[str] | None = None) -> RowDecoder:
        """Return the decoder of a schema; the arguments are those of `decode_rows`.

        Raises:
            ValueError: values of the schema could outgrow their bytes.
        """
        check_bounded(avro)
        requested = [name for name in schema.names if columns is None or name in columns] or schema.names
        single = PlainSchemas()
        plain = single.of(avro, {}, "")
        readers = _Columns().fields_of(avro, list(schema))
        return RowDecoder(schema, requested, plain, single.has_unions, readers)

    def decode(self, spans: Spans) -> Iterator[pa.RecordBatch]:
        """Yield the records of a block's content."""
        if len(spans.starts) < limits.in_force.avro_columns_rows_min and not self.has_unions:
            few = _one_by_one(spans, self.plain, self.schema).select(self.requested)
            batches: Iterator[pa.RecordBatch] = iter([few])
        else:
            rows = _Rows(self.columns, self.schema, frozenset(self.requested))
            batches = (rows.read(part) for part in spans.parts())
        for batch in batches:
            batch.validate(full=True)
            yield batch


def _one_by_one(spans: Spans, plain: Any, schema: pa.Schema) -> pa.RecordBatch:
    parsed = fastavro.parse_schema(plain)
    stream = io.BytesIO(spans.content)
    rows = []
    for start, end in zip(spans.starts.tolist(), spans.ends.tolist(), strict=True):
        stream.seek(start)
        rows.append(fastavro.schemaless_reader(stream, parsed, None))
        if stream.tell() != end:
            raise ValueError(f"the record at byte {start} does not end at byte {end}")
    columns = arrow_of(rows, pa.struct(list(schema))).flatten()
    return pa.RecordBatch.from_arrays(columns, schema=schema)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Reads records: the requested columns, up to the last of them."""

    columns: tuple[Column, ...]
    schema: pa.Schema
    requested: frozenset[str]

    def read(self, spans: Spans) -> pa.RecordBatch:
        base = int(spans.starts[0])
        datums = Datums(spans.content, base, int(spans.ends[-1]))
        at = spans.starts - base
        fields, arrays = [], []
        for column, each in zip(self.columns, self.schema, strict=True):
            if each.name in self.requested:
                fields.append(each)
                arrays.append(column.read(datums, at))
            elif len(fields) < len(self.requested):
                column.skip(datums, at)
        ends = spans.ends - base
        is_whole = len(fields) == len(self.columns)
        wrong = np.flatnonzero(at != ends if is_whole else at > ends)
        if len(wrong):
            raise ValueError(f"the record at byte {spans.starts[wrong[0]]} does not end where it should")
        return pa.record_batch(arrays, pa.schema(fields))


@dataclass(slots=True)
class _Columns:
    """Builds column readers of Avro types, and stores named types."""

    named: dict[str, Any] = dataclass_field(default_factory=dict)

    def fields_of(
        self, record: dict[str, Any], fields: list[pa.Field], space: str = ""
    ) -> tuple[Column, ...]:
        inner = full_name(record, space).rpartition(".")[0]
        return tuple(
            self.of(avro["type"], each.type, inner)
            for avro, each in zip(record["fields"], fields, strict=True)
        )

    def of(self, avro: Any, kind: pa.DataType, space: str) -> Column:
        if isinstance(avro, list):
            return self.union(avro, kind, space)
        if isinstance(avro, str):
            return _primitive(avro, kind) or self.of(
                self.named[known_name(avro, space, self.named)], kind, space
            )
        name = avro["type"]
        if name in ("record", "enum", "fixed"):
            self.named[full_name(avro, space)] = avro
        if name == "record":
            return RecordColumn(kind, self.fields_of(avro, kind.fields, space))
        if name == "enum":
            return EnumColumn(pa.array(avro["symbols"], pa.string()))
        if name == "fixed":
            return FixedColumn(kind, avro["size"])
        if name in ("array", "map"):
            return self.items(avro, kind, space)
        return self.of(name, kind, space)

    def union(self, avro: list[Any], kind: pa.DataType, space: str) -> Column:
        if len(branches := union_branches(avro)) > 1:
            members = zip(branches, kind.fields, strict=True)
            columns = tuple(self.of(each, member.type, space) for each, member in members)
            absent = avro.index("null") if "null" in avro else None
            return MultiUnionColumn(kind, columns, absent)
        branch = next((index for index, each in enumerate(avro) if each != "null"), 0)
        return UnionColumn(self.of(avro[branch], kind, space), kind, branch, len(avro))

    def items(self, avro: dict[str, Any], kind: pa.DataType, space: str) -> Column:
        single = PlainSchemas()
        schema = single.of(avro, dict(self.named), space)
        plain = None if single.has_unions else fastavro.parse_schema(schema)
        if avro["type"] == "array":
            return ItemsColumn(kind, self.of(avro["items"], kind.value_type, space), plain)
        value = self.of(avro["values"], kind.item_type, space)
        entry = pa.struct([kind.key_field, kind.item_field])
        return ItemsColumn(kind, RecordColumn(entry, (TextColumn(kind.key_type), value)), plain)


def _primitive(name: str, kind: pa.DataType) -> Column | None:
    if name == "null":
        return NullColumn()
    if name == "boolean":
        return BooleanColumn()
    if name in ("int", "long"):
        return NumberColumn(kind)
    if name in ("float", "double"):
        return FloatColumn(kind)
    return TextColumn(kind) if name in ("string", "bytes") else None
