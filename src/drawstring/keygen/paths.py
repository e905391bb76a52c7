"""Escaping and splitting of partition paths (specification: Partitioning)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote

DEFAULT_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
"""Path of a null or empty value."""

_ESCAPED: Final = re.compile(r'[\x01-\x1f"#%\'*/:=?\\\x7f{\[\]^]')


def escape(value: str) -> str:
    """URL-encode a value as Hive does, for tables with URL-encoded paths."""
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", value)


def split_path(
    path: str, fields: Sequence[str], *, hive_style: bool, url_encode: bool
) -> list[str | None] | None:
    """Return the text of each partition column, or None if the path does not have one part per column.

    Args:
        path: a partition path.
        fields: partition columns, in the order of the path.
        hive_style: whether the parts are `column=value`.
        url_encode: whether the values are URL-encoded.

    Returns:
        A text for each column, None for a null or empty value.
    """
    parts = [path] if len(fields) == 1 else path.split("/")
    if len(parts) != len(fields):
        return None
    if hive_style:
        prefixes = [f"{field}=" for field in fields]
        if not all(part.startswith(prefix) for part, prefix in zip(parts, prefixes, strict=True)):
            return None
        parts = [part.removeprefix(prefix) for part, prefix in zip(parts, prefixes, strict=True)]
    values = [unquote(part) if url_encode else part for part in parts]
    return [None if value == DEFAULT_PARTITION else value for value in values]
