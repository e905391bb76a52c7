"""Convert between Avro and Arrow schemas (specification: Schema; Avro specification: Schemas).

| Avro | Arrow |
|---|---|
| boolean, int, long, float, double, string, bytes | bool, int32, int64, float32, float64, string, binary |
| int date; int time-millis; long time-micros | date32; time32[ms]; time64[us] |
| long timestamp-millis, -micros, -nanos | timestamp[ms, us, ns] in UTC |
| long local-timestamp-millis, -micros, -nanos | timestamp[ms, us, ns] without a zone |
| bytes or fixed decimal | decimal128 |
| fixed; enum, uuid | fixed_size_binary; string |
| Hudi's vector, blob, variant | as of `logical_types` |
| array, map, record | list, map<string, ...>, struct |
| union of null and one type | the type, nullable |
| union of several types | an error, or a struct of `member0`, `member1`, ... (as in Parquet and Spark) |

Comments of columns are the `doc` of fields in the Avro schema of a table. A comment stays with its column
when other columns change. Arrow schemas do not carry comments, so the caller that makes a new Avro schema
copies the comments from the one before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from functools import lru_cache
from typing import Any, Final, TypeAlias
from unicodedata import category

import pyarrow as pa
from pyarrow import types as pt

from drawstring.base.errors import CorruptTableError, InvalidError, UnsupportedError
from drawstring.base.resources import AVRO_TYPES_MAX
from drawstring.schema.evolution import normalise
from drawstring.schema.fields import META_COLUMNS
from drawstring.schema.logical_types import avro_of, defined_once, vector_of_avro

_SCHEMAS_CACHED: Final = 64
"""Number of schemas whose Arrow form is cached: all commits of a table have the same few."""

_ILLEGAL_START = re.compile(r"^[^A-Za-z_]")
_ILLEGAL = re.compile(r"[^A-Za-z0-9_]")
_LEGAL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CODE_MAX: Final = 0xFFFF
"""Largest code that Java's Avro, which looks at UTF-16, sees as a letter."""

_LETTERS: Final = frozenset(("Lu", "Ll", "Lt", "Lm", "Lo"))
_LETTER, _DIGITS = "L", "Nd"
"""Categories of characters in names: letters of any kind and '_', and digits."""


def sanitise(name: str) -> str:
    """Return a name with each illegal character replaced by `__`.

    Args:
        name: a table's name.
    """
    return _ILLEGAL.sub("__", _ILLEGAL_START.sub("__", name))


def is_legal(name: str) -> bool:
    """Return whether a column may have a name: letters and digits of any script, as Java's Avro has it."""
    if _LEGAL.fullmatch(name):
        return True
    kinds = [_LETTER if each == "_" or _is_letter(each) else category(each) for each in name]
    return bool(kinds) and kinds[0] == _LETTER and set(kinds) <= {_LETTER, _DIGITS}


def _is_letter(character: str) -> bool:
    return ord(character) <= _CODE_MAX and category(character) in _LETTERS


def record_name(table: str) -> tuple[str, str]:
    """Return name and namespace of a table's Avro record: `<table>_record`, `hoodie.<table>`.

    Args:
        table: the table's name.
    """
    name = sanitise(table)
    return f"{name}_record", f"hoodie.{name}"


_PRIMITIVE = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
_LOGICAL = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "timestamp-nanos"): pa.timestamp("ns", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
    ("long", "local-timestamp-nanos"): pa.timestamp("ns"),
}


@lru_cache(maxsize=_SCHEMAS_CACHED)
def avro_to_arrow(schema_json: str, *, with_unions: bool = False) -> pa.Schema:
    """Return the Arrow schema of an Avro record schema.

    Args:
        schema_json: JSON text of the record schema.
        with_unions: whether a union of several types becomes a struct instead of an error. Only for
            reading, since writing the struct would not produce a union again.

    Raises:
        CorruptTableError: the text is not an Avro record schema.
        UnsupportedError: a column is a union of several types, or its type is recursive.
    """
    try:
        record = json.loads(schema_json)
        fields = _AvroTypes(with_unions).fields_of(record, "")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, pa.ArrowException) as error:
        raise CorruptTableError(
            f"The table's Avro schema cannot be read: {error}. Restore the table from a backup."
        ) from error
    return pa.schema(fields)


@dataclass(slots=True)
class _AvroTypes:
    """Converts Avro types to Arrow types; keeps the named types and their number of fields."""

    with_unions: bool = False
    named: dict[str, pa.DataType | None] = dataclass_field(default_factory=dict)
    sizes: dict[str, int] = dataclass_field(default_factory=dict)
    size: int = 0

    def fields_of(self, record: dict[str, Any], column: str, namespace: str = "") -> list[pa.Field]:
        if record["type"] != "record":
            raise ValueError(f"{record['type']!r} is not a record")
        full = full_name(record, namespace)
        self.named[full] = None
        inner = full.rpartition(".")[0]
        before = self.size
        fields = [
            self.field(each["name"], each["type"], f"{column}.{each['name']}".lstrip("."), inner)
            for each in record["fields"]
        ]
        self.sizes[full] = self.size - before
        return fields

    def grow(self, fields: int) -> None:
        self.size += fields
        if self.size > AVRO_TYPES_MAX:
            raise ValueError(f"it has more than {AVRO_TYPES_MAX} fields, counting each use of a named type")

    def field(self, name: str, avro: Any, column: str, namespace: str) -> pa.Field:
        self.grow(1)
        if self.with_unions and len(branches := union_branches(avro)) > 1:
            return pa.field(name, self.members(branches, column, namespace), "null" in avro)
        kind, nullable = strip_null(avro, column)
        return pa.field(name, self.type_of(kind, column, namespace), nullable)

    def members(self, branches: list[Any], column: str, namespace: str) -> pa.DataType:
        return pa.struct(
            [
                pa.field(f"member{place}", self.type_of(each, f"{column}.member{place}", namespace))
                for place, each in enumerate(branches)
            ]
        )

    def type_of(self, avro: Any, column: str, namespace: str) -> pa.DataType:
        if isinstance(avro, str):
            return _PRIMITIVE[avro] if avro in _PRIMITIVE else self.known(avro, column, namespace)
        kind = avro["type"]
        if not isinstance(kind, str):
            return self.type_of(kind, column, namespace)
        if kind == "array":
            return pa.list_(self.field("item", avro["items"], f"{column}.item", namespace))
        if kind == "map":
            return pa.map_(pa.string(), self.field("value", avro["values"], f"{column}.value", namespace))
        if kind in ("record", "fixed", "enum"):
            return self.define(avro, column, namespace)
        return _logical(avro) or self.type_of(kind, column, namespace)

    def define(self, avro: dict[str, Any], column: str, namespace: str) -> pa.DataType:
        if avro["type"] == "record":
            defined = pa.struct(self.fields_of(avro, column, namespace))
        elif avro["type"] == "enum":
            defined = pa.string()
        else:
            defined = vector_of_avro(avro) or _logical(avro) or pa.binary(avro["size"])
        self.named[full_name(avro, namespace)] = defined
        return defined

    def known(self, name: str, column: str, namespace: str) -> pa.DataType:
        full = known_name(name, namespace, self.named)
        if full not in self.named:
            raise ValueError(f"type {name!r} of column {column!r} is not defined")
        known = self.named[full]
        if known is None:
            raise UnsupportedError(
                f"Column {column!r} has the recursive type {name!r}, which is not supported."
                " Read the table with the writing engine."
            )
        self.grow(self.sizes.get(full, 0))
        return known


def full_name(named: dict[str, Any], namespace: str) -> str:
    """Return the full name of an Avro record, fixed or enum within a namespace."""
    name: str = named["name"]
    space: str = named.get("namespace", namespace)
    return name if "." in name else f"{space}.{name}".lstrip(".")


def known_name(name: str, namespace: str, named: Container[str]) -> str:
    """Return the full name of the type that a name means: of the namespace, or else of none.

    Args:
        name: the name, with or without a namespace.
        namespace: the namespace around it.
        named: full names of the types so far.
    """
    full = full_name({"name": name}, namespace)
    return full if full in named else name


def union_branches(avro: Any) -> list[Any]:
    """Return the types of a union except null; empty if the type is not a union."""
    return [branch for branch in avro if branch != "null"] if isinstance(avro, list) else []


def strip_null(avro: Any, column: str) -> tuple[Any, bool]:
    """Return an Avro type without its null branch, and whether it had one.

    Raises:
        UnsupportedError: the type is a union of several types.
    """
    if not isinstance(avro, list):
        return avro, avro == "null"
    others = union_branches(avro)
    if len(others) > 1:
        raise UnsupportedError(
            f"Column {column!r} is a union of {len(others)} types, but only one type besides null is"
            " supported. Read the table with the writing engine."
        )
    return (others[0] if others else "null"), len(others) < len(avro)


def _logical(avro: dict[str, Any]) -> pa.DataType | None:
    logical = str(avro.get("logicalType"))
    if logical == "decimal" and avro["type"] in ("bytes", "fixed"):
        return pa.decimal128(avro["precision"], avro.get("scale", 0))
    return _LOGICAL.get((avro["type"], logical))


def arrow_to_avro(schema: pa.Schema, name: str, namespace: str) -> str:
    """Return the Avro schema of an Arrow schema as JSON text; equal schemas have equal texts.

    Args:
        schema: the columns; their types are normalised first.
        name: name of the record, `<table>_record` for a table.
        namespace: its namespace, `hoodie.<table>` for a table.

    Raises:
        InvalidError: a table cannot store a column's type, or Avro does not accept its name.
    """
    fields = _fields(list(normalise(schema)), f"{namespace}.{name}".lstrip("."), "")
    record = {"type": "record", "name": name, "namespace": namespace, "fields": defined_once(fields)}
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False)


def _fields(fields: list[pa.Field], space: str, column: str) -> list[dict[str, Any]]:
    return [_avro_field(each, space, f"{column}.{each.name}".lstrip(".")) for each in fields]


def _avro_field(field: pa.Field, space: str, column: str) -> dict[str, Any]:
    if not is_legal(field.name):
        raise InvalidError(
            f"Column {column!r} cannot be stored under this name. Use letters, digits and '_', "
            "and do not start with a digit."
        )
    avro: dict[str, Any] = {"name": field.name, "type": _branch(field, field.name, space, column)}
    if field.name in META_COLUMNS:
        avro["doc"] = ""
    if field.nullable:
        avro["default"] = None
    return avro


def _branch(field: pa.Field, name: str, space: str, column: str) -> Any:
    kind = _avro_type(field.type, name, space, column)
    return ["null", kind] if field.nullable else kind


def _avro_type(kind: pa.DataType, name: str, space: str, column: str) -> Any:
    """Return the Avro type; named types take the name of their field, in the namespace of their record."""
    if pt.is_null(kind):
        raise InvalidError(f"Column {column!r} has no type, since all its values are null. Cast it first.")
    if (logical := avro_of(kind, name, space)) is not None:
        return logical
    if pt.is_decimal(kind):
        return _decimal(kind, f"{space}.{name}")
    if pt.is_fixed_size_binary(kind):
        return {"type": "fixed", "name": "fixed", "namespace": f"{space}.{name}", "size": kind.byte_width}
    if pt.is_struct(kind):
        fields = _fields(kind.fields, f"{space}.{name}", column)
        return {"type": "record", "name": name, "namespace": space, "fields": fields}
    if pt.is_map(kind):
        return {"type": "map", "values": _branch(kind.item_field, name, space, f"{column}.value")}
    if pt.is_list(kind):
        return {"type": "array", "items": _branch(kind.value_field, name, space, f"{column}.item")}
    return _SIMPLE[kind]


def _decimal(kind: pa.DataType, space: str) -> dict[str, Any]:
    return {
        "type": "fixed",
        "name": "fixed",
        "namespace": space,
        "size": decimal_size_bytes(kind.precision),
        "logicalType": "decimal",
        "precision": kind.precision,
        "scale": kind.scale,
    }


def decimal_size_bytes(precision: int) -> int:
    """Return the number of bytes that can store every signed decimal of `precision` digits."""
    size = 1
    while 2 ** (8 * size - 1) <= 10**precision - 1:
        size += 1
    return size


_SIMPLE: dict[pa.DataType, Any] = {
    **{arrow: avro for avro, arrow in _PRIMITIVE.items()},
    **{arrow: {"type": kind, "logicalType": logical} for (kind, logical), arrow in _LOGICAL.items()},
}


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

    def with_comment(path: Path, field: pa.Field) -> pa.Field:
        return field.with_metadata({_KEY: comments[path].encode()}) if path in comments else field

    return pa.schema(_each(schema, (), with_comment)) if comments else schema


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
