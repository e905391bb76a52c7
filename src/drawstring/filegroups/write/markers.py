"""Markers: what a write is about to create, noted before the file is (specification: Marker).

    .hoodie/.temp/<T>/<partition>/<file>.marker.<CREATE|MERGE|APPEND>   one empty file each
    .hoodie/.temp/<T>/MARKERS.type and MARKERS<n>                       or lines of text files

drawstring writes the first form and reads both: the second comes from other engines. A path is taken as it
stands, whatever white space is in it. In a text file a line feed ends each marker, and a path may have line
feeds too: what does not end like a marker goes on in the next line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from drawstring.base.errors import ConflictError
from drawstring.model.files import FileStatus
from drawstring.storage.protocol import Storage

MARKER_ROOT = ".hoodie/.temp"

_MARKER = re.compile(r"(.+)\.marker\.(?:CREATE|MERGE|APPEND)", re.DOTALL)
_LINES = re.compile(r"/?(.+?)\.marker\.(?:CREATE|MERGE|APPEND)(?:\n|\Z)", re.DOTALL)
_LINES_FILE = re.compile(r"MARKERS\d+")


class Markers:
    """The markers of one instant.

    Args:
        storage: the table's files.
        instant: requested time.
    """

    def __init__(self, storage: Storage, instant: str) -> None:
        self._storage = storage
        self._folder = f"{MARKER_ROOT}/{instant}"

    def create(self, path: str, io_type: str) -> None:
        """Note a file before it is made.

        Args:
            path: the data file, relative to the table.
            io_type: `CREATE`, `MERGE` or `APPEND`.
        """
        self._storage.put(self._path(path, io_type), b"")

    def confirm(self, path: str, io_type: str) -> None:
        """Make sure, once a file is made, that its write still runs; the file goes if it does not.

        A task's attempt may go on after another one was done and the write was committed, which
        took the markers away.

        Args:
            path: the data file, relative to the table.
            io_type: as when it was noted.

        Raises:
            ConflictError: the write has ended.
        """
        if not self._storage.exists(self._path(path, io_type)):
            self._storage.delete([path])
            self._storage.sync([path.rpartition("/")[0]])
            raise ConflictError(
                "the write ended before this attempt of one of its tasks did: its file was deleted,"
                " and there is nothing to do",
                path=path,
            )

    def files(self) -> list[str]:
        """Return the paths of all data files noted, sorted; some may never have been made."""
        found: set[str] = set()
        for status in self._storage.list_tree(self._folder):
            found.update(self._named_by(status))
        return sorted(found)

    def are_there(self) -> bool:
        """Tell whether anything is left of them."""
        return bool(self._storage.list_tree(self._folder))

    def remove(self) -> None:
        """Delete all markers of the instant."""
        self._storage.delete_tree(self._folder)

    def _path(self, path: str, io_type: str) -> str:
        return f"{self._folder}/{path}.marker.{io_type}"

    def _named_by(self, status: FileStatus) -> Iterator[str]:
        if status.folder == self._folder and _LINES_FILE.fullmatch(status.name):
            text = self._storage.read(status.path).decode("utf-8", "replace")
            yield from _LINES.findall(text)
        elif match := _MARKER.fullmatch(status.path.removeprefix(self._folder + "/")):
            yield match[1]
