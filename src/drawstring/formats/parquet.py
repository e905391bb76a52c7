"""Parquet: the base files of a table and the Parquet blocks of its log files.

`parquet_write` holds the writing side, `parquet_read` the reading side; this module is the name
that other rooms import.
"""

from __future__ import annotations

from drawstring.formats.parquet_read import (
    parquet_footer,
    parquet_schema,
    read_parquet,
    read_parquet_bytes,
    where_columns,
)
from drawstring.formats.parquet_write import ParquetSink, encode_parquet_block

__all__ = [
    "ParquetSink",
    "encode_parquet_block",
    "parquet_footer",
    "parquet_schema",
    "read_parquet",
    "read_parquet_bytes",
    "where_columns",
]
