"""The definitions of a table's indexes, as Hudi keeps them beside the table properties."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Any, Final

from drawstring.base.errors import CorruptTableError
from drawstring.config.table_config import TableConfig
from drawstring.formats.metadata.index_definitions import (
    INDEX_DEFINITIONS,
    decode_definitions,
    encode_definitions,
)
from drawstring.metadata.table import RECORD_INDEX
from drawstring.storage.protocol import Storage

_PARTITIONED: Final = "isPartitioned"
"""Option of the definition of a record index: whether each partition has file groups of its own."""

_REPEATED: Final = "hasRepeatedKeys"
"""Option of the definition of a record index, which Hudi passes over."""

_NOT_USED: Final = (
    "The table has several records of a key, and the index knows one of them. Delete the surplus records"
    " (`drawstring services validate` finds them) and run `drawstring services repair --apply`, which"
    " builds the index again"
)
_OTHER_KIND: Final = (
    ". If each partition may have a key once, drop the index instead and create a partitioned one"
    " (hoodie.metadata.record.level.index.enable)"
)

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


def define_record_index(storage: Storage, config: TableConfig, *, is_partitioned: bool) -> None:
    """Define a record index that has all places; the caller holds the table lock.

    Args:
        storage: the table's files.
        config: its settings.
        is_partitioned: whether each partition has an index of its own.
    """
    define(storage, _record_index(config, is_partitioned=is_partitioned))


def _record_index(config: TableConfig, *, is_partitioned: bool) -> dict[str, Any]:
    version = {"version": "V1"} if config.rules.has_index_versions else {}
    return {
        "indexName": RECORD_INDEX,
        "indexType": RECORD_INDEX,
        "indexFunction": "",
        "sourceFields": [],
        "indexOptions": {_PARTITIONED: str(is_partitioned).lower()},
        **version,
    }


def note_repeated_keys(storage: Storage, config: TableConfig, *, is_partitioned: bool) -> None:
    """Note that the record index lacks places of some keys; the caller holds the table lock.

    The note goes with the definition: an index that is built again gets a new one.

    Args:
        storage: the table's files.
        config: its settings.
        is_partitioned: whether each partition has an index of its own, for one that is not defined.
    """
    new = _record_index(config, is_partitioned=is_partitioned)
    defined = definitions(storage).get(RECORD_INDEX, new)
    noted = {**defined, "indexOptions": {**(defined.get("indexOptions") or {}), _REPEATED: "true"}}
    define(storage, noted)
    why = reason_not_used({RECORD_INDEX: noted})
    _log.warning("Queries do not use the record index of %s any more. %s", config.name, why)


def has_repeated_keys(defined: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return whether the record index lacks places of some keys.

    Args:
        defined: the definitions of the indexes of the table.
    """
    return _has_option(defined.get(RECORD_INDEX, {}), _REPEATED)


def is_partitioned_index(definition: Mapping[str, Any]) -> bool:
    """Return whether an index has the keys of each partition by themselves.

    Args:
        definition: of the index; empty if it is not defined.
    """
    return _has_option(definition, _PARTITIONED)


def reason_not_used(defined: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Return why queries do without the record index and what to do, in sentences; None if they use it.

    Args:
        defined: the definitions of the indexes of the table.
    """
    if not has_repeated_keys(defined):
        return None
    return f"{_NOT_USED}{'' if is_partitioned_index(defined[RECORD_INDEX]) else _OTHER_KIND}."


def _has_option(definition: Mapping[str, Any], name: str) -> bool:
    options = definition.get("indexOptions") or {}
    return str(options.get(name)).lower() == "true"


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
