"""Avro names of columns and records (Avro specification: Names)."""

from __future__ import annotations

import re

_ILLEGAL_START = re.compile(r"^[^A-Za-z_]")
_ILLEGAL = re.compile(r"[^A-Za-z0-9_]")
_LEGAL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def sanitise(name: str) -> str:
    """Return a name with each illegal character replaced by `__`.

    Args:
        name: a table's name.
    """
    return _ILLEGAL.sub("__", _ILLEGAL_START.sub("__", name))


def is_legal(name: str) -> bool:
    """Return whether a column may have a name."""
    return _LEGAL.fullmatch(name) is not None


def record_name(table: str) -> tuple[str, str]:
    """Return name and namespace of a table's Avro record: `<table>_record`, `hoodie.<table>`.

    Args:
        table: the table's name.
    """
    name = sanitise(table)
    return f"{name}_record", f"hoodie.{name}"
