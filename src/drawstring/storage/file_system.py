"""The system calls with which local storage changes files, gathered so that tests can record or replace them.

Only flushed data survives a power cut. The bytes of a file and its name are flushed separately: `flush_file`
flushes the contents of a file, `flush_folder` the names in a folder. No method that changes a file flushes
its name; a storage does that once for many files (`Storage.sync`).

Hidden temporary files of a local storage, which a killed process leaves behind.

.<name>.<uuid>.tmp    the contents of <name> before the rename; locked (`flock`) until then
.staged.<uuid>.tmp    the contents of a file that is put soon, whose name is not known yet; locked as well
.folder.tmp           created and deleted at once, to create a folder
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import IO, Final

import pyarrow as pa

from drawstring.base.clock import Ids
from drawstring.base.errors import UnavailableError
from drawstring.base.threads import at_once

_NOT_FOR_FOLDERS: Final = frozenset(
    {errno.EINVAL, errno.EBADF, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EACCES, errno.EPERM}
)
"""Errors of file systems that cannot flush a folder, and of folders without read permission."""

_FLUSHES_AT_ONCE: Final = 8
_FLUSHES_OF_A_THREAD: Final = 4
"""Journaling file systems flush all changes with the first folder: so few are done before a thread starts."""

_FULL_FLUSH: Final[int | None] = getattr(fcntl, "F_FULLFSYNC", None)
"""On macOS `fsync` leaves data in the cache of the drive; this call writes that out, too."""


class FileSystem:
    """Changes files of this machine.

    Args:
        sync: whether files and folders are flushed to the disk.
    """

    def __init__(self, *, sync: bool = True) -> None:
        self.sync = sync

    def create(self, path: str) -> pa.NativeFile:
        """Open a new file for writing; its contents are flushed when it is closed."""
        file = _FlushedFile(path, "wb")
        file.path, file.files = path, self
        return file

    @contextmanager
    def writing_new(self, path: str, data: bytes, *, flushed: bool = True) -> Iterator[None]:
        """Write a new file, which stays locked (`hold`) during a `with` block.

        Args:
            path: absolute path.
            data: the content.
            flushed: whether it has to survive a power cut.

        Raises:
            FileExistsError: the file exists.
        """
        with open(path, "xb", buffering=0) as file:
            hold(file)
            remaining = memoryview(data)
            while remaining:
                remaining = remaining[file.write(remaining) :]
            if flushed:
                self.flush_file(file.fileno(), path)
            yield

    def make_empty(self, path: str) -> None:
        """Create an empty file, whose contents need no flush.

        Raises:
            FileExistsError: the file exists.
        """
        with open(path, "xb"):
            pass

    def make_folder(self, path: str) -> None:
        """Create a folder whose parent exists; do nothing if the folder exists."""
        with suppress(FileExistsError):
            os.mkdir(path)

    def make_folders(self, path: str) -> list[str]:
        """Create a folder and its missing parents; return the folders created, topmost first."""
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
        """Rename a file, replacing the target if it exists."""
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
        """Delete a folder and everything below it."""
        shutil.rmtree(path, ignore_errors=ignore_errors)

    def remove_folder(self, path: str) -> bool:
        """Delete a folder unless it has something in it; return whether it is gone."""
        try:
            os.rmdir(path)
        except FileNotFoundError:
            return True
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            return False
        return True

    def set_modified(self, path: str, modified_ns: int) -> None:
        """Set the modification time of a file, in nanoseconds since the epoch, and flush it."""
        os.utime(path, ns=(modified_ns, modified_ns), follow_symlinks=False)
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.flush_file(descriptor, path)
        finally:
            os.close(descriptor)

    def flush_file(self, descriptor: int, path: str) -> None:
        """Flush the contents of an open file to the disk.

        Raises:
            UnavailableError: the disk failed; the contents are not safe even if a second call succeeds.
        """
        if self.sync:
            try:
                _flush(descriptor)
            except OSError as error:
                raise _failed(path, error) from error

    def flush_folders(self, paths: Iterable[str]) -> None:
        """Flush the names in folders to the disk."""
        if self.sync:
            folders = list(paths)
            threads = min(_FLUSHES_AT_ONCE, 1 + len(folders) // _FLUSHES_OF_A_THREAD)
            at_once(self.flush_folder, folders, threads)

    def flush_folder(self, path: str) -> None:
        """Flush the names in a folder to the disk; do nothing if the folder is gone.

        The removal of a folder is flushed with the folder above it. Some file systems cannot flush a folder
        and need not, because they flush every change of a folder at once.

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


class StagedFiles:
    """Temporary files with the contents of files that are about to be made.

    Args:
        files: writes and flushes them.
    """

    def __init__(self, files: FileSystem) -> None:
        self._files = files
        self._held: dict[tuple[str, bytes], tuple[str, ExitStack]] = {}

    def add(self, files: Sequence[tuple[str, bytes]], ids: Ids) -> Callable[[], None]:
        """Write temporary files; return what deletes those that were not taken. Neither ever fails.

        Args:
            files: the folder and the bytes of each.
            ids: makes their names distinct.
        """
        new = [file for file in dict.fromkeys(files) if file not in self._held]
        named = [(f"{folder}/.staged.{ids.uuid()}.tmp", data) for folder, data in new]
        # A journaling file system writes its journal once for flushes at the same time.
        at_once(self._write, named, min(len(named), _FLUSHES_AT_ONCE) if self._files.sync else 1)
        return partial(self._drop, named)

    def _write(self, file: tuple[str, bytes]) -> None:
        (temporary, data), held = file, ExitStack()
        try:
            held.enter_context(self._files.writing_new(temporary, data))
        except (OSError, UnavailableError):  # the put of the file says what is wrong
            with suppress(OSError):
                self._files.unlink(temporary)
        else:
            self._held[os.path.dirname(temporary), data] = (temporary, held)

    def take(self, folder: str, data: bytes) -> tuple[str, ExitStack] | None:
        """Return a file in a folder with some content, and what keeps it locked; None without one."""
        taken = self._held.pop((folder, data), None)
        if taken is not None and not os.path.exists(taken[0]):  # on a file system without locks
            taken[1].close()
            return None
        return taken

    def _drop(self, named: Iterable[tuple[str, bytes]]) -> None:
        for temporary, data in named:
            held = self._held.get((os.path.dirname(temporary), data))
            if held is not None and held[0] == temporary:
                del self._held[os.path.dirname(temporary), data]
                with suppress(OSError), held[1]:
                    self._files.unlink(temporary)


class _FlushedFile(pa.OSFile):  # type: ignore[misc]
    """A file whose bytes are on the disk once it is closed.

    Attributes:
        path: path of the file.
        files: the file system that flushes it.
    """

    path: str
    files: FileSystem

    def close(self) -> None:
        """Flush the file and close it, even if the flush fails."""
        if self.closed:
            return
        try:
            self._flush()
        finally:
            super().close()

    def _flush(self) -> None:
        try:
            descriptor = self.fileno()
        except AttributeError:  # the lowest pyarrow release cannot tell the descriptor
            with open(self.path, "rb") as opened_again:
                self.files.flush_file(opened_again.fileno(), self.path)
        else:
            self.files.flush_file(descriptor, self.path)


def _flush(descriptor: int) -> None:
    if _FULL_FLUSH is not None:
        with suppress(OSError):  # network file systems do not support it
            fcntl.fcntl(descriptor, _FULL_FLUSH)
            return
    os.fsync(descriptor)


def _failed(path: str, error: OSError) -> UnavailableError:
    return UnavailableError(
        f"The file system could not flush a file to the disk ({error.strerror or error}), so the change may"
        " be lost in a power cut. Check the disk, then try again.",
        path=path,
    )


_UUID: Final = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_UNFINISHED: Final = re.compile(rf"\..+\.{_UUID}\.tmp|\.folder\.tmp", re.DOTALL)


def is_unfinished(name: str) -> bool:
    """Return whether a name is that of a temporary file."""
    return _UNFINISHED.fullmatch(name) is not None


def hold(file: IO[bytes]) -> None:
    """Lock a file to show others that its writer lives; without lock support only the file's age shows it."""
    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def drop_unless_held(full: str) -> None:
    """Delete a file unless a live process has it locked.

    Args:
        full: absolute path.
    """
    try:
        descriptor = os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(descriptor, full):
                os.unlink(full)
    finally:
        os.close(descriptor)


@contextmanager
def locked_content(full: str) -> Iterator[bytes | None]:
    """Lock a file against other callers of this function and yield its content; None without such a file.

    The lock is one on the file itself: a caller that waited while the file was replaced locks the new one.

    Args:
        full: absolute path.
    """
    while (descriptor := _opened_to_lock(full)) is not None:
        with open(descriptor, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if _is_at(descriptor, full):
                yield file.read()
                return
    yield None


def _opened_to_lock(full: str) -> int | None:
    """Open a file for reading, and for writing as well if possible, without which NFS grants no lock."""
    flags = os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(full, os.O_RDWR | flags)
    except (FileNotFoundError, IsADirectoryError):
        return None
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        return os.open(full, os.O_RDONLY | flags)


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a folder, or a symbolic link to one."""
    try:
        return entry.is_dir()
    except OSError:  # a link that points to itself
        return False


def is_link(full: str) -> bool:
    """Return whether a path is a symbolic link."""
    try:
        return stat.S_ISLNK(os.lstat(full).st_mode)
    except (OSError, ValueError):
        return False


def inode(full: str) -> tuple[int, int] | None:
    """Return what tells a folder, or a link, of this machine from all others; None if there is none."""
    try:
        found = os.lstat(full)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


def _is_at(descriptor: int, full: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(full))
    except FileNotFoundError:
        return False
