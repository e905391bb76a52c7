"""Reading one decoded record of a metadata file into the model; what does not fit is damage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from drawstring.base.errors import CorruptTableError
from drawstring.formats.avro.container import decode_container

_T = TypeVar("_T")
_STRANGE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError)


def one_record(data: bytes) -> dict[str, Any]:
    """Return the only record of an Avro metadata file.

    Raises:
        CorruptTableError: the bytes are damaged, or hold another number of records.
    """
    records, _ = decode_container(data)
    if len(records) != 1:
        raise damaged("an Avro metadata file", f"it holds {len(records)} records instead of one")
    return records[0]


def read_as(reader: Callable[[dict[str, Any]], _T], content: dict[str, Any], what: str) -> _T:
    """Apply a reader to decoded content; what does not fit is damage.

    Raises:
        CorruptTableError: the content has another shape than the format says.
    """
    try:
        return reader(content)
    except _STRANGE as error:
        raise damaged(what, error) from error


def inside(path: str) -> str:
    """Return a path in metadata, having made sure that it stays inside the table.

    Raises:
        ValueError: it does not, or is no text.
    """
    if not isinstance(path, str):
        raise ValueError(f"{path!r} stands where a path belongs")
    between = f"/{path}/"
    if path.startswith("/") or "\0" in path or "/./" in between or "/../" in between:
        raise ValueError(f"the path {path!r} leads out of the table")
    return path


def all_inside(paths: Sequence[str]) -> tuple[str, ...]:
    """Return paths in metadata, having made sure that each stays inside the table.

    Every commit to a slice lists the slice's log files: where these are many, a look at all of them together
    takes the place of one at each.

    Raises:
        ValueError: one does not, or is no text.
    """
    text = "\n".join(("", *paths, ""))
    is_suspect = any(mark in text for mark in ("\n/", "./", ".\n", "\0"))
    return tuple(map(inside, paths)) if is_suspect else tuple(paths)


def damaged(what: str, why: object) -> CorruptTableError:
    """Return the error for content that is not what the format says."""
    return CorruptTableError(f"The content of {what} is damaged ({why}); restore it from a backup.")
