"""Records of the metadata table as HFiles and log blocks.

A record's value is its Avro datum with an empty field `key`, since the entry has the key. Meta columns come
first, and are null but for the file name in base files, as Hudi writes them.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Final

import pyarrow as pa

from drawstring.formats import schemas
from drawstring.formats.avro.encode import RowEncoder
from drawstring.formats.hfile import encode_hfile
from drawstring.formats.log_inline import BlockType, HeaderKey, encode_block, encode_deletes
from drawstring.merge.versions import flat
from drawstring.metadata.partitions import KEY
from drawstring.schema.avro import avro_to_arrow
from drawstring.schema.meta import with_meta_fields

FILE_NAME: Final = "_hoodie_file_name"
RECORD_SCHEMA: Final = "metadata_record"


@cache
def stored_schema() -> str:
    """Return the Avro schema of stored records, meta columns included, as JSON."""
    return with_meta_fields(schemas.text(RECORD_SCHEMA))


def encode_base_file(rows: pa.Table, name: str, created_ms: int) -> bytes:
    """Return a base file.

    Args:
        rows: records with distinct keys, with some columns of the schema.
        name: name of the file.
        created_ms: milliseconds since the epoch.
    """
    keys = flat(rows.column(KEY))
    named = rows.append_column(FILE_NAME, pa.repeat(pa.scalar(name), rows.num_rows))
    info = _info()
    if rows.num_rows:
        ordered = keys.cast(pa.binary()).sort()
        info |= {b"minRecordKey": ordered[0].as_py(), b"maxRecordKey": ordered[-1].as_py()}
    return encode_hfile(keys, _values(named), info, created_ms)


def encode_log_file(
    instant: str, partition: str, rows: pa.Table, removed: pa.Array, created_ms: int
) -> bytes:
    """Return a log file with a data block, a delete block, or both; without records an empty delete block.

    Args:
        instant: requested time of the delta commit.
        partition: of the metadata table.
        rows: records with distinct keys, with some columns of the schema.
        removed: keys of records that are removed, as text.
        created_ms: milliseconds since the epoch.
    """
    header = {HeaderKey.INSTANT_TIME: instant}
    blocks = []
    if rows.num_rows:
        content = encode_hfile(flat(rows.column(KEY)), _values(rows), _info(), created_ms)
        with_schema = header | {HeaderKey.SCHEMA: stored_schema()}
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


def _values(rows: pa.Table) -> pa.BinaryArray:
    """Return the Avro datum of each record."""
    columns = {name: _column(rows, name) for name in rows.column_names}
    return _encoder().encode_columns(columns | {KEY: pa.repeat(pa.scalar(""), rows.num_rows)})


def _column(rows: pa.Table, name: str) -> pa.Array:
    values, stored = flat(rows.column(name)), _stored_columns().field(name)
    return values if values.type == stored.type else values.cast(stored.type)
