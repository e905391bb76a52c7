"""Nested arrays: their parts, and required fields below null structs.

A required field also needs a value in rows whose struct is null. Arrow usually stores a null there, which
is valid in memory but which it refuses to write to Parquet. `settle` replaces such nulls:

    struct    {a: 1}   null                 {a: 1}   null
    .a        1        null   -- settle --> 1        (any value, never read)
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt


def settle(array: pa.Array) -> pa.Array:
    """Return an array without nulls in required fields below null structs.

    A null in a required field of a struct that is not null remains: it is an error, which the writer reports.

    Args:
        array: an array of any type; without required fields it is returned unchanged.
    """
    return _settle(array, null_mask(array)) if _has_required(array.type) else array


def settle_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch with all columns settled; see `settle`.

    Args:
        batch: any batch; without required fields it is returned unchanged.
    """
    if not any(_has_required(kind) for kind in batch.schema.types):
        return batch
    return pa.RecordBatch.from_arrays([settle(column) for column in batch.columns], schema=batch.schema)


def own_items(offsets: pa.Array, items: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return offsets that start at 0 and the items that they cover; the input may be a slice of an array."""
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    return pc.subtract(offsets, pa.scalar(first, offsets.type)), items.slice(first, last - first)


def null_mask(array: pa.Array) -> pa.BooleanArray | None:
    """Return which values of an array are null; None if none is."""
    return array.is_null() if array.null_count else None


def _has_required(kind: pa.DataType) -> bool:
    """Return whether a struct at any depth has a required field."""
    if pt.is_struct(kind):
        return any(not field.nullable or _has_required(field.type) for field in kind.fields)
    if pt.is_map(kind):
        return _has_required(kind.item_type)
    return bool(pt.is_list(kind)) and _has_required(kind.value_type)


def _settle(array: pa.Array, absent: pa.BooleanArray | None) -> pa.Array:
    """Settle the nested fields of an array.

    Args:
        array: an array of any type.
        absent: rows without a value, because the array or a struct around it is null.
    """
    kind = array.type
    if not _has_required(kind):
        return array
    if pt.is_struct(kind):
        parts = [_settle_field(array.field(at), field, absent) for at, field in enumerate(kind.fields)]
        return pa.StructArray.from_arrays(parts, fields=kind.fields, mask=null_mask(array))
    if pt.is_map(kind):
        offsets, keys = own_items(array.offsets, array.keys)
        items = settle(own_items(array.offsets, array.items)[1])
        return pa.MapArray.from_arrays(offsets, keys, items, type=kind, mask=null_mask(array))
    offsets, items = own_items(array.offsets, array.values)
    return pa.ListArray.from_arrays(offsets, settle(items), type=kind, mask=null_mask(array))


def _settle_field(part: pa.Array, field: pa.Field, absent: pa.BooleanArray | None) -> pa.Array:
    if field.nullable:
        return _settle(part, _either(absent, null_mask(part)))
    settled = _settle(part, absent)
    if absent is None or not part.null_count or pc.any(pc.greater(part.is_null(), absent)).as_py():
        return settled
    return _without_nulls(settled)


def _either(first: pa.BooleanArray | None, second: pa.BooleanArray | None) -> pa.BooleanArray | None:
    if first is None or second is None:
        return first if second is None else second
    return pc.or_(first, second)


def _without_nulls(array: pa.Array) -> pa.Array:
    """Return the array without its null bitmap, so that nulls become arbitrary values; copies nothing."""
    kind = array.type
    if pt.is_struct(kind):
        parts = [array.field(at) for at in range(kind.num_fields)]
        return pa.StructArray.from_arrays(parts, fields=kind.fields)
    if pt.is_map(kind):
        return pa.MapArray.from_arrays(array.offsets, array.keys, array.items, type=kind)
    if pt.is_list(kind):
        return pa.ListArray.from_arrays(array.offsets, array.values, type=kind)
    return pa.Array.from_buffers(kind, len(array), [None, *array.buffers()[1:]], 0, array.offset)
