"""Parquet files within other files: the blocks of inline log files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.formats.file_errors import about_file
from drawstring.formats.parquet.read import (
    ParquetQuery,
    columns_of,
    group_rows,
    open_file,
    read_open_parquet,
    read_parquet_bytes,
)
from drawstring.schema.meta import RECORD_KEY
from drawstring.storage.streams import RangeFile

PART_WHOLE_BYTES_MAX: Final = 2 << 20
"""Size up to which a Parquet file within another file is read at once instead of column by column."""


def read_parquet_part(
    file: pa.NativeFile, offset: int, size: int, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a Parquet file within another file; if it is large, only its columns are fetched.

    Args:
        file: the other file, open for random access.
        offset: start of the Parquet file.
        size: size of the Parquet file in bytes.
        columns: top-level columns to yield; those that it lacks are omitted.

    Raises:
        CorruptTableError: the Parquet file is damaged.
    """

    def fetch(start: int, end: int) -> bytes:
        file.seek(offset + start)
        return bytes(file.read(end - start))

    if size <= PART_WHOLE_BYTES_MAX:
        yield from read_parquet_bytes(fetch(0, size), columns)
        return
    with about_file(None):
        part = pa.PythonFile(RangeFile(fetch, size), mode="r")
        yield from read_open_parquet(part, ParquetQuery(columns))


def read_part_of_keys(
    file: pa.NativeFile, offset: int, size: int, columns: Sequence[str], keys: pa.Array
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of those row groups of a Parquet file within another file that have any of some keys.

    A look-up reads log blocks of all file groups that may have a key; most do not have it.

    Args:
        file: the other file, open for random access.
        offset: start of the Parquet file.
        size: size of the Parquet file in bytes, which is read at once.
        columns: top-level columns to yield, the record key among them; those that it lacks are omitted.
        keys: the record keys (string).

    Raises:
        CorruptTableError: the Parquet file is damaged.
    """
    file.seek(offset)
    part = pa.BufferReader(file.read_buffer(size))
    with about_file(None):
        parquet = open_file(part)
        stored = {*columns_of(parquet).names}
        names = [name for name in columns if name in stored]
        asked = [name for name in names if name == RECORD_KEY]
        for group in range(parquet.metadata.num_row_groups):
            found = (batch.column(0) for batch in group_rows(part, parquet, [group], asked))
            if not asked or any(pc.any(pc.is_in(each, value_set=keys)).as_py() for each in found):
                yield from group_rows(part, parquet, [group], names)
