"""The definitions of a table's indexes, as Hudi keeps them beside the table properties."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from drawstring.config.table.config import TableConfig
from drawstring.formats.metadata.index_definitions import (
    INDEX_DEFINITIONS,
    decode_definitions,
    encode_definitions,
)
from drawstring.metadata.column_ranges import COLUMN_STATS
from drawstring.storage.protocol import Storage


def definitions(storage: Storage) -> dict[str, dict[str, Any]]:
    """Return the definitions of the indexes of a table, by the partition of the metadata table.

    Args:
        storage: the table's files.

    Raises:
        CorruptTableError: the file of definitions is damaged.
    """
    found = storage.read_versioned(INDEX_DEFINITIONS)
    return decode_definitions(None if found is None else found[0])


def define(storage: Storage, definition: Mapping[str, Any]) -> None:
    """Add the definition of an index, or replace it; the caller holds the table lock."""
    known = definitions(storage)
    storage.put(INDEX_DEFINITIONS, encode_definitions({**known, definition["indexName"]: definition}))


def undefine(storage: Storage, partitions: Collection[str]) -> None:
    """Remove the definitions of some indexes; the caller holds the table lock."""
    known = definitions(storage)
    left = {name: each for name, each in known.items() if name not in partitions}
    if left != known:
        storage.put(INDEX_DEFINITIONS, encode_definitions(left))


def summarized_columns(storage: Storage, config: TableConfig) -> tuple[str, ...]:
    """Return the columns of which a table has statistics in its metadata table.

    Args:
        storage: the table's files.
        config: its settings.
    """
    if COLUMN_STATS not in config.metadata_partitions:
        return ()
    return tuple(definitions(storage).get(COLUMN_STATS, {}).get("sourceFields") or ())
