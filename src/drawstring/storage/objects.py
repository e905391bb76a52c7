"""Object stores that speak S3, with conditional puts.

`put_if_absent` is a PUT with `If-None-Match: *`, `put_if_match` one with `If-Match: <etag>`. When the
answer to such a PUT gets lost, the repeated request finds its own object in the way; therefore each
conditional PUT carries a token as object metadata, and an object with our token counts as written.

Failed requests are repeated by the client itself, with exponential backoff, for at most a minute.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import obstore
import pyarrow as pa
from obstore import exceptions

from drawstring.base.clock import Ids, SystemIds
from drawstring.base.errors import InvalidError, UnavailableError
from drawstring.model.files import FileStatus
from drawstring.storage.paths import checked, checked_folder, is_hidden, joined
from drawstring.storage.protocol import StorageSpec
from drawstring.storage.s3_options import open_s3
from drawstring.storage.streams import RangeFile, UploadFile

_TOKEN: Final = "drawstring-put"
_PART_BYTES: Final = 8 << 20
_PARTS_AT_ONCE: Final = 4
_DELETES_AT_ONCE: Final = 1000
_SINGLE_PUT_BYTES_MAX: Final = 64 << 20
_NO_BUCKET: Final = "NoSuchBucket"
_REFUSED: Final = (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError)


class ObjectStorage:
    """A prefix in a bucket.

    Args:
        uri: `s3://bucket/prefix`.
        options: of the store, see `s3_options`.
        ids: where the tokens of conditional puts come from.

    Raises:
        InvalidError: an address without a bucket, or an option that does not exist.
    """

    def __init__(self, uri: str, options: Mapping[str, str], ids: Ids | None = None) -> None:
        self._bucket, self._prefix = _split(uri)
        self._spec = StorageSpec(uri.rstrip("/"), dict(options))
        self._ids = ids or SystemIds()
        self._store = open_s3(self._bucket, self._prefix, options)

    def __repr__(self) -> str:
        return f"ObjectStorage({self._spec.uri!r})"

    @property
    def spec(self) -> StorageSpec:
        """What opens the same storage again, in any process."""
        return self._spec

    def list_files(self, folder: str) -> list[FileStatus]:
        """List the files directly in a folder, sorted by path."""
        found = self._list_folder(folder)["objects"]
        return _statuses((meta for meta in found if meta["path"] != folder), folder)

    def list_folders(self, folder: str) -> list[str]:
        """List the paths of the folders directly in a folder, sorted."""
        return sorted(self._list_folder(folder)["common_prefixes"])

    def list_tree(self, folder: str) -> list[FileStatus]:
        """List all files below a folder, sorted by path."""
        with self._translated(folder):
            pages = obstore.list(self._store, checked_folder(folder) or None, chunk_size=1000)
            found = [meta for page in pages for meta in page]
        # Other engines leave empty objects in place of folders.
        folders = {folder} | {_folder_of(meta["path"]) for meta in found}
        return _statuses((meta for meta in found if meta["size"] or meta["path"] not in folders), folder)

    def list_unfinished(self, folder: str) -> list[FileStatus]:
        """List the temporary files directly in a folder; storages whose puts need none have none."""
        return []

    def drop_unfinished(self, paths: Iterable[str]) -> None:
        """Delete temporary files, but for those of live processes."""
        self.delete(paths)

    def exists(self, path: str) -> bool:
        """Tell whether a file exists."""
        try:
            with self._translated(path):
                obstore.head(self._store, checked(path))
        except FileNotFoundError:
            return False
        return True

    def read(self, path: str) -> bytes:
        """Return a whole file."""
        with self._translated(path):
            return bytes(obstore.get(self._store, checked(path)).bytes())

    def open(self, path: str) -> pa.NativeFile:
        """Open a file for random access, with read-ahead."""
        with self._translated(path):
            size = obstore.head(self._store, checked(path))["size"]

        def fetch(start: int, end: int) -> bytes:
            with self._translated(path):
                return bytes(obstore.get_range(self._store, path, start=start, end=end))

        return pa.PythonFile(RangeFile(fetch, size), mode="r")

    def create(self, path: str) -> pa.NativeFile:
        """Open a new file for writing: a multipart upload, whole once closed."""
        with self._translated(path):
            writer = obstore.open_writer(
                self._store, checked(path), buffer_size=_PART_BYTES, max_concurrency=_PARTS_AT_ONCE
            )
        upload = UploadFile(writer, lambda: self._translated(path))
        return pa.BufferedOutputStream(pa.PythonFile(upload, mode="w"), 1 << 20)

    def put(self, path: str, data: bytes) -> None:
        """Write a whole file at once."""
        with self._translated(path):
            obstore.put(self._store, checked(path), data, use_multipart=len(data) > _SINGLE_PUT_BYTES_MAX)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write a whole file unless it exists; False when it does."""
        return self._put_conditionally(path, data, "create")

    def read_versioned(self, path: str) -> tuple[bytes, str] | None:
        """Return a file and its ETag, or None when it is missing."""
        try:
            with self._translated(path):
                result = obstore.get(self._store, checked(path))
                return bytes(result.bytes()), result.meta["e_tag"] or ""
        except FileNotFoundError:
            return None

    def put_if_match(self, path: str, data: bytes, version: str) -> bool:
        """Replace a file if it still has that ETag; False otherwise."""
        return self._put_conditionally(path, data, {"e_tag": version})

    def set_modified(self, path: str, modified_ms: int) -> None:
        """Do nothing: the store itself says when an object was put."""

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files; missing ones are fine."""
        todo = [checked(path) for path in paths]
        for start in range(0, len(todo), _DELETES_AT_ONCE):
            self._delete_some(todo[start : start + _DELETES_AT_ONCE])

    def delete_tree(self, folder: str) -> None:
        """Delete all files below a folder."""
        with self._translated(folder):
            pages = obstore.list(self._store, checked_folder(folder) or None, chunk_size=1000)
            found = [meta["path"] for page in pages for meta in page]
        self.delete(path for path in found if path)

    def sync(self, folders: Iterable[str]) -> None:
        """Do nothing: a change of an object store lasts when it is acknowledged."""

    def local_path(self, path: str) -> str | None:
        """Return None: there is no such path."""
        return None

    def full_uri(self, path: str) -> str:
        """Return the `s3a://` address, the scheme that Hadoop and Spark read."""
        inside = joined(self._prefix, checked_folder(path)) if path else self._prefix
        return f"s3a://{self._bucket}/{inside}".rstrip("/")

    def _list_folder(self, folder: str) -> Any:
        with self._translated(folder):
            return obstore.list_with_delimiter(self._store, checked_folder(folder) or None)

    def _put_conditionally(self, path: str, data: bytes, mode: Any) -> bool:
        token = self._ids.uuid()
        try:
            with self._translated(path):
                obstore.put(
                    self._store,
                    checked(path),
                    data,
                    mode=mode,
                    use_multipart=False,
                    attributes={_TOKEN: token},
                )
        except _NotWritten:
            return self._holds(path, token)
        except FileNotFoundError:
            return False
        except UnavailableError:
            # The request may have been carried out although its answer got lost.
            if self._holds(path, token):
                return True
            raise
        return True

    def _holds(self, path: str, token: str) -> bool:
        """Tell whether the object is the one that a put with this token made."""
        try:
            with self._translated(path):
                attributes = obstore.get(self._store, path, options={"head": True}).attributes
        except FileNotFoundError:
            return False
        return dict(attributes).get(_TOKEN) == token

    def _delete_some(self, paths: list[str]) -> None:
        try:
            with self._translated(paths[0]):
                obstore.delete(self._store, paths)
        except FileNotFoundError:
            # Some stores complain of missing objects, and leave open which of the others are gone.
            for path in paths if len(paths) > 1 else []:
                self._delete_some([path])

    @contextmanager
    def _translated(self, path: str) -> Iterator[None]:
        """Turn errors of the object store into ours."""
        try:
            yield
        except (exceptions.AlreadyExistsError, exceptions.PreconditionError) as error:
            raise _NotWritten(path) from error
        except FileNotFoundError as error:
            if _NO_BUCKET in str(error):
                raise self._no_bucket() from None
            raise FileNotFoundError(path) from None
        except _REFUSED as error:
            raise InvalidError(
                f"the object store refuses access to s3://{self._bucket} ({_first_line(error)}): check "
                "access_key_id, secret_access_key and the bucket's policy",
                path=path,
            ) from error
        except (exceptions.BaseError, OSError) as error:
            if _NO_BUCKET in str(error):
                raise self._no_bucket() from None
            raise UnavailableError(
                f"the object store failed ({_first_line(error)}): check endpoint and network, then try again",
                path=path,
            ) from error

    def _no_bucket(self) -> InvalidError:
        return InvalidError(f"there is no bucket {self._bucket!r}: create it, or correct the address")


class _NotWritten(Exception):
    """The condition of a put did not hold."""


def _split(uri: str) -> tuple[str, str]:
    """Return bucket and prefix."""
    bucket, _, prefix = uri.partition("://")[2].partition("/")
    if not bucket:
        raise InvalidError(f"{uri!r} names no bucket: write s3://bucket/path")
    return bucket, checked_folder(re.sub("/+", "/", prefix).strip("/"))


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0]


def _statuses(found: Iterable[Any], folder: str) -> list[FileStatus]:
    statuses = [
        FileStatus(meta["path"], meta["size"], int(meta["last_modified"].timestamp() * 1000))
        for meta in found
        if meta["path"] != folder and not is_hidden(meta["path"].rpartition("/")[2])
    ]
    return sorted(statuses, key=lambda status: status.path)


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0][:300]
