"""Switching a foreign metadata table off before a write.

A metadata table that a write does not update makes readers trust a stale list of files. As real
Hudi does, the table properties stop naming it first, then its files go: a crash in between
leaves files that no reader looks at, and the next write deletes them.
"""

from __future__ import annotations

import logging

from drawstring.base.clock import Clock
from drawstring.config.table import TableConfig
from drawstring.storage.protocol import Storage
from drawstring.timeline.properties_store import load_config, save_properties

METADATA_FOLDER = ".hoodie/metadata"

_KEYS = ("hoodie.table.metadata.partitions", "hoodie.table.metadata.partitions.inflight")
_log = logging.getLogger("drawstring")


def switch_off_metadata_table(storage: Storage, config: TableConfig, clock: Clock) -> TableConfig | None:
    """Switch the metadata table off; to be called under the table lock before a write.

    Args:
        storage: the table's files.
        config: as read under the lock.
        clock: for the time in the properties file.

    Returns:
        The configuration after that, None when there was nothing to switch off.
    """
    named = any(config.properties.get(key) for key in _KEYS)
    if named:
        kept = {key: value for key, value in config.properties.items() if key not in _KEYS}
        save_properties(storage, kept, clock)
    elif not storage.list_folders(METADATA_FOLDER):
        return None
    storage.delete_tree(METADATA_FOLDER)
    _log.warning(
        "switched off the metadata table of %s (%s): this release does not maintain it, and a stale one "
        "would mislead readers; other engines can build it again",
        config.name,
        config.properties.get(_KEYS[0]) or "left behind",
    )
    return load_config(storage)
