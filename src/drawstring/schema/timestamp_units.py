"""Milliseconds that a file calls microseconds: Apache Hudi before 1.1 labelled `timestamp-millis` columns so.

The numbers in such a file are milliseconds, as the schema of the table says; only the label is wrong.

    table             file                     the numbers are
    timestamp-millis  timestamp-micros         milliseconds
    timestamp-micros  any                      what the file says
"""

from __future__ import annotations

import pyarrow as pa
from pyarrow import types as pt


def has_millis(kind: pa.DataType | pa.Schema) -> bool:
    """Return whether a type or columns have timestamps in milliseconds at any depth."""
    if isinstance(kind, pa.Schema):
        return any(has_millis(each) for each in kind.types)
    if pt.is_timestamp(kind):
        return bool(kind.unit == "ms")
    return any(has_millis(kind.field(place).type) for place in range(kind.num_fields))


def in_table_units(batch: pa.RecordBatch, types: pa.Schema) -> pa.RecordBatch:
    """Return rows with the units that the timestamps of the table have; no value is copied.

    Args:
        batch: rows of a log block.
        types: the columns of the table, by their names in the block.
    """
    columns = batch.columns
    for place, field in enumerate(batch.schema):
        kind = table_units(field.type, _type_of(types, field.name), across_zones=True)
        if kind is not field.type:
            columns[place] = columns[place].view(kind)
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def units_of_table(columns: pa.Schema, types: pa.Schema, *, across_zones: bool = False) -> pa.Schema:
    """Return columns with the units of the table's timestamps; the same object if they have these.

    Args:
        columns: of a file, or of rows.
        types: the columns of the table.
        across_zones: as of `table_units`.
    """
    fields = list(columns)
    kinds = [table_units(each.type, _type_of(types, each.name), across_zones=across_zones) for each in fields]
    if all(kind is each.type for kind, each in zip(kinds, fields, strict=True)):
        return columns
    return pa.schema([each.with_type(kind) for each, kind in zip(fields, kinds, strict=True)])


def table_units(stored: pa.DataType, table: pa.DataType | None, *, across_zones: bool = False) -> pa.DataType:
    """Return the type of a column of a file with the units of the table; the same object if it has these.

    Args:
        stored: the type in the file.
        table: the type in the table; None for a column that it lacks.
        across_zones: whether local timestamps count, as in Avro.
    """
    if table is None:
        return stored
    if pt.is_timestamp(stored) and pt.is_timestamp(table):
        are_instants = stored.tz is not None and table.tz is not None
        is_mislabelled = stored.unit == "us" and table.unit == "ms" and (are_instants or across_zones)
        return table if is_mislabelled else stored
    if not _are_alike(stored, table):
        return stored
    fields = _fields(stored)
    kinds = [
        table_units(field.type, other, across_zones=across_zones)
        for field, other in zip(fields, _types_of(stored, table), strict=True)
    ]
    if all(kind is field.type for kind, field in zip(kinds, fields, strict=True)):
        return stored
    changed = [field.with_type(kind) for field, kind in zip(fields, kinds, strict=True)]
    if pt.is_struct(stored):
        return pa.struct(changed)
    return pa.map_(*changed) if pt.is_map(stored) else pa.list_(*changed)


def _are_alike(stored: pa.DataType, table: pa.DataType) -> bool:
    return any(matches(stored) and matches(table) for matches in (pt.is_struct, pt.is_map, pt.is_list))


def _fields(kind: pa.DataType) -> list[pa.Field]:
    """Return the fields of a struct, the element of a list, or key and value of a map."""
    if pt.is_map(kind):
        return [kind.key_field, kind.item_field]
    return [kind.value_field] if pt.is_list(kind) else list(kind.fields)


def _types_of(stored: pa.DataType, table: pa.DataType) -> list[pa.DataType | None]:
    """Return the types that the table has for the fields of a nested type."""
    if pt.is_struct(stored):
        return [_type_of(table, field.name) for field in _fields(stored)]
    return [field.type for field in _fields(table)]


def _type_of(columns: pa.Schema | pa.StructType, name: str) -> pa.DataType | None:
    place = columns.get_field_index(name)
    return None if place < 0 else columns.field(place).type
