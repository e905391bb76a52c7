"""Versions of a schema made of Arrow schemas, as Hudi's internal schema is made of Avro's.

Ids are given level by level: all fields of a record before what is inside them. A column keeps the id of the
column of its name in the version before; a rename changes the name in that version first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyarrow import types as pt

from drawstring.base.errors import UnsupportedError
from drawstring.config.table.schema_versions import SchemaHistory
from drawstring.schema.avro import decimal_size_bytes
from drawstring.schema.comments import NO_COMMENTS, Comments
from drawstring.schema.logical_types import descriptor
from drawstring.schema.meta import META_COLUMNS
from drawstring.schema.normal import normalise
from drawstring.schema.schema_on_read import with_version

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
        _tell(_field_at(version["fields"], path), text)
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
    is_told = [_tell(_field_at(before["fields"], path), text) for path, text in commented.items()]
    version = _version(schema, before, int(instant))
    has_new_name = any(path[-1] != name for path, name in (renamed or {}).items())
    is_same = not (has_new_name or any(is_told)) and version["fields"] == before["fields"]
    return history if is_same else with_version(history, version)


def _tell(field: dict[str, Any], comment: str) -> bool:
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
    if (told := descriptor(field.type)) is not None:
        raise UnsupportedError(
            f"Column {field.name!r} is {told}, which versions of a schema (schema on read) cannot have, as in"
            " Hudi. Add columns without them; for other names or another order, copy the rows to a new table."
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
