"""Store a table in a local file system, or in a file system that is mounted on this machine.

Atomic files: whole files appear atomically. A temporary sibling is renamed to the target (`put`), or
hard-linked to it (`put_if_absent`: a hard link fails when the target exists). An empty file is complete as
soon as it exists. `create` writes in place, so that the partial file of a killed writer lies where its
marker says.

Flushes: only flushed data survives a power cut. The bytes of a file and its name are flushed separately.
The contents of a file are on the disk before it gets its name (`put`), or once it is closed (`create`).
Created and deleted names reach the disk with `sync`, once for many files (docs/adr/0036). Claims
(`timeline.claims`) are not flushed: they decide between processes of this machine, which a power cut ends.

`FileSystem` holds the system calls with which the storage changes files, so that tests can record or
replace them. `flush_file` flushes the contents of a file, `flush_folder` the names in a folder.

Symbolic links: a table may come from an untrusted source, so symbolic links inside it are refused; its root
may be one. An entry that is neither a file nor a folder, such as a dangling link, is listed as a file, so
that opening it raises an error instead of silently skipping it.

Checksums: Hadoop writes a checksum beside each local file (`.<name>.crc`) and rejects a file that does not
match it. Therefore the checksum of a file is deleted before the file is changed.

Temporary files are hidden; a killed process leaves them behind:

    .<name>.<uuid>.tmp    the contents of <name> before the rename; locked (`flock`) until then
    .staged.<uuid>.tmp    the contents of a file that is put soon, whose name is not known yet; locked too
    .folder.tmp           created and deleted at once, to create a folder

`missing_table_advice` says what to do about a path without a table. `data_files` lists the files of the table
outside `.hoodie`.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import IO, Final, TypeVar

import pyarrow as pa

from drawstring.base.clock import Ids, SystemIds
from drawstring.base.errors import (
    TABLE_DISK,
    CorruptTableError,
    DrawstringError,
    InvalidError,
    UnavailableError,
    disk_error,
)
from drawstring.base.resources import map_in_threads
from drawstring.config.keys.read import SYNC
from drawstring.model.files import HOODIE_FOLDER, FileStatus
from drawstring.storage.protocol import (
    CLAIM_SUFFIX,
    RESERVED_SUFFIX,
    Storage,
    StorageSpec,
    checked,
    checked_folder,
    is_hidden,
    joined,
)

_NOT_FOR_FOLDERS: Final = frozenset(
    {errno.EINVAL, errno.EBADF, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EACCES, errno.EPERM}
)
"""Errors of file systems that cannot flush a folder, and of folders without read permission."""

_FLUSHES_AT_ONCE: Final = 8
_FLUSHES_OF_A_THREAD: Final = 4
"""Journaling file systems flush all changes with the first folder: so few are done before a thread starts."""

T = TypeVar("T")

_FULL_FLUSH: Final[int | None] = getattr(fcntl, "F_FULLFSYNC", None)
"""On macOS `fsync` leaves data in the cache of the drive; this call writes that out, too."""


class FileSystem:
    """Changes files of this machine.

    Args:
        sync: whether files and folders are flushed to the disk.
        full_flush: number of the call of `fcntl` that flushes the cache of the drive as well; None for none.
    """

    def __init__(self, *, sync: bool = True, full_flush: int | None = _FULL_FLUSH) -> None:
        self.sync = sync
        self._full_flush = full_flush

    def create(self, path: str) -> pa.NativeFile:
        """Open a new file for writing; its contents are flushed when it is closed."""
        file = _FlushedFile(path, "wb")
        file.path, file.files = path, self
        return file

    @contextmanager
    def writing_new(self, path: str, data: bytes, *, flushed: bool = True) -> Iterator[None]:
        """Write a new file, which stays locked (`lock_temporary_file`) during a `with` block.

        Args:
            path: absolute path.
            data: the content.
            flushed: whether it has to survive a power cut.

        Raises:
            FileExistsError: the file exists.
        """
        with open(path, "xb", buffering=0) as file:
            lock_temporary_file(file)
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

    def fsync(self, descriptor: int) -> None:
        """Let the system flush an open file or folder; every flush ends here."""
        os.fsync(descriptor)

    def fcntl(self, descriptor: int, command: int) -> None:
        """Let the system do something to an open file that only this kind of system can do."""
        fcntl.fcntl(descriptor, command)

    def open_to_lock(self, path: str, flags: int) -> int:
        """Open a file that is about to be locked, and return its descriptor."""
        return os.open(path, flags)

    def descriptor_of(self, file: pa.NativeFile) -> int:
        """Return the descriptor of a file that `create` opened.

        Raises:
            AttributeError: the pyarrow release cannot tell it.
        """
        descriptor: int = file.fileno()
        return descriptor

    def flush_file(self, descriptor: int, path: str) -> None:
        """Flush the contents of an open file to the disk.

        Raises:
            UnavailableError: the disk failed; the contents are not safe even if a second call succeeds.
        """
        if self.sync:
            try:
                self._flush(descriptor)
            except OSError as error:
                raise _failed(path, error) from error

    def flush_folders(self, paths: Iterable[str]) -> None:
        """Flush the names in folders to the disk."""
        if self.sync:
            folders = list(paths)
            threads = min(_FLUSHES_AT_ONCE, 1 + len(folders) // _FLUSHES_OF_A_THREAD)
            self.in_threads(self.flush_folder, folders, threads)

    def in_threads(self, task: Callable[[T], object], items: Sequence[T], threads: int) -> None:
        """Run a task for each item, a number of them at the same time."""
        map_in_threads(task, items, threads)

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
            self._flush(descriptor)
        except OSError as error:
            if error.errno not in _NOT_FOR_FOLDERS:
                raise _failed(path, error) from error
        finally:
            os.close(descriptor)

    def _flush(self, descriptor: int) -> None:
        if self._full_flush is not None:
            with suppress(OSError):  # network file systems do not support it
                self.fcntl(descriptor, self._full_flush)
                return
        self.fsync(descriptor)


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
        threads = min(len(named), _FLUSHES_AT_ONCE) if self._files.sync else 1
        self._files.in_threads(self._write, named, threads)
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
            descriptor = self.files.descriptor_of(self)
        except AttributeError:  # the lowest pyarrow release cannot tell the descriptor
            with open(self.path, "rb") as opened_again:
                self.files.flush_file(opened_again.fileno(), self.path)
        else:
            self.files.flush_file(descriptor, self.path)


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


def lock_temporary_file(file: IO[bytes]) -> None:
    """Lock a file to show others that its writer lives; without lock support only the file's age shows it."""
    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def delete_unless_locked(full: str) -> None:
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
def locked_content(full: str, files: FileSystem) -> Iterator[bytes | None]:
    """Lock a file against other callers of this function and yield its content; None without such a file.

    The lock is one on the file itself: a caller that waited while the file was replaced locks the new one.

    Args:
        full: absolute path.
        files: opens it.
    """
    while (descriptor := _opened_to_lock(full, files)) is not None:
        with open(descriptor, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if _is_at(descriptor, full):
                yield file.read()
                return
    yield None


def _opened_to_lock(full: str, files: FileSystem) -> int | None:
    """Open a file for reading, and for writing as well if possible, without which NFS grants no lock."""
    flags = os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return files.open_to_lock(full, os.O_RDWR | flags)
    except (FileNotFoundError, IsADirectoryError):
        return None
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        return files.open_to_lock(full, os.O_RDONLY | flags)


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


_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK})

_CHECKED_FOLDERS_MAX = 4096
"""Number of folders that are known not to be behind a symbolic link."""


class LocalStorage:
    """A folder in the file system.

    Args:
        root: the table's folder, absolute or relative to the working directory; need not exist yet.
        ids: source of the names of temporary files.
        files: makes all changes; by default the machine's file system, with flushes.
    """

    def __init__(
        self, root: str | os.PathLike[str], ids: Ids | None = None, files: FileSystem | None = None
    ) -> None:
        self._root = os.path.abspath(os.path.expanduser(os.fspath(root)))
        self._ids = ids or SystemIds()
        self._files = files or FileSystem()
        self._staged = StagedFiles(self._files)
        self._checked_folders: dict[str, tuple[int, int]] = {}

    def __repr__(self) -> str:
        return f"LocalStorage({self._root!r})"

    @property
    def spec(self) -> StorageSpec:
        """The spec with which any process can open the same storage."""
        return StorageSpec(self._root, {} if self._files.sync else {SYNC: "false"})

    def list_files(self, folder: str) -> list[FileStatus]:
        """List the files directly in a folder, sorted by path."""
        return sorted(_files_of(folder, self._entries(folder)), key=attrgetter("path"))

    def list_names(self, folder: str) -> list[str]:
        """List the names directly in a folder, sorted, those of folders with a slash; asks for no sizes."""
        entries = self._entries(folder)
        try:
            folders = {entry.name for entry in entries if entry.is_dir()}
        except OSError:
            folders = {entry.name for entry in entries if is_folder(entry)}
        names = (name for entry in entries if (name := entry.name)[0] != "." or not is_hidden(name))
        return sorted([f"{name}/" if name in folders else name for name in names])

    def list_folders(self, folder: str) -> list[str]:
        """List the paths of the folders directly in a folder, sorted."""
        return sorted(joined(folder, entry.name) for entry in self._entries(folder) if is_folder(entry))

    def list_tree(self, folder: str) -> list[FileStatus]:
        """List all files below a folder, sorted by path."""
        statuses: list[FileStatus] = []
        todo = [folder]
        while todo:
            current = todo.pop()
            entries = self._entries(current)
            statuses += _files_of(current, entries)
            todo += [joined(current, entry.name) for entry in entries if is_folder(entry)]
        return sorted(statuses, key=attrgetter("path"))

    def list_unfinished(self, folder: str) -> list[FileStatus]:
        """List the temporary files directly in a folder, sorted by path."""
        statuses = []
        for entry in self._entries(folder):
            with suppress(FileNotFoundError):
                if is_unfinished(entry.name) and not is_folder(entry):
                    statuses.append(_status(joined(folder, entry.name), entry.stat(follow_symlinks=False)))
        return sorted(statuses, key=attrgetter("path"))

    def drop_unfinished(self, paths: Iterable[str]) -> None:
        """Delete temporary files that no live process holds."""
        for path in paths:
            with _translated(path):
                delete_unless_locked(self._full(path))

    def exists(self, path: str) -> bool:
        """Return whether a file exists."""
        return os.path.isfile(self._full(path))

    def read(self, path: str) -> bytes:
        """Return a whole file."""
        with _translated(path), open(self._readable(path), "rb") as file:
            return file.read()

    def open(self, path: str) -> pa.NativeFile:
        """Open a file for random access."""
        with _translated(path):
            return pa.OSFile(self._readable(path), "rb")

    def create(self, path: str) -> pa.NativeFile:
        """Open a new file for writing, in place."""
        full = self._full(path)
        with _translated(path):
            self._prepare(full)
            try:
                return self._files.create(full)
            except FileNotFoundError:  # a clean deletes the folders of partitions that have nothing any more
                self._prepare(full)
                return self._files.create(full)

    def put(self, path: str, data: bytes) -> None:
        """Write a whole file atomically."""
        full = self._full(path)
        with _translated(path):
            if not data and self._create_empty(full):
                return
            with self._temporary(full, data) as temporary:
                self._files.rename(temporary, full)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write a whole file unless it exists; False when it does."""
        full = self._full(path)
        if os.path.lexists(full):
            return False
        if not data:
            with _translated(path):
                return self._create_empty(full)
        with _translated(path), self._temporary(full, data) as temporary:
            try:
                self._files.link(temporary, full)
            except FileExistsError:
                return False
            except OSError as error:
                if error.errno in _NO_LINKS:
                    raise InvalidError(
                        f"The file system of {self._root} has no hard links, which commits need. "
                        "Put the table on another file system.",
                        path=path,
                    ) from error
                raise
        return True

    def read_versioned(self, path: str) -> tuple[bytes, str] | None:
        """Return a file and its version, a digest of its bytes."""
        try:
            data = self.read(path)
        except FileNotFoundError:
            return None
        return data, _version(data)

    def put_if_match(self, path: str, data: bytes, version: str) -> bool:
        """Replace a file if it still has that version; atomic among callers of this method."""
        with _translated(path):
            try:
                full = self._readable(path)
            except (FileNotFoundError, NotADirectoryError):
                return False
            with locked_content(full, self._files) as current:
                if current is None or _version(current) != version:
                    return False
                self.put(path, data)
                return True

    def set_modified(self, path: str, modified_ms: int) -> None:
        """Set the modification time of a file."""
        with _translated(path):
            self._files.set_modified(self._full(path), modified_ms * 1_000_000)

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files; missing files and folders are ignored."""
        for path in paths:
            full = self._full(path)
            with _translated(path), suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
                self._drop_checksum(full)
                self._files.unlink(full)

    def delete_tree(self, folder: str) -> None:
        """Delete a folder and everything below it."""
        full = self._full_folder(folder)
        with _translated(folder), suppress(FileNotFoundError, NotADirectoryError):
            # A second pass deletes what another process added during the first.
            self._files.remove_tree(full, ignore_errors=True)
            self._files.remove_tree(full)

    def delete_folder(self, folder: str) -> bool:
        """Delete a folder unless it has something in it, and return whether it is gone."""
        full = self._full_folder(folder)
        with _translated(folder):
            return self._files.remove_folder(full)

    def stage(self, files: Sequence[tuple[str, bytes]]) -> Callable[[], None]:
        """Write and flush temporary files, which a put of the same bytes in the folder gives their names."""
        with suppress(DrawstringError):  # a symbolic link: the put says so
            return self._staged.add([(self._full_folder(folder), data) for folder, data in files], self._ids)
        return lambda: None

    def sync(self, folders: Iterable[str]) -> None:
        """Flush the names in folders to the disk."""
        if self._files.sync:
            self._files.flush_folders([self._full_folder(folder) for folder in folders])

    def local_path(self, path: str) -> str | None:
        """Return the path in the machine's file system."""
        return self._full_folder(path)

    def full_uri(self, path: str) -> str:
        """Return the `file://` address."""
        return f"file://{self._full_folder(path)}"

    def _readable(self, path: str) -> str:
        """Return the absolute path of a file; refuse pipes, whose opening would block forever."""
        full = self._full(path)
        mode = os.lstat(full).st_mode
        if stat.S_ISLNK(mode):
            raise _linked(path)
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise CorruptTableError(
                "A pipe, socket or device is in the place of a file. Restore the file from a backup.",
                path=path,
            )
        return full

    def _full(self, path: str) -> str:
        return self._without_links(checked(path))

    def _full_folder(self, folder: str) -> str:
        return self._without_links(checked_folder(folder)) if folder else self._root

    def _without_links(self, path: str) -> str:
        """Return the absolute path of a file, after checking that no part of it is a symbolic link.

        A folder whose parts were checked before is the same one while it has the same inode.
        """
        folder, slash, name = path.rpartition("/")
        known = self._checked_folders.get(folder) if slash else None
        if known is None or inode(f"{self._root}/{folder}") != known:
            return self._with_checked_parts(path)
        full = f"{self._root}/{folder}/{name}"
        if is_link(full):
            raise _linked(path)
        return full

    def _with_checked_parts(self, path: str) -> str:
        full = self._root.rstrip("/")
        *folders, name = path.split("/")
        for part in folders:
            full = f"{full}/{part}"
            if is_link(full):
                raise _linked(path)
        if folders and (found := inode(full)) is not None:
            if len(self._checked_folders) >= _CHECKED_FOLDERS_MAX:
                self._checked_folders.clear()
            self._checked_folders["/".join(folders)] = found
        full = f"{full}/{name}"
        if is_link(full):
            raise _linked(path)
        return full

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        full = self._full_folder(folder)
        with _translated(folder):
            try:
                with os.scandir(full) as entries:
                    return list(entries)
            except (FileNotFoundError, NotADirectoryError):
                return []

    def _prepare(self, full: str) -> None:
        """Create the folder of a file, and delete the checksum that Hadoop may have left beside it."""
        folder = os.path.dirname(full)
        if not os.path.isdir(folder):
            self._make_root()
            self._files.make_folders(folder)
        self._drop_checksum(full)

    def _make_root(self) -> None:
        """Create the table's folder and flush its name, since `sync` reaches no folder above the table."""
        created = self._files.make_folders(self._root)
        if created and self._files.sync:
            self._files.flush_folders([os.path.dirname(folder) for folder in created])

    def _create_empty(self, full: str) -> bool:
        """Create an empty file, which is complete at once; False if the path exists."""
        self._prepare(full)
        try:
            self._files.make_empty(full)
        except FileExistsError:
            return False
        return True

    def _drop_checksum(self, full: str) -> None:
        folder, name = os.path.split(full)
        with suppress(FileNotFoundError):
            self._files.unlink(os.path.join(folder, f".{name}.crc"))

    @contextmanager
    def _temporary(self, full: str, data: bytes) -> Iterator[str]:
        """Write a hidden sibling of a file that is about to change; it is deleted afterwards."""
        self._prepare(full)
        folder, name = os.path.split(full)
        staged = self._staged.take(folder, data)
        temporary, held = staged or (f"{folder}/.{name}.{self._ids.uuid()}.tmp", ExitStack())
        try:
            with held:
                if staged is None:
                    is_flushed = not name.endswith((CLAIM_SUFFIX, RESERVED_SUFFIX))
                    held.enter_context(self._files.writing_new(temporary, data, flushed=is_flushed))
                yield temporary
        finally:
            with suppress(FileNotFoundError):
                self._files.unlink(temporary)


def _linked(path: str) -> CorruptTableError:
    return CorruptTableError(
        "The table contains a symbolic link, which may lead anywhere. Replace it by the file that it points"
        " to, or delete it.",
        path=path,
    )


def _files_of(folder: str, entries: Iterable[os.DirEntry[str]]) -> Iterator[FileStatus]:
    for entry in entries:
        # A file can vanish between the listing and the stat call.
        with suppress(FileNotFoundError):
            if not is_hidden(entry.name) and not is_folder(entry):
                yield _status(joined(folder, entry.name), entry.stat(follow_symlinks=False))


def _status(path: str, stats: os.stat_result) -> FileStatus:
    return FileStatus(path, stats.st_size, stats.st_mtime_ns // 1_000_000)


def _version(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@contextmanager
def _translated(path: str) -> Iterator[None]:
    """Turn errors of the operating system into ours."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (NotADirectoryError, IsADirectoryError) as error:
        raise FileNotFoundError(error.errno, "not a file", path) from error
    except OSError as error:
        if known := disk_error(error, TABLE_DISK, path):
            raise known from error
        if error.errno == errno.ELOOP:
            raise _linked(path) from error
        if error.errno == errno.ENAMETOOLONG:
            raise InvalidError(
                "A name is too long for the file system. Shorten the address of the table, or the partition"
                " value that leads there.",
                path=path,
            ) from error
        raise UnavailableError(
            f"The file system failed ({error.strerror or error}). Check the disk, then try again.", path=path
        ) from error


_SHOWN: Final = 3


def missing_table_advice(storage: Storage, mark: str) -> str:
    """Return what to do about a path without a table, as a sentence; in object stores nobody looks around.

    Args:
        storage: files at the path.
        mark: path of a file that each table has.
    """
    local = storage.local_path("")
    if local is None:
        return "Check the path, or create a table."
    path = Path(local)
    if path.is_file():
        return "A file is at this path. Give the folder of a table."
    if not path.exists():
        return "There is no folder at this path. Check it, or create a table."
    below = sorted(islice((each.parents[1].name for each in path.glob(f"*/{mark}")), _SHOWN))
    if below:
        return f"There are tables below, such as {' and '.join(below)}. Give the path of one."
    return "Check the path, or create a table."


def data_files(storage: Storage) -> Iterator[FileStatus]:
    """List all files of the table outside `.hoodie`, since markers may be missing."""
    yield from storage.list_files("")
    for folder in storage.list_folders(""):
        if folder != HOODIE_FOLDER:
            yield from storage.list_tree(folder)
