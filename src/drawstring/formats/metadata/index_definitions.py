"""Definitions of the indexes in a metadata table, JSON beside the properties of the table.

    {"indexDefinitions": {NAME: {"indexName", "indexType", ..., "version": "V1" or "V2"}}}

Version 9 asks for the version of each; version 8 knows the first only.
"""

from __future__ import annotations

import json
from typing import Final

from drawstring.formats.metadata.records import damaged
from drawstring.model.table_version import VersionRules

INDEX_DEFINITIONS: Final = ".hoodie/.index_defs/index.json"

_DEFINITIONS: Final = "indexDefinitions"


def definitions_of_version(data: bytes, rules: VersionRules) -> bytes:
    """Return the definitions as a table of another version has them.

    Args:
        data: the file.
        rules: of that version.

    Raises:
        CorruptTableError: it is damaged.
    """
    try:
        content = json.loads(data)
        known = content.get(_DEFINITIONS) or {}
        if rules.has_index_versions:
            content[_DEFINITIONS] = {
                name: {**each, "version": each.get("version") or "V1"} for name, each in known.items()
            }
        else:
            content[_DEFINITIONS] = {
                name: each for name, each in known.items() if (each.get("version") or "V1") == "V1"
            }
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        raise damaged(INDEX_DEFINITIONS, error) from error
    return json.dumps(content, indent=2, separators=(",", " : ")).encode()
