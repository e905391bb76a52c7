"""Avro datums to Arrow columns.

fastavro reads the datums without their logical types (so dates and decimals stay numbers and
bytes), Arrow makes columns of them at once, and kernels turn those into the final types.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.formats.avro_checks import check_bounded
from drawstring.formats.avro_container import DAMAGE

__all__ = ["DAMAGE", "decode_rows"]

_DECIMAL_BYTES = 16


def decode_rows(datums: bytes, count: int, avro: dict[str, Any], schema: pa.Schema) -> pa.RecordBatch:
    """Return the records that stand one after the other in `datums`.

    Args:
        datums: Avro binary of the records.
        count: how many they are.
        avro: their Avro schema as parsed from JSON.
        schema: the Arrow schema that it stands for.

    Raises:
        ValueError or another of `DAMAGE`: the bytes do not fit the schema.
    """
    check_bounded(avro)
    plain = fastavro.parse_schema(_plain_schema(avro, itertools.count()))
    stream = io.BytesIO(datums)
    rows = [fastavro.schemaless_reader(stream, plain, None) for _ in range(count)]
    if stream.tell() != len(datums):
        raise ValueError(f"{len(datums) - stream.tell()} bytes follow the last record")
    final = pa.struct(list(schema))
    columns = _finish(pa.array(rows, type=_plain_type(final)), final)
    batch = pa.RecordBatch.from_arrays(columns.flatten(), schema=schema)
    batch.validate(full=True)
    return batch


def _plain_schema(avro: Any, ids: Iterator[int]) -> Any:
    """Return the schema without logical types, a map as what it is in bytes: an array of entries."""
    if isinstance(avro, list):
        return [_plain_schema(each, ids) for each in avro]
    if not isinstance(avro, dict):
        return avro
    plain = {key: _plain_schema(value, ids) for key, value in avro.items() if key != "logicalType"}
    if avro.get("type") != "map":
        return plain
    fields = [{"name": "key", "type": "string"}, {"name": "value", "type": plain["values"]}]
    return {"type": "array", "items": {"type": "record", "name": f"entry_{next(ids)}", "fields": fields}}


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of a column as fastavro reads it."""
    if pt.is_struct(kind):
        return pa.struct([field.with_type(_plain_type(field.type)) for field in kind.fields])
    if pt.is_map(kind):
        value = kind.item_field.with_type(_plain_type(kind.item_type))
        return pa.list_(pa.struct([pa.field("key", pa.string(), False), value]))
    if pt.is_list(kind):
        return pa.list_(kind.value_field.with_type(_plain_type(kind.value_type)))
    if pt.is_decimal(kind):
        return pa.binary()
    if pt.is_temporal(kind):
        return pa.int32() if kind.bit_width == 32 else pa.int64()
    return kind


def _finish(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the array as its final type, logical types applied at every depth."""
    if array.type == kind:
        return array
    if pt.is_decimal(kind):
        return _decimals(array, kind)
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


def _decimals(array: pa.BinaryArray, kind: pa.DataType) -> pa.Array:
    """Return decimals from big-endian two's complement bytes of any length up to 16."""
    sizes = pc.fill_null(pc.binary_length(array), 0).to_numpy(zero_copy_only=False)
    if sizes.max(initial=0) > _DECIMAL_BYTES:
        raise ValueError(f"a decimal takes {sizes.max()} bytes")
    ends = np.cumsum(sizes, dtype=np.int64)
    data = np.frombuffer(b"".join(filter(None, array.to_pylist())) or b"\0", np.uint8)
    column = np.arange(_DECIMAL_BYTES)
    at = ends[:, None] - 1 - column
    inside = column < sizes[:, None]
    values = np.where(inside, data[np.clip(at, 0, len(data) - 1)], 0).astype(np.uint8)
    negative = (sizes > 0) & (data[np.clip(ends - sizes, 0, len(data) - 1)] > 127)
    values[negative[:, None] & ~inside] = 255
    buffers = [array.is_valid().buffers()[1], pa.py_buffer(values)]
    return pa.Array.from_buffers(kind, len(array), buffers)
