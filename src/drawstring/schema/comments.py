"""Comments of columns: the `doc` of fields in the Avro schema of a table.

A comment stays with its column when other columns change, since Arrow schemas do not carry it: whoever makes
a new Avro schema takes the comments over from the one before.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyarrow import types as pt

from drawstring.base.errors import InvalidError
from drawstring.schema.meta import META_COLUMNS

Path: TypeAlias = "tuple[str, ...]"
Comments: TypeAlias = "Mapping[Path, str]"
"""Comments by the paths of columns; the items of lists are `element` in them, the values of maps `value`."""

NO_COMMENTS: Final[Comments] = {}
_KEY: Final = b"comment"
_RECORDS: Final = ("record", "struct")
_INNER: Final = {"items": "element", "elementType": "element", "values": "value", "valueType": "value"}
"""What is inside of lists and maps in the JSON of Avro and Spark, and its name in paths."""


def comments_in(schema: pa.Schema) -> Comments:
    """Return the comments that Arrow columns and their fields have: the entry `comment` of their metadata.

    Raises:
        InvalidError: a comment is not UTF-8.
    """
    found: dict[Path, str] = {}

    def note(path: Path, field: pa.Field) -> pa.Field:
        if comment := (field.metadata or {}).get(_KEY):
            found[path] = _text(path, comment)
        return field

    _each(schema, (), note)
    return found


def _text(path: Path, comment: bytes) -> str:
    try:
        return comment.decode()
    except UnicodeDecodeError as error:
        raise InvalidError(
            f"The comment of column {'.'.join(path)} is not UTF-8: {comment!r}. Encode it as UTF-8."
        ) from error


def commented(schema: pa.Schema, comments: Comments) -> pa.Schema:
    """Return Arrow columns with comments; `comments_in` of the result returns them."""

    def told(path: Path, field: pa.Field) -> pa.Field:
        return field.with_metadata({_KEY: comments[path].encode()}) if path in comments else field

    return pa.schema(_each(schema, (), told)) if comments else schema


def _each(
    fields: Iterable[pa.Field], parent: Path, change: Callable[[Path, pa.Field], pa.Field]
) -> list[pa.Field]:
    """Return Arrow fields, and those inside of them, as a function of their paths changes them."""
    changed = []
    for field in fields:
        path = (*parent, field.name)
        changed.append(change(path, field.with_type(_within(field.type, path, change))))
    return changed


def _within(kind: pa.DataType, path: Path, change: Callable[[Path, pa.Field], pa.Field]) -> pa.DataType:
    if pt.is_struct(kind):
        return pa.struct(_each(kind.fields, path, change))
    if pt.is_map(kind):
        item = kind.item_field.with_type(_within(kind.item_type, (*path, "value"), change))
        return pa.map_(kind.key_field, item, kind.keys_sorted)
    if not (pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind)):
        return kind
    item = kind.value_field.with_type(_within(kind.value_type, (*path, "element"), change))
    if pt.is_large_list(kind):
        return pa.large_list(item)
    return pa.list_(item, kind.list_size if pt.is_fixed_size_list(kind) else -1)


def comments_of(schema_json: str) -> Comments:
    """Return the comments in an Avro record schema."""
    if '"doc"' not in schema_json:
        return NO_COMMENTS
    return {path: field["doc"] for path, field in fields_in(json.loads(schema_json)) if field.get("doc")}


def with_comments(schema_json: str, comments: Comments) -> str:
    """Return an Avro record schema with the comments of those of its columns that have one."""
    if not comments:
        return schema_json
    schema = json.loads(schema_json)
    for path, field in fields_in(schema):
        if path in comments:
            field["doc"] = comments[path]
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)


def comments_of_new(schema_json: str, comments: Comments) -> Comments:
    """Return those comments that are of columns which an Avro record schema lacks."""
    known = {path for path, _ in fields_in(json.loads(schema_json))} if comments else set()
    return {path: text for path, text in comments.items() if path not in known}


def fields_in(kind: Any, path: Path = ()) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the fields of a type in the JSON of Avro or Spark, and of what is inside of it, with their paths.

    Args:
        kind: the type; a field of it may be changed once it is yielded.
        path: where it is.
    """
    if isinstance(kind, list):  # a column of Avro that may be null
        for branch in kind:
            yield from fields_in(branch, path)
    elif isinstance(kind, dict) and kind["type"] in _RECORDS:
        for field in kind["fields"]:
            own = (*path, field["name"])
            if own[0] not in META_COLUMNS:
                yield own, field
            yield from fields_in(field["type"], own)
    elif isinstance(kind, dict):
        for key, name in _INNER.items():
            if key in kind:
                yield from fields_in(kind[key], (*path, name))
