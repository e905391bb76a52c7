"""Schema history for schema on read: columns have ids, which survive renames.

A table with schema on read stores all versions of its schema (specification: Schema Evolution):

    .hoodie/.schema/<instant>.schemacommit   {"schemas": [newest, ..., first]}, each with its version
    a data file of instant T                 has the newest version up to T
    a column of a query                      has in the file the name of its id, if the file has the id
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
from pyarrow import types as pt

from drawstring.base.errors import CorruptTableError
from drawstring.config.table.schema_versions import Renames, SchemaColumn, SchemaHistory
from drawstring.schema.normal import null_mask, own_items

_NOTHING = "\0"
"""Name of the placeholder field in a struct of which the file has no field."""


def in_requested_columns(batch: pa.RecordBatch, renames: Renames) -> pa.RecordBatch:
    """Return rows of a file with the query's column names, at every depth.

    Columns without an id in the query keep their name.

    Args:
        batch: the rows.
        renames: how columns of the query are called in the file.
    """
    sources = renames.sources()
    present = {*batch.schema.names}
    taken = {stored for stored in sources.values() if stored is not None} | set(sources)
    columns = {name: batch.column(name) for name in batch.schema.names if name not in taken}
    stored_columns = {column.name: column for column in renames.stored}
    for column in renames.requested:
        source = sources[column.name]
        if source is not None and source in present:
            columns[column.name] = _renamed(batch.column(source), column, stored_columns[source])
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def stored_columns(schema: pa.Schema, renames: Renames) -> pa.Schema:
    """Return columns of a query with their names in a file at every depth, without those that the file lacks.

    Args:
        schema: columns of the query.
        renames: how columns of the query are called in the file.
    """
    requested = {column.name: column for column in renames.requested}
    stored = {column.id: column for column in renames.stored}
    columns: list[pa.Field] = []
    for field in schema:
        own = requested.get(field.name)
        if own is None:
            columns.append(field)
        elif own.id in stored:
            source = stored[own.id]
            columns.append(field.with_name(source.name).with_type(_stored_type(field.type, own, source)))
    return pa.schema(columns)


def _stored_type(kind: pa.DataType, requested: SchemaColumn, stored: SchemaColumn) -> pa.DataType:
    if set(requested.parts) == set(stored.parts):
        return kind
    if pt.is_struct(kind):
        columns = stored_columns(pa.schema(kind.fields), Renames(requested.parts, stored.parts))
        return pa.struct(list(columns))
    new, old = requested.parts[0], stored.parts[0]
    if pt.is_map(kind):
        return pa.map_(kind.key_type, kind.item_field.with_type(_stored_type(kind.item_type, new, old)))
    return pa.list_(kind.value_field.with_type(_stored_type(kind.value_type, new, old)))


def decode_history(text: str, requested: str | None = None) -> SchemaHistory:
    """Return the versions in the content of a history file; the newest one is requested.

    Args:
        text: the content.
        requested: a version that is requested instead, as JSON, which the file may lack.

    Raises:
        CorruptTableError: a text cannot be read.
    """
    try:
        schemas = {int(each["version_id"]): each for each in json.loads(text)["schemas"]}
        newest = None if requested is None else json.loads(requested)
        if newest is not None:
            schemas[int(newest["version_id"])] = newest
        number = int(newest["version_id"]) if newest is not None else max(schemas)
        versions = {each: _columns(schemas[each]) for each in sorted(schemas)}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptTableError(
            f"The schema history cannot be read ({error!r}). Restore .hoodie/.schema from a backup."
        ) from error
    return SchemaHistory(versions, number, {each: _json(schemas[each]) for each in versions})


def with_version(history: SchemaHistory, version: Mapping[str, Any]) -> SchemaHistory:
    """Return a history with a new version, which is the requested one."""
    number = int(version["version_id"])
    return SchemaHistory(
        {**history.versions, number: _columns(version)}, number, {**history.texts, number: _json(version)}
    )


def encode_history(history: SchemaHistory) -> str:
    """Return the content of a history file: the newest version first."""
    texts: Iterable[str] = (history.texts[number] for number in sorted(history.texts, reverse=True))
    return f'{{"schemas":[{",".join(texts)}]}}'


def _json(version: Mapping[str, Any]) -> str:
    return json.dumps(version, separators=(",", ":"), ensure_ascii=False)


def _columns(record: Mapping[str, Any]) -> tuple[SchemaColumn, ...]:
    return tuple(
        SchemaColumn(int(field["id"]), str(field["name"]), _parts(field["type"]))
        for field in record["fields"]
    )


def _parts(kind: Any) -> tuple[SchemaColumn, ...]:
    if isinstance(kind, str):
        return ()
    if kind["type"] == "record":
        return _columns(kind)
    if kind["type"] == "array":
        return (SchemaColumn(int(kind["element_id"]), "element", _parts(kind["element"])),)
    return (SchemaColumn(int(kind["value_id"]), "value", _parts(kind["value"])),)


def _renamed(array: pa.Array, requested: SchemaColumn, stored: SchemaColumn) -> pa.Array:
    if set(requested.parts) == set(stored.parts):
        return array
    if pt.is_struct(array.type):
        return _renamed_struct(array, requested, stored)
    if pt.is_list(array.type) or pt.is_map(array.type):
        return _renamed_items(array, requested, stored)
    return array


def _renamed_struct(array: pa.StructArray, requested: SchemaColumn, stored: SchemaColumn) -> pa.Array:
    sources = {part.id: part for part in stored.parts}
    pairs = [(part, sources[part.id]) for part in requested.parts if part.id in sources]
    present = [pair for pair in pairs if array.type.get_field_index(pair[1].name) >= 0]
    parts = [_renamed(array.field(old.name), new, old) for new, old in present]
    names = [new.name for new, _ in present]
    if not present:
        parts, names = [pa.nulls(len(array))], [_NOTHING]
    return pa.StructArray.from_arrays(parts, names=names, mask=null_mask(array))


def _renamed_items(array: pa.Array, requested: SchemaColumn, stored: SchemaColumn) -> pa.Array:
    new, old = requested.parts[0], stored.parts[0]
    if pt.is_map(array.type):
        offsets, keys = own_items(array.offsets, array.keys)
        values = _renamed(own_items(array.offsets, array.items)[1], new, old)
        kind = pa.map_(array.type.key_type, array.type.item_field.with_type(values.type))
        return pa.MapArray.from_arrays(offsets, keys, values, type=kind, mask=null_mask(array))
    offsets, items = own_items(array.offsets, array.values)
    values = _renamed(items, new, old)
    kind = pa.list_(array.type.value_field.with_type(values.type))
    return pa.ListArray.from_arrays(offsets, values, type=kind, mask=null_mask(array))
