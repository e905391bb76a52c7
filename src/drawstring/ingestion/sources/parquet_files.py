"""Parquet and ORC files as a source: their columns come from their footers."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from drawstring.formats.base_files import Selection, base_schema, read_base
from drawstring.ingestion.sources.columns import merged, reader_of, source_file
from drawstring.ingestion.sources.protocol import Found, Reading
from drawstring.storage.protocol import Storage


def read_columnar_files(storage: Storage, paths: Sequence[str], reading: Reading) -> pa.RecordBatchReader:
    """Read Parquet or ORC files; see `ReadFiles`."""
    schemas = {path: _schema(storage, path) for path in paths}
    files = ((path, read_base(storage, path, Selection(schema.names))) for path, schema in schemas.items())
    return reader_of(merged(schemas.items()), files)


def look_at_columnar_file(storage: Storage, path: str, reading: Reading) -> Found:
    """Find out what a Parquet or ORC file has, by its footer and its first column; see `LookAtFile`."""
    schema = _schema(storage, path)
    with source_file(path):
        rows = sum(batch.num_rows for batch in read_base(storage, path, Selection(schema.names[:1])))
    return Found(path, merged([(path, schema)]), rows)


def _schema(storage: Storage, path: str) -> pa.Schema:
    with source_file(path):
        return base_schema(storage, path)
