"""Avro files as a source: their columns come from the schemas in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from drawstring.formats.avro.file_rows import avro_file_schema, read_avro_file
from drawstring.ingestion.sources.columns import merged, reader_of, source_file
from drawstring.ingestion.sources.protocol import Reading
from drawstring.storage.protocol import Storage


def read_avro_files(storage: Storage, paths: Sequence[str], reading: Reading) -> pa.RecordBatchReader:
    """Read files; see `ReadFiles`."""
    schemas = [(path, _schema(storage, path)) for path in paths]
    return reader_of(merged(schemas), ((path, _rows(storage, path)) for path in paths))


def _schema(storage: Storage, path: str) -> pa.Schema:
    with source_file(path), storage.open(path) as file:
        return avro_file_schema(file)


def _rows(storage: Storage, path: str) -> Iterator[pa.RecordBatch]:
    with storage.open(path) as file:
        yield from read_avro_file(file)
