"""Helpers for decoding metadata files: single records, paths, and the error for damaged content."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from drawstring.base.errors import CorruptTableError
from drawstring.formats.avro.container import decode_container

_T = TypeVar("_T")
_STRANGE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError)


def one_record(data: bytes, field: str | None = None) -> dict[str, Any]:
    """Return the only record of an Avro metadata file, or one of its fields, as `decode_container` does.

    Raises:
        CorruptTableError: the bytes are damaged, or do not have exactly one record.
    """
    records, _ = decode_container(data, field)
    if len(records) != 1:
        raise damaged("an Avro metadata file", f"it has {len(records)} records instead of one")
    return records[0]


def read_as(reader: Callable[[dict[str, Any]], _T], content: dict[str, Any], what: str) -> _T:
    """Apply a function to decoded content, and translate its errors.

    Args:
        reader: converts the content to the model.
        content: the decoded content.
        what: name of the content, for errors.

    Raises:
        CorruptTableError: the content does not match the format.
    """
    try:
        return reader(content)
    except _STRANGE as error:
        raise damaged(what, error) from error


def inside(path: str) -> str:
    """Return a path in metadata after checking that it stays inside the table.

    Raises:
        ValueError: the path leads out of the table, or is not a text.
    """
    if not isinstance(path, str):
        raise ValueError(f"it has {path!r} instead of a path")
    between = f"/{path}/"
    if path.startswith("/") or "\0" in path or "/./" in between or "/../" in between:
        raise ValueError(f"the path {path!r} leads out of the table")
    return path


def all_inside(paths: Sequence[str]) -> tuple[str, ...]:
    """Return paths in metadata after checking that each stays inside the table.

    Every commit to a file slice lists the slice's log files. Since these may be many, they are checked with
    one scan of the joined paths.

    Raises:
        ValueError: a path leads out of the table, or is not a text.
    """
    text = "\n".join(("", *paths, ""))
    is_suspect = any(mark in text for mark in ("\n/", "./", ".\n", "\0"))
    return tuple(map(inside, paths)) if is_suspect else tuple(paths)


def damaged(what: str, why: object) -> CorruptTableError:
    """Return the error for content that does not match the format."""
    return CorruptTableError(f"The content of {what} is damaged ({why}). Restore the file from a backup.")
