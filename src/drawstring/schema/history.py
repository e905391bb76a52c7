"""Columns by id: finding a table's columns in files from before a rename or a drop (schema on read).

A table that evolves its schema on read keeps all versions of it (specification: Schema Evolution):

    .hoodie/.schema/<instant>.schemacommit   {"schemas": [newest, ..., first]}, each with its version
    a data file of instant T                 has the newest version up to T
    a column of a query                      stands in the file under the name of its id, if at all
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import types as pt

from drawstring.base.errors import CorruptTableError
from drawstring.schema.nested import null_mask, own_items

_NOTHING = "\0"
"""Stands in a struct that kept none of its fields."""


@dataclass(frozen=True, slots=True)
class SchemaColumn:
    """A column of one version, or a part of one.

    Attributes:
        id: the same in all versions.
        name: in this version.
        parts: fields of a struct, the element of a list, the value of a map.
    """

    id: int
    name: str
    parts: tuple[SchemaColumn, ...] = ()


@dataclass(frozen=True, slots=True)
class Renames:
    """Where a query's columns stand in a file.

    Attributes:
        asked: columns of the query's version.
        stored: columns of the file's version.
    """

    asked: tuple[SchemaColumn, ...]
    stored: tuple[SchemaColumn, ...]

    def stored_names(self, names: Iterable[str]) -> list[str]:
        """Return the names that columns of the query have in the file, without those it lacks."""
        sources = self._sources()
        return [stored for name in names if (stored := sources.get(name, name)) is not None]

    def applied(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows of the file with the names of the query, at every depth.

        Columns that the query does not know by id keep their name.
        """
        sources = self._sources()
        taken = {stored for stored in sources.values() if stored is not None}
        given = {name: batch.column(name) for name in batch.schema.names if name not in taken | set(sources)}
        stored_columns = {column.name: column for column in self.stored}
        for column in self.asked:
            source = sources[column.name]
            if source is not None and source in batch.schema.names:
                given[column.name] = _renamed(batch.column(source), column, stored_columns[source])
        return pa.RecordBatch.from_arrays(list(given.values()), names=list(given))

    def _sources(self) -> dict[str, str | None]:
        """Return the name in the file by name in the query, None for a column that the file lacks."""
        names = {column.id: column.name for column in self.stored}
        return {column.name: names.get(column.id) for column in self.asked}


@dataclass(frozen=True, slots=True)
class SchemaHistory:
    """The versions of a schema.

    Attributes:
        versions: columns by version, the number of the instant that made it, oldest first.
        asked: version that a query shows.
    """

    versions: Mapping[int, tuple[SchemaColumn, ...]]
    asked: int

    def renames(self, instant: str) -> Renames | None:
        """Return where the query's columns stand in a file of an instant; None for where they are.

        Raises:
            CorruptTableError: no version is as old as the file.
        """
        version = max((each for each in self.versions if each <= int(instant)), default=None)
        if version is None:
            raise CorruptTableError(
                "the schema history begins after the file was written: restore .hoodie/.schema",
                instant=instant,
            )
        asked, stored = self.versions[self.asked], self.versions[version]
        return None if set(asked) == set(stored) else Renames(asked, stored)


def decode_history(text: str) -> dict[int, tuple[SchemaColumn, ...]]:
    """Return the versions in the content of a history file, oldest first.

    Raises:
        CorruptTableError: it cannot be read.
    """
    try:
        schemas = json.loads(text)["schemas"]
        found = {int(schema["version_id"]): _columns(schema) for schema in schemas}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptTableError(f"the schema history cannot be read ({error!r}): restore it") from error
    return dict(sorted(found.items()))


def _columns(record: Mapping[str, Any]) -> tuple[SchemaColumn, ...]:
    return tuple(
        SchemaColumn(int(each["id"]), str(each["name"]), _parts(each["type"])) for each in record["fields"]
    )


def _parts(kind: Any) -> tuple[SchemaColumn, ...]:
    if isinstance(kind, str):
        return ()
    if kind["type"] == "record":
        return _columns(kind)
    if kind["type"] == "array":
        return (SchemaColumn(int(kind["element_id"]), "element", _parts(kind["element"])),)
    return (SchemaColumn(int(kind["value_id"]), "value", _parts(kind["value"])),)


def _renamed(array: pa.Array, asked: SchemaColumn, stored: SchemaColumn) -> pa.Array:
    if set(asked.parts) == set(stored.parts):
        return array
    if pt.is_struct(array.type):
        return _renamed_struct(array, asked, stored)
    if pt.is_list(array.type) or pt.is_map(array.type):
        return _renamed_items(array, asked, stored)
    return array


def _renamed_struct(array: pa.StructArray, asked: SchemaColumn, stored: SchemaColumn) -> pa.Array:
    sources = {part.id: part for part in stored.parts}
    pairs = [(part, sources[part.id]) for part in asked.parts if part.id in sources]
    present = [pair for pair in pairs if array.type.get_field_index(pair[1].name) >= 0]
    parts = [_renamed(array.field(old.name), new, old) for new, old in present]
    names = [new.name for new, _ in present]
    if not present:
        parts, names = [pa.nulls(len(array))], [_NOTHING]
    return pa.StructArray.from_arrays(parts, names=names, mask=null_mask(array))


def _renamed_items(array: pa.Array, asked: SchemaColumn, stored: SchemaColumn) -> pa.Array:
    new, old = asked.parts[0], stored.parts[0]
    if pt.is_map(array.type):
        offsets, keys = own_items(array.offsets, array.keys)
        values = _renamed(own_items(array.offsets, array.items)[1], new, old)
        kind = pa.map_(array.type.key_type, array.type.item_field.with_type(values.type))
        return pa.MapArray.from_arrays(offsets, keys, values, type=kind, mask=null_mask(array))
    offsets, items = own_items(array.offsets, array.values)
    values = _renamed(items, new, old)
    kind = pa.list_(array.type.value_field.with_type(values.type))
    return pa.ListArray.from_arrays(offsets, values, type=kind, mask=null_mask(array))
