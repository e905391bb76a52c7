"""Parquet files within other files: the blocks of inline log files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.formats.file_errors import about_file
from drawstring.formats.parquet.read import (
    ParquetQuery,
    columns_of,
    group_rows,
    open_in_table_units,
    read_open_parquet,
    read_parquet_bytes,
    requested,
)
from drawstring.schema.meta import RECORD_KEY
from drawstring.storage.streams import RangeFile

PART_WHOLE_BYTES_MAX: Final = 2 << 20
"""Size up to which a Parquet file within another file is read at once instead of column by column."""


def read_parquet_part(
    file: pa.NativeFile, offset: int, size: int, query: ParquetQuery
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a Parquet file within another file; if it is large, only its columns are fetched.

    Args:
        file: the other file, open for random access.
        offset: start of the Parquet file.
        size: size of the Parquet file in bytes.
        query: the columns to yield, and those of the table.

    Raises:
        CorruptTableError: the Parquet file is damaged.
    """

    def fetch(start: int, end: int) -> bytes:
        file.seek(offset + start)
        return bytes(file.read(end - start))

    if size <= PART_WHOLE_BYTES_MAX:
        yield from read_parquet_bytes(fetch(0, size), query)
        return
    with about_file(None):
        part = pa.PythonFile(RangeFile(fetch, size), mode="r")
        yield from read_open_parquet(part, query)


def read_part_of_keys(
    file: pa.NativeFile, offset: int, size: int, query: ParquetQuery, keys: pa.Array
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of those row groups of a Parquet file within another file that have any of some keys.

    A look-up reads log blocks of all file groups that may have a key; most do not have it.

    Args:
        file: the other file, open for random access.
        offset: start of the Parquet file.
        size: size of the Parquet file in bytes, which is read at once.
        query: the columns to yield, the record key among them, and those of the table.
        keys: the record keys (string).

    Raises:
        CorruptTableError: the Parquet file is damaged.
    """
    file.seek(offset)
    part = pa.BufferReader(file.read_buffer(size))
    with about_file(None):
        parquet = open_in_table_units(part, query)
        names = requested(query, columns_of(parquet))
        asked = [name for name in names if name == RECORD_KEY]
        for group in range(parquet.metadata.num_row_groups):
            found = (batch.column(0) for batch in group_rows(part, parquet, [group], asked))
            if not asked or any(pc.any(pc.is_in(each, value_set=keys)).as_py() for each in found):
                yield from group_rows(part, parquet, [group], names)
