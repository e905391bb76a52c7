"""Listing of the partitions and files of a table.

The view of file groups reads a `Listing`; `StorageListing` lists the storage itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

from drawstring.base.bounds import worker_threads
from drawstring.base.threads import at_once
from drawstring.filegroups.view.file_columns import FileColumns
from drawstring.model.files import HOODIE_FOLDER, PARTITION_METADATA, FileStatus
from drawstring.storage import is_object_store
from drawstring.storage.protocol import Storage

_FEW: Final = 16
"""Number of local folders that one thread lists faster than several threads start."""


class Listing(Protocol):
    """Partitions and their files."""

    @property
    def is_complete(self) -> bool:
        """Whether it lists all that is stored, so that a file it lacks is missing from the table."""
        ...

    def partitions(self) -> list[str]:
        """Return all partition paths, sorted; an unpartitioned table has the empty path."""
        ...

    def files(self, partition: str) -> list[FileStatus]:
        """Return the files of a partition."""
        ...

    def columns(self, partitions: Sequence[str]) -> FileColumns | None:
        """Return the files of many partitions at once; None if these are few, or not known in columns."""
        ...


class StorageListing:
    """Lists the storage, each folder once; a partition is a folder with a partition metadata file.

    Args:
        storage: the table's files.
    """

    is_complete = True

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._files: dict[str, list[FileStatus]] = {}
        self._partitions: list[str] | None = None

    def partitions(self) -> list[str]:
        if self._partitions is None:
            self._partitions = self._list_all()
        return self._partitions

    def files(self, partition: str) -> list[FileStatus]:
        if partition not in self._files:
            self._files[partition] = self._storage.list_files(partition)
        return self._files[partition]

    def columns(self, partitions: Sequence[str]) -> FileColumns | None:
        return None

    def _list_all(self) -> list[str]:
        folders = [path for path in self._storage.list_folders("") if path != HOODIE_FOLDER]
        is_near = len(folders) <= _FEW and not is_object_store(self._storage.spec.uri)
        trees = at_once(self._storage.list_tree, folders, 1 if is_near else worker_threads())
        by_folder: dict[str, list[FileStatus]] = defaultdict(list)
        for status in [*self._storage.list_files(""), *(status for tree in trees for status in tree)]:
            by_folder[status.folder].append(status)
        partitions = sorted(folder for folder, files in by_folder.items() if _is_partition(files))
        self._files |= {folder: by_folder[folder] for folder in partitions}
        return partitions


class FixedListing:
    """A listing of given files.

    Args:
        files: the files, of any number of partitions.
    """

    is_complete = False

    def __init__(self, files: Iterable[FileStatus]) -> None:
        by_folder: dict[str, list[FileStatus]] = defaultdict(list)
        for status in files:
            by_folder[status.folder].append(status)
        self._files: Mapping[str, list[FileStatus]] = by_folder

    def partitions(self) -> list[str]:
        return sorted(self._files)

    def files(self, partition: str) -> list[FileStatus]:
        return self._files.get(partition, [])

    def columns(self, partitions: Sequence[str]) -> FileColumns | None:
        return None


def _is_partition(files: Iterable[FileStatus]) -> bool:
    return any(status.name.startswith(PARTITION_METADATA) for status in files)
