"""A folder of a storage as a storage of its own: the metadata table is a table inside a table.

storage of the table      .hoodie/metadata/files/...
storage of the subfolder                   files/...
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from drawstring.model.files import FileStatus
from drawstring.storage.paths import checked, checked_folder, joined
from drawstring.storage.protocol import Storage, StorageSpec


class Subfolder:
    """The files below a folder of another storage.

    Args:
        storage: the other storage.
        folder: path of the folder in it; need not exist yet.
    """

    def __init__(self, storage: Storage, folder: str) -> None:
        self._storage = storage
        self._folder = checked(folder)

    def __repr__(self) -> str:
        return f"Subfolder({self._storage!r}, {self._folder!r})"

    @property
    def spec(self) -> StorageSpec:
        """The spec with which any process can open the same storage."""
        spec = self._storage.spec
        return replace(spec, uri=f"{spec.uri.rstrip('/')}/{self._folder}")

    def list_files(self, folder: str) -> list[FileStatus]:
        """List the files directly in a folder, sorted by path."""
        return self._own_files(self._storage.list_files(self._below(folder)))

    def list_names(self, folder: str) -> list[str]:
        """List the names of the files directly in a folder, sorted."""
        return self._storage.list_names(self._below(folder))

    def list_folders(self, folder: str) -> list[str]:
        """List the paths of the folders directly in a folder, sorted."""
        return [self._own(path) for path in self._storage.list_folders(self._below(folder))]

    def list_tree(self, folder: str) -> list[FileStatus]:
        """List all files below a folder, sorted by path."""
        return self._own_files(self._storage.list_tree(self._below(folder)))

    def list_unfinished(self, folder: str) -> list[FileStatus]:
        """List the temporary files directly in a folder."""
        return self._own_files(self._storage.list_unfinished(self._below(folder)))

    def drop_unfinished(self, paths: Iterable[str]) -> None:
        """Delete temporary files, except those of live processes."""
        self._storage.drop_unfinished([self._file(path) for path in paths])

    def exists(self, path: str) -> bool:
        """Return whether a file exists."""
        return self._storage.exists(self._file(path))

    def read(self, path: str) -> bytes:
        """Return a whole file."""
        return self._storage.read(self._file(path))

    def open(self, path: str) -> pa.NativeFile:
        """Open a file for random access."""
        return self._storage.open(self._file(path))

    def create(self, path: str) -> pa.NativeFile:
        """Open a new file for writing, complete when closed."""
        return self._storage.create(self._file(path))

    def put(self, path: str, data: bytes) -> None:
        """Write a whole file atomically."""
        self._storage.put(self._file(path), data)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write a whole file unless it exists; False when it does."""
        return self._storage.put_if_absent(self._file(path), data)

    def read_versioned(self, path: str) -> tuple[bytes, str] | None:
        """Return a file and its version, or None when it is missing."""
        return self._storage.read_versioned(self._file(path))

    def put_if_match(self, path: str, data: bytes, version: str) -> bool:
        """Replace a file if it still has that version; False otherwise."""
        return self._storage.put_if_match(self._file(path), data, version)

    def set_modified(self, path: str, modified_ms: int) -> None:
        """Set the modification time of a file."""
        self._storage.set_modified(self._file(path), modified_ms)

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files; missing ones are ignored."""
        self._storage.delete([self._file(path) for path in paths])

    def delete_tree(self, folder: str) -> None:
        """Delete a folder and everything below it."""
        self._storage.delete_tree(self._below(folder))

    def delete_folder(self, folder: str) -> bool:
        """Delete a folder unless it has something in it."""
        return self._storage.delete_folder(self._below(folder))

    def stage(self, files: Sequence[tuple[str, bytes]]) -> Callable[[], None]:
        """Do what can be done now for files that are put soon."""
        return self._storage.stage([(self._below(folder), data) for folder, data in files])

    def sync(self, folders: Iterable[str]) -> None:
        """Make changes directly in folders survive a power cut."""
        self._storage.sync([self._below(folder) for folder in folders])

    def local_path(self, path: str) -> str | None:
        """Return the path in the machine's file system, None for storages without one."""
        return self._storage.local_path(self._below(path))

    def full_uri(self, path: str) -> str:
        """Return the address with which another engine opens the file."""
        return self._storage.full_uri(self._below(path))

    def _below(self, folder: str) -> str:
        return joined(self._folder, checked_folder(folder)) if folder else self._folder

    def _file(self, path: str) -> str:
        return joined(self._folder, checked(path))

    def _own(self, path: str) -> str:
        return path[len(self._folder) + 1 :]

    def _own_files(self, statuses: Iterable[FileStatus]) -> list[FileStatus]:
        return [FileStatus(self._own(each.path), each.size_bytes, each.modified_ms) for each in statuses]
