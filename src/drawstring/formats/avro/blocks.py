"""Content of Avro log blocks, and metadata files in Avro containers.

Layout of the content of an AVRO_DATA block (specification: Log Format), numbers big-endian:

     4  content version  3
     4  count            of records
        records: { int32 length, the Avro datum }
"""

from __future__ import annotations

import json
import struct
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from drawstring.base.errors import REPAIR, CorruptTableError, InvalidError, UnsupportedError
from drawstring.base.text_format import pluralize
from drawstring.formats.avro.container import decode_container, encode_container
from drawstring.formats.avro.decoder import DAMAGE, Spans, decode_rows
from drawstring.formats.avro.encoder import binary_parts, encode_rows, join
from drawstring.schema.avro import avro_to_arrow
from drawstring.schema.evolution import conform

__all__ = ["decode_container", "decode_datums", "encode_container", "encode_datums"]

_HEAD = struct.Struct(">ii")
CONTENT_VERSION = 3
_CONTENT_VERSIONS = (1, 2, 3)
_LENGTH = struct.Struct(">i")


def decode_datums(
    data: bytes, schema_json: str, count: int | None = None, columns: Collection[str] | None = None
) -> list[pa.RecordBatch]:
    """Return the records of an Avro data block, in one batch or more; see `iter_datums`."""
    return list(iter_datums(data, schema_json, count, columns))


def iter_datums(
    data: bytes, schema_json: str, count: int | None = None, columns: Collection[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the records of an Avro data block, in one batch or more.

    Args:
        data: content of the block.
        schema_json: Avro schema of the block's header.
        count: the expected number of records; None to trust the content.
        columns: names of the columns to read; None for all.

    Raises:
        CorruptTableError: the bytes are damaged.
        UnsupportedError: the content version or a type is not supported.
    """
    schema = avro_to_arrow(schema_json)
    try:
        spans = _split(data)
        actual = len(spans.starts)
        if count is not None and count != actual:
            raise ValueError(f"it has {actual} records instead of {count}")
        yield from decode_rows(spans, json.loads(schema_json), schema, columns)
    except DAMAGE as error:
        raise CorruptTableError(
            f"An Avro log block is damaged ({error}). To repair the table, {REPAIR}."
        ) from error


def _split(data: bytes) -> Spans:
    """Return the positions of the datums, each of which is preceded by its length."""
    version, count = _HEAD.unpack_from(data)
    if version not in _CONTENT_VERSIONS:
        raise UnsupportedError(
            f"Avro log blocks of content version {version} are not supported. Compact the table with the"
            " engine that wrote it."
        )
    if not 0 <= count <= len(data) // _LENGTH.size:
        raise ValueError(f"it claims {count} records in {len(data)} bytes")
    at = _HEAD.size
    bounds = [at]
    length_at = _LENGTH.unpack_from
    for _ in range(count):
        at += _LENGTH.size + length_at(data, at)[0]
        bounds.append(at)
    positions = np.array(bounds, np.int64)
    starts, ends = positions[:-1] + _LENGTH.size, positions[1:]
    if (starts >= ends).any():
        raise ValueError("a record has no bytes")
    if at != len(data):
        raise ValueError(f"{len(data) - at} bytes follow the last record")
    return Spans(data, starts, ends)


def encode_datums(batch: pa.RecordBatch, schema_json: str) -> bytes:
    """Return the content of an Avro data block.

    Args:
        batch: records; columns are matched to the schema by name.
        schema_json: Avro schema of the block's header.

    Raises:
        InvalidError: a column does not fit the schema, or is null where it must not be.
    """
    avro: dict[str, Any] = json.loads(schema_json)
    rows = conform(batch, avro_to_arrow(schema_json))
    datums = encode_rows(rows.to_struct_array(), avro)
    if datums.null_count:
        raise InvalidError(
            f"A column that must not be null is null in {pluralize(datums.null_count, 'record')}. "
            "Fill in the values, or make the column nullable."
        )
    lengths = np.diff(binary_parts(datums)[0])
    prefix = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(_LENGTH.size), len(lengths), [None, pa.py_buffer(lengths.astype(">i4"))]
    )
    return _HEAD.pack(CONTENT_VERSION, len(datums)) + joined(join([prefix.cast(pa.binary()), datums]))


def joined(values: pa.BinaryArray) -> bytes:
    """Return the concatenated values of a binary array."""
    offsets, data = binary_parts(values)
    return data[offsets[0] : offsets[-1]].tobytes()
