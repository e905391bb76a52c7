"""Conversion and hashing of record batches between Spark and the core, without Spark imports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import InternalError
from drawstring.schema.logical_types import is_variant, is_vector, lists_of_vectors
from drawstring.schema.normal import null_mask

_MULTIPLIER = 0x9E3779B97F4A7C15


def with_types(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Cast a batch to exactly the types of a schema with the same columns.

    Raises:
        InternalError: the columns differ, or one cannot be cast.
    """
    if batch.schema.names != schema.names:
        raise InternalError(
            f"Spark passed the columns {batch.schema.names} instead of {schema.names}. Report this defect."
        )
    columns = [_cast(column, field) for column, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(column: pa.Array, field: pa.Field) -> pa.Array:
    if column.type.equals(field.type):
        return column
    if is_vector(column.type):
        return lists_of_vectors(column, field.type)
    if is_variant(column.type):
        parts = [column.field(each.name) for each in field.type]
        return pa.StructArray.from_arrays(parts, fields=list(field.type), mask=null_mask(column))
    if pa.types.is_time(column.type) and pa.types.is_int64(field.type):
        return column.cast(pa.time64("us")).cast(pa.int64())
    try:
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InternalError(
            f"Spark passed column {field.name} as {column.type} instead of {field.type} ({error})."
            " Report this defect."
        ) from error


def join_key(batch: pa.RecordBatch, on: Sequence[str]) -> pa.Array:
    """Return one string per row that encodes its values in `on`; null if one of them is null.

    Every value but the last is prefixed with its length, so that different keys have different strings.
    """
    columns = [batch.column(name).cast(pa.string()) for name in on]
    if len(columns) == 1:
        return columns[0]
    sized = [part for column in columns[:-1] for part in (pc.binary_length(column).cast(pa.string()), column)]
    return pc.binary_join_element_wise(*sized, columns[-1], ":")


def text_hash(texts: pa.Array) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Hash every string to 64 bits, the same in every process; null hashes like the empty string."""
    raw = pc.fill_null(texts, "").cast(pa.large_binary())
    offsets = np.frombuffer(raw.buffers()[1], np.int64, len(raw) + 1, raw.offset * 8)
    start, end = int(offsets[0]), int(offsets[-1])
    hashes = np.full(len(raw), _MULTIPLIER, np.uint64)
    if end > start:
        data = np.frombuffer(raw.buffers()[2], np.uint8, end - start, start)
        lengths = np.diff(offsets)
        filled = lengths > 0
        begins = (offsets[:-1] - start)[filled]
        positions = np.arange(end - start) - np.repeat(begins, lengths[filled])
        weighted = (data.astype(np.uint64) + np.uint64(1)) * _weights(int(lengths.max()))[positions]
        hashes[filled] += np.add.reduceat(weighted, begins)
    return _mixed(hashes)


def _weights(count: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Return the weights of the positions in a string: powers of an odd constant modulo 2^64."""
    return np.cumprod(np.full(count, _MULTIPLIER, np.uint64), dtype=np.uint64)


def _mixed(hashes: np.ndarray[Any, np.dtype[np.uint64]]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Mix the high bits into the low bits, which select the bucket."""
    hashes ^= hashes >> np.uint64(32)
    hashes *= np.uint64(0xD6E8FEB86659FD93)
    hashes ^= hashes >> np.uint64(32)
    return hashes
