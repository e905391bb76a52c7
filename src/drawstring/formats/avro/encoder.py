"""Encode Arrow columns into Avro datums, column by column (Avro specification: Binary Encoding).

Each column becomes an array of the bytes of its values. The bytes of a record are those of its columns joined
row by row. The bytes of an array are those of its items, which are adjacent already. Decimals are unscaled
values in big-endian two's complement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base import limits
from drawstring.formats.avro.container import encode_long
from drawstring.schema.avro import full_name, known_name
from drawstring.schema.logical_types import is_vector, vector_bytes

_DECIMAL_BYTES = 16
_NOTHING = b""
_PARTS_KNOWN: Final = 256
"""Number of constant parts of rows that are kept as scalars."""


def encode_rows(rows: pa.StructArray, avro: dict[str, Any]) -> pa.BinaryArray:
    """Return the Avro datum of each row; null for rows with a null in a column without null branch.

    Args:
        rows: columns by name, of the Arrow types of the schema.
        avro: the record's schema as parsed from JSON.
    """
    return RowEncoder.of(avro).encode(rows)


Part: TypeAlias = "pa.Array | bytes"
"""A part of each row's bytes: the values of an array, or the same bytes in all rows."""


@dataclass(frozen=True, slots=True)
class RowEncoder:
    """Encodes the rows of one schema.

    Attributes:
        avro: the record's schema as parsed from JSON.
        named: its named types by full name.
    """

    avro: dict[str, Any]
    named: Mapping[str, dict[str, Any]]

    @staticmethod
    def of(avro: dict[str, Any]) -> RowEncoder:
        """Return the encoder of a schema; see `encode_rows`."""
        return RowEncoder(avro, dict(_named_types(avro, "")))

    def encode(self, rows: pa.StructArray) -> pa.BinaryArray:
        """Return the Avro datum of each row; see `encode_rows`."""
        return join(_Encoder(self.named).encode(rows, self.avro, ""))

    def encode_columns(self, columns: Mapping[str, pa.Array]) -> pa.BinaryArray:
        """Return the Avro datum of each row of some columns, at least one; the others are null.

        Args:
            columns: arrays of the same length by name; columns without null branch are among them.
        """
        encoder, space = _Encoder(self.named), full_name(self.avro, "").rpartition(".")[0]
        parts: list[Part] = []
        for each in self.avro["fields"]:
            array, avro = columns.get(each["name"]), each["type"]
            parts += [_null(avro)] if array is None else encoder.encode(array, avro, space)
        return join(parts)


def _null(branches: list[Any]) -> bytes:
    """Return the datum of a null."""
    return encode_long(branches.index("null"))


def _named_types(avro: Any, space: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the types that other parts of a schema may refer to by their full names."""
    if isinstance(avro, list):
        for each in avro:
            yield from _named_types(each, space)
    elif isinstance(avro, dict):
        if avro["type"] in ("record", "fixed", "enum"):
            name = full_name(avro, space)
            yield name, avro
            space = name.rpartition(".")[0]
        inner = [each["type"] for each in avro.get("fields", ())]
        inner += [avro[key] for key in ("items", "values") if key in avro]
        if isinstance(avro["type"], dict | list):
            inner.append(avro["type"])
        yield from _named_types(inner, space)


@dataclass(frozen=True, slots=True)
class _Encoder:
    """Encodes arrays into parts to join.

    Attributes:
        named: the named types of the schema.
    """

    named: Mapping[str, dict[str, Any]]

    def encode(self, array: pa.Array, avro: Any, space: str) -> list[Part]:
        if isinstance(avro, list):
            return self.union(array, avro, space)
        if avro == "null":
            return []
        if isinstance(avro, str) and avro in _PRIMITIVES:
            return _masked(_PRIMITIVES[avro](array), array)
        if isinstance(avro, str):
            avro = self.named[known_name(avro, space, self.named)]
        return _masked(self.complex(array, avro, space), array)

    def complex(self, array: pa.Array, avro: dict[str, Any], space: str) -> list[Part]:
        kind = avro["type"]
        if kind == "record":
            return self.record(array, avro, full_name(avro, space).rpartition(".")[0])
        if kind == "array":
            return [_encode_items(array, self.joined(_items(array), avro["items"], space))]
        if kind == "map":
            entries = _items(array)
            values = self.encode(entries.field(1), avro["values"], space)
            return [_encode_items(array, join([*encode_bytes(entries.field(0)), *values]))]
        if avro.get("logicalType") == "decimal":
            return encode_decimals(array, avro.get("size"))
        if kind == "fixed":
            return [(vector_bytes(array) if is_vector(array.type) else array).cast(pa.binary())]
        if kind == "enum":
            return encode_numbers(pc.index_in(array, pa.array(avro["symbols"])))
        return self.encode(array, kind, space)

    def joined(self, array: pa.Array, avro: Any, space: str) -> pa.Array:
        parts = self.encode(array, avro, space)
        return join(parts) if parts else pa.array([_NOTHING] * len(array), pa.binary())

    def union(self, array: pa.Array, branches: list[Any], space: str) -> list[Part]:
        branch = next((index for index, each in enumerate(branches) if each != "null"), 0)
        has_null = "null" in branches
        if has_null and array.null_count == len(array):
            return [pa.repeat(_binary(_null(branches)), len(array))]
        if len(branches) - has_null > 1:
            return [self.member(array, branches, space)]
        present = [encode_long(branch), *self.encode(array, branches[branch], space)]
        if not has_null or not array.null_count:
            return present
        absent = _binary(_null(branches))
        return [pc.if_else(array.is_valid(), join(present), absent)]

    def member(self, array: pa.StructArray, branches: list[Any], space: str) -> pa.Array:
        """Encode the one member that is not null of each row; null without one and without null branch."""
        encoded = pa.nulls(len(array), pa.binary())
        if "null" in branches:
            encoded = pa.repeat(_binary(_null(branches)), len(array))
        members = iter(array.flatten())
        for index, each in enumerate(branches):
            if each == "null":
                continue
            values = next(members)
            if values.null_count == len(values):
                continue
            present = join([encode_long(index), *self.encode(values, each, space)])
            encoded = pc.if_else(values.is_valid(), present, encoded)
        return encoded

    def record(self, array: pa.StructArray, avro: dict[str, Any], space: str) -> list[Part]:
        fields = avro["fields"]
        return [
            part for each in fields for part in self.encode(array.field(each["name"]), each["type"], space)
        ]


def join(parts: list[Part]) -> pa.Array:
    """Return the concatenated parts of each row; at least one part is an array."""
    merged: list[Part] = []
    for part in parts:
        if isinstance(part, bytes) and merged and isinstance(merged[-1], bytes):
            merged[-1] += part
        else:
            merged.append(part)
    values = [_binary(part) if isinstance(part, bytes) else part for part in merged]
    return pc.binary_join_element_wise(*values, _binary(_NOTHING))


@lru_cache(_PARTS_KNOWN)
def _binary(data: bytes) -> pa.Scalar:
    return pa.scalar(data, pa.binary())


def _masked(parts: list[Part], array: pa.Array) -> list[Part]:
    """Restore the nulls of the array that was encoded."""
    if not array.null_count:
        return parts
    return [pc.if_else(array.is_valid(), join(parts), pa.scalar(None, pa.binary()))]


def varints(values: npt.NDArray[np.int64]) -> pa.BinaryArray:
    """Return Avro ints or longs: zigzag, seven bits per byte, lowest first.

    Args:
        values: the numbers.
    """
    if len(values) <= limits.in_force.avro_single_values_max:
        return pa.array(list(map(encode_long, values.tolist())), pa.binary())
    rest = ((values << 1) ^ (values >> 63)).view(np.uint64)
    if rest.max() < 1 << 7:
        return _binaries(np.arange(len(rest) + 1, dtype=np.int32), rest.astype(np.uint8))
    sizes = np.ones(len(rest), np.int32)
    for bits in range(7, 70, 7):
        over = rest >> np.uint64(bits) if bits < 64 else np.zeros_like(rest)
        if not over.any():
            break
        sizes += over != 0
    offsets = np.zeros(len(rest) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    out = np.empty(offsets[-1], np.uint8)
    for index in range(int(sizes.max(initial=0))):
        rows = np.flatnonzero(sizes > index)
        low = (rest[rows] >> np.uint64(7 * index)).astype(np.uint8) & np.uint8(0x7F)
        out[offsets[rows] + index] = low | ((sizes[rows] > index + 1).astype(np.uint8) << 7)
    return _binaries(offsets, out)


def _binaries(offsets: npt.NDArray[np.int32], data: npt.NDArray[np.uint8]) -> pa.BinaryArray:
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.BinaryArray.from_buffers(pa.binary(), len(offsets) - 1, buffers)


def encode_bytes(array: pa.Array) -> list[Part]:
    """Return Avro bytes or strings: the length, followed by the bytes."""
    data = array.cast(pa.binary())
    return [varints(_numbers(pc.binary_length(data))), data]


def encode_numbers(array: pa.Array) -> list[Part]:
    """Return Avro ints or longs of an array of integers, dates, times or timestamps."""
    return [varints(_numbers(array))]


def encode_floats(array: pa.Array) -> list[Part]:
    """Return Avro floats or doubles: little-endian, 4 or 8 bytes."""
    width = array.type.byte_width
    values = array.fill_null(0.0).to_numpy(zero_copy_only=False)
    return [_fixed(np.ascontiguousarray(values).view(np.uint8).reshape(-1, width))]


def encode_booleans(array: pa.Array) -> list[Part]:
    """Return Avro booleans: one byte, 0 or 1."""
    return [pc.if_else(array, _binary(b"\x01"), _binary(b"\x00"))]


def _numbers(array: pa.Array) -> npt.NDArray[np.int64]:
    width = array.type.bit_width
    plain = array.view(pa.int32() if width == 32 else pa.int64())
    known = plain.fill_null(0) if plain.null_count else plain
    numbers: npt.NDArray[np.int64] = known.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def binary_parts(array: pa.BinaryArray) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """Return the offsets and the bytes of a binary array; the offsets of a slice do not start at 0."""
    _, offsets, data = array.buffers()
    if offsets is None or data is None:
        return np.zeros(len(array) + 1, np.int32), np.empty(0, np.uint8)
    own = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    return own, np.frombuffer(data, np.uint8)


def _fixed(values: npt.NDArray[np.uint8]) -> pa.Array:
    """Return one binary value for each row of a matrix of bytes."""
    count, width = values.shape
    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(width)
    return _binaries(offsets, np.ascontiguousarray(values).reshape(-1))


def big_endian(array: pa.Array) -> npt.NDArray[np.uint8]:
    """Return the unscaled values of decimals as rows of 16 bytes, highest first; null becomes 0."""
    start, stop = array.offset * _DECIMAL_BYTES, (array.offset + len(array)) * _DECIMAL_BYTES
    data = np.frombuffer(array.buffers()[1], np.uint8)[start:stop] if len(array) else np.empty(0, np.uint8)
    return data.reshape(-1, _DECIMAL_BYTES)[:, ::-1]


def encode_decimals(array: pa.Array, size: int | None = None) -> list[Part]:
    """Return Avro decimals: fixed of `size` bytes, or bytes with a length if `size` is None."""
    values = big_endian(array)
    if size is None:
        return [encode_long(_DECIMAL_BYTES), _fixed(values)]
    if size > _DECIMAL_BYTES:
        sign = np.repeat(np.where(values[:, :1] > 127, 255, 0).astype(np.uint8), size - _DECIMAL_BYTES, 1)
        return [_fixed(np.hstack([sign, values]))]
    return [_fixed(values[:, _DECIMAL_BYTES - size :])]


def _items(array: pa.Array) -> pa.Array:
    """Return the items of all lists, or the entries of all maps, that are not null, as one array."""
    first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
    if isinstance(array, pa.MapArray):
        fields = [pa.field("key", pa.string(), False), array.type.item_field]
        arrays = [array.keys, array.items]
        return pa.StructArray.from_arrays(arrays, fields=fields).slice(first, last - first)
    return array.values.slice(first, last - first)


def _encode_items(array: pa.Array, items: pa.Array) -> pa.Array:
    """Return Avro arrays or maps: one block with all items, followed by an empty block."""
    bounds = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    bounds -= bounds[0]
    counts = np.diff(bounds)
    offsets, data = binary_parts(items)
    grouped = _binaries(np.ascontiguousarray(offsets[bounds]), data)
    filled = join([varints(counts), grouped, b"\x00"])
    return pc.if_else(pa.array(counts > 0), filled, _binary(b"\x00"))


_PRIMITIVES: dict[str, Callable[[pa.Array], list[Part]]] = {
    "boolean": encode_booleans,
    "int": encode_numbers,
    "long": encode_numbers,
    "float": encode_floats,
    "double": encode_floats,
    "bytes": encode_bytes,
    "string": encode_bytes,
}


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
