"""Parts of Parquet files, among which the rows of a file are divided: its row groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from drawstring.formats.file_errors import about_file
from drawstring.formats.parquet.read import (
    ParquetQuery,
    columns_of,
    group_rows,
    open_file,
    open_in_table_units,
)
from drawstring.storage.protocol import Storage


@dataclass(frozen=True, slots=True)
class ParquetParts:
    """The parts of a footer that are needed to divide the rows of a file among tasks.

    Attributes:
        columns: the schema.
        entries: the key-value entries.
        sizes_bytes: uncompressed size of each row group.
    """

    columns: pa.Schema
    entries: Mapping[str, str]
    sizes_bytes: tuple[int, ...]


def parquet_parts(storage: Storage, path: str) -> ParquetParts:
    """Return the schema, key-value entries and row group sizes of a file.

    Raises:
        CorruptTableError: the file is missing or damaged.
    """
    with about_file(path), storage.open(path) as file:
        parquet = open_file(file)
        metadata = parquet.metadata
        stored: Mapping[bytes, bytes] = metadata.metadata or {}
        entries = {
            key.decode(errors="replace"): text.decode(errors="replace") for key, text in stored.items()
        }
        sizes = (metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
        return ParquetParts(columns_of(parquet), entries, tuple(sizes))


def read_parquet_groups(
    storage: Storage, path: str, schema: pa.Schema, groups: Sequence[int]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of some row groups of a file.

    Args:
        storage: storage of the file.
        path: path of the file, relative to the storage's root.
        schema: top-level columns to yield, with the types of the table.
        groups: numbers of the row groups.

    Raises:
        CorruptTableError: the file is missing or damaged.
    """
    with about_file(path), storage.open(path) as file:
        query = ParquetQuery(types=schema)
        yield from group_rows(file, open_in_table_units(file, query), groups, schema.names)
