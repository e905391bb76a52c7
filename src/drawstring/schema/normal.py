"""Normalisation of Arrow types to those that a table stores.

| input | stored |
|---|---|
| int8, int16, uint8, uint16 | int32 |
| uint32 | int64 |
| uint64 | decimal128(20, 0) |
| float16 | float32 |
| large and view strings and binaries | string, binary |
| dictionary, run-end encoded, extension | the value or storage type |
| date64 | date32 |
| timestamp s, ns | timestamp us; with a zone: UTC |
| time32 s, time64 ns | time32 ms, time64 us |
| lists of any kind | list, except for vectors (`logical_types`) |

Nested arrays: their parts, and required fields below null structs.

A required field also needs a value in rows whose struct is null. Arrow usually stores a null there, which
is valid in memory but which it refuses to write to Parquet. `replace_hidden_nulls` replaces such nulls:

    struct    {a: 1}   null                 {a: 1}   null
    .a        1        null   ------------> 1        (any value, never read)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.base.errors import InvalidError
from drawstring.schema.logical_types import TYPED_VALUE, VARIANT, VARIANT_EXTENSIONS, declared, is_vector

_SCHEMAS_KEPT: Final = 64
"""The writes of a process mostly bring the same columns."""


def normalise(schema: pa.Schema) -> pa.Schema:
    """Return a schema with each type normalised.

    Args:
        schema: any Arrow schema; its metadata is dropped. The entry `hudi_type` of a column's metadata says
            which of Hudi's types it has.

    Raises:
        InvalidError: a Hudi table cannot store the type of a column, or two columns have the same name.
    """
    if any(each.metadata or each.type.num_fields for each in schema):
        schema = declared(schema)
    return _normal(schema.remove_metadata())


@lru_cache(maxsize=_SCHEMAS_KEPT)
def _normal(schema: pa.Schema) -> pa.Schema:
    repeated = sorted(name for name, times in Counter(schema.names).items() if times > 1)
    if repeated:
        raise InvalidError(f"Several columns have the name {repeated[0]!r}. Give each column its own name.")
    return pa.schema(
        [field.remove_metadata() if is_vector(field.type) else _field(field, field.name) for field in schema]
    )


def _field(field: pa.Field, column: str) -> pa.Field:
    return pa.field(field.name, normal_type(field.type, column), field.nullable)


def normal_type(kind: pa.DataType, column: str) -> pa.DataType:
    """Return the type as which a table stores `kind`.

    Args:
        kind: an Arrow type.
        column: dotted name of the column, for the error.

    Raises:
        InvalidError: a Hudi table cannot store this type.
    """
    for matches, become in _RULES:
        if matches(kind):
            return become(kind, column)
    raise InvalidError(f"Column {column!r} has type {kind}, which a table cannot store. Cast it first.")


def _same(kind: pa.DataType, column: str) -> pa.DataType:
    return kind


def _to(kind: pa.DataType) -> Callable[[pa.DataType, str], pa.DataType]:
    return lambda given, column: kind


def _timestamp(kind: pa.DataType, column: str) -> pa.DataType:
    return pa.timestamp("ms" if kind.unit == "ms" else "us", "UTC" if kind.tz else None)


def _decimal(kind: pa.DataType, column: str) -> pa.DataType:
    if kind.precision > 38 or kind.scale < 0 or kind.scale > kind.precision:
        raise InvalidError(
            f"Column {column!r} has type {kind}, but decimals have at most 38 digits and no negative scale."
            " Cast it first."
        )
    return pa.decimal128(kind.precision, kind.scale)


def _list(kind: pa.DataType, column: str) -> pa.DataType:
    item = kind.value_field
    return pa.list_(pa.field("item", normal_type(item.type, f"{column}.item"), item.nullable))


def _map(kind: pa.DataType, column: str) -> pa.DataType:
    key = normal_type(kind.key_type, f"{column}.key")
    if not pt.is_string(key):
        raise InvalidError(
            f"Column {column!r} is a map with {key} keys, but the keys of maps are strings. Cast them first."
        )
    value = kind.item_field
    return pa.map_(key, pa.field("value", normal_type(value.type, f"{column}.value"), value.nullable))


def _struct(kind: pa.DataType, column: str) -> pa.DataType:
    if not kind.num_fields:
        raise InvalidError(
            f"Column {column!r} is a struct without fields, which Parquet files cannot store."
            " Give it a field, or drop the column."
        )
    fields = [_field(field, f"{column}.{field.name}") for field in kind.fields]
    if len(fields) == VARIANT.num_fields and all(each in fields for each in VARIANT):
        return VARIANT  # Spark has the fields in another order
    return pa.struct(fields)


def _is_list(kind: pa.DataType) -> bool:
    return any(
        matches(kind)
        for matches in (
            pt.is_list,
            pt.is_large_list,
            pt.is_fixed_size_list,
            pt.is_list_view,
            pt.is_large_list_view,
        )
    )


def _is_extension(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.BaseExtensionType)


def _extension(kind: pa.BaseExtensionType, column: str) -> pa.DataType:
    if kind.extension_name not in VARIANT_EXTENSIONS:
        return normal_type(kind.storage_type, column)
    if kind.storage_type.get_field_index(TYPED_VALUE) >= 0:
        raise InvalidError(
            f"Column {column!r} is a shredded VARIANT. Write it unshredded, as metadata and value."
        )
    return VARIANT


def _any_of(*kinds: pa.DataType) -> Callable[[pa.DataType], bool]:
    return lambda kind: kind in kinds


_RULES: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType, str], pa.DataType]], ...] = (
    (_is_extension, _extension),
    (_any_of(pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64()), _same),
    (_any_of(pa.string(), pa.binary(), pa.date32(), pa.null()), _same),
    (_any_of(pa.int8(), pa.int16(), pa.uint8(), pa.uint16()), _to(pa.int32())),
    (_any_of(pa.uint32()), _to(pa.int64())),
    (_any_of(pa.uint64()), _to(pa.decimal128(20, 0))),
    (_any_of(pa.float16()), _to(pa.float32())),
    (_any_of(pa.large_string(), pa.string_view()), _to(pa.string())),
    (_any_of(pa.large_binary(), pa.binary_view()), _to(pa.binary())),
    (_any_of(pa.date64()), _to(pa.date32())),
    (pt.is_fixed_size_binary, _same),
    (pt.is_timestamp, _timestamp),
    (pt.is_time32, _to(pa.time32("ms"))),
    (pt.is_time64, _to(pa.time64("us"))),
    (pt.is_decimal, _decimal),
    (lambda kind: pt.is_dictionary(kind), lambda kind, column: normal_type(kind.value_type, column)),
    (lambda kind: pt.is_run_end_encoded(kind), lambda kind, column: normal_type(kind.value_type, column)),
    (_is_list, _list),
    (pt.is_map, _map),
    (pt.is_struct, _struct),
)


def replace_hidden_nulls(array: pa.Array) -> pa.Array:
    """Return an array without nulls in required fields below null structs.

    A null in a required field of a struct that is not null remains: it is an error, which the writer reports.

    Args:
        array: an array of any type; without required fields it is returned unchanged.
    """
    return _replace_hidden_nulls(array, null_mask(array)) if _has_required(array.type) else array


def replace_hidden_nulls_in_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch without nulls in required fields below null structs; see `replace_hidden_nulls`.

    Args:
        batch: any batch; without required fields it is returned unchanged.
    """
    if not any(_has_required(kind) for kind in batch.schema.types):
        return batch
    return pa.RecordBatch.from_arrays(
        [replace_hidden_nulls(column) for column in batch.columns], schema=batch.schema
    )


def own_items(offsets: pa.Array, items: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return offsets that start at 0 and the items that they cover; the input may be a slice of an array."""
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    return pc.subtract(offsets, pa.scalar(first, offsets.type)), items.slice(first, last - first)


def null_mask(array: pa.Array) -> pa.BooleanArray | None:
    """Return which values of an array are null; None if none is."""
    return array.is_null() if array.null_count else None


def _has_required(kind: pa.DataType) -> bool:
    """Return whether a struct at any depth has a required field."""
    if not kind.num_fields:
        return False
    if pt.is_struct(kind):
        return any(not field.nullable or _has_required(field.type) for field in kind.fields)
    if pt.is_map(kind):
        return _has_required(kind.item_type)
    return bool(pt.is_list(kind)) and _has_required(kind.value_type)


def _replace_hidden_nulls(array: pa.Array, absent: pa.BooleanArray | None) -> pa.Array:
    """Replace the hidden nulls of an array, given the rows without a value.

    Args:
        array: an array of any type.
        absent: rows without a value, because the array or a struct around it is null.
    """
    kind = array.type
    if not _has_required(kind):
        return array
    if pt.is_struct(kind):
        parts = [_replace_in_field(array.field(at), field, absent) for at, field in enumerate(kind.fields)]
        return pa.StructArray.from_arrays(parts, fields=kind.fields, mask=null_mask(array))
    if pt.is_map(kind):
        offsets, keys = own_items(array.offsets, array.keys)
        items = replace_hidden_nulls(own_items(array.offsets, array.items)[1])
        return pa.MapArray.from_arrays(offsets, keys, items, type=kind, mask=null_mask(array))
    offsets, items = own_items(array.offsets, array.values)
    return pa.ListArray.from_arrays(offsets, replace_hidden_nulls(items), type=kind, mask=null_mask(array))


def _replace_in_field(part: pa.Array, field: pa.Field, absent: pa.BooleanArray | None) -> pa.Array:
    if field.nullable:
        return _replace_hidden_nulls(part, _either(absent, null_mask(part)))
    replaced = _replace_hidden_nulls(part, absent)
    if absent is None or not part.null_count or pc.any(pc.greater(part.is_null(), absent)).as_py():
        return replaced
    return _without_nulls(replaced)


def _either(first: pa.BooleanArray | None, second: pa.BooleanArray | None) -> pa.BooleanArray | None:
    if first is None or second is None:
        return first if second is None else second
    return pc.or_(first, second)


def _without_nulls(array: pa.Array) -> pa.Array:
    """Return the array without its null bitmap, so that nulls become arbitrary values; copies nothing."""
    kind = array.type
    if pt.is_struct(kind):
        parts = [array.field(at) for at in range(kind.num_fields)]
        return pa.StructArray.from_arrays(parts, fields=kind.fields)
    if pt.is_map(kind):
        return pa.MapArray.from_arrays(array.offsets, array.keys, array.items, type=kind)
    if pt.is_list(kind):
        return pa.ListArray.from_arrays(array.offsets, array.values, type=kind)
    return pa.Array.from_buffers(kind, len(array), [None, *array.buffers()[1:]], 0, array.offset)
