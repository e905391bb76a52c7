"""Parquet: reading and writing of base files and of Parquet log blocks.

`parquet.write` has the writers, `parquet.read` the readers of rows, `parquet.footers` those of footers; other
rooms import them from here.
"""

from __future__ import annotations

from drawstring.formats.parquet.reader import (
    ParquetQuery,
    null_columns,
    parquet_footer,
    parquet_schema,
    read_open_parquet,
    read_parquet,
    read_parquet_bytes,
    read_parquet_rows,
    stored_summary,
)
from drawstring.formats.parquet.writer import (
    REPEATING,
    ParquetSink,
    RowGroups,
    SharedEncodings,
    encode_parquet_block,
    physical_schema,
    with_dictionary_types,
)

__all__ = [
    "REPEATING",
    "ParquetQuery",
    "ParquetSink",
    "RowGroups",
    "SharedEncodings",
    "encode_parquet_block",
    "null_columns",
    "parquet_footer",
    "parquet_schema",
    "physical_schema",
    "read_open_parquet",
    "read_parquet",
    "read_parquet_bytes",
    "read_parquet_rows",
    "stored_summary",
    "with_dictionary_types",
]
