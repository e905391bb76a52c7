"""Schema evolution on write, and casts of batches to a schema (specification: Schema Evolution).

A write can widen a column but never narrow it: int to long, float to double, decimals to more digits of
the same scale, milliseconds to micros. Added columns are nullable. Reads also support the other promotions
of Hudi: integers to float, numbers and dates to text, string from and to binary. Writes do not apply
these: incoming floats are far more often integers with nulls than a request to change the column, so whole
numbers are cast back to the column's type.

Columns of record keys, partition paths and ordering do not widen at all, because the key of a stored
record, its folder and its order would change.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.base.errors import InvalidError
from drawstring.schema.logical_types import (
    TYPED_VALUE,
    check_blobs,
    check_values,
    descriptor,
    has_logical,
    is_blob,
    is_variant,
    is_vector,
    vector_bytes,
    vectors_of_bytes,
    vectors_of_lists,
)
from drawstring.schema.meta import IS_DELETED_COLUMN
from drawstring.schema.normal import (
    normalise,
    null_mask,
    own_items,
    replace_hidden_nulls,
    replace_hidden_nulls_in_batch,
)
from drawstring.schema.shredded_variants import whole_variants

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
            raise _not_of(table, incoming, place)
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
    raise _not_of(table, incoming, place)


def _not_of(table: pa.DataType, incoming: pa.DataType, place: _Place) -> InvalidError:
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
