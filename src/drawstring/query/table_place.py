"""The table that an address leads to: its root, a partition folder in it, or a pattern of these."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from drawstring.base.errors import DrawstringError
from drawstring.model.partition_scope import PartitionScope, is_pattern
from drawstring.storage import open_storage
from drawstring.storage.protocol import Storage
from drawstring.timeline.properties_store import PROPERTIES_PATH


@dataclass(frozen=True, slots=True)
class TablePlace:
    """A table, and the partitions of it that an address names.

    Attributes:
        storage: storage of the table.
        scope: the partitions.
    """

    storage: Storage
    scope: PartitionScope


def table_above(uri: str, options: Mapping[str, str] | None) -> TablePlace | None:
    """Return the table that an address is in, None if there is none above it.

    Args:
        uri: an address at which there is no table.
        options: options of the object store.
    """
    for root, below in _folders_above(uri):
        if is_pattern(root):
            continue
        try:
            storage = open_storage(root, options)
            is_table = storage.exists(PROPERTIES_PATH)
        except (DrawstringError, OSError):
            return None  # above the bucket, or not for this user to look at
        if is_table:
            return TablePlace(storage, PartitionScope(below))
    return None


def _folders_above(uri: str) -> Iterator[tuple[str, str]]:
    """Yield the folders above an address, and the rest of the address below each."""
    scheme, separator, path = uri.partition("://")
    if not separator:
        scheme, path = "", uri if uri.startswith("file:") else os.path.abspath(uri)
    is_uri = scheme == "file" or path.startswith("file:")
    folder, below = path.rstrip("/"), ""
    while "/" in folder:
        folder, _, name = folder.rpartition("/")
        below = f"{unquote(name) if is_uri else name}/{below}".rstrip("/")
        if folder.strip("/"):
            yield f"{scheme}{separator}{folder}", below
