"""Storage in a local file system, or in one that is mounted on this machine.

Whole files appear atomically: a temporary sibling is renamed to the target (`put`), or hard-linked to it
(`put_if_absent`: a hard link fails when the target exists); an empty file is complete as soon as it
exists. `create` writes in place, so that the partial file of a killed writer lies where its marker says.

The contents of a file are on the disk before it gets its name (`put`), or once it is closed (`create`);
created and deleted names reach the disk with `sync` (docs/adr/0036). Claims (`timeline.claims`) are not
flushed: they decide between processes of this machine, which a power cut ends. All changes go through a
`FileSystem`.

A table may come from an untrusted source, so symbolic links inside it are refused; its root may be one. An
entry that is neither a file nor a folder, such as a dangling link, is listed as a file, so that opening it
raises an error instead of silently skipping it.

Hadoop keeps a checksum beside each local file (`.<name>.crc`) and rejects a file that does not match it.
Therefore the checksum of a file is deleted before the file is changed.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from operator import attrgetter

import pyarrow as pa

from drawstring.base.clock import Ids, SystemIds
from drawstring.base.disk_errors import TABLE_DISK, disk_error
from drawstring.base.errors import CorruptTableError, DrawstringError, InvalidError, UnavailableError
from drawstring.config.keys.storage import SYNC
from drawstring.model.files import FileStatus
from drawstring.storage.file_system import (
    FileSystem,
    StagedFiles,
    drop_unless_held,
    inode,
    is_folder,
    is_link,
    is_unfinished,
    locked_content,
)
from drawstring.storage.paths import CLAIM_SUFFIX, RESERVED_SUFFIX, checked, checked_folder, is_hidden, joined
from drawstring.storage.protocol import StorageSpec

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
                drop_unless_held(self._full(path))

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
            with locked_content(full) as current:
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
