"""Comments of columns: the `doc` of fields in the Avro schema of a table.

A comment stays with its column when other columns change, since Arrow schemas do not carry it: whoever makes
a new Avro schema takes the comments over from the one before.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

import pyarrow as pa

from drawstring.schema.meta import META_COLUMNS

Path: TypeAlias = "tuple[str, ...]"
Comments: TypeAlias = "Mapping[Path, str]"
"""Comments by the paths of columns; the items of lists are `element` in them, the values of maps `value`."""

NO_COMMENTS: Final[Comments] = {}
_KEY: Final = b"comment"
_INNER: Final = {"array": ("items", "element"), "map": ("values", "value")}


def comments_in(schema: pa.Schema) -> Comments:
    """Return the comments that Arrow columns have: the entry `comment` of their metadata."""
    told = {field.name: (field.metadata or {}).get(_KEY) for field in schema}
    return {(name,): comment.decode() for name, comment in told.items() if comment}


def commented(schema: pa.Schema, comments: Comments) -> pa.Schema:
    """Return Arrow columns with comments; `comments_in` of the result returns them."""
    told = [comments.get((field.name,)) for field in schema]
    return pa.schema(
        [
            field.with_metadata({_KEY: text.encode()}) if text else field
            for field, text in zip(schema, told, strict=True)
        ]
    )


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
