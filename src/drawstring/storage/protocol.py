"""Define the storage protocol, through which all I/O of a table goes.

Paths are relative to the table's root; their parts are joined by `/`; they do not start with `/` and have
no `..` parts (`checked`). Reading or opening a missing file raises `FileNotFoundError`, deleting one does
nothing. A storage that does not respond raises `UnavailableError`.

A power cut never leaves a partial file if `put`, `put_if_absent` or `put_if_match` wrote it, or if the file
of `create` was closed. Whether the file exists, or is deleted, is certain only after `sync` of its folder
and of new folders above it. Until then any of the created or deleted names may be lost, in any order.

A `Subfolder` is a folder of a storage as a storage of its own: the metadata table is a table inside a
table.

    storage of the table      .hoodie/metadata/files/...
    storage of the subfolder                   files/...
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

import pyarrow as pa

from drawstring.base.errors import InvalidError
from drawstring.model.files import FileStatus


@dataclass(frozen=True, slots=True)
class StorageSpec:
    """The picklable description with which a worker process opens the same storage.

    Attributes:
        uri: the table's root as the user gave it (`/path`, `file://`, `memory://`, `s3://`, `gs://`,
            `abfss://`).
        options: options of the object store (`endpoint`, `region`, keys), or of local files.
    """

    uri: str
    options: Mapping[str, str] = field(default_factory=dict)


class Storage(Protocol):
    """Files below one root."""

    @property
    def spec(self) -> StorageSpec:
        """The spec with which any process can open the same storage."""
        ...

    def list_files(self, folder: str) -> list[FileStatus]:
        """List the files directly in a folder, sorted by path; a missing folder is empty."""
        ...

    def list_names(self, folder: str) -> list[str]:
        """List the names of the files directly in a folder, sorted; cheaper than `list_files`.

        Of a local file system the names of the folders there as well, each with a slash at its end.
        """
        ...

    def list_folders(self, folder: str) -> list[str]:
        """List the paths of the folders directly in a folder, sorted; a missing folder is empty."""
        ...

    def list_tree(self, folder: str) -> list[FileStatus]:
        """List all files below a folder, sorted by path; a missing folder is empty."""
        ...

    def list_unfinished(self, folder: str) -> list[FileStatus]:
        """List the temporary files directly in a folder; empty for storages that write none."""
        ...

    def drop_unfinished(self, paths: Iterable[str]) -> None:
        """Delete temporary files, except those of live processes."""
        ...

    def exists(self, path: str) -> bool:
        """Return whether a file exists."""
        ...

    def read(self, path: str) -> bytes:
        """Return a whole file."""
        ...

    def open(self, path: str) -> pa.NativeFile:
        """Open a file for random access; the caller closes it."""
        ...

    def create(self, path: str) -> pa.NativeFile:
        """Open a new file for writing, complete when closed; missing folders are created."""
        ...

    def put(self, path: str, data: bytes) -> None:
        """Write a whole file atomically: a reader sees either the old bytes or the new ones."""
        ...

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write a whole file unless it exists; False when it does. Atomic among processes."""
        ...

    def read_versioned(self, path: str) -> tuple[bytes, str] | None:
        """Return a file and its version (for `put_if_match`), or None when it is missing."""
        ...

    def put_if_match(self, path: str, data: bytes, version: str) -> bool:
        """Replace a file if it still has that version; False otherwise. Atomic among processes."""
        ...

    def set_modified(self, path: str, modified_ms: int) -> None:
        """Set the modification time of a file; object stores, which do not support it, ignore the call."""
        ...

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files; missing ones are ignored."""
        ...

    def delete_tree(self, folder: str) -> None:
        """Delete a folder and everything below it; a missing folder is ignored."""
        ...

    def delete_folder(self, folder: str) -> bool:
        """Delete a folder unless it has something in it, and return whether it is gone.

        Where folders are parts of names nothing is done, and the answer is yes.
        """
        ...

    def stage(self, files: Sequence[tuple[str, bytes]]) -> Callable[[], None]:
        """Do what can be done now for files that are put soon, such as to flush their bytes.

        A `put` or `put_if_absent` of the same bytes takes less time then, with the same effect. Never fails.

        Args:
            files: the folder and the bytes of each.

        Returns:
            Gives up what was done for those that were not put; never fails either.
        """
        ...

    def sync(self, folders: Iterable[str]) -> None:
        """Make creations, replacements and deletions directly in folders survive a power cut.

        Object stores do nothing: they make each change durable before they acknowledge it.

        Args:
            folders: paths of the folders, empty for the root; missing ones are ignored.

        Raises:
            UnavailableError: the disk failed.
        """
        ...

    def local_path(self, path: str) -> str | None:
        """Return the path in the machine's file system, None for storages without one."""
        ...

    def full_uri(self, path: str) -> str:
        """Return the address with which another engine (Spark) opens the file."""
        ...


LOCK_FOLDER: Final = ".hoodie/.locks"
"""The folder of the table's locks, leases, claims and reservations."""

CLAIM_SUFFIX: Final = ".claim"
"""End of the names of claims (`timeline.claims`), which need not survive a power cut."""

_NOT_NAMES: Final = frozenset(("", ".", ".."))

RESERVED_SUFFIX: Final = ".reserved"
"""End of the names of reservations (`txn.reservations`), which need not survive a power cut either."""


def checked(path: str) -> str:
    """Return the path of a file after checking that it stays inside the table.

    Raises:
        InvalidError: the path is empty, absolute, or has empty, `.` or `..` parts.
    """
    if not path:
        raise InvalidError("The path of a file is empty. Give a path relative to the table.")
    return checked_folder(path)


def checked_folder(folder: str) -> str:
    """Return the path of a folder, empty for the root, after checking that it stays inside the table."""
    if "\0" in folder:
        raise InvalidError(
            f"{folder!r} is not a path inside the table: it has a NUL character. "
            "Change the partition value that leads there."
        )
    if folder and not _NOT_NAMES.isdisjoint(folder.split("/")):
        raise InvalidError(
            f"{folder!r} is not a path inside the table: it starts or ends with a slash, "
            "or has empty, '.' or '..' parts. Change the partition value that leads there."
        )
    return folder


def is_hidden(name: str) -> bool:
    """Return whether listings leave a file out: temporary files, and checksums of Hadoop's local files."""
    return name.startswith(".") and name.endswith((".tmp", ".crc"))


def joined(folder: str, name: str) -> str:
    """Return the path of a name in a folder; an empty folder is the root."""
    return f"{folder}/{name}" if folder else name


def folders_above(paths: Iterable[str]) -> list[str]:
    """Return the distinct folders of files and all folders above them, the root last."""
    folders: set[str] = set()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return sorted(folders, key=lambda folder: (-len(folder), folder))


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
