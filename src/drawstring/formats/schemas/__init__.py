"""Avro schemas of metadata files, equal to those that Hudi stores in the files."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any


@cache
def load(name: str) -> dict[str, Any]:
    """Return a schema.

    Args:
        name: `commit`, `replace_commit`, `requested_replace`, `compaction_plan`, `rollback_plan`,
            `rollback`, `clean_plan`, `clean`, `savepoint`, `restore_plan`, `restore`,
            `archived_entry`, `delete_list` or `metadata_record`.
    """
    schema: dict[str, Any] = json.loads(text(name))
    return schema


@cache
def text(name: str) -> str:
    """Return the JSON text of a schema; see `load`."""
    return resources.files(__package__).joinpath(f"{name}.avsc").read_text(encoding="utf-8")


@cache
def compact(name: str) -> bytes:
    """Return the JSON text of a schema without white space; see `load`."""
    return json.dumps(load(name), separators=(",", ":")).encode()
