"""Records of the metadata table as HFiles and log blocks.

A record's value is its Avro datum with an empty field `key`, since the entry has the key. Meta columns come
first, and are null but for the file name in base files, as Hudi writes them.

Base files, and log blocks of more than `PLAIN_BYTES_MAX`, are compressed by gzip at level 1, as by Hudi's
default. With blocks of 128 KB a key of a record index takes a quarter of the bytes; smaller blocks would slow
the look-ups of a large upsert down. Hudi's reader refuses zstd.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from io import BytesIO
from typing import Any, Final

import pyarrow as pa

from drawstring.formats import schemas
from drawstring.formats.avro.encoder import RowEncoder
from drawstring.formats.hfile import Codec, HFileEntries, HFileWriter, encode_hfile, read_hfile_records
from drawstring.formats.hfile.writer import Sink
from drawstring.formats.log_inline import BlockType, HeaderKey, encode_block, encode_deletes
from drawstring.merge.record_version import combined_chunks
from drawstring.metadata.table import KEY
from drawstring.schema.avro import avro_to_arrow
from drawstring.schema.fields import with_meta_fields

FILE_NAME: Final = "_hoodie_file_name"
RECORD_SCHEMA: Final = "metadata_record"
VALUE: Final = "value"
"""Column of encoded records."""

PLAIN_BYTES_MAX: Final = 128 << 10
"""Bytes of records up to which a log is not compressed: most are small, and each commit writes some."""

_SCHEMAS_CACHED: Final = 32
_SHAPING: Final = ("logicalType", "precision", "scale", "size", "symbols")


@cache
def stored_schema() -> str:
    """Return the Avro schema of stored records, meta columns included, as JSON."""
    return with_meta_fields(schemas.text(RECORD_SCHEMA))


def write_base_file(file: Sink, parts: Iterable[pa.Table], name: str, created_ms: int) -> tuple[int, int]:
    """Write a base file, and return the number of its records and its size in bytes.

    Args:
        file: takes the bytes.
        parts: records in the order of their keys, each with some columns of the schema, or encoded as
            `VALUE`.
        name: name of the file.
        created_ms: milliseconds since the epoch.
    """
    writer = HFileWriter(file)
    for rows in parts:
        if VALUE in rows.column_names:
            values = combined_chunks(rows.column(VALUE))
        else:
            values = encoded_values(rows.append_column(FILE_NAME, pa.repeat(pa.scalar(name), rows.num_rows)))
        writer.append(combined_chunks(rows.column(KEY)), values)
    keys = {b"minRecordKey": writer.first_key, b"maxRecordKey": writer.last_key} if writer.entries else {}
    size_bytes = writer.finish(_info() | keys, created_ms)
    return writer.entries, size_bytes


def encode_base_file(rows: pa.Table, name: str, created_ms: int) -> bytes:
    """Return a base file.

    Args:
        rows: records with distinct keys, with some columns of the schema.
        name: name of the file.
        created_ms: milliseconds since the epoch.
    """
    file = BytesIO()
    write_base_file(file, [rows.sort_by(KEY)], name, created_ms)
    return file.getvalue()


def encoded_records(entries: Iterable[HFileEntries], schema_json: str) -> Iterator[pa.RecordBatch]:
    """Yield the keys of entries and their records as base files have them, as columns `key` and `VALUE`.

    Args:
        entries: entries of one HFile.
        schema_json: Avro schema of its values; those of another schema than ours are encoded anew.

    Raises:
        CorruptTableError: the values are damaged.
        UnsupportedError: a type is not supported.
    """
    if _is_stored_schema(schema_json):
        for each in entries:
            yield pa.record_batch({KEY: each.keys, VALUE: each.values()})
        return
    for batch in read_hfile_records(entries, schema_json, _stored_columns().names):
        values = encoded_values(pa.Table.from_batches([batch]))
        yield pa.record_batch({KEY: batch.column(KEY), VALUE: values})


@lru_cache(maxsize=_SCHEMAS_CACHED)
def _is_stored_schema(schema_json: str) -> bool:
    """Return whether records of a schema are encoded as ours, apart from what the schema says of them."""
    return bool(_shape(json.loads(schema_json)) == _shape(json.loads(stored_schema())))


def _shape(schema: Any) -> Any:
    """Return what of a schema decides how its records are encoded, and what they mean."""
    match schema:
        case list():
            return [_shape(each) for each in schema]
        case {"type": "record", "name": str(name), "fields": list(fields)}:
            return name, [(each["name"], _shape(each["type"])) for each in fields]
        case {"type": dict() | list() as inner}:
            return _shape(inner)
        case {"type": str(kind)}:
            parts = {key: schema[key] for key in _SHAPING if key in schema}
            nested = {key: _shape(schema[key]) for key in ("items", "values") if key in schema}
            return (kind, parts, nested) if parts or nested else kind
        case _:
            return schema


def encode_log_blocks(
    header: Mapping[HeaderKey, str], partition: str, rows: pa.Table, removed: pa.Array, created_ms: int
) -> bytes:
    """Return a data block, a delete block, or both; without records an empty delete block.

    Args:
        header: headers of the blocks.
        partition: of the metadata table.
        rows: records with distinct keys, with some columns of the schema, or encoded as `VALUE`.
        removed: keys of records that are removed, as text.
        created_ms: milliseconds since the epoch.
    """
    blocks = []
    if rows.num_rows:
        values = combined_chunks(rows.column(VALUE)) if VALUE in rows.column_names else encoded_values(rows)
        codec = Codec.GZ if values.nbytes > PLAIN_BYTES_MAX else Codec.NONE
        content = encode_hfile(combined_chunks(rows.column(KEY)), values, _info(), created_ms, codec)
        with_schema = {**header, HeaderKey.SCHEMA: stored_schema()}
        blocks.append(encode_block(BlockType.HFILE_DATA, with_schema, content))
    if len(removed) or not blocks:
        blocks.append(encode_block(BlockType.DELETE, header, encode_deletes(removed, partition)))
    return b"".join(blocks)


@cache
def _encoder() -> RowEncoder:
    return RowEncoder.of(json.loads(stored_schema()))


def _info() -> dict[bytes, bytes]:
    return {b"schema": stored_schema().encode()}


@cache
def _stored_columns() -> pa.Schema:
    return avro_to_arrow(stored_schema(), with_unions=True)


def encoded_values(rows: pa.Table) -> pa.BinaryArray:
    """Return the Avro datum of each record."""
    columns = {name: _column(rows, name) for name in rows.column_names}
    return _encoder().encode_columns(columns | {KEY: pa.repeat(pa.scalar(""), rows.num_rows)})


def _column(rows: pa.Table, name: str) -> pa.Array:
    values, stored = combined_chunks(rows.column(name)), _stored_columns().field(name)
    return values if values.type == stored.type else values.cast(stored.type)
