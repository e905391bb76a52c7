"""The files of a table outside `.hoodie`."""

from __future__ import annotations

from collections.abc import Iterator

from drawstring.model.files import HOODIE_FOLDER, FileStatus
from drawstring.storage.protocol import Storage


def data_files(storage: Storage) -> Iterator[FileStatus]:
    """List all files of the table outside `.hoodie`, since markers may be missing."""
    yield from storage.list_files("")
    for folder in storage.list_folders(""):
        if folder != HOODIE_FOLDER:
            yield from storage.list_tree(folder)
