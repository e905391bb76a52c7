"""Change the columns of a table and store all versions of its schema, as Hudi's schema on read does.

A table with schema on read stores all versions of its schema (specification: Schema Evolution):

    .hoodie/.schema/<instant>.schemacommit   {"schemas": [newest, ..., first]}, each with its version
    a data file of instant T                 has the newest version up to T
    a column of a query                      has in the file the name of its id, if the file has the id

Columns have ids, which survive renames. Ids are given level by level: all fields of a record before what is
inside them. A column has the id of the column of its name in the version before; a rename changes the name
in that version first.

Versions are made of Arrow schemas, as Hudi's internal schema is made of Avro's.

A `ColumnChange` is one change of ALTER TABLE. Its path leads to a column, or to a field inside a column:
`("st", "a")`. The items of a list are `element` in it, the values of a map `value`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import pyarrow as pa
from pyarrow import types as pt

from drawstring.base.errors import CorruptTableError, InvalidError, UnsupportedError
from drawstring.config.table.schema_versions import Renames, SchemaColumn, SchemaHistory
from drawstring.schema.avro import NO_COMMENTS, Comments, decimal_size_bytes
from drawstring.schema.evolution import fits, normal_type, normalise, null_mask, own_items
from drawstring.schema.fields import META_COLUMNS
from drawstring.schema.logical_types import descriptor

FIRST: Final = ""
"""The place before all other columns; the name of a column is the place after it."""

Path = tuple[str, ...]


class ChangeKind(StrEnum):
    """What a change does."""

    ADD = "add"
    DROP = "drop"
    RENAME = "rename"
    TYPE = "type"
    NULLABLE = "nullable"
    MOVE = "move"
    COMMENT = "comment"


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """One change of a column.

    Attributes:
        kind: what it does.
        path: the column.
        name: new name of a renamed column.
        type: type of an added column, new type of another one.
        place: name of the column before it, or `FIRST`; None for the end, or where it is.
        comment: comment of a column that is given one; empty for none.
    """

    kind: ChangeKind
    path: Path
    name: str = ""
    type: pa.DataType | None = None
    place: str | None = None
    comment: str = ""

    @property
    def column(self) -> str:
        """Dotted name of the column."""
        return ".".join(self.path)

    @property
    def keeps_values(self) -> bool:
        """Whether statistics and indexes of what is stored under the name stay as they are."""
        return self.kind not in (ChangeKind.DROP, ChangeKind.RENAME, ChangeKind.TYPE)


def added(name: str, type: pa.DataType, place: str | None) -> ColumnChange:
    """Return the addition of a column, given by its dotted name."""
    return ColumnChange(ChangeKind.ADD, _path(name), type=_given_type(type), place=place)


def renamed(name: str, new_name: str) -> ColumnChange:
    """Return the renaming of a column, given by its dotted name.

    Raises:
        InvalidError: the new name has a dot: a field stays in its struct.
    """
    last = _given_name(new_name).rpartition(".")[2]
    if last != new_name:
        raise InvalidError(
            f"The new name {new_name!r} has a dot, which divides a struct from its field. A field stays in"
            f" its struct: give the new name without the struct, as in {last or 'name'!r}."
        )
    return ColumnChange(ChangeKind.RENAME, _path(name), new_name)


def dropped(name: str) -> ColumnChange:
    """Return the dropping of a column, given by its dotted name."""
    return ColumnChange(ChangeKind.DROP, _path(name))


def retyped(name: str, type: pa.DataType) -> ColumnChange:
    """Return the change of the type of a column, given by its dotted name."""
    return ColumnChange(ChangeKind.TYPE, _path(name), type=_given_type(type))


def moved(name: str, place: str | None) -> ColumnChange:
    """Return the change of the place of a column, given by its dotted name."""
    return ColumnChange(ChangeKind.MOVE, _path(name), place=place)


def commented(name: str, comment: str | None) -> ColumnChange:
    """Return the change of the comment of a column, given by its dotted name; None takes it away."""
    if not (comment is None or isinstance(comment, str)):
        raise InvalidError(f"The comment of a column is a text, not {comment!r}.")
    return ColumnChange(ChangeKind.COMMENT, _path(name), comment=comment or "")


def place_of(first: bool, after: str | None) -> str | None:
    """Return the place of a column: before all others, after one of them, or None for the end.

    Raises:
        InvalidError: both places are given.
    """
    if after is None:
        return FIRST if first else None
    if first:
        raise InvalidError(f"Both first=True and after={after!r} are given. Give one of them.")
    return _given_name(after)


def _path(name: str) -> Path:
    return tuple(_given_name(name).split("."))


def _given_name(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise InvalidError(f"The name of a column is a text that is not empty, not {name!r}.")
    return name


def _given_type(kind: object) -> pa.DataType:
    if not isinstance(kind, pa.DataType):
        raise InvalidError(f"{kind!r} is not a type of pyarrow. Give one, such as pa.int64() or pa.string().")
    return kind


def changed(schema: pa.Schema, change: ColumnChange) -> pa.Schema:
    """Return a schema with one change.

    Args:
        schema: the columns, without meta columns.
        change: the change.

    Raises:
        InvalidError: there is no such column, one of that name is there already, or its type cannot become
            the new one.
    """
    return pa.schema(_in_fields(list(schema), change.path, change))


def replacement(schema: pa.Schema, wanted: pa.Schema, kept: Sequence[str]) -> list[ColumnChange]:
    """Return the changes that give a table other columns; a column of a name that it has stays that column.

    Args:
        schema: the columns, without meta columns.
        wanted: the columns to have, in order.
        kept: columns that stay behind those, even if they are not among them.
    """
    stay = [name for name in kept if name in schema.names and name not in wanted.names]
    names = [*wanted.names, *stay]
    changes = [dropped(name) for name in schema.names if name not in names]
    for field in wanted:
        if field.name not in schema.names:
            changes.append(added(field.name, field.type, None))
        elif normal_type(field.type, field.name) != normal_type(schema.field(field.name).type, field.name):
            changes.append(retyped(field.name, field.type))
    have = [name for name in schema.names if name in names]
    have += [name for name in names if name not in have]
    for place, name in enumerate(names):
        if have[place] != name:
            changes.append(moved(name, names[place - 1] if place else FIRST))
            have.remove(name)
            have.insert(place, name)
    return changes


def _in_fields(fields: list[pa.Field], path: Path, change: ColumnChange) -> list[pa.Field]:
    if len(path) == 1:
        return _EDITS[change.kind](fields, path[0], change)
    place = _place(fields, path[0], change.path[: -len(path)])
    field = fields[place]
    return [*fields[:place], field.with_type(_in_type(field.type, path[1:], change)), *fields[place + 1 :]]


def _in_type(kind: pa.DataType, path: Path, change: ColumnChange) -> pa.DataType:
    if pt.is_struct(kind):
        return pa.struct(_in_fields(kind.fields, path, change))
    if pt.is_list(kind) and path[0] == "element":
        return pa.list_(_in_item(kind.value_field, path[1:], change))
    if pt.is_map(kind) and path[0] == "value":
        return pa.map_(kind.key_type, _in_item(kind.item_field, path[1:], change))
    hint = " Its items are called element." if pt.is_list(kind) else ""
    hint = " Its values are called value." if pt.is_map(kind) else hint
    parent = ".".join(change.path[: -len(path)])
    raise InvalidError(f"There is no field {path[0]} in {parent}, which is {kind}.{hint}")


def _in_item(item: pa.Field, path: Path, change: ColumnChange) -> pa.Field:
    if path:
        return item.with_type(_in_type(item.type, path, change))
    if change.kind is ChangeKind.TYPE:
        return _retyped(item, change)
    if change.kind is ChangeKind.NULLABLE:
        return item.with_nullable(True)
    raise InvalidError(f"{change.column} is the content of a list or map, of which only the type can change.")


def comments_after(comments: Comments, change: ColumnChange) -> Comments:
    """Return the comments of columns after a change."""
    path = change.path
    if change.kind is ChangeKind.COMMENT:
        others = {each: text for each, text in comments.items() if each != path}
        return {**others, path: change.comment} if change.comment else others
    if change.kind is ChangeKind.DROP:
        return {each: text for each, text in comments.items() if each[: len(path)] != path}
    if change.kind is not ChangeKind.RENAME:
        return comments
    new = (*path[:-1], change.name)
    return {
        (*new, *each[len(path) :]) if each[: len(path)] == path else each: text
        for each, text in comments.items()
    }


def _add(fields: list[pa.Field], name: str, change: ColumnChange) -> list[pa.Field]:
    assert change.type is not None
    _check_type(change.type, change)
    _check_free(fields, name, change)
    return _placed(fields, pa.field(name, change.type), change)


def _drop(fields: list[pa.Field], name: str, change: ColumnChange) -> list[pa.Field]:
    place = _place(fields, name, change.path[:-1])
    if len(fields) == 1:
        raise InvalidError(f"{change.column} is the only column there, and cannot be dropped.")
    return [*fields[:place], *fields[place + 1 :]]


def _rename(fields: list[pa.Field], name: str, change: ColumnChange) -> list[pa.Field]:
    place = _place(fields, name, change.path[:-1])
    _check_free([each for each in fields if each.name != name], change.name, change)
    return [*fields[:place], fields[place].with_name(change.name), *fields[place + 1 :]]


def _retype(fields: list[pa.Field], name: str, change: ColumnChange) -> list[pa.Field]:
    place = _place(fields, name, change.path[:-1])
    return [*fields[:place], _retyped(fields[place], change), *fields[place + 1 :]]


def _make_nullable(fields: list[pa.Field], name: str, change: ColumnChange) -> list[pa.Field]:
    place = _place(fields, name, change.path[:-1])
    return [*fields[:place], fields[place].with_nullable(True), *fields[place + 1 :]]


def _keep(fields: list[pa.Field], name: str, change: ColumnChange) -> list[pa.Field]:
    _place(fields, name, change.path[:-1])
    return fields


def _move(fields: list[pa.Field], name: str, change: ColumnChange) -> list[pa.Field]:
    place = _place(fields, name, change.path[:-1])
    return _placed([*fields[:place], *fields[place + 1 :]], fields[place], change)


_EDITS: Final[dict[ChangeKind, Callable[[list[pa.Field], str, ColumnChange], list[pa.Field]]]] = {
    ChangeKind.ADD: _add,
    ChangeKind.DROP: _drop,
    ChangeKind.RENAME: _rename,
    ChangeKind.TYPE: _retype,
    ChangeKind.NULLABLE: _make_nullable,
    ChangeKind.MOVE: _move,
    ChangeKind.COMMENT: _keep,
}


def _placed(fields: list[pa.Field], field: pa.Field, change: ColumnChange) -> list[pa.Field]:
    if change.place is None:
        return [*fields, field]
    _check_place(fields, change)
    at = 0 if change.place == FIRST else _place(fields, change.place, change.path[:-1]) + 1
    return [*fields[:at], field, *fields[at:]]


def _check_place(fields: Sequence[pa.Field], change: ColumnChange) -> None:
    """Check the name of the column before a place for the two mistakes that are easily made."""
    place = change.place or FIRST
    struct, _, last = place.rpartition(".")
    is_dotted = bool(struct) and struct == ".".join(change.path[:-1])
    names = [each.name for each in fields]
    if change.path[-1] in (place, last if is_dotted else place) and place not in names:
        raise InvalidError(f"Column {change.column} cannot be behind itself. Give another column, or first.")
    if is_dotted and last in names:
        raise InvalidError(
            f"{change.column} is placed within {struct}, whose fields are named alone there. Give {last!r}"
            f" instead of {place!r}."
        )


def _retyped(field: pa.Field, change: ColumnChange) -> pa.Field:
    old, new = field.type, change.type
    assert new is not None
    _check_type(new, change)
    if old != new and not _can_become(old, new):
        raise InvalidError(
            f"Column {change.column} is {old} and cannot become {new}. Integers become long, float, double or"
            " string; float becomes double; date becomes string; decimals get more digits of the same scale."
        )
    return field.with_type(new)


def _can_become(old: pa.DataType, new: pa.DataType) -> bool:
    """Return whether the values of a type are read as those of another one.

    Hudi has floats as texts of Java, such as 1.0E10, which reads do not make.
    """
    if pt.is_nested(old) or pt.is_nested(new) or pt.is_binary(old) or pt.is_binary(new):
        return False
    return fits(old, new) and not (pt.is_floating(old) and pt.is_string(new))


def _check_type(kind: pa.DataType, change: ColumnChange) -> None:
    if _has_null(normal_type(kind, change.column)):
        raise InvalidError(
            f"Column {change.column} cannot be {kind}: a table does not store the type null. Give the type of"
            " the values to come."
        )


def _has_null(kind: pa.DataType) -> bool:
    if pt.is_struct(kind):
        return any(_has_null(field.type) for field in kind.fields)
    if pt.is_map(kind):
        return _has_null(kind.item_type)
    return _has_null(kind.value_type) if pt.is_list(kind) else bool(pt.is_null(kind))


def _place(fields: Sequence[pa.Field], name: str, parent: Path) -> int:
    names = [each.name for each in fields]
    if name not in names:
        what = f"field {name} in {'.'.join(parent)}" if parent else f"column {name}"
        raise InvalidError(f"There is no {what}. There are {', '.join(names)}.")
    return names.index(name)


def _check_free(fields: Sequence[pa.Field], name: str, change: ColumnChange) -> None:
    same = next((each.name for each in fields if each.name.lower() == name.lower()), None)
    if same is not None:
        raise InvalidError(
            f"There is a column {same} already, and Spark does not tell names apart by case. Give"
            f" {change.column} another name."
        )


_NOTHING = "\0"
"""Name of the placeholder field in a struct of which the file has no field."""


def with_query_names(batch: pa.RecordBatch, renames: Renames) -> pa.RecordBatch:
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


FIRST_VERSION: Final = 0
"""The version of files that were written before the schema was changed for the first time."""

_NAMES: Final[Mapping[pa.DataType, str]] = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.time32("ms"): "time-millis",
    pa.time64("us"): "time",
    pa.timestamp("us", "UTC"): "timestamp",
    pa.timestamp("ms", "UTC"): "timestamp-millis",
    pa.timestamp("us"): "local-timestamp-micros",
    pa.timestamp("ms"): "local-timestamp-millis",
}
_KINDS: Final[Mapping[str, pa.DataType]] = {name: kind for kind, name in _NAMES.items()} | {
    "uuid": pa.string()
}
_DECIMAL: Final = re.compile(r"decimal(?:_fixed|_bytes)?\((\d+),\s*(\d+)\)(?:\[\d+\])?")
_FIXED: Final = re.compile(r"fixed\[(\d+)\]")


def first_history(schema: pa.Schema, comments: Comments = NO_COMMENTS) -> SchemaHistory:
    """Return the history of a table whose schema was never changed.

    Args:
        schema: its columns, with meta columns if it has them.
        comments: comments of columns.
    """
    version = _version(schema, None, FIRST_VERSION)
    for path, text in comments.items():
        _set_comment(_field_at(version["fields"], path), text)
    return with_version(SchemaHistory({}, FIRST_VERSION), version)


def evolved_history(
    history: SchemaHistory,
    schema: pa.Schema,
    instant: str,
    renamed: Mapping[tuple[str, ...], str] | None = None,
    commented: Comments = NO_COMMENTS,
) -> SchemaHistory:
    """Return a history with a version for the columns of a write; the same one if they did not change.

    Args:
        history: the versions before.
        schema: the columns, with meta columns if the table has them.
        instant: the write.
        renamed: new names of columns by their paths in the version before.
        commented: new comments of columns, empty for none.
    """
    before = json.loads(history.text)
    for path, name in (renamed or {}).items():
        _field_at(before["fields"], path)["name"] = name
    is_changed = [_set_comment(_field_at(before["fields"], path), text) for path, text in commented.items()]
    version = _version(schema, before, int(instant))
    has_new_name = any(path[-1] != name for path, name in (renamed or {}).items())
    is_same = not (has_new_name or any(is_changed)) and version["fields"] == before["fields"]
    return history if is_same else with_version(history, version)


def _set_comment(field: dict[str, Any], comment: str) -> bool:
    """Give a field a comment, and return whether it had another one."""
    before = field.pop("doc", "")
    if comment:
        field["doc"] = comment
    return bool(before != comment)


@dataclass(slots=True)
class _Ids:
    """Gives new columns their ids."""

    last: int

    def new(self) -> int:
        self.last += 1
        return self.last


def _version(schema: pa.Schema, before: Mapping[str, Any] | None, number: int) -> dict[str, Any]:
    ids = _Ids(-1 if before is None else int(before["max_column_id"]))
    fields = _fields(list(normalise(schema)), [] if before is None else before["fields"], ids)
    return {"max_column_id": ids.last, "version_id": number, "type": "record", "fields": fields}


def _fields(
    fields: Sequence[pa.Field], before: Sequence[Mapping[str, Any]], ids: _Ids
) -> list[dict[str, Any]]:
    known = {each["name"]: each for each in before}
    numbers = [known[each.name]["id"] if each.name in known else ids.new() for each in fields]
    return [
        _field(field, number, known.get(field.name, {}), ids)
        for field, number in zip(fields, numbers, strict=True)
    ]


def _field(field: pa.Field, number: int, known: Mapping[str, Any], ids: _Ids) -> dict[str, Any]:
    if (described := descriptor(field.type)) is not None:
        raise UnsupportedError(
            f"Column {field.name!r} is {described}, which versions of a schema (schema on read) cannot"
            " have, as in Hudi. Add columns without them; for other names or another order, copy the rows to"
            " a new table."
        )
    kind = _type(field.type, known.get("type"), ids)
    entry = {"id": number, "name": field.name, "optional": field.nullable, "type": kind}
    doc = known.get("doc", "" if field.name in META_COLUMNS else None)
    return entry if doc is None else {**entry, "doc": doc}


def _type(kind: pa.DataType, known: Any, ids: _Ids) -> Any:
    parts: Mapping[str, Any] = known if isinstance(known, dict) else {}
    if pt.is_struct(kind):
        return {"type": "record", "fields": _fields(kind.fields, parts.get("fields", []), ids)}
    if pt.is_list(kind):
        number = parts["element_id"] if "element_id" in parts else ids.new()
        return {
            "type": "array",
            "element_id": number,
            "element": _type(kind.value_type, parts.get("element"), ids),
            "element_optional": kind.value_field.nullable,
        }
    if pt.is_map(kind):
        key = parts["key_id"] if "key_id" in parts else ids.new()
        value = parts["value_id"] if "value_id" in parts else ids.new()
        return {
            "type": "map",
            "key_id": key,
            "key": "string",
            "value_id": value,
            "value": _type(kind.item_type, parts.get("value"), ids),
            "value_optional": kind.item_field.nullable,
        }
    return known if isinstance(known, str) and _kind_of(known) == kind else _name_of(kind)


def _name_of(kind: pa.DataType) -> str:
    if pt.is_decimal(kind):
        size = decimal_size_bytes(kind.precision)
        return f"decimal_fixed({kind.precision}, {kind.scale})[{size}]"
    if pt.is_fixed_size_binary(kind):
        return f"fixed[{kind.byte_width}]"
    return _NAMES[kind]


def _kind_of(name: str) -> pa.DataType | None:
    """Return the Arrow type of a type's name; None for types that this release does not know."""
    if found := _DECIMAL.fullmatch(name):
        return pa.decimal128(int(found[1]), int(found[2]))
    if found := _FIXED.fullmatch(name):
        return pa.binary(int(found[1]))
    return _KINDS.get(name)


def _field_at(fields: Sequence[dict[str, Any]], path: tuple[str, ...]) -> dict[str, Any]:
    """Return a field by its path; the items of lists are `element` there, those of maps `value`."""
    field = next(each for each in fields if each["name"] == path[0])
    inner, rest = field["type"], path[1:]
    while rest and isinstance(inner, dict) and inner["type"] != "record":
        inner, rest = inner["element" if inner["type"] == "array" else "value"], rest[1:]
    return _field_at(inner["fields"], rest) if rest else field
