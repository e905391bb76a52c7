"""A disk of the simulation that is full, or will be soon.

It counts bytes, and gives back those of files that are deleted. The table lock takes no space on a real disk,
where it is no lease in a file, so it takes none here.
"""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from drawstring.base.errors import TABLE_DISK, disk_errors
from drawstring.storage.protocol import LOCK_FOLDER, Storage
from tests.support.faulty_storage import FaultyStorage

_NEVER = 1 << 40


class FullDisk(FaultyStorage):
    """Takes no more bytes than are free; deletions and files of no bytes always succeed.

    Args:
        inner: the storage that does the work.
        free_bytes: what is left at the start.
    """

    def __init__(self, inner: Storage, free_bytes: int) -> None:
        super().__init__(inner, _NEVER)
        self.free_bytes = free_bytes
        self.refused = 0

    def create(self, path: str) -> pa.NativeFile:
        """Open a new file for writing, whose errors are those of the operating system."""
        self._release(path)
        return pa.PythonFile(_CountedFile(self, super().create(path)), mode="w")

    def put(self, path: str, data: bytes) -> None:
        """Write a whole file, beside the old one at first."""
        self._take(path, data)
        self._release(path)
        super().put(path, data)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write a whole file unless it exists."""
        if self._inner.exists(path):
            return False
        self._take(path, data)
        return super().put_if_absent(path, data)

    def put_if_match(self, path: str, data: bytes, version: str) -> bool:
        """Replace a file of a version."""
        self._take(path, data)
        self._release(path)
        return super().put_if_match(path, data, version)

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files, whose bytes are free then."""
        for path in paths:
            self._release(path)
            super().delete([path])

    def delete_tree(self, folder: str) -> None:
        """Delete a folder, whose bytes are free then."""
        for status in self._inner.list_tree(folder):
            self._release(status.path)
        super().delete_tree(folder)

    def take(self, size_bytes: int) -> None:
        """Use some of the free bytes.

        Raises:
            OSError: there are not as many.
        """
        with self._mutex:
            if size_bytes > self.free_bytes:
                self.refused += 1
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self.free_bytes -= size_bytes

    def _take(self, path: str, data: bytes) -> None:
        if not path.startswith(LOCK_FOLDER):
            with disk_errors(TABLE_DISK, path):
                self.take(len(data))

    def _release(self, path: str) -> None:
        if self._inner.exists(path) and not path.startswith(LOCK_FOLDER):
            self.free_bytes += len(self._inner.read(path))


class _CountedFile(io.RawIOBase):
    """A file on a full disk, being written; what it has when the disk is full is there at once, and stays."""

    def __init__(self, disk: FullDisk, file: pa.NativeFile) -> None:
        super().__init__()
        self._disk = disk
        self._file = file
        self._written = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._written

    def write(self, data: Any) -> int:
        octets = bytes(data)
        try:
            self._disk.take(len(octets))
        except OSError:
            self._file.close()
            raise
        self._file.write(octets)
        self._written += len(octets)
        return len(octets)

    def close(self) -> None:
        if not self.closed and not self._file.closed:
            self._file.close()
        super().close()
