"""The storage protocol: all input and output of a table passes here.

Paths are relative to the table's root, parts joined by `/`, never starting with `/` and never
holding `..` parts. A file that is not there is `FileNotFoundError` on read and open, and nothing
at all on delete; a storage that does not answer is `UnavailableError`.

After a power cut a file is never there with a part of its bytes, if `put`, `put_if_absent` or `put_if_match`
wrote it or if the file of `create` was closed. Whether it is there, or gone, is only certain after `sync` of
its folder and of new folders above: until then any of the names made or deleted may be lost, in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from drawstring.model.files import FileStatus


@dataclass(frozen=True, slots=True)
class StorageSpec:
    """What a worker process needs to open the same storage: picklable.

    Attributes:
        uri: the table's root as the user gave it (`/path`, `file://`, `memory://`, `s3://`).
        options: options of the object store (`endpoint`, `region`, keys), or of local files.
    """

    uri: str
    options: Mapping[str, str] = field(default_factory=dict)


class Storage(Protocol):
    """Files below one root."""

    @property
    def spec(self) -> StorageSpec:
        """What opens the same storage again, in any process."""
        ...

    def list_files(self, folder: str) -> list[FileStatus]:
        """List the files directly in a folder, sorted by path; a missing folder is empty."""
        ...

    def list_folders(self, folder: str) -> list[str]:
        """List the paths of the folders directly in a folder, sorted; a missing one is empty."""
        ...

    def list_tree(self, folder: str) -> list[FileStatus]:
        """List all files below a folder, sorted by path; a missing folder is empty."""
        ...

    def list_unfinished(self, folder: str) -> list[FileStatus]:
        """List the temporary files directly in a folder; storages whose puts need none have none."""
        ...

    def drop_unfinished(self, paths: Iterable[str]) -> None:
        """Delete temporary files, but for those of live processes."""
        ...

    def exists(self, path: str) -> bool:
        """Tell whether a file exists."""
        ...

    def read(self, path: str) -> bytes:
        """Return a whole file."""
        ...

    def open(self, path: str) -> pa.NativeFile:
        """Open a file for random access; the caller closes it."""
        ...

    def create(self, path: str) -> pa.NativeFile:
        """Open a new file for writing; it is whole once closed. Folders come by themselves."""
        ...

    def put(self, path: str, data: bytes) -> None:
        """Write a whole file at once: a reader sees the old bytes or the new ones."""
        ...

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write a whole file unless it exists; False when it does. Atomic between processes."""
        ...

    def read_versioned(self, path: str) -> tuple[bytes, str] | None:
        """Return a file and its version (for `put_if_match`), or None when it is missing."""
        ...

    def put_if_match(self, path: str, data: bytes, version: str) -> bool:
        """Replace a file if it still has that version; False otherwise. Atomic."""
        ...

    def set_modified(self, path: str, modified_ms: int) -> None:
        """Say when a file was changed last, where the storage lets one; object stores do not."""
        ...

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files; missing ones are fine."""
        ...

    def delete_tree(self, folder: str) -> None:
        """Delete a folder and all below it; a missing one is fine."""
        ...

    def sync(self, folders: Iterable[str]) -> None:
        """Make what was made, replaced or deleted directly in folders survive a power cut.

        Object stores have nothing to do: with them each change lasts when it is acknowledged.

        Args:
            folders: their paths, empty for the root; missing ones are passed over.

        Raises:
            UnavailableError: the disk failed.
        """
        ...

    def local_path(self, path: str) -> str | None:
        """Return the path in the machine's file system, None for other storages."""
        ...

    def full_uri(self, path: str) -> str:
        """Return the address that another engine (Spark) opens the file by."""
        ...
