"""What the footer of a Parquet file says: its schema, its entries, the summary of its keys."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from drawstring.formats.bloom.key_summary import (
    FILTER,
    FILTER_TYPE,
    LARGEST_KEY,
    SMALLEST_KEY,
    StoredSummary,
)
from drawstring.formats.file_errors import about_file
from drawstring.formats.parquet.read import columns_of, open_file
from drawstring.storage.protocol import Storage


def parquet_schema(storage: Storage, path: str) -> pa.Schema:
    """Return the schema of a file.

    Raises:
        CorruptTableError: the file is missing or damaged.
    """
    with about_file(path), storage.open(path) as file:
        return columns_of(open_file(file))


def parquet_footer(storage: Storage, path: str) -> dict[str, str]:
    """Return the key-value entries of a file's footer.

    Raises:
        CorruptTableError: the file is missing or damaged.
    """
    with about_file(path), storage.open(path) as file:
        entries: Mapping[bytes, bytes] = pq.read_metadata(file).metadata or {}
        return {key.decode(): value.decode() for key, value in entries.items()}


def stored_summary(storage: Storage, path: str) -> StoredSummary:
    """Return the key summary in the footer of a file.

    Raises:
        CorruptTableError: the file is missing or damaged.
    """
    with about_file(path), storage.open(path) as file:
        metadata = pq.read_metadata(file)
        entries: Mapping[bytes, bytes] = metadata.metadata or {}
        names = (FILTER, FILTER_TYPE, SMALLEST_KEY, LARGEST_KEY)
        texts = {name: entries[name.encode()].decode() for name in names if name.encode() in entries}
        return StoredSummary.of(texts, metadata.num_rows)
