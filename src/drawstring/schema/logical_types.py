"""Types that Hudi 1.2 adds: VECTOR, BLOB and VARIANT (specification: Logical types).

| type | Arrow | Avro | Parquet |
|---|---|---|---|
| VECTOR(n), VECTOR(n, DOUBLE), VECTOR(n, INT8) | fixed_size_list, items not null | fixed | bytes |
| BLOB | struct of `type`, `data`, `reference` | record | group |
| VARIANT | struct of `metadata` and `value` | record | group |

An Arrow type says by its shape which one it is, so that it gets lost nowhere on the way of the rows: a
fixed_size_list whose items must not be null is a VECTOR, a struct with exactly the fields of `BLOB` is one.
Columns of rows that come in say it by the entry `hudi_type` of their metadata, as in Spark. The bytes of a
vector are its numbers, little-endian:

    VECTOR(3)   [1.0, 2.0, 3.5]   00 00 80 3f  00 00 00 40  00 00 60 40

An out-of-line BLOB is a part of another file: `offset` (null: 0) and `length` (null: the rest) in
`external_path`. Hudi stores the rows of `managed` ones like those of others.
"""

from __future__ import annotations

import copyreg
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.base.errors import InvalidError

HUDI_TYPE: Final = "hudi_type"
"""Entry in the metadata of a column of Spark or Arrow that names one of these types."""

VECTOR_COLUMNS: Final = "hoodie.vector.columns"
"""Entry in the footer of a base file that names its VECTOR columns, since Parquet has no such type."""

INLINE: Final = "INLINE"
OUT_OF_LINE: Final = "OUT_OF_LINE"

BLOB: Final = pa.struct(
    [
        pa.field("type", pa.string(), nullable=False),
        pa.field("data", pa.binary()),
        pa.field(
            "reference",
            pa.struct(
                [
                    pa.field("external_path", pa.string(), nullable=False),
                    pa.field("offset", pa.int64()),
                    pa.field("length", pa.int64()),
                    pa.field("managed", pa.bool_(), nullable=False),
                ]
            ),
        ),
    ]
)
"""The Arrow type of BLOB columns."""

VARIANT: Final = pa.struct(
    [pa.field("metadata", pa.binary(), nullable=False), pa.field("value", pa.binary(), nullable=False)]
)
"""The Arrow type of VARIANT columns, and the storage of Arrow's extension type for them."""

VARIANT_EXTENSIONS: Final = ("arrow.parquet.variant", "parquet.variant")
TYPED_VALUE: Final = "typed_value"
"""Field of a shredded VARIANT with values of one type."""

_FLOAT: Final = pa.float32()
_ELEMENTS: Final[Mapping[str, pa.DataType]] = {
    "FLOAT": _FLOAT,
    "DOUBLE": pa.float64(),
    "INT8": pa.int8(),
}
_ELEMENT_NAMES: Final = {kind: name for name, kind in _ELEMENTS.items()}
_DEFAULT_ELEMENT: Final = "FLOAT"
_BACKING: Final = "FIXED_BYTES"
_DESCRIPTOR: Final = re.compile(r"\s*(\w+)\s*(?:\(\s*([^()]*?)\s*\))?\s*")
_BYTES_MAX: Final = 2**31 - 1
_TYPES_KEPT: Final = 64

_BLOB_AVRO: Final[Mapping[str, Any]] = {
    "type": "record",
    "name": "blob",
    "namespace": "",
    "fields": [
        {
            "name": "type",
            "type": {"type": "enum", "name": "blob_storage_type", "symbols": [INLINE, OUT_OF_LINE]},
        },
        {"name": "data", "type": ["null", "bytes"], "default": None},
        {
            "name": "reference",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "reference",
                    "fields": [
                        {"name": "external_path", "type": "string"},
                        {"name": "offset", "type": ["null", "long"]},
                        {"name": "length", "type": ["null", "long"]},
                        {"name": "managed", "type": "boolean"},
                    ],
                },
            ],
            "default": None,
        },
    ],
    "logicalType": "blob",
}


def _pickled(kind: Any) -> tuple[Any, tuple[pa.Field, int]]:
    return pa.list_, (kind.value_field, kind.list_size)


# Arrow's own way would forget that the numbers must not be null, by which a VECTOR is known.
copyreg.pickle(pa.FixedSizeListType, _pickled)


def vector_type(dimension: int, element: pa.DataType = _FLOAT) -> pa.DataType:
    """Return the Arrow type of VECTOR columns.

    Args:
        dimension: how many numbers a vector has.
        element: float32, float64 or int8.
    """
    return pa.list_(pa.field("item", element, nullable=False), dimension)


def is_vector(kind: pa.DataType) -> bool:
    """Return whether a type is that of VECTOR columns."""
    return (
        bool(pt.is_fixed_size_list(kind))
        and not kind.value_field.nullable
        and kind.value_type in _ELEMENT_NAMES
        and kind.list_size > 0
    )


def is_blob(kind: pa.DataType) -> bool:
    """Return whether a type is that of BLOB columns."""
    return bool(kind == BLOB)


def is_variant(kind: pa.DataType) -> bool:
    """Return whether a type is that of VARIANT columns."""
    return bool(kind == VARIANT)


def vector_width(kind: pa.DataType) -> int:
    """Return the number of bytes of a vector."""
    return int(kind.list_size * kind.value_type.byte_width)


@lru_cache(maxsize=_TYPES_KEPT)
def descriptor(kind: pa.DataType) -> str | None:
    """Return a type as Hudi writes it, such as `VECTOR(3)`; None if it is none of these types."""
    if is_vector(kind):
        name = _ELEMENT_NAMES[kind.value_type]
        return (
            f"VECTOR({kind.list_size})" if name == _DEFAULT_ELEMENT else f"VECTOR({kind.list_size}, {name})"
        )
    if is_blob(kind):
        return "BLOB"
    return "VARIANT" if is_variant(kind) else None


def described_type(text: str, column: str) -> pa.DataType:
    """Return the type that a text such as `VECTOR(3, DOUBLE)`, `BLOB` or `VARIANT` describes; in any case.

    Args:
        text: the description.
        column: name of its column, for the error.

    Raises:
        InvalidError: it describes none of these types.
    """
    found = _DESCRIPTOR.fullmatch(text)
    name, arguments = (found[1].upper(), found[2]) if found else ("", None)
    parameters = [each.strip() for each in arguments.split(",")] if arguments else []
    if name in ("BLOB", "VARIANT") and not parameters:
        return BLOB if name == "BLOB" else VARIANT
    if name == "VECTOR" and (kind := _vector_of(parameters)) is not None:
        return kind
    raise InvalidError(
        f"Column {column!r} has the Hudi type {text!r}, which there is not. Write VECTOR(dimension),"
        " VECTOR(dimension, DOUBLE), VECTOR(dimension, INT8), BLOB or VARIANT; a dimension is at least 1."
    )


def _vector_of(parameters: list[str]) -> pa.DataType | None:
    dimension, element, backing = (
        [*parameters, *(_DEFAULT_ELEMENT, _BACKING)[len(parameters) - 1 :]][:3]
        if (1 <= len(parameters) <= 3)
        else ("", "", "")
    )
    kind = _ELEMENTS.get(element.upper())
    if kind is None or backing.upper() != _BACKING or not dimension.isascii() or not dimension.isdigit():
        return None
    return vector_type(int(dimension), kind) if 0 < int(dimension) * kind.byte_width <= _BYTES_MAX else None


def declared(schema: pa.Schema) -> pa.Schema:
    """Return a schema in which columns have the types that their metadata names.

    Raises:
        InvalidError: a column or a field is not of the shape of the type that its metadata names.
    """
    if not any(map(_is_declared, schema)):
        return schema
    return pa.schema([_declared(field, field.name) for field in schema], schema.metadata)


def _is_declared(field: pa.Field) -> bool:
    kind = field.type
    return _KEY in (field.metadata or {}) or any(
        _is_declared(kind.field(at)) for at in range(kind.num_fields)
    )


_KEY: Final = HUDI_TYPE.encode()


def _declared(field: pa.Field, column: str) -> pa.Field:
    entry = (field.metadata or {}).get(_KEY)
    if entry is None:
        kind = field.type
        if not pt.is_struct(kind):
            return field
        return field.with_type(pa.struct([_declared(each, f"{column}.{each.name}") for each in kind.fields]))
    kind = described_type(entry.decode(errors="replace"), column)
    if is_vector(kind) and "." in column:
        raise nested_vector(column)
    if not _has_shape(field.type, kind):
        raise InvalidError(
            f"Column {column!r} is {entry.decode(errors='replace')} by its entry {HUDI_TYPE!r}, but has type"
            f" {field.type}. Cast it to {kind}."
        )
    return field.with_type(kind)


def _has_shape(given: pa.DataType, kind: pa.DataType) -> bool:
    if is_vector(kind):
        is_list = pt.is_list(given) or pt.is_large_list(given)
        is_list = is_list or (pt.is_fixed_size_list(given) and given.list_size == kind.list_size)
        return bool(is_list) and given.value_type == kind.value_type
    if not pt.is_struct(kind):
        return str(given).removeprefix("large_") == str(kind)
    names = {each.name: each.type for each in given.fields} if pt.is_struct(given) else {}
    return len(names) == kind.num_fields and all(
        each.name in names and _has_shape(names[each.name], each.type) for each in kind.fields
    )


def nested_vector(column: str) -> InvalidError:
    """Return the error about a VECTOR inside of another column."""
    return InvalidError(
        f"VECTOR column {column!r} is inside of a struct, list or map, but vectors are columns of their own."
        " Write it as a column."
    )


def avro_of(kind: pa.DataType, name: str, space: str) -> dict[str, Any] | None:
    """Return the Avro type of one of these types; None for others.

    Args:
        kind: an Arrow type.
        name: name of its column, which the record of a VARIANT has.
        space: namespace of the record around it.
    """
    if is_vector(kind):
        element = _ELEMENT_NAMES[kind.value_type]
        return {
            "type": "fixed",
            "name": f"vector_{element.lower()}_{kind.list_size}",
            "namespace": "",
            "size": vector_width(kind),
            "logicalType": "vector",
            "dimension": kind.list_size,
            "elementType": element,
            "storageBacking": _BACKING,
        }
    if is_blob(kind):
        return {**_BLOB_AVRO}
    if not is_variant(kind):
        return None
    fields = [
        {"name": each.name, "type": "bytes", "doc": f"Variant {each.name} component"} for each in kind.fields
    ]
    return {"type": "record", "name": name, "namespace": space, "fields": fields, "logicalType": "variant"}


def defined_once(avro: Any, defined: set[str] | None = None) -> Any:
    """Return an Avro type in which later uses of a VECTOR or BLOB refer to the first one by its name."""
    defined = set() if defined is None else defined
    if isinstance(avro, list):
        return [defined_once(each, defined) for each in avro]
    if not isinstance(avro, dict):
        return avro
    if avro.get("logicalType") in ("vector", "blob"):
        if avro["name"] in defined:
            return avro["name"]
        defined.add(avro["name"])
        return avro
    return {key: defined_once(value, defined) if key in _INNER else value for key, value in avro.items()}


_INNER: Final = ("fields", "type", "items", "values")


def vector_of_avro(avro: Mapping[str, Any]) -> pa.DataType | None:
    """Return the Arrow type of an Avro fixed type; None if it is no VECTOR.

    Raises:
        ValueError: it is one, but its parameters do not fit together.
    """
    if avro.get("logicalType") != "vector":
        return None
    parameters = [str(avro.get("dimension")), str(avro.get("elementType", _DEFAULT_ELEMENT))]
    kind = _vector_of([*parameters, str(avro.get("storageBacking", _BACKING))])
    if kind is None or vector_width(kind) != avro["size"]:
        raise ValueError(f"a VECTOR of {', '.join(parameters)} does not have {avro['size']} bytes")
    return kind


def vector_columns(schema: pa.Schema) -> str:
    """Return the entry `VECTOR_COLUMNS` of a file, such as `a:VECTOR(3),b:VECTOR(2, DOUBLE)`."""
    return ",".join(f"{each.name}:{descriptor(each.type)}" for each in schema if is_vector(each.type))


def vector_bytes(array: pa.FixedSizeListArray) -> pa.Array:
    """Return vectors as the bytes that files have; copies nothing."""
    kind, values = array.type, array.values
    width = kind.value_type.byte_width
    validity, start = array.buffers()[0], values.offset * width
    data = values.buffers()[1].slice(start) if len(values) else pa.py_buffer(b"")
    nulls = -1 if validity is not None else 0
    return pa.Array.from_buffers(
        pa.binary(vector_width(kind)), len(array), [validity, data], nulls, array.offset
    )


def vectors_of_bytes(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the vectors that bytes of files stand for; copies nothing.

    Args:
        array: the bytes, of a type of fixed size or not.
        kind: the type of the vectors.

    Raises:
        pyarrow.ArrowInvalid: a value has another number of bytes.
    """
    array = array.cast(pa.binary(vector_width(kind)))
    validity, data = array.buffers()
    count = (array.offset + len(array)) * kind.list_size
    values = pa.Array.from_buffers(kind.value_type, count, [None, data if count else pa.py_buffer(b"")])
    nulls = -1 if validity is not None else 0
    return pa.Array.from_buffers(kind, len(array), [validity], nulls, array.offset, [values])


def vectors_of_lists(array: pa.Array, kind: pa.DataType, column: str) -> pa.Array:
    """Return lists of numbers as vectors.

    Args:
        array: lists of any kind.
        kind: the type of the vectors.
        column: name of the column, for the error.

    Raises:
        InvalidError: a list has another number of items or a null, or a number does not fit.
    """
    for lengths in _wrong_lengths(array, kind.list_size):
        raise InvalidError(
            f"Column {column!r} is {descriptor(kind)}, but a row has {lengths} numbers. Give each vector"
            f" {kind.list_size} numbers, or null for none."
        )
    numbers = array.flatten()
    if numbers.null_count:
        raise _null_inside(kind, column)
    try:
        numbers = numbers.cast(kind.value_type, safe=pt.is_integer(kind.value_type))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidError(
            f"Column {column!r} is {descriptor(kind)}, but {error}. Correct the rows."
        ) from error
    if not array.null_count:
        return pa.FixedSizeListArray.from_arrays(numbers, type=kind)
    kept = pc.if_else(array.is_valid(), pc.cumulative_sum(array.is_valid().cast(pa.int64())), None)
    return pa.FixedSizeListArray.from_arrays(numbers, type=kind).take(pc.subtract(kept, 1))


def lists_of_vectors(array: pa.FixedSizeListArray, kind: pa.DataType) -> pa.Array:
    """Return vectors as lists of a type; Arrow's cast refuses nulls among them."""
    lengths = pc.multiply(array.is_valid().cast(pa.int32()), array.type.list_size)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])
    mask = array.is_null() if array.null_count else None
    return pa.ListArray.from_arrays(offsets, array.flatten(), type=kind, mask=mask)


def _wrong_lengths(array: pa.Array, dimension: int) -> Iterator[int]:
    lengths = pc.list_value_length(array)
    yield from pc.unique(lengths.filter(pc.not_equal(lengths, dimension))).to_pylist()


@lru_cache(maxsize=_TYPES_KEPT)
def has_logical(kind: pa.DataType) -> bool:
    """Return whether a type is one whose values are checked (`check_values`), or a struct with one."""
    if is_vector(kind) or is_blob(kind):
        return True
    return bool(pt.is_struct(kind)) and any(has_logical(each.type) for each in kind.fields)


def check_values(array: pa.Array, column: str) -> None:
    """Check values that are of the type of their column: the type says nothing of their content.

    Raises:
        InvalidError: a vector has a null among its numbers, or a BLOB another type than there are.
    """
    kind = array.type
    if is_vector(kind):
        if array.values.null_count and array.flatten().null_count:
            raise _null_inside(kind, column)
    elif is_blob(kind):
        check_blobs(array, column)
    elif has_logical(kind):
        for field, part in zip(kind.fields, array.flatten(), strict=True):
            check_values(part, f"{column}.{field.name}")


def _null_inside(kind: pa.DataType, column: str) -> InvalidError:
    return InvalidError(
        f"Column {column!r} is {descriptor(kind)}, but a vector has a null among its numbers. Vectors have a"
        " number at each place; fill in the values."
    )


def check_blobs(array: pa.StructArray, column: str) -> None:
    """Check that BLOBs are of one of the two kinds.

    Raises:
        InvalidError: a type is another one.
    """
    kinds = array.field("type") if not array.null_count else array.filter(array.is_valid()).field("type")
    for kind in pc.unique(kinds).to_pylist():
        if kind not in (INLINE, OUT_OF_LINE):
            raise InvalidError(
                f"Column {column!r} is a BLOB of type {kind!r}. Its type is {INLINE}, with the bytes in"
                f" `data`, or {OUT_OF_LINE}, with the place of the bytes in `reference`."
            )
