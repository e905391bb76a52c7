"""Meta columns, which precede a table's own columns (specification: Meta Fields)."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Final

import pyarrow as pa

COMMIT_TIME: Final = "_hoodie_commit_time"
COMMIT_SEQNO: Final = "_hoodie_commit_seqno"
RECORD_KEY: Final = "_hoodie_record_key"
PARTITION_PATH: Final = "_hoodie_partition_path"
FILE_NAME: Final = "_hoodie_file_name"

KEY_ALONE: Final = pa.schema([(RECORD_KEY, pa.string())])
"""The columns of rows that are read for their record keys."""

META_COLUMNS: Final = (COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY, PARTITION_PATH, FILE_NAME)
"""The five meta columns, in the order of the file."""

OPERATION_COLUMN: Final = "_hoodie_operation"
"""The sixth meta column, in tables that store the change operation of each record."""

IS_DELETED_COLUMN: Final = "_hoodie_is_deleted"
"""An ordinary boolean column: a record in which it is true deletes its key."""

_SCHEMAS_KEPT: Final = 16
"""Each file and log block of a write has the same schema."""


def with_meta(schema: pa.Schema) -> pa.Schema:
    """Return a schema with the five meta columns in front.

    Args:
        schema: table schema; meta columns already in it move to the front.
    """
    meta = [pa.field(name, pa.string()) for name in META_COLUMNS]
    return pa.schema([*meta, *without_meta(schema)])


def stored_columns(schema: pa.Schema, *, has_meta: bool) -> pa.Schema:
    """Return the columns of the files of a table.

    Args:
        schema: table schema.
        has_meta: whether the table populates its meta columns.
    """
    return with_meta(schema) if has_meta else schema


def without_meta(schema: pa.Schema) -> pa.Schema:
    """Return a schema without the five meta columns; the operation column remains.

    Args:
        schema: any schema.
    """
    return pa.schema([field for field in schema if field.name not in META_COLUMNS])


@lru_cache(maxsize=_SCHEMAS_KEPT)
def with_meta_fields(schema_json: str) -> str:
    """Return an Avro record schema with the missing meta columns added in front.

    Args:
        schema_json: the record schema as JSON text, which is returned unchanged if none is missing.
    """
    schema = json.loads(schema_json)
    present = {field["name"] for field in schema["fields"]}
    missing = [
        {"name": name, "type": ["null", "string"], "doc": "", "default": None}
        for name in META_COLUMNS
        if name not in present
    ]
    if not missing:
        return schema_json
    return json.dumps(schema | {"fields": missing + schema["fields"]}, separators=(",", ":"))
