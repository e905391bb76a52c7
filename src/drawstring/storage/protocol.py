"""The storage protocol, through which all I/O of a table goes.

Paths are relative to the table's root; their parts are joined by `/`; they do not start with `/` and have
no `..` parts. Reading or opening a missing file raises `FileNotFoundError`, deleting one does nothing; a
storage that does not respond raises `UnavailableError`.

A power cut never leaves a partial file if `put`, `put_if_absent` or `put_if_match` wrote it, or if the file
of `create` was closed. Whether the file exists, or is deleted, is certain only after `sync` of its folder and
of new folders above it: until then any of the created or deleted names may be lost, in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

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
