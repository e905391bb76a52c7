"""Versions of the archived timeline of layout 2: which of its files count.

    _version_        the number of the manifest that counts
    manifest_<n>     JSON: {"files": [{"fileName", "fileLen"}]}

A reader that finds no version file, or an empty one, takes the highest manifest: Hudi deletes the version and
writes it anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from drawstring.base.errors import CorruptTableError, MissingFileError
from drawstring.model.files import join_path
from drawstring.storage.protocol import Storage

VERSION: Final = "_version_"
MANIFEST: Final = re.compile(r"manifest_(\d{1,18})", re.ASCII)
HISTORY_FILE: Final = re.compile(r"(\d{14,})_(\d{14,})_(\d{1,9})\.parquet", re.ASCII)
"""First and last requested time in it, and its level."""


class HistoryFile(NamedTuple):
    """A file of the archive: its name and its size in bytes."""

    name: str
    size_bytes: int

    @property
    def span(self) -> tuple[str, str, int]:
        """First and last requested time, and the level; an upgrade by Hudi names them the other way round."""
        match = HISTORY_FILE.fullmatch(self.name)
        assert match is not None, self.name
        first, last = sorted(match.group(1, 2))
        return first, last, int(match[3])


def current_version(storage: Storage, folder: str) -> int | None:
    """Return the number of the manifest that counts, None when nothing was archived.

    Raises:
        CorruptTableError: the version file holds no number.
    """
    try:
        if text := storage.read(join_path(folder, VERSION)).strip():
            return int(text)
    except FileNotFoundError:
        pass
    except ValueError:
        raise CorruptTableError(
            "the version of the archived timeline is no number: write the number of the newest manifest",
            path=join_path(folder, VERSION),
        ) from None
    names = [status.name for status in storage.list_files(folder)]
    return max((int(match[1]) for name in names if (match := MANIFEST.fullmatch(name))), default=None)


def load_manifest(storage: Storage, folder: str, version: int) -> tuple[HistoryFile, ...]:
    """Return the files of a version.

    Raises:
        CorruptTableError: the manifest is gone or damaged.
    """
    path = join_path(folder, f"manifest_{version}")
    try:
        content = json.loads(storage.read(path))
        return tuple(HistoryFile(_checked(each["fileName"]), _size(each)) for each in content["files"])
    except FileNotFoundError:
        raise MissingFileError(
            "A manifest of the archived timeline is missing: restore it from a backup.", path=path
        ) from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorruptTableError(
            f"a manifest of the archived timeline is damaged ({error}): restore it from a backup",
            path=path,
        ) from error


def save_manifest(storage: Storage, folder: str, version: int, files: Iterable[HistoryFile]) -> None:
    """Make these files the ones that count."""
    content = {"files": [{"fileName": file.name, "fileLen": file.size_bytes} for file in files]}
    text = json.dumps(content, indent=2, separators=(",", " : "))
    storage.put(join_path(folder, f"manifest_{version}"), text.encode())
    storage.put(join_path(folder, VERSION), str(version).encode())


def _checked(name: object) -> str:
    if not isinstance(name, str) or not HISTORY_FILE.fullmatch(name):
        raise ValueError(f"{name!r} is no name of an archive file")
    return name


def _size(entry: dict[str, object]) -> int:
    size = entry.get("fileLen")
    return size if isinstance(size, int) else 0
