"""Definitions of the indexes of a metadata table, stored as JSON in `.hoodie/.index_defs`.

    {"indexDefinitions": {NAME: {"indexName", "indexType", ..., "version": "V1" or "V2"}}}

Table version 9 needs the version of each index; version 8 supports only V1.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from drawstring.formats.metadata.records import damaged
from drawstring.model.table_version import VersionRules

INDEX_DEFINITIONS: Final = ".hoodie/.index_defs/index.json"
DEFINITIONS_KEY: Final = "hoodie.table.index.defs.path"
"""Table property: where the definitions are."""

_DEFINITIONS: Final = "indexDefinitions"


def decode_definitions(data: bytes | None) -> dict[str, dict[str, Any]]:
    """Return the definitions by name.

    Args:
        data: the definitions file; None for none.

    Raises:
        CorruptTableError: the file is damaged.
    """
    try:
        return dict((json.loads(data).get(_DEFINITIONS) or {}) if data else {})
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        raise damaged(INDEX_DEFINITIONS, error) from error


def encode_definitions(definitions: Mapping[str, Mapping[str, Any]]) -> bytes:
    """Return the definitions file."""
    return json.dumps({_DEFINITIONS: definitions}, indent=2, separators=(",", " : ")).encode()


def definitions_of_version(data: bytes, rules: VersionRules) -> bytes:
    """Convert the definitions to another table version.

    Args:
        data: the definitions file.
        rules: of the new table version.

    Raises:
        CorruptTableError: the file is damaged.
    """
    try:
        content = json.loads(data)
        indexes = content.get(_DEFINITIONS) or {}
        if rules.has_index_versions:
            content[_DEFINITIONS] = {
                name: {**index, "version": index.get("version") or "V1"} for name, index in indexes.items()
            }
        else:
            content[_DEFINITIONS] = {
                name: index for name, index in indexes.items() if (index.get("version") or "V1") == "V1"
            }
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        raise damaged(INDEX_DEFINITIONS, error) from error
    return json.dumps(content, indent=2, separators=(",", " : ")).encode()
