"""A storage that dies at a chosen step, for tests of what a killed writer leaves behind.

It has an address of its own, `faulty://<number>`, good in this process while the storage lives: the
tasks of a write open it by that, so that the faults reach what they write as well.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable
from weakref import WeakValueDictionary

import pyarrow as pa

from drawstring.base.errors import UnavailableError
from drawstring.model.files import FileStatus
from drawstring.storage.protocol import Storage, StorageSpec


class InjectedFault(UnavailableError):
    """The step at which a `FaultyStorage` was told to die."""


SCHEME = "faulty"

_numbers = itertools.count()
_living: WeakValueDictionary[str, FaultyStorage] = WeakValueDictionary()


class FaultyStorage:
    """Passes everything on until a number of changes is reached; every later change fails.

    Each deleted file counts as a change of its own, so that a test also dies in the middle of a
    list of deletions. Reading goes on working.

    Args:
        inner: the storage that does the work.
        fail_after: how many changes succeed; a large number never fails.
        failures: how many changes fail then, before the storage works again; None for all.
    """

    def __init__(self, inner: Storage, fail_after: int, failures: int | None = None) -> None:
        self._inner = inner
        self._fail_after = fail_after
        self._failures_left = failures
        self._mutex = threading.Lock()
        self._uri = f"{SCHEME}://{next(_numbers)}"
        _living[self._uri] = self
        self.changes = 0

    @staticmethod
    def at(uri: str) -> FaultyStorage:
        """Return the storage with an address.

        Raises:
            KeyError: it lives no more, or in another process.
        """
        return _living[uri]

    @property
    def spec(self) -> StorageSpec:
        """What opens this storage again, in this process only."""
        return StorageSpec(self._uri)

    def list_files(self, folder: str) -> list[FileStatus]:
        """List the files directly in a folder."""
        return self._inner.list_files(folder)

    def list_folders(self, folder: str) -> list[str]:
        """List the folders directly in a folder."""
        return self._inner.list_folders(folder)

    def list_tree(self, folder: str) -> list[FileStatus]:
        """List all files below a folder."""
        return self._inner.list_tree(folder)

    def list_unfinished(self, folder: str) -> list[FileStatus]:
        """List the temporary files directly in a folder; storages whose puts need none have none."""
        return self._inner.list_unfinished(folder)

    def drop_unfinished(self, paths: Iterable[str]) -> None:
        """Delete temporary files, but for those of live processes."""
        for path in paths:
            self._change(path)
            self._inner.drop_unfinished([path])

    def exists(self, path: str) -> bool:
        """Tell whether a file exists."""
        return self._inner.exists(path)

    def read(self, path: str) -> bytes:
        """Return a whole file."""
        return self._inner.read(path)

    def open(self, path: str) -> pa.NativeFile:
        """Open a file for random access."""
        return self._inner.open(path)

    def create(self, path: str) -> pa.NativeFile:
        """Open a new file for writing, unless dead."""
        self._change(path)
        return self._inner.create(path)

    def put(self, path: str, data: bytes) -> None:
        """Write a whole file, unless dead."""
        self._change(path)
        self._inner.put(path, data)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write a whole file unless it exists, unless dead."""
        self._change(path)
        return self._inner.put_if_absent(path, data)

    def read_versioned(self, path: str) -> tuple[bytes, str] | None:
        """Return a file and its version."""
        return self._inner.read_versioned(path)

    def put_if_match(self, path: str, data: bytes, version: str) -> bool:
        """Replace a file of a version, unless dead."""
        self._change(path)
        return self._inner.put_if_match(path, data, version)

    def set_modified(self, path: str, modified_ms: int) -> None:
        """Say when a file was changed, unless dead."""
        self._change(path)
        self._inner.set_modified(path, modified_ms)

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files one by one until dead."""
        for path in paths:
            self._change(path)
            self._inner.delete([path])

    def delete_tree(self, folder: str) -> None:
        """Delete a folder, unless dead."""
        self._change(folder)
        self._inner.delete_tree(folder)

    def sync(self, folders: Iterable[str]) -> None:
        """Bring names to the disk, dead or not: it changes nothing that others see."""
        self._inner.sync(folders)

    def local_path(self, path: str) -> str | None:
        """Return the path in the machine's file system."""
        return self._inner.local_path(path)

    def full_uri(self, path: str) -> str:
        """Return the address that another engine opens the file by."""
        return self._inner.full_uri(path)

    def _change(self, path: str) -> None:
        with self._mutex:
            if self.changes >= self._fail_after and self._failures_left != 0:
                if self._failures_left is not None:
                    self._failures_left -= 1
                self.die(path)
            self.changes += 1

    def die(self, path: str) -> None:
        """Do what happens in place of a change that fails."""
        raise InjectedFault(f"told to die after {self._fail_after} changes, before that of {path}")
