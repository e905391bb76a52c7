"""Markers: what a write is about to create, noted before the file is (specification: Marker).

    .hoodie/.temp/<T>/<partition>/<file>.marker.<CREATE|MERGE|APPEND>   one empty file each
    .hoodie/.temp/<T>/MARKERS.type and MARKERS<n>                       or lines of text files

drawstring writes the first form and reads both: the second comes from other engines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from drawstring.model.files import FileStatus
from drawstring.storage.protocol import Storage

MARKER_ROOT = ".hoodie/.temp"

_MARKER = re.compile(r"(.+)\.marker\.(?:CREATE|MERGE|APPEND)")
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
        self._storage.put(f"{self._folder}/{path}.marker.{io_type}", b"")

    def files(self) -> list[str]:
        """Return the paths of all data files noted, sorted; some may never have been made."""
        found: set[str] = set()
        for status in self._storage.list_tree(self._folder):
            found.update(self._named_by(status))
        return sorted(found)

    def remove(self) -> None:
        """Delete all markers of the instant."""
        self._storage.delete_tree(self._folder)

    def _named_by(self, status: FileStatus) -> Iterator[str]:
        if status.folder == self._folder and _LINES_FILE.fullmatch(status.name):
            lines = self._storage.read(status.path).decode("utf-8", "replace").splitlines()
        else:
            lines = [status.path.removeprefix(self._folder + "/")]
        for line in lines:
            if match := _MARKER.fullmatch(line.strip().lstrip("/")):
                yield match[1]
