"""Decoding of single Avro values with fastavro, for short blocks and arrays of very different lengths.

fastavro reads without logical types (dates and decimals remain numbers and bytes), Arrow converts the values
to columns, and kernels cast these to the final types.
"""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
from pyarrow import types as pt

from drawstring.formats.avro.checks import PRIMITIVES
from drawstring.formats.avro.decimals import decimals_of_bytes
from drawstring.schema.avro import full_name, known_name, union_branches
from drawstring.schema.logical_types import is_vector, vector_width, vectors_of_bytes


class PlainSchemas:
    """Converts schemas for fastavro: without logical types, and with maps as arrays of entries.

    Types get new names, so that one type can occur in several places.

    Attributes:
        has_unions: whether a schema has a union of several types; fastavro does not return which one it read.
    """

    def __init__(self) -> None:
        self._ids = itertools.count()
        self.has_unions = False

    def of(self, avro: Any, named: dict[str, Any], space: str) -> Any:
        """Return the schema without logical types.

        Args:
            avro: a schema as parsed from JSON.
            named: the named types so far, by full name; those of the schema are added.
            space: the enclosing namespace.
        """
        if isinstance(avro, list):
            self.has_unions |= len(union_branches(avro)) > 1
            return [self.of(each, named, space) for each in avro]
        if isinstance(avro, str):
            if avro in PRIMITIVES:
                return avro
            full = known_name(avro, space, named)
            return self.of(named[full], named, full.rpartition(".")[0])
        kind = avro["type"]
        if kind in ("record", "enum", "fixed"):
            return self._named(avro, named, space)
        if kind == "array":
            return {"type": "array", "items": self.of(avro["items"], named, space)}
        if kind == "map":
            value = self.of(avro["values"], named, space)
            fields = [{"name": "key", "type": "string"}, {"name": "value", "type": value}]
            return {"type": "array", "items": {"type": "record", "name": self._name(), "fields": fields}}
        return self.of(kind, named, space)

    def _named(self, avro: dict[str, Any], named: dict[str, Any], space: str) -> Any:
        full = full_name(avro, space)
        named[full] = avro
        plain = {"type": avro["type"], "name": self._name()}
        if avro["type"] == "enum":
            return plain | {"symbols": avro["symbols"]}
        if avro["type"] == "fixed":
            return plain | {"size": avro["size"]}
        inner = full.rpartition(".")[0]
        fields = [{"name": f["name"], "type": self.of(f["type"], named, inner)} for f in avro["fields"]]
        return plain | {"fields": fields}

    def _name(self) -> str:
        return f"t{next(self._ids)}"


def arrow_of(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Return values that fastavro read with a plain schema as an array of the final type."""
    return _finish(pa.array(values, type=_plain_type(kind)), kind)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of a column that fastavro read."""
    if pt.is_struct(kind):
        return pa.struct([field.with_type(_plain_type(field.type)) for field in kind.fields])
    if pt.is_map(kind):
        value = kind.item_field.with_type(_plain_type(kind.item_type))
        return pa.list_(pa.struct([pa.field("key", pa.string(), False), value]))
    if pt.is_list(kind):
        return pa.list_(kind.value_field.with_type(_plain_type(kind.value_type)))
    if is_vector(kind):
        return pa.binary(vector_width(kind))
    if pt.is_decimal(kind):
        return pa.binary()
    if pt.is_temporal(kind):
        return pa.int32() if kind.bit_width == 32 else pa.int64()
    return kind


def _finish(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the array in its final type, with logical types at every depth."""
    if array.type == kind:
        return array
    if is_vector(kind):
        return vectors_of_bytes(array, kind)
    if pt.is_decimal(kind):
        return decimals_of_bytes(array, kind)
    if pt.is_struct(kind):
        parts = [_finish(array.field(at), field.type) for at, field in enumerate(kind.fields)]
        return pa.StructArray.from_arrays(parts, fields=kind.fields, mask=array.is_null())
    if pt.is_map(kind):
        keys, items = array.values.flatten()
        finished = _finish(items, kind.item_type)
        return pa.MapArray.from_arrays(array.offsets, keys, finished, type=kind, mask=_mask(array))
    if pt.is_list(kind):
        values = _finish(array.values, kind.value_type)
        return pa.ListArray.from_arrays(array.offsets, values, type=kind, mask=_mask(array))
    return array.view(kind)


def _mask(array: pa.Array) -> pa.BooleanArray | None:
    return array.is_null() if array.null_count else None
