"""The calls by which local storage changes files, in one place, so that a test can record or replace them.

A power cut keeps what was flushed. The bytes of a file and its name are flushed apart: `flush_file` is for
what a file holds, `flush_folder` for which names a folder has. Nothing here flushes a name by itself; a
storage does that once for many files (`Storage.sync`).
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

import pyarrow as pa

from drawstring.base.errors import UnavailableError
from drawstring.base.threads import at_once
from drawstring.storage.unfinished import hold

_NOT_FOR_FOLDERS: Final = frozenset(
    {errno.EINVAL, errno.EBADF, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EACCES, errno.EPERM}
)
"""What file systems say that cannot flush a folder, and folders that may not be read."""

_FLUSHES_AT_ONCE: Final = 8
_FULL_FLUSH: Final[int | None] = getattr(fcntl, "F_FULLFSYNC", None)
"""On macOS `fsync` leaves data in the cache of the drive; this does not."""


class FileSystem:
    """Changes files of this machine.

    Args:
        sync: whether files and folders are flushed to the disk.
    """

    def __init__(self, *, sync: bool = True) -> None:
        self.sync = sync

    def create(self, path: str) -> pa.NativeFile:
        """Open a new file for writing; what it holds is flushed when it is closed."""
        file = _FlushedFile(path, "wb")
        file.path, file.files = path, self
        return file

    @contextmanager
    def writing_new(self, path: str, data: bytes) -> Iterator[None]:
        """Write a file that is not there yet, and flush what it holds; it is held during a block of code.

        Raises:
            FileExistsError: it is there.
        """
        with open(path, "xb", buffering=0) as file:
            hold(file)
            left = memoryview(data)
            while left:
                left = left[file.write(left) :]
            self.flush_file(file.fileno(), path)
            yield

    def make_empty(self, path: str) -> None:
        """Make a file of no bytes, which needs no flush.

        Raises:
            FileExistsError: it is there.
        """
        with open(path, "xb"):
            pass

    def make_folder(self, path: str) -> None:
        """Make a folder whose parent is there; one that exists is fine."""
        with suppress(FileExistsError):
            os.mkdir(path)

    def make_folders(self, path: str) -> list[str]:
        """Make a folder and those above it that are missing; return those made, the highest first."""
        missing: list[str] = []
        while not os.path.isdir(path):
            missing.append(path)
            above = os.path.dirname(path)
            if above == path:
                break
            path = above
        for folder in reversed(missing):
            self.make_folder(folder)
        return missing[::-1]

    def rename(self, source: str, target: str) -> None:
        """Put a file in the place of another, or of none."""
        os.replace(source, target)

    def link(self, source: str, target: str) -> None:
        """Give a file a second name.

        Raises:
            FileExistsError: the name is taken.
        """
        os.link(source, target)

    def unlink(self, path: str) -> None:
        """Delete a file."""
        os.unlink(path)

    def remove_tree(self, path: str, *, ignore_errors: bool = False) -> None:
        """Delete a folder and all below it."""
        shutil.rmtree(path, ignore_errors=ignore_errors)

    def set_modified(self, path: str, modified_ns: int) -> None:
        """Say when a file was changed last, nanoseconds since the epoch, and flush that."""
        os.utime(path, ns=(modified_ns, modified_ns), follow_symlinks=False)
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.flush_file(descriptor, path)
        finally:
            os.close(descriptor)

    def flush_file(self, descriptor: int, path: str) -> None:
        """Bring what an open file holds to the disk.

        Raises:
            UnavailableError: the disk failed; what the file holds is not safe, whatever a second call says.
        """
        if self.sync:
            try:
                _flush(descriptor)
            except OSError as error:
                raise _failed(path, error) from error

    def flush_folders(self, paths: Iterable[str]) -> None:
        """Bring the names in folders to the disk."""
        if self.sync:
            at_once(self.flush_folder, list(paths), _FLUSHES_AT_ONCE)

    def flush_folder(self, path: str) -> None:
        """Bring the names in a folder to the disk; for one that is gone the folder above has to be asked.

        Some file systems cannot do it and need not, as they flush every change of a folder at once.

        Raises:
            UnavailableError: the disk failed.
        """
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, *_NOT_FOR_FOLDERS):
                return
            raise _failed(path, error) from error
        try:
            _flush(descriptor)
        except OSError as error:
            if error.errno not in _NOT_FOR_FOLDERS:
                raise _failed(path, error) from error
        finally:
            os.close(descriptor)


class _FlushedFile(pa.OSFile):  # type: ignore[misc]
    """A file whose bytes are on the disk once it is closed.

    Attributes:
        path: of the file.
        files: what flushes it.
    """

    path: str
    files: FileSystem

    def close(self) -> None:
        """Flush the file and close it, also where the flush fails."""
        if self.closed:
            return
        try:
            self.files.flush_file(self.fileno(), self.path)
        finally:
            super().close()


def _flush(descriptor: int) -> None:
    if _FULL_FLUSH is not None:
        with suppress(OSError):  # network file systems do not know it
            fcntl.fcntl(descriptor, _FULL_FLUSH)
            return
    os.fsync(descriptor)


def _failed(path: str, error: OSError) -> UnavailableError:
    return UnavailableError(
        f"The file system could not bring a file to the disk ({error.strerror or error}), so the change may"
        " be lost in a power cut; check the disk, then try again.",
        path=path,
    )
