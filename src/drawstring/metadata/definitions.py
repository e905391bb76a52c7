"""The definitions of a table's indexes, as Hudi keeps them beside the table properties."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Any, Final

from drawstring.base.errors import CorruptTableError
from drawstring.config.table.config import TableConfig
from drawstring.formats.metadata.index_definitions import (
    INDEX_DEFINITIONS,
    decode_definitions,
    encode_definitions,
)
from drawstring.metadata.column_ranges import COLUMN_STATS
from drawstring.metadata.partitions import RECORD_INDEX
from drawstring.storage.protocol import Storage

_REPEATED: Final = "hasRepeatedKeys"
"""Option of the definition of a record index, which Hudi passes over."""

_log = logging.getLogger("drawstring")


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


def note_repeated_keys(storage: Storage, config: TableConfig) -> None:
    """Note that the record index lacks places of some keys; the caller, who defined it, holds the table lock.

    Args:
        storage: the table's files.
        config: its settings.
    """
    defined = definitions(storage)[RECORD_INDEX]
    define(storage, {**defined, "indexOptions": {**(defined.get("indexOptions") or {}), _REPEATED: "true"}})
    _log.warning(
        "The table %s has several records with the same key, of which its record index knows one. Queries do"
        " not look keys up in it any more. Delete the surplus records, or use the partitioned record index if"
        " each partition has a key once (hoodie.metadata.record.level.index.enable). In both cases drop this"
        " index first and create it again.",
        config.name,
    )


def has_repeated_keys(defined: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return whether the record index lacks places of some keys.

    Args:
        defined: the definitions of the indexes of the table.
    """
    options = defined.get(RECORD_INDEX, {}).get("indexOptions") or {}
    return str(options.get(_REPEATED)).lower() == "true"


def undefine(storage: Storage, partitions: Collection[str]) -> None:
    """Remove the definitions of some indexes, or a damaged file of all; the caller holds the table lock."""
    try:
        known = definitions(storage)
    except CorruptTableError:  # of indexes that are gone with the metadata table, too
        storage.delete([INDEX_DEFINITIONS])
        return
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
