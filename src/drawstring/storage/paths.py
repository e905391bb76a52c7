"""Rules for paths inside a table, which every storage enforces."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from drawstring.base.errors import InvalidError

LOCK_FOLDER: Final = ".hoodie/.locks"
"""The folder of the table's locks, leases, claims and reservations."""

CLAIM_SUFFIX: Final = ".claim"
"""End of the names of claims (`timeline.claims`), which need not survive a power cut."""

_NOT_NAMES: Final = frozenset(("", ".", ".."))

RESERVED_SUFFIX: Final = ".reserved"
"""End of the names of reservations (`txn.reservations`), which need not survive a power cut either."""


def checked(path: str) -> str:
    """Return the path of a file after checking that it stays inside the table.

    Raises:
        InvalidError: the path is empty, absolute, or has empty, `.` or `..` parts.
    """
    if not path:
        raise InvalidError("The path of a file is empty. Give a path relative to the table.")
    return checked_folder(path)


def checked_folder(folder: str) -> str:
    """Return the path of a folder, empty for the root, after checking that it stays inside the table."""
    if "\0" in folder:
        raise InvalidError(
            f"{folder!r} is not a path inside the table: it has a NUL character. "
            "Change the partition value that leads there."
        )
    if folder and not _NOT_NAMES.isdisjoint(folder.split("/")):
        raise InvalidError(
            f"{folder!r} is not a path inside the table: it starts or ends with a slash, "
            "or has empty, '.' or '..' parts. Change the partition value that leads there."
        )
    return folder


def is_hidden(name: str) -> bool:
    """Return whether listings leave a file out: temporary files, and checksums of Hadoop's local files."""
    return name.startswith(".") and name.endswith((".tmp", ".crc"))


def joined(folder: str, name: str) -> str:
    """Return the path of a name in a folder; an empty folder is the root."""
    return f"{folder}/{name}" if folder else name


def folders_above(paths: Iterable[str]) -> list[str]:
    """Return the distinct folders of files and all folders above them, the root last."""
    folders: set[str] = set()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return sorted(folders, key=lambda folder: (-len(folder), folder))
