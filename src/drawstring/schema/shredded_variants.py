"""Shredded VARIANT values put together again (Parquet: Variant Encoding, Variant Shredding).

A shredded column has values of one type in a column of their own:

    metadata   value                typed_value
    k, o       null                 {k: {value: null, typed_value: 7}}      {"k": 7}
    k, o       {"o": true}          {k: {value: "x",  typed_value: null}}   {"k": "x", "o": true}
    k, o       "text"               null                                    "text"

The metadata has all names of fields already. A value is a byte with its kind, and what follows:

    primitive   kind << 2           number, or length and bytes
    text < 64   length << 2 | 1     the text
    object      sizes << 2 | 2      count, numbers of names by the order of names, offsets, values
    array       sizes << 2 | 3      count, offsets, values
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.base.errors import UnsupportedError
from drawstring.schema.logical_types import TYPED_VALUE, VARIANT

_NULL: Final = b"\x00"
_TRUE, _FALSE = b"\x04", b"\x08"
_SHORT_MAX: Final = 63
_BYTE_MAX: Final = 255
_OBJECT, _ARRAY = 2, 3
_DECIMALS: Final = ((9, 8, 4), (18, 9, 8), (38, 10, 16))
"""Digits, kind and number of bytes of decimals."""

Values = list["bytes | None"]
Names = Mapping[str, int]
"""The numbers of the names in a metadata."""


def whole_variants(array: pa.StructArray, column: str) -> pa.StructArray:
    """Return variants unshredded.

    Args:
        array: structs of `metadata`, `typed_value` and perhaps `value`.
        column: name of the column, for the error.

    Raises:
        UnsupportedError: typed values are of a type that variants have not.
    """
    metadata = _part(array, "metadata")
    assert metadata is not None
    names = [{} if each is None else _names(each) for each in metadata.cast(pa.binary()).to_pylist()]
    values = _values(_part(array, "value"), _part(array, TYPED_VALUE), names, column)
    whole = pa.array([_NULL if each is None else each for each in values], pa.binary())
    parts = [pc.fill_null(metadata.cast(pa.binary()), b""), whole]
    return pa.StructArray.from_arrays(parts, fields=list(VARIANT), mask=array.is_null())


def _part(array: pa.StructArray, name: str) -> pa.Array | None:
    """Return a field, null where its struct is null."""
    at = array.type.get_field_index(name)
    return array.flatten()[at] if at >= 0 else None


def _values(value: pa.Array | None, typed: pa.Array | None, names: Sequence[Names], column: str) -> Values:
    """Return the values of a variant's two columns; None where both are null."""
    plain: Values = [None] * len(names) if value is None else value.cast(pa.binary()).to_pylist()
    if typed is None:
        return plain
    if pt.is_struct(typed.type):
        found = _objects(typed, plain, names, column)
    elif pt.is_list(typed.type) or pt.is_large_list(typed.type):
        found = _arrays(typed, names, column)
    else:
        found = _primitives(typed, column)
    return [own if own is not None else other for own, other in zip(found, plain, strict=True)]


def _objects(typed: pa.StructArray, rest: Values, names: Sequence[Names], column: str) -> Values:
    fields = {
        field.name: _values(_part(part, "value"), _part(part, TYPED_VALUE), names, f"{column}.{field.name}")
        for field, part in zip(typed.type.fields, typed.flatten(), strict=True)
    }
    objects: Values = []
    for row, is_object in enumerate(typed.is_valid().to_pylist()):
        if not is_object:
            objects.append(None)
            continue
        numbers = names[row]
        inner = {name: value for name, values in fields.items() if (value := values[row]) is not None}
        given = rest[row]
        if given is not None:
            inner |= _fields_of(given, {number: name for name, number in numbers.items()})
        objects.append(_object(inner, numbers))
    return objects


def _arrays(typed: pa.Array, names: Sequence[Names], column: str) -> Values:
    lengths = pc.fill_null(pc.list_value_length(typed), 0).to_pylist()
    items = typed.flatten()
    owners = [each for each, count in zip(names, lengths, strict=True) for _ in range(count)]
    parts = iter(_values(_part(items, "value"), _part(items, TYPED_VALUE), owners, f"{column}.element"))
    arrays: Values = []
    for count, is_array in zip(lengths, typed.is_valid().to_pylist(), strict=True):
        inner = [next(parts) or _NULL for _ in range(count)]
        arrays.append(_counted(_ARRAY, inner, b"", 0) if is_array else None)
    return arrays


def _primitives(typed: pa.Array, column: str) -> Values:
    kind = typed.type
    for matches, encode in _ENCODERS:
        if matches(kind):
            stored = typed.view(pa.int64()) if pt.is_timestamp(kind) or pt.is_time(kind) else typed
            stored = typed.view(pa.int32()) if pt.is_date32(kind) else stored
            return [None if each is None else encode(kind, each) for each in stored.to_pylist()]
    raise UnsupportedError(
        f"VARIANT column {column!r} is shredded into values of type {kind}, which variants do not have."
        " Read the table with the writing engine."
    )


def _text(text: str) -> bytes:
    data = text.encode()
    if len(data) <= _SHORT_MAX:
        return bytes([len(data) << 2 | 1]) + data
    return _sized(16, data)


def _sized(kind: int, data: bytes) -> bytes:
    return struct.pack("<BI", kind << 2, len(data)) + data


def _packed(kind: int, form: str) -> Callable[[pa.DataType, Any], bytes]:
    return lambda _, value: struct.pack(f"<B{form}", kind << 2, value)


def _decimal(kind: pa.DataType, value: Any) -> bytes:
    number, size = next((number, size) for digits, number, size in _DECIMALS if kind.precision <= digits)
    unscaled = int(value.scaleb(kind.scale))
    return bytes([number << 2, kind.scale]) + unscaled.to_bytes(size, "little", signed=True)


def _timestamp(kind: pa.DataType, micros: int) -> bytes:
    number = 12 if kind.tz else 13
    if kind.unit == "ns":
        return struct.pack("<Bq", number + 6 << 2, micros)
    return struct.pack("<Bq", number << 2, micros * 1_000 if kind.unit == "ms" else micros)


_ENCODERS: Final[tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType, Any], bytes]], ...]] = (
    (pt.is_boolean, lambda _, value: _TRUE if value else _FALSE),
    (pt.is_int8, _packed(3, "b")),
    (pt.is_int16, _packed(4, "h")),
    (pt.is_int32, _packed(5, "i")),
    (pt.is_int64, _packed(6, "q")),
    (pt.is_float64, _packed(7, "d")),
    (pt.is_decimal128, _decimal),
    (pt.is_date32, _packed(11, "i")),
    (lambda kind: pt.is_timestamp(kind) and kind.unit != "s", _timestamp),
    (pt.is_float32, _packed(14, "f")),
    (pt.is_binary, lambda _, value: _sized(15, value)),
    (pt.is_string, lambda _, value: _text(value)),
    (lambda kind: pt.is_time64(kind) and kind.unit == "us", _packed(17, "q")),
)


def _names(metadata: bytes) -> Names:
    """Return the numbers of the names in a metadata."""
    size = (metadata[0] >> 6) + 1
    count = _number(metadata, 1, size)
    ends = [_number(metadata, 1 + (1 + at) * size, size) for at in range(count + 1)]
    texts = 1 + (count + 2) * size
    return {
        metadata[texts + start : texts + end].decode(): at for at, (start, end) in enumerate(pairwise(ends))
    }


def _number(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")


def _fields_of(data: bytes, names: Mapping[int, str]) -> dict[str, bytes]:
    """Return the fields of an object."""
    sizes = data[0] >> 2
    offset_size, id_size, count_size = (sizes & 3) + 1, (sizes >> 2 & 3) + 1, 4 if sizes >> 4 & 1 else 1
    count = _number(data, 1, count_size)
    ids_at = 1 + count_size
    offsets_at = ids_at + count * id_size
    values_at = offsets_at + (count + 1) * offset_size
    starts = [_number(data, offsets_at + at * offset_size, offset_size) for at in range(count + 1)]
    # Values may be in another order than names, and one ends where the next one in the bytes begins.
    following = dict(zip(sorted(starts), sorted(starts)[1:], strict=False))
    return {
        names[_number(data, ids_at + at * id_size, id_size)]: data[
            values_at + starts[at] : values_at + following[starts[at]]
        ]
        for at in range(count)
    }


def _object(fields: Mapping[str, bytes], names: Names) -> bytes:
    ordered = sorted(fields, key=str.encode)
    numbers = [names[each] for each in ordered]
    size = _bytes_of(max(numbers, default=0))
    ids = b"".join(each.to_bytes(size, "little") for each in numbers)
    return _counted(_OBJECT, [fields[each] for each in ordered], ids, size)


def _counted(kind: int, values: Sequence[bytes], ids: bytes, id_size: int) -> bytes:
    """Return an object or array.

    Args:
        kind: which of them.
        values: what is in it.
        ids: the numbers of the names of an object.
        id_size: number of bytes of each of them.
    """
    size = _bytes_of(sum(map(len, values)))
    is_large = len(values) > _BYTE_MAX
    sizes = (is_large << 4 | (id_size - 1) << 2 if kind == _OBJECT else is_large << 2) | size - 1
    count = len(values).to_bytes(4 if is_large else 1, "little")
    offsets = b"".join(each.to_bytes(size, "little") for each in _offsets(values))
    return bytes([sizes << 2 | kind]) + count + ids + offsets + b"".join(values)


def _offsets(values: Iterable[bytes]) -> list[int]:
    offsets = [0]
    for each in values:
        offsets.append(offsets[-1] + len(each))
    return offsets


def _bytes_of(number: int) -> int:
    return max(1, (number.bit_length() + 7) // 8)
