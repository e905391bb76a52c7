"""A storage that fails at a chosen change, for tests of what a killed writer leaves behind.

It has an address of its own, `faulty://<number>`, valid in this process for the life of the storage. The
tasks of a write open the storage by that address, so that their changes fail as well.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Sequence
from weakref import WeakValueDictionary

import pyarrow as pa

from drawstring.base.errors import UnavailableError
from drawstring.model.files import FileStatus
from drawstring.storage import register_scheme
from drawstring.storage.protocol import Storage, StorageSpec


class InjectedFault(UnavailableError):
    """The error of a `FaultyStorage` at the change that it was set up to fail."""


SCHEME = "faulty"

_numbers = itertools.count()
_living: WeakValueDictionary[str, FaultyStorage] = WeakValueDictionary()


class FaultyStorage:
    """Forwards all calls until a number of changes is reached; every later change fails.

    Each deleted file counts as one change, so that a test can also stop in the middle of a list of
    deletions. Reads always work.

    Args:
        inner: the storage that does the work.
        fail_after: number of changes that succeed.
        failures: number of changes that fail after these, before the storage works again; None for all.
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
        """Return the storage at an address.

        Raises:
            KeyError: the storage is gone, or belongs to another process.
        """
        return _living[uri]

    @property
    def spec(self) -> StorageSpec:
        """The spec with which this process can open the storage again."""
        return StorageSpec(self._uri)

    def list_files(self, folder: str) -> list[FileStatus]:
        """List the files directly in a folder."""
        return self._inner.list_files(folder)

    def list_names(self, folder: str) -> list[str]:
        """List the names of the files directly in a folder."""
        return self._inner.list_names(folder)

    def list_folders(self, folder: str) -> list[str]:
        """List the folders directly in a folder."""
        return self._inner.list_folders(folder)

    def list_tree(self, folder: str) -> list[FileStatus]:
        """List all files below a folder."""
        return self._inner.list_tree(folder)

    def list_unfinished(self, folder: str) -> list[FileStatus]:
        """List the temporary files directly in a folder; empty for storages that write none."""
        return self._inner.list_unfinished(folder)

    def drop_unfinished(self, paths: Iterable[str]) -> None:
        """Delete temporary files, except those of live processes."""
        for path in paths:
            self.before_change(path)
            self._inner.drop_unfinished([path])

    def exists(self, path: str) -> bool:
        """Return whether a file exists."""
        return self._inner.exists(path)

    def read(self, path: str) -> bytes:
        """Return a whole file."""
        return self._inner.read(path)

    def open(self, path: str) -> pa.NativeFile:
        """Open a file for random access."""
        return self._inner.open(path)

    def create(self, path: str) -> pa.NativeFile:
        """Open a new file for writing; counts as a change."""
        self.before_change(path)
        return self._inner.create(path)

    def put(self, path: str, data: bytes) -> None:
        """Write a whole file; counts as a change."""
        self.before_change(path)
        self._inner.put(path, data)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write a whole file unless it exists; counts as a change."""
        self.before_change(path)
        return self._inner.put_if_absent(path, data)

    def read_versioned(self, path: str) -> tuple[bytes, str] | None:
        """Return a file and its version."""
        return self._inner.read_versioned(path)

    def put_if_match(self, path: str, data: bytes, version: str) -> bool:
        """Replace a file if it has a version; counts as a change."""
        self.before_change(path)
        return self._inner.put_if_match(path, data, version)

    def set_modified(self, path: str, modified_ms: int) -> None:
        """Set the modification time of a file; counts as a change."""
        self.before_change(path)
        self._inner.set_modified(path, modified_ms)

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files one by one; each counts as a change."""
        for path in paths:
            self.before_change(path)
            self._inner.delete([path])

    def delete_tree(self, folder: str) -> None:
        """Delete a folder; counts as a change."""
        self.before_change(folder)
        self._inner.delete_tree(folder)

    def delete_folder(self, folder: str) -> bool:
        """Delete a folder that has nothing in it; counts as a change."""
        self.before_change(folder)
        return self._inner.delete_folder(folder)

    def stage(self, files: Sequence[tuple[str, bytes]]) -> Callable[[], None]:
        """Do what can be done now for files that are put soon; no change, since nobody sees it."""
        return self._inner.stage(files)

    def sync(self, folders: Iterable[str]) -> None:
        """Flush names to the disk; never fails, since it changes nothing that others see."""
        self._inner.sync(folders)

    def local_path(self, path: str) -> str | None:
        """Return the path in the machine's file system."""
        return self._inner.local_path(path)

    def full_uri(self, path: str) -> str:
        """Return the address with which another engine opens the file."""
        return self._inner.full_uri(path)

    def before_change(self, path: str) -> None:
        """Count a change, and fail if it is one that fails; subclasses may do more before it.

        Args:
            path: the file or folder that is about to change.
        """
        with self._mutex:
            if self.changes >= self._fail_after and self._failures_left != 0:
                if self._failures_left is not None:
                    self._failures_left -= 1
                self.die(path)
            self.changes += 1

    def die(self, path: str) -> None:
        """Raise the error of a change that fails; subclasses may do something else."""
        raise InjectedFault(f"The storage fails after {self._fail_after} changes, here at {path}.")


register_scheme(SCHEME, FaultyStorage.at)
