"""Evolve a schema on write, and cast batches to a schema (specification: Schema Evolution).

A write can widen a column but never narrow it: int to long, float to double, decimals to more digits of the
same scale, milliseconds to micros. Added columns are nullable. Reads also support the other promotions of
Hudi: integers to float, numbers and dates to text, string from and to binary. Writes do not apply these:
incoming floats are far more often integers with nulls than a request to change the column, so whole numbers
are cast back to the column's type.

Columns of record keys, partition paths and ordering do not widen at all, because the key of a stored
record, its folder and its order would change.

`normalise` converts Arrow types to those that a table stores:

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

Hidden nulls: a required field also needs a value in rows whose struct is null. Arrow usually stores a null
there, which is valid in memory but which it refuses to write to Parquet. `replace_hidden_nulls` replaces
such nulls:

    struct    {a: 1}   null                 {a: 1}   null
    .a        1        null   ------------> 1        (any value, never read)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.base.errors import InvalidError
from drawstring.schema.fields import IS_DELETED_COLUMN
from drawstring.schema.logical_types import (
    TYPED_VALUE,
    VARIANT,
    VARIANT_EXTENSIONS,
    check_blobs,
    check_values,
    declared,
    descriptor,
    has_logical,
    is_blob,
    is_variant,
    is_vector,
    vector_bytes,
    vectors_of_bytes,
    vectors_of_lists,
)
from drawstring.schema.shredded_variants import whole_variants

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


def _rule_to(kind: pa.DataType) -> Callable[[pa.DataType, str], pa.DataType]:
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
    (_any_of(pa.int8(), pa.int16(), pa.uint8(), pa.uint16()), _rule_to(pa.int32())),
    (_any_of(pa.uint32()), _rule_to(pa.int64())),
    (_any_of(pa.uint64()), _rule_to(pa.decimal128(20, 0))),
    (_any_of(pa.float16()), _rule_to(pa.float32())),
    (_any_of(pa.large_string(), pa.string_view()), _rule_to(pa.string())),
    (_any_of(pa.large_binary(), pa.binary_view()), _rule_to(pa.binary())),
    (_any_of(pa.date64()), _rule_to(pa.date32())),
    (pt.is_fixed_size_binary, _same),
    (pt.is_timestamp, _timestamp),
    (pt.is_time32, _rule_to(pa.time32("ms"))),
    (pt.is_time64, _rule_to(pa.time64("us"))),
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


_WIDER: dict[pa.DataType, tuple[pa.DataType, ...]] = {
    pa.int32(): (pa.int64(), pa.float32(), pa.float64(), pa.string()),
    pa.int64(): (pa.float32(), pa.float64(), pa.string()),
    pa.float32(): (pa.float64(), pa.string()),
    pa.float64(): (pa.string(),),
    pa.date32(): (pa.string(),),
    pa.string(): (pa.binary(),),
    pa.binary(): (pa.string(),),
}


def evolve(table: pa.Schema, incoming: pa.Schema, fixed: Collection[str] = ()) -> pa.Schema:
    """Return the schema that a table has after a write.

    Args:
        table: schema of the table, without meta columns.
        incoming: schema of the records written, without meta columns.
        fixed: columns that keep their type: those of record keys, partition paths and ordering.

    Raises:
        InvalidError: the type of a column cannot take the incoming values; a required column is missing; the
            name of a new column differs from another only by case; or a new `_hoodie_is_deleted` column is
            not boolean.
    """
    if IS_DELETED_COLUMN not in table.names:
        check_deletion_mark(incoming)
    incoming = normalise(incoming)
    if (table.names, table.types) == (incoming.names, incoming.types):
        return table.remove_metadata()
    return pa.schema(_merge_fields(list(table), list(incoming), _Place("", frozenset(fixed))))


def missing_columns(table: pa.Schema, incoming: pa.Schema) -> list[str]:
    """Return the columns of a table that incoming records lack; fields of structs by their dotted names.

    Args:
        table: schema of the table, without meta columns.
        incoming: schema of the records.
    """
    return [] if table.equals(incoming) else _missing_fields(list(table), list(incoming), "")


def _missing_fields(table: list[pa.Field], incoming: list[pa.Field], column: str) -> list[str]:
    types = {field.name: field.type for field in incoming}
    missing: list[str] = []
    for field in table:
        name = _dotted(column, field.name)
        missing += _missing_inside(field.type, types[field.name], name) if field.name in types else [name]
    return missing


def _missing_inside(table: pa.DataType, incoming: pa.DataType, column: str) -> list[str]:
    if pt.is_struct(table) and pt.is_struct(incoming):
        return _missing_fields(table.fields, incoming.fields, column)
    if pt.is_list(table) and pt.is_list(incoming):
        return _missing_inside(table.value_type, incoming.value_type, f"{column}.item")
    if pt.is_map(table) and pt.is_map(incoming):
        return _missing_inside(table.item_type, incoming.item_type, f"{column}.value")
    return []


def check_deletion_mark(schema: pa.Schema) -> None:
    """Check that a `_hoodie_is_deleted` column is boolean, since others would delete nothing.

    Raises:
        InvalidError: the column is not boolean.
    """
    if IS_DELETED_COLUMN not in schema.names:
        return
    kind = schema.field(IS_DELETED_COLUMN).type
    if not (pt.is_boolean(kind) or pt.is_null(kind)):
        raise InvalidError(
            f"Column {IS_DELETED_COLUMN!r} marks the rows to delete and has to be boolean, but is {kind}."
            " Cast it, or rename the column."
        )


@dataclass(frozen=True, slots=True)
class _Place:
    """The position of a type in the schema.

    Attributes:
        column: dotted name.
        fixed: dotted names of columns that keep their type.
    """

    column: str
    fixed: frozenset[str]

    def below(self, name: str) -> _Place:
        """Return the position of a field of this one."""
        return _Place(_dotted(self.column, name), self.fixed)

    @property
    def is_fixed(self) -> bool:
        """Whether the column keeps its type."""
        return self.column in self.fixed


def _merge_fields(table: list[pa.Field], incoming: list[pa.Field], place: _Place) -> list[pa.Field]:
    """Return the table's fields in order, widened as needed, followed by the new fields."""
    new = {field.name: field for field in incoming}
    merged = [_merge_field(field, new.pop(field.name, None), place.below(field.name)) for field in table]
    names = [field.name for field in table]
    for name in new:
        _check_own_spelling(name, names, place)
        names.append(name)
    return merged + [_added(field, _dotted(place.column, field.name)) for field in new.values()]


def _check_own_spelling(name: str, names: list[str], place: _Place) -> None:
    """Refuse a name that case-insensitive engines could not distinguish from another."""
    equal_names = [other for other in names if other.lower() == name.lower()]
    if equal_names:
        old, new = _dotted(place.column, equal_names[0]), _dotted(place.column, name)
        raise InvalidError(
            f"Column {new!r} differs from column {old!r} only by case, which Spark ignores. Rename it."
        )


def _merge_field(field: pa.Field, incoming: pa.Field | None, place: _Place) -> pa.Field:
    if incoming is None:
        if field.nullable:
            return field
        raise InvalidError(f"The rows lack column {place.column!r}, which must not be null. Add it.")
    return field.with_type(_merge_type(field.type, incoming.type, place))


def _added(field: pa.Field, column: str) -> pa.Field:
    if pt.is_null(field.type):
        raise InvalidError(
            f"New column {column!r} has no type, since all its values are null. Cast it, or drop it."
        )
    return field.with_nullable(True)


def _merge_type(table: pa.DataType, incoming: pa.DataType, place: _Place) -> pa.DataType:
    if table == incoming or pt.is_null(incoming):
        return table
    if is_vector(table) and pt.is_list(incoming) and is_number(incoming.value_type):
        return table  # each batch is cast, and lists of another length are refused
    if pt.is_struct(table) and pt.is_struct(incoming):
        merged = pa.struct(_merge_fields(table.fields, incoming.fields, place))
        if merged != table and (is_blob(table) or is_variant(table)):
            raise _type_error(table, incoming, place)
        return merged
    if pt.is_list(table) and pt.is_list(incoming):
        return pa.list_(_merge_inner(table.value_field, incoming.value_field, place.below("item")))
    if pt.is_map(table) and pt.is_map(incoming):
        return pa.map_(pa.string(), _merge_inner(table.item_field, incoming.item_field, place.below("value")))
    return _merge_plain(table, incoming, place)


def _merge_plain(table: pa.DataType, incoming: pa.DataType, place: _Place) -> pa.DataType:
    text_of_float = place.is_fixed and pt.is_floating(incoming) and _is_text(table)
    if fits(incoming, table) and not text_of_float:
        return table
    if pt.is_integer(table) and pt.is_floating(incoming):
        return table  # each batch is cast, and values that are not whole numbers are refused
    if place.is_fixed:
        if (pt.is_integer(table) and pt.is_integer(incoming)) or _is_more_digits(table, incoming):
            return table
        raise InvalidError(
            f"Column {place.column!r} is {table} in the table and {incoming} in the records. As a column of"
            f" the record key, partition path or ordering it keeps its type. Cast it to {table}."
        )
    if fits(table, incoming) and not _is_text(incoming):
        return incoming
    raise _type_error(table, incoming, place)


def _type_error(table: pa.DataType, incoming: pa.DataType, place: _Place) -> InvalidError:
    kind, given = descriptor(table) or table, descriptor(incoming) or incoming
    return InvalidError(
        f"Column {place.column!r} is {kind} in the table and {given} in the records. Cast it to {table}."
    )


def _is_more_digits(table: pa.DataType, incoming: pa.DataType) -> bool:
    return bool(pt.is_decimal(table) and pt.is_decimal(incoming) and fits(table, incoming))


def _merge_inner(table: pa.Field, incoming: pa.Field, place: _Place) -> pa.Field:
    merged = table.with_type(_merge_type(table.type, incoming.type, place))
    return merged.with_nullable(table.nullable or incoming.nullable)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pt.is_string(kind) or pt.is_binary(kind))


def is_number(kind: pa.DataType) -> bool:
    """Return whether a type is that of integers, floats or decimals."""
    return bool(pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind))


def fits(narrow: pa.DataType, wide: pa.DataType) -> bool:
    """Return whether a column of the wide type can store every value of the narrow type.

    Args:
        narrow: type of the values; not nested.
        wide: type of the column; not nested.
    """
    if pt.is_decimal(narrow) and pt.is_decimal(wide):
        return bool(narrow.scale == wide.scale and narrow.precision <= wide.precision)
    if pt.is_timestamp(narrow) and pt.is_timestamp(wide):
        return (narrow.tz is None) == (wide.tz is None) and narrow.unit != "us"
    return narrow == wide or wide in _WIDER.get(narrow, ())


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with exactly the columns of a schema, in its order and types.

    Columns that the batch lacks are null; columns that the schema lacks are dropped; types are widened at
    every depth, and nulls in required fields below null structs are replaced (see
    `normal.replace_hidden_nulls`).

    Args:
        batch: records.
        schema: the schema of the result.

    Raises:
        InvalidError: a required column is missing or null, or values do not fit the column's type.
    """
    if batch.schema.equals(schema):
        for field, column in zip(schema, batch.columns, strict=True):
            if field.type.num_fields and has_logical(field.type):
                check_values(column, field.name)
        return replace_hidden_nulls_in_batch(batch)
    places = {name: at for at, name in enumerate(batch.schema.names)}
    columns = [
        _conform_column(batch.column(places[field.name]) if field.name in places else None, field, len(batch))
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def conform_table(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return a table with exactly the columns of a schema; see `conform`.

    Arrow's own cast refuses vectors, since the numbers of a null among them are null, too.
    """
    return pa.Table.from_batches([conform(batch, schema) for batch in table.to_batches()], schema)


def _conform_column(array: pa.Array | None, field: pa.Field, rows: int) -> pa.Array:
    if array is None:
        array = pa.nulls(rows, field.type)
    fitted = replace_hidden_nulls(_fit(array, field.type, field.name))
    if fitted.null_count and not field.nullable:
        raise InvalidError(
            f"Column {field.name!r} must not be null, but is null in {fitted.null_count} of {rows} records."
            " Fill in the values."
        )
    return fitted


def _fit(array: pa.Array, kind: pa.DataType, column: str) -> pa.Array:
    if array.type.equals(kind):
        if kind.num_fields:
            check_values(array, column)
        return array
    if pt.is_dictionary(array.type):
        array = _decoded(array)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if is_vector(kind) and not pt.is_null(array.type):
        return _fit_vector(array, kind, column)
    if is_vector(array.type) and (pt.is_binary(kind) or pt.is_fixed_size_binary(kind)):
        array = vector_bytes(array)
    if pt.is_struct(kind) and pt.is_struct(array.type):
        return _fit_struct(array, kind, column)
    if pt.is_map(kind) and pt.is_map(array.type):
        return _fit_map(array, kind, column)
    if pt.is_list(kind) and not pt.is_null(array.type):
        return _fit_list(array, kind, column)
    return _cast(array, kind, column)


def _decoded(array: pa.DictionaryArray) -> pa.Array:
    """Return the values of a dictionary-encoded array; Arrow cannot decode dictionaries of views."""
    values = array.dictionary
    if pt.is_string_view(values.type) or pt.is_binary_view(values.type):
        plain = pa.string() if pt.is_string_view(values.type) else pa.binary()
        array = pa.DictionaryArray.from_arrays(array.indices, values.cast(plain))
    return array.dictionary_decode()


def _fit_struct(array: pa.StructArray, kind: pa.StructType, column: str) -> pa.Array:
    places = {field.name: at for at, field in enumerate(array.type.fields)}
    if is_variant(kind) and TYPED_VALUE in places:
        return whole_variants(array, column)
    parts = [
        _fit(array.field(places[field.name]), field.type, _dotted(column, field.name))
        if field.name in places
        else pa.nulls(len(array), field.type)
        for field in kind.fields
    ]
    for field, part in zip(kind.fields, parts, strict=True):
        _check_nested(field, part, array, _dotted(column, field.name))
    fitted = pa.StructArray.from_arrays(parts, fields=kind.fields, mask=array.is_null())
    if is_blob(kind):
        check_blobs(fitted, column)
    return fitted


def _fit_vector(array: pa.Array, kind: pa.DataType, column: str) -> pa.Array:
    if not (pt.is_binary(array.type) or pt.is_fixed_size_binary(array.type)):
        return vectors_of_lists(array, kind, column)
    try:
        return vectors_of_bytes(array, kind)
    except pa.ArrowInvalid as error:
        raise InvalidError(f"Column {column!r} does not fit its type {descriptor(kind)}: {error}.") from error


def _check_nested(field: pa.Field, part: pa.Array, parent: pa.StructArray, column: str) -> None:
    if field.nullable or not part.null_count:
        return
    if pc.any(pc.and_(part.is_null(), parent.is_valid())).as_py():
        raise InvalidError(
            f"Column {column!r} must not be null, but is null in some records. Fill in the values."
        )


def _fit_list(array: pa.Array, kind: pa.ListType, column: str) -> pa.Array:
    if not pt.is_list(array.type):
        array = _cast(array, pa.list_(array.type.value_type), column)
    offsets, values = own_items(array.offsets, array.values)
    items = _fit(values, kind.value_type, f"{column}.item")
    return pa.ListArray.from_arrays(offsets, items, type=kind, mask=null_mask(array))


def _fit_map(array: pa.MapArray, kind: pa.MapType, column: str) -> pa.Array:
    offsets, keys = own_items(array.offsets, array.keys)
    _, values = own_items(array.offsets, array.items)
    return pa.MapArray.from_arrays(
        offsets,
        _fit(keys, kind.key_type, f"{column}.key"),
        _fit(values, kind.item_type, f"{column}.value"),
        type=kind,
        mask=null_mask(array),
    )


def _cast(array: pa.Array, kind: pa.DataType, column: str) -> pa.Array:
    try:
        return _cast_exact(array, kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        hint = ""
        if pt.is_integer(kind) and pt.is_floating(array.type):
            hint = " Round it, or write it to a column of type double. A column of integers keeps its type."
        raise InvalidError(f"Column {column!r} does not fit its type {kind}: {error}.{hint}") from error


def _cast_exact(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Cast without loss of digits, except from integers to floats, as Avro's promotion allows."""
    if pt.is_floating(kind) and pt.is_integer(array.type):
        return array.cast(kind, safe=False)
    return widened(array, kind)


def widened(array: pa.Array, kind: pa.DataType, *, safe: bool = True) -> pa.Array:
    """Cast values of before to a type that their column has got.

    Floats become the doubles that their shortest texts stand for, as in Hudi: 1.1 stays 1.1.

    Args:
        array: the values.
        kind: the type.
        safe: whether values that do not fit are an error.
    """
    if pt.is_float32(array.type) and pt.is_float64(kind):
        return array.cast(pa.string()).cast(kind)
    return array.cast(kind, safe=safe)


def _dotted(column: str, name: str) -> str:
    return f"{column}.{name}" if column else name
