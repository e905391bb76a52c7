"""Manifests of the archived timeline in layout 2, which list the files that count.

    _version_        the number of the current manifest
    manifest_<n>     JSON: {"files": [{"fileName", "fileLen"}]}

A reader that finds no version file, or an empty one, takes the highest manifest: Hudi deletes the version
file and writes it again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from drawstring.base.errors import ConflictError, CorruptTableError, MissingFileError
from drawstring.model.files import join_path
from drawstring.storage.protocol import Storage

VERSION: Final = "_version_"
MANIFEST: Final = re.compile(r"manifest_(\d{1,18})", re.ASCII)
HISTORY_FILE: Final = re.compile(r"(\d{14,})_(\d{14,})_(\d{1,9})\.parquet", re.ASCII)
"""First and last requested time in the file, and its level."""


StoredVersion = tuple[bytes, str] | None
"""Content and storage version of the version file, None if it does not exist."""


class HistoryFile(NamedTuple):
    """A file of the archive: its name and its size in bytes."""

    name: str
    size_bytes: int

    @property
    def span(self) -> tuple[str, str, int]:
        """First and last requested time, and level; Hudi's upgrade writes the two times in reverse order."""
        match = HISTORY_FILE.fullmatch(self.name)
        assert match is not None, self.name
        first, last = sorted(match.group(1, 2))
        return first, last, int(match[3])


def current_version(storage: Storage, folder: str) -> int | None:
    """Return the number of the current manifest, None if nothing was archived.

    Raises:
        CorruptTableError: the version file does not hold a number.
    """
    try:
        if text := storage.read(join_path(folder, VERSION)).strip():
            return int(text)
    except FileNotFoundError:
        pass
    except ValueError:
        raise CorruptTableError(
            "The version file of the archived timeline is not a number. Write the number of the newest"
            " manifest into it.",
            path=join_path(folder, VERSION),
        ) from None
    names = [status.name for status in storage.list_files(folder)]
    return max((int(match[1]) for name in names if (match := MANIFEST.fullmatch(name))), default=None)


def load_manifest(storage: Storage, folder: str, version: int) -> tuple[HistoryFile, ...]:
    """Return the files of a manifest.

    Raises:
        CorruptTableError: the manifest is gone or damaged.
    """
    path = join_path(folder, f"manifest_{version}")
    try:
        content = json.loads(storage.read(path))
        return tuple(HistoryFile(_checked(entry["fileName"]), _size(entry)) for entry in content["files"])
    except FileNotFoundError:
        raise MissingFileError(
            "A manifest of the archived timeline is missing. Restore it from a backup.", path=path
        ) from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorruptTableError(
            f"A manifest of the archived timeline is damaged ({error}). Restore it from a backup.",
            path=path,
        ) from error


def encode_manifest(files: Iterable[HistoryFile]) -> bytes:
    """Return the content of a manifest with some files."""
    content = {"files": [{"fileName": file.name, "fileLen": file.size_bytes} for file in files]}
    return json.dumps(content, indent=2, separators=(",", " : ")).encode()


def replace_version(storage: Storage, path: str, version: int, before: StoredVersion) -> bool:
    """Make a manifest the current one; False if another process has made another one that.

    Args:
        storage: the table's files.
        path: of the version file.
        version: number of the manifest.
        before: the version file as read before.
    """
    number = str(version).encode()
    if before is None:
        return storage.put_if_absent(path, number)
    return storage.put_if_match(path, number, before[1])


def replace_file(storage: Storage, path: str, data: bytes, check: Callable[[], None]) -> None:
    """Put a file of the archive, replacing one that an interrupted archiver may have left.

    A file of the process that archived while this one stalled has another version than the one read here, or
    the table lock is lost.

    Args:
        storage: the table's files.
        path: of the file.
        data: its content.
        check: makes sure that the table lock is still held.

    Raises:
        ConflictError: another process is putting it at this moment, or the lock was lost.
    """
    versioned = storage.read_versioned(path)
    check()
    if versioned is None:
        is_put = storage.put_if_absent(path, data)
    else:
        is_put = versioned[0] == data or storage.put_if_match(path, data, versioned[1])
    if not is_put:
        raise archived_meanwhile(path)


def archived_meanwhile(path: str) -> ConflictError:
    """Return the error of an archiver that stalled while another process archived."""
    return ConflictError(
        "Another process archived instants of this table while this one stalled. Try again.", path=path
    )


def _checked(name: object) -> str:
    if not isinstance(name, str) or not HISTORY_FILE.fullmatch(name):
        raise ValueError(f"{name!r} is not the name of an archive file")
    return name


def _size(entry: dict[str, object]) -> int:
    size = entry.get("fileLen")
    return size if isinstance(size, int) else 0
