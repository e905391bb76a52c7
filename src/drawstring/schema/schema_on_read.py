"""Schema history for schema on read: columns have ids, which survive renames.

A table with schema on read stores all versions of its schema (specification: Schema Evolution):

    .hoodie/.schema/<instant>.schemacommit   {"schemas": [newest, ..., first]}, each with its version
    a data file of instant T                 has the newest version up to T
    a column of a query                      has in the file the name of its id, if the file has the id
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import types as pt

from drawstring.base.errors import CorruptTableError
from drawstring.schema.normal import null_mask, own_items

_NOTHING = "\0"
"""Name of the placeholder field in a struct of which the file has no field."""


@dataclass(frozen=True, slots=True)
class SchemaColumn:
    """A column of one schema version, or a part of one.

    Attributes:
        id: identifies the column in all versions.
        name: name in this version.
        parts: fields of a struct, the element of a list, or the value of a map.
    """

    id: int
    name: str
    parts: tuple[SchemaColumn, ...] = ()


@dataclass(frozen=True, slots=True)
class Renames:
    """The mapping of a query's columns to those of a file with another schema version.

    Attributes:
        requested: columns of the query's version.
        stored: columns of the file's version.
    """

    requested: tuple[SchemaColumn, ...]
    stored: tuple[SchemaColumn, ...]

    def stored_names(self, names: Iterable[str]) -> list[str]:
        """Return the names in the file of columns of the query, without those that the file lacks."""
        sources = self._sources()
        return [stored for name in names if (stored := sources.get(name, name)) is not None]

    def applied(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows of the file with the query's column names, at every depth.

        Columns without an id in the query keep their name.
        """
        sources = self._sources()
        taken = {stored for stored in sources.values() if stored is not None}
        columns = {
            name: batch.column(name) for name in batch.schema.names if name not in taken | set(sources)
        }
        stored_columns = {column.name: column for column in self.stored}
        for column in self.requested:
            source = sources[column.name]
            if source is not None and source in batch.schema.names:
                columns[column.name] = _renamed(batch.column(source), column, stored_columns[source])
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))

    def _sources(self) -> dict[str, str | None]:
        """Return the names in the file by name in the query, None for a column that the file lacks."""
        names = {column.id: column.name for column in self.stored}
        return {column.name: names.get(column.id) for column in self.requested}


@dataclass(frozen=True, slots=True)
class SchemaHistory:
    """All versions of a table's schema.

    Attributes:
        versions: columns by version, oldest first; the version is the instant that created it, as a number.
        requested: the version of the query.
    """

    versions: Mapping[int, tuple[SchemaColumn, ...]]
    requested: int

    def renames(self, instant: str) -> Renames | None:
        """Return the mapping of the query's columns to those of a file; None if they are the same.

        Args:
            instant: the instant that wrote the file.

        Raises:
            CorruptTableError: no version is as old as the file.
        """
        version = max((number for number in self.versions if number <= int(instant)), default=None)
        if version is None:
            raise CorruptTableError(
                "The schema history begins after the file was written."
                " Restore .hoodie/.schema from a backup.",
                instant=instant,
            )
        requested, stored = self.versions[self.requested], self.versions[version]
        return None if set(requested) == set(stored) else Renames(requested, stored)


def decode_history(text: str) -> dict[int, tuple[SchemaColumn, ...]]:
    """Return the versions in the content of a history file, oldest first.

    Raises:
        CorruptTableError: the text cannot be read.
    """
    try:
        schemas = json.loads(text)["schemas"]
        versions = {int(schema["version_id"]): _columns(schema) for schema in schemas}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptTableError(
            f"The schema history cannot be read ({error!r}). Restore .hoodie/.schema from a backup."
        ) from error
    return dict(sorted(versions.items()))


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
