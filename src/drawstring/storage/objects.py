"""Storage in object stores that support conditional puts: S3, Google Cloud Storage, Azure Blob Storage.

                   S3, Azure                GCS
    put_if_absent  If-None-Match: *         x-goog-if-generation-match: 0
    put_if_match   If-Match: <etag>         x-goog-if-generation-match: <generation>

When the response to such a put is lost, the repeated request conflicts with the object of the first.
Therefore each conditional put stores a token as object metadata, and an object with our token counts as
written.

The client repeats failed requests with exponential backoff, by default for at most a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import obstore
import pyarrow as pa
from obstore import exceptions

from drawstring.base.clock import Ids, SystemIds
from drawstring.base.errors import InvalidError, UnavailableError
from drawstring.model.files import FileStatus
from drawstring.storage.bucket import Bucket, has_no_credentials, is_token_refused
from drawstring.storage.paths import checked, checked_folder, is_hidden, joined
from drawstring.storage.protocol import StorageSpec
from drawstring.storage.streams import RangeFile, UploadFile

# Azure takes no hyphen in a name of metadata, and proxies drop headers with an underscore.
_TOKEN: Final = "drawstringput"
_PART_BYTES: Final = 8 << 20
_PARTS_AT_ONCE: Final = 4
_DELETES_AT_ONCE: Final = 1000
_SINGLE_PUT_BYTES_MAX: Final = 64 << 20
_REFUSED: Final = (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError)


class ObjectStorage:
    """The files below a prefix in a bucket.

    Args:
        spec: the address and the options of the store.
        bucket: what they lead to.
        ids: source of the tokens of conditional puts.
    """

    def __init__(self, spec: StorageSpec, bucket: Bucket, ids: Ids | None = None) -> None:
        self._spec = spec
        self._bucket = bucket
        self._ids = ids or SystemIds()
        self._store = bucket.client

    def __repr__(self) -> str:
        return f"ObjectStorage({self._spec.uri!r})"

    @property
    def spec(self) -> StorageSpec:
        """The spec with which any process can open the same storage."""
        return self._spec

    def list_files(self, folder: str) -> list[FileStatus]:
        """List the files directly in a folder, sorted by path."""
        listed = self._list_folder(folder)
        folders = set(listed["common_prefixes"])
        return _statuses((meta for meta in listed["objects"] if _is_file(meta, folders)), folder)

    def list_names(self, folder: str) -> list[str]:
        """List the names of the files directly in a folder, sorted."""
        return [status.name for status in self.list_files(folder)]

    def list_folders(self, folder: str) -> list[str]:
        """List the paths of the folders directly in a folder, sorted."""
        return sorted(self._list_folder(folder)["common_prefixes"])

    def list_tree(self, folder: str) -> list[FileStatus]:
        """List all files below a folder, sorted by path."""
        with self._translated(folder):
            pages = obstore.list(self._store, checked_folder(folder) or None, chunk_size=1000)
            objects = [meta for page in pages for meta in page]
        folders = {folder} | {_folder_of(meta["path"]) for meta in objects}
        return _statuses((meta for meta in objects if _is_file(meta, folders)), folder)

    def list_unfinished(self, folder: str) -> list[FileStatus]:
        """Return an empty list: object stores need no temporary files."""
        return []

    def drop_unfinished(self, paths: Iterable[str]) -> None:
        """Delete temporary files, except those of live processes."""
        self.delete(paths)

    def exists(self, path: str) -> bool:
        """Return whether a file exists."""
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
        """Open a new file for writing: a multipart upload, which appears when the file is closed."""
        with self._translated(path):
            writer = obstore.open_writer(
                self._store, checked(path), buffer_size=_PART_BYTES, max_concurrency=_PARTS_AT_ONCE
            )
        upload = UploadFile(writer, lambda: self._translated(path))
        return pa.BufferedOutputStream(pa.PythonFile(upload, mode="w"), 1 << 20)

    def put(self, path: str, data: bytes) -> None:
        """Write a whole file atomically."""
        with self._translated(path):
            obstore.put(self._store, checked(path), data, use_multipart=len(data) > _SINGLE_PUT_BYTES_MAX)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write a whole file unless it exists; False when it does."""
        return self._put_conditionally(path, data, "create")

    def read_versioned(self, path: str) -> tuple[bytes, str] | None:
        """Return a file and its ETag or generation, or None when it is missing."""
        try:
            with self._translated(path):
                result = obstore.get(self._store, checked(path))
                return bytes(result.bytes()), result.meta[self._bucket.vendor.version] or ""
        except FileNotFoundError:
            return None

    def put_if_match(self, path: str, data: bytes, version: str) -> bool:
        """Replace a file if it still has that ETag or generation; False otherwise."""
        return self._put_conditionally(path, data, {self._bucket.vendor.version: version})

    def set_modified(self, path: str, modified_ms: int) -> None:
        """Do nothing: the store itself sets the modification time of an object."""

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files; missing ones are ignored."""
        todo = [checked(path) for path in paths]
        for start in range(0, len(todo), _DELETES_AT_ONCE):
            self._delete_some(todo[start : start + _DELETES_AT_ONCE])

    def delete_tree(self, folder: str) -> None:
        """Delete all files below a folder."""
        with self._translated(folder):
            pages = obstore.list(self._store, checked_folder(folder) or None, chunk_size=1000)
            paths = [meta["path"] for page in pages for meta in page]
        self.delete(path for path in paths if path)

    def delete_folder(self, folder: str) -> bool:
        """Do nothing: a folder is a part of names."""
        return True

    def stage(self, files: Sequence[tuple[str, bytes]]) -> Callable[[], None]:
        """Do nothing: a put is one request."""
        return lambda: None

    def sync(self, folders: Iterable[str]) -> None:
        """Do nothing: object stores make each change durable before they acknowledge it."""

    def local_path(self, path: str) -> str | None:
        """Return None: the files have no path in the file system."""
        return None

    def full_uri(self, path: str) -> str:
        """Return the address with the scheme that Hadoop and Spark read."""
        return joined(self._bucket.root, checked_folder(path)) if path else self._bucket.root

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
            # The request may have succeeded although its response was lost.
            if self._holds(path, token):
                return True
            raise
        return True

    def _holds(self, path: str, token: str) -> bool:
        """Return whether the object was written by the put with this token."""
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
            # Some stores raise an error for a missing object and do not say which of the others they deleted.
            for path in paths if len(paths) > 1 else []:
                self._delete_some([path])

    @contextmanager
    def _translated(self, path: str) -> Iterator[None]:
        """Turn errors of the object store into ours."""
        try:
            yield
        except (exceptions.AlreadyExistsError, exceptions.PreconditionError) as error:
            self._check_bucket(error)
            text = f"The object store reports a conflict ({_first_line(error)}). Try again."
            raise _NotWritten(text, path=path) from error
        except FileNotFoundError as error:
            self._check_bucket(error)
            raise FileNotFoundError(path) from None
        except (exceptions.BaseError, OSError) as error:
            self._check_bucket(error)
            text = str(error)
            if isinstance(error, _REFUSED) or has_no_credentials(text) or is_token_refused(text):
                raise self._refused(error, path) from error
            raise UnavailableError(
                f"The object store failed ({_first_line(error)})."
                " Check endpoint and network, then try again.",
                path=path,
            ) from error

    def _check_bucket(self, error: Exception) -> None:
        """Raise another error if the store says that the bucket does not exist."""
        vendor = self._bucket.vendor
        if any(code in str(error) for code in vendor.no_bucket):
            raise InvalidError(
                f"There is no {vendor.noun} {self._bucket.name!r}. Create it, or correct the address."
            ) from None

    def _refused(self, error: Exception, path: str) -> InvalidError:
        vendor, address = self._bucket.vendor, self._bucket.address
        if has_no_credentials(str(error)):
            return InvalidError(
                f"There are no credentials for {address}: neither options nor environment name any, and this"
                f" machine provides none ({_first_line(error)}). Give {vendor.credentials}.",
                path=path,
            )
        return InvalidError(
            f"The object store refuses access to {address} ({_first_line(error)}). Check "
            f"{vendor.credentials} and the policy of the {vendor.noun}.",
            path=path,
        )


class _NotWritten(UnavailableError):
    """The condition of a put did not hold."""


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0]


def _is_file(meta: Any, folders: set[str]) -> bool:
    """Return whether an object is a file: other engines create empty objects as folders."""
    return bool(meta["size"]) or meta["path"] not in folders


def _statuses(objects: Iterable[Any], folder: str) -> list[FileStatus]:
    statuses = [
        FileStatus(meta["path"], meta["size"], int(meta["last_modified"].timestamp() * 1000))
        for meta in objects
        if meta["path"] != folder and not is_hidden(meta["path"].rpartition("/")[2])
    ]
    return sorted(statuses, key=lambda status: status.path)


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0][:300]
