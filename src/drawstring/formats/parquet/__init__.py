"""Parquet: reading and writing of base files and of Parquet log blocks.

`parquet.write` has the writers, `parquet.read` the readers of rows, `parquet.footers` those of footers; other
rooms import them from here.
"""

from __future__ import annotations

from drawstring.formats.parquet.encoding import REPEATING, SharedEncodings, physical, repeating
from drawstring.formats.parquet.footers import parquet_footer, parquet_schema, stored_summary
from drawstring.formats.parquet.read import (
    ParquetQuery,
    read_open_parquet,
    read_parquet,
    read_parquet_bytes,
    read_parquet_rows,
)
from drawstring.formats.parquet.write import ParquetSink, RowGroups, encode_parquet_block

__all__ = [
    "REPEATING",
    "ParquetQuery",
    "ParquetSink",
    "RowGroups",
    "SharedEncodings",
    "encode_parquet_block",
    "parquet_footer",
    "parquet_schema",
    "physical",
    "read_open_parquet",
    "read_parquet",
    "read_parquet_bytes",
    "read_parquet_rows",
    "repeating",
    "stored_summary",
]
