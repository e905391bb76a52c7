"""Comments of columns: the `doc` of fields in the Avro schema of a table.

A comment stays with its column when other columns change, since Arrow schemas do not carry it: whoever makes
a new Avro schema takes the comments over from the one before.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
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
_INNER: Final = {"array": ("items", "element"), "map": ("values", "value")}


def comments_in(schema: pa.Schema) -> Comments:
    """Return the comments that Arrow columns and their fields have: the entry `comment` of their metadata.

    Raises:
        InvalidError: a comment is not UTF-8.
    """
    return {path: _text(path, comment) for path, comment in _comments_in(schema, ())}


def _text(path: Path, comment: bytes) -> str:
    try:
        return comment.decode()
    except UnicodeDecodeError as error:
        raise InvalidError(
            f"The comment of column {'.'.join(path)} is not UTF-8: {comment!r}. Encode it as UTF-8."
        ) from error


def _comments_in(fields: Iterable[pa.Field], parent: Path) -> Iterator[tuple[Path, bytes]]:
    for field in fields:
        path = (*parent, field.name)
        comment = (field.metadata or {}).get(_KEY)
        if comment:
            yield path, comment
        yield from _comments_within(field.type, path)


def _comments_within(kind: pa.DataType, path: Path) -> Iterator[tuple[Path, bytes]]:
    if pt.is_struct(kind):
        yield from _comments_in(kind.fields, path)
    elif pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind):
        yield from _comments_within(kind.value_type, (*path, "element"))
    elif pt.is_map(kind):
        yield from _comments_within(kind.item_type, (*path, "value"))


def commented(schema: pa.Schema, comments: Comments) -> pa.Schema:
    """Return Arrow columns with comments; `comments_in` of the result returns them."""
    return pa.schema(_commented(schema, (), comments)) if comments else schema


def _commented(fields: Iterable[pa.Field], parent: Path, comments: Comments) -> list[pa.Field]:
    told = []
    for field in fields:
        path = (*parent, field.name)
        inner = field.with_type(_commented_type(field.type, path, comments))
        told.append(inner.with_metadata({_KEY: comments[path].encode()}) if path in comments else inner)
    return told


def _commented_type(kind: pa.DataType, path: Path, comments: Comments) -> pa.DataType:
    if pt.is_struct(kind):
        return pa.struct(_commented(kind.fields, path, comments))
    if pt.is_list(kind):
        item = _commented_type(kind.value_type, (*path, "element"), comments)
        return pa.list_(kind.value_field.with_type(item))
    if pt.is_map(kind):
        item = _commented_type(kind.item_type, (*path, "value"), comments)
        return pa.map_(kind.key_field, kind.item_field.with_type(item), kind.keys_sorted)
    return kind


def comments_of(schema_json: str) -> Comments:
    """Return the comments in an Avro record schema."""
    if '"doc"' not in schema_json:
        return NO_COMMENTS
    return {path: field["doc"] for path, field in _fields(json.loads(schema_json), ()) if field.get("doc")}


def with_comments(schema_json: str, comments: Comments) -> str:
    """Return an Avro record schema with the comments of those of its columns that have one."""
    if not comments:
        return schema_json
    schema = json.loads(schema_json)
    for path, field in _fields(schema, ()):
        if path in comments:
            field["doc"] = comments[path]
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)


def comments_of_new(schema_json: str, comments: Comments) -> Comments:
    """Return those comments that are of columns which an Avro record schema lacks."""
    known = {path for path, _ in _fields(json.loads(schema_json), ())} if comments else set()
    return {path: text for path, text in comments.items() if path not in known}


def _fields(kind: Any, path: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the fields of a type, and of what is inside of it, with their paths."""
    if isinstance(kind, list):  # a column that may be null
        for branch in kind:
            yield from _fields(branch, path)
    elif isinstance(kind, dict) and kind["type"] == "record":
        for field in kind["fields"]:
            own = (*path, field["name"])
            if own[0] not in META_COLUMNS:
                yield own, field
            yield from _fields(field["type"], own)
    elif isinstance(kind, dict) and kind["type"] in _INNER:
        key, name = _INNER[kind["type"]]
        yield from _fields(kind[key], (*path, name))
