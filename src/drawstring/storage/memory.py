"""Storage in the memory of this process, for tests and temporary tables."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

import pyarrow as pa

from drawstring.base.clock import Clock, SystemClock
from drawstring.model.files import FileStatus
from drawstring.storage.protocol import StorageSpec, checked, checked_folder, is_hidden, joined
from drawstring.storage.streams import WholeFile


@dataclass(frozen=True, slots=True)
class _File:
    data: bytes
    status: FileStatus
    version: int
    is_hidden: bool

    @staticmethod
    def of(path: str, data: bytes, modified_ms: int, version: int) -> _File:
        status = FileStatus(path, len(data), modified_ms)
        return _File(data, status, version, is_hidden(status.name))


@dataclass(slots=True)
class _Store:
    """Files by path, kept by folder: listing one does not look at all the others."""

    folders: dict[str, dict[str, _File]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    writes: int = 0

    def get(self, path: str) -> _File | None:
        files = self.folders.get(_folder_of(path))
        return None if files is None else files.get(path)

    def set(self, path: str, file: _File) -> None:
        self.folders.setdefault(_folder_of(path), {})[path] = file

    def drop(self, path: str) -> None:
        folder = _folder_of(path)
        files = self.folders.get(folder, {})
        if files.pop(path, None) is not None and not files:
            del self.folders[folder]

    def below(self, folder: str) -> list[str]:
        """Return the folders that have files, from a folder downwards."""
        prefix = _prefix(folder)
        return [each for each in self.folders if each == folder or each.startswith(prefix)]

    def listed(self, folder: str) -> list[FileStatus]:
        """Return the files directly in a folder that listings show."""
        return [file.status for file in self.folders.get(folder, {}).values() if not file.is_hidden]


_STORES: dict[str, _Store] = {}


class MemoryStorage:
    """Files by path; all storages with the same URI in a process share them.

    Args:
        uri: `memory://` and a name.
        clock: source of modification times.
    """

    def __init__(self, uri: str, clock: Clock | None = None) -> None:
        self._uri = uri.rstrip("/")
        self._clock = clock or SystemClock()
        self._store = _STORES.setdefault(self._uri, _Store())

    def __repr__(self) -> str:
        return f"MemoryStorage({self._uri!r})"

    @property
    def spec(self) -> StorageSpec:
        """The spec with which this process can open the storage again."""
        return StorageSpec(self._uri)

    def list_files(self, folder: str) -> list[FileStatus]:
        """List the files directly in a folder, sorted by path."""
        with self._store.lock:
            statuses = self._store.listed(checked_folder(folder))
        return sorted(statuses, key=_path)

    def list_names(self, folder: str) -> list[str]:
        """List the names of the files directly in a folder, sorted."""
        return [status.name for status in self.list_files(folder)]

    def list_folders(self, folder: str) -> list[str]:
        """List the paths of the folders directly in a folder, sorted."""
        prefix = _prefix(checked_folder(folder))
        with self._store.lock:
            deeper = [
                each for each in self._store.below(folder) if each != folder and self._store.listed(each)
            ]
        names = {each.removeprefix(prefix).partition("/")[0] for each in deeper}
        return sorted(joined(folder, name) for name in names)

    def list_tree(self, folder: str) -> list[FileStatus]:
        """List all files below a folder, sorted by path."""
        checked_folder(folder)
        with self._store.lock:
            statuses = [status for each in self._store.below(folder) for status in self._store.listed(each)]
        return sorted(statuses, key=_path)

    def list_unfinished(self, folder: str) -> list[FileStatus]:
        """Return an empty list: memory needs no temporary files."""
        return []

    def drop_unfinished(self, paths: Iterable[str]) -> None:
        """Delete temporary files, except those of live processes."""
        self.delete(paths)

    def exists(self, path: str) -> bool:
        """Return whether a file exists."""
        return self._store.get(checked(path)) is not None

    def read(self, path: str) -> bytes:
        """Return a whole file."""
        file = self._store.get(checked(path))
        if file is None:
            raise FileNotFoundError(path)
        return file.data

    def open(self, path: str) -> pa.NativeFile:
        """Open a file for random access."""
        return pa.BufferReader(self.read(path))

    def create(self, path: str) -> pa.NativeFile:
        """Open a new file for writing; it appears once closed."""
        checked(path)
        return pa.PythonFile(WholeFile(lambda data: self.put(path, data)), mode="w")

    def put(self, path: str, data: bytes) -> None:
        """Write a whole file atomically."""
        with self._store.lock:
            self._write(checked(path), data)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write a whole file unless it exists; False when it does."""
        with self._store.lock:
            if self._store.get(checked(path)) is not None:
                return False
            self._write(path, data)
            return True

    def read_versioned(self, path: str) -> tuple[bytes, str] | None:
        """Return a file and its version, the number of the write that created it."""
        file = self._store.get(checked(path))
        return None if file is None else (file.data, str(file.version))

    def put_if_match(self, path: str, data: bytes, version: str) -> bool:
        """Replace a file if it still has that version; False otherwise."""
        with self._store.lock:
            file = self._store.get(checked(path))
            if file is None or str(file.version) != version:
                return False
            self._write(path, data)
            return True

    def set_modified(self, path: str, modified_ms: int) -> None:
        """Set the modification time of a file."""
        with self._store.lock:
            file = self._store.folders[_folder_of(checked(path))][path]
            self._store.set(path, _File.of(path, file.data, modified_ms, file.version))

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files; missing ones are ignored."""
        with self._store.lock:
            for path in paths:
                self._store.drop(checked(path))

    def delete_tree(self, folder: str) -> None:
        """Delete a folder and everything below it."""
        checked_folder(folder)
        with self._store.lock:
            for each in self._store.below(folder):
                del self._store.folders[each]

    def delete_folder(self, folder: str) -> bool:
        """Do nothing: a folder is a part of names."""
        return True

    def stage(self, files: Sequence[tuple[str, bytes]]) -> Callable[[], None]:
        """Do nothing: a put takes no time."""
        return lambda: None

    def sync(self, folders: Iterable[str]) -> None:
        """Do nothing: memory does not outlive the process."""

    def local_path(self, path: str) -> str | None:
        """Return None: the files have no path in the file system."""
        return None

    def full_uri(self, path: str) -> str:
        """Return the `memory://` address, which no other engine can open."""
        return joined(self._uri, checked_folder(path)) if path else self._uri

    def _write(self, path: str, data: bytes) -> None:
        self._store.writes += 1
        self._store.set(path, _File.of(path, bytes(data), self._clock.now_ms(), self._store.writes))


_path = attrgetter("path")


def _prefix(folder: str) -> str:
    return f"{folder}/" if folder else ""


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0]
