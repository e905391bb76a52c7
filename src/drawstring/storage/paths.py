"""Rules for paths inside a table that every storage keeps."""

from __future__ import annotations

from collections.abc import Iterable

from drawstring.base.errors import InvalidError


def checked(path: str) -> str:
    """Return a path of a file, having made sure that it stays inside the table.

    Raises:
        InvalidError: the path is empty, absolute, or has empty, `.` or `..` parts.
    """
    if not path:
        raise InvalidError("the path of a file is empty")
    return checked_folder(path)


def checked_folder(folder: str) -> str:
    """Return a path of a folder, empty for the root, having made sure that it stays inside the table."""
    if "\0" in folder:
        raise InvalidError(
            f"{folder!r} is not a path inside the table: it must have no NUL character "
            "(change the partition value that leads there)"
        )
    if folder and any(part in ("", ".", "..") for part in folder.split("/")):
        raise InvalidError(
            f"{folder!r} is not a path inside the table: it must not start or end with a slash, "
            "nor have empty, '.' or '..' parts (change the partition value that leads there)"
        )
    return folder


def is_hidden(name: str) -> bool:
    """Tell whether a listing leaves a file out: unfinished ones, and checksums of Hadoop's local files."""
    return name.startswith(".") and name.endswith((".tmp", ".crc"))


def joined(folder: str, name: str) -> str:
    """Return the path of a name in a folder, which may be the root."""
    return f"{folder}/{name}" if folder else name


def folders_above(paths: Iterable[str]) -> list[str]:
    """Return the folders that hold files, and all above these up to the root, each once, the root last."""
    found: set[str] = set()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return sorted(found, key=lambda each: (-len(each), each))
