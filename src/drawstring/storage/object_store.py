"""Store a table in object stores that support conditional puts: S3, Google Cloud Storage, Azure Blob Storage.

                   S3, Azure                GCS
    put_if_absent  If-None-Match: *         x-goog-if-generation-match: 0
    put_if_match   If-Match: <etag>         x-goog-if-generation-match: <generation>

When the response to such a put is lost, the repeated request conflicts with the object of the first.
Therefore each conditional put stores a token as object metadata, and an object with our token counts as
written.

The client repeats failed requests with exponential backoff, by default for at most a minute.

A `Bucket` is a prefix in a bucket, and a `Vendor` describes how the stores differ. `OptionNames` maps the
options of a store to the names of other clients.

S3 (`open_s3`), and stores with the same interface: `s3://bucket/path`, also with the schemes `s3a` and
`s3n`.

Google Cloud Storage (`open_gcs`): `gs://bucket/path`. Without options the credentials are those that
Google's own clients find: `GOOGLE_APPLICATION_CREDENTIALS`, the credentials that `gcloud auth
application-default login` stored, or the service account of the machine.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal

import obstore
import pyarrow as pa
from obstore import exceptions
from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, S3Store

from drawstring.base.clock import Ids, SystemIds
from drawstring.base.errors import InvalidError, UnavailableError
from drawstring.model.files import FileStatus
from drawstring.storage.protocol import StorageSpec, checked, checked_folder, is_hidden, joined
from drawstring.storage.streams import RangeFile, UploadFile

if TYPE_CHECKING:
    from obstore.store import GCSCredential

Client = S3Store | GCSStore | AzureStore


@dataclass(frozen=True, slots=True)
class Vendor:
    """How the stores of a vendor answer.

    Attributes:
        example: an address, for errors.
        noun: what the vendor calls a bucket.
        no_bucket: codes of answers that say that the bucket does not exist.
        version: what a conditional put has to match: the ETag of an object, or its generation.
        credentials: names of the options that tell who sends a request, for errors.
    """

    example: str
    noun: str
    no_bucket: tuple[str, ...]
    version: Literal["e_tag", "version"]
    credentials: str


@dataclass(frozen=True, slots=True)
class Bucket:
    """A prefix in a bucket and the client that sends requests to it.

    Attributes:
        vendor: whose store it is.
        name: of the bucket.
        address: of the bucket, as people write it.
        client: its paths are relative to the prefix.
        root: address of the prefix with the scheme that Hadoop and Spark read.
    """

    vendor: Vendor
    name: str
    address: str
    client: Client
    root: str


_METADATA_SERVICES: Final = (
    "/latest/api/token",
    "/latest/meta-data/",
    "/computeMetadata/v1/",
    "/metadata/identity/oauth2/token",
)
_TOKEN_REFUSED: Final = re.compile(r"token request: .*status code: 40[0134]", re.DOTALL)


def has_no_credentials(text: str) -> bool:
    """Return whether an error came from the service that gives a cloud's own machines their credentials.

    A client asks it when nothing else names credentials.
    """
    return any(path in text for path in _METADATA_SERVICES)


def is_token_refused(text: str) -> bool:
    """Return whether an error says that credentials were not taken in exchange for an access token."""
    return bool(_TOKEN_REFUSED.search(text))


def split_address(uri: str, vendor: Vendor) -> tuple[str, str]:
    """Return what stands for the bucket in an address, and the prefix.

    Raises:
        InvalidError: the address names no bucket, or its path has `..` parts.
    """
    authority, _, prefix = uri.partition("://")[2].partition("/")
    if not authority:
        raise InvalidError(f"{uri!r} names no {vendor.noun}. Write {vendor.example}.")
    return authority, checked_folder(re.sub("/+", "/", prefix).strip("/"))


def first_given(environment: Mapping[str, str], *names: str) -> str | None:
    """Return the first variable of the environment that is set and not empty."""
    return next((value for name in names if (value := environment.get(name))), None)


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


COMMON_OPTIONS: Final[Mapping[str, str]] = {
    "endpoint": "address of the server, if it is not the vendor's own",
    "allow_http": "whether connections without TLS are allowed; default: if the endpoint starts with http://",
    "skip_signature": "whether requests are sent without credentials, as for public data",
    "timeout_seconds": "timeout of one request, default 120",
    "retry_seconds": "timeout of a request with its retries, default 60",
    "retries": "number of retries of a request, default 8",
}
"""Names and meanings of the options that every object store has."""

_HADOOP: Final = "spark.hadoop."


@dataclass(frozen=True, slots=True)
class OptionNames:
    """The options of a store, and how other clients call them.

    Attributes:
        meanings: by name, what an option means.
        others: by the name of another client, ours.
        prefixes: what may stand before a name.
        negated: by the name of another client, our flag with the opposite meaning.
        ignored: names of other clients that mean nothing here.
    """

    meanings: Mapping[str, str]
    others: Mapping[str, str]
    prefixes: tuple[str, ...]
    negated: Mapping[str, str] = field(default_factory=dict)
    ignored: frozenset[str] = frozenset()

    def normalised(self, options: Mapping[str, str]) -> dict[str, str]:
        """Return options under their names here: lower case, without prefixes such as `aws_` or `fs.s3a.`.

        Raises:
            InvalidError: an option does not exist.
        """
        named: dict[str, str] = {}
        for key, value in options.items():
            short = self.shortened(key)
            if short in self.ignored:
                continue
            name = self.negated.get(short) or self.named(key)
            if name not in self.meanings:
                raise InvalidError(self._unknown(key, short))
            named[name] = str(not flag(key, value)).lower() if short in self.negated else str(value)
        return named

    def named(self, key: str) -> str:
        """Return the name here of an option by any of its names."""
        short = self.shortened(key)
        return self.others.get(short, short)

    def shortened(self, key: str) -> str:
        """Return a name in lower case, without the prefixes of other clients."""
        short = key.lower().removeprefix(_HADOOP)
        for prefix in self.prefixes:
            short = short.removeprefix(prefix)
        return short

    def _unknown(self, key: str, short: str) -> str:
        near = difflib.get_close_matches(short, [*self.meanings, *self.others], n=1)
        hint = f"Did you mean {near[0]!r}?" if near else f"The options are {', '.join(self.meanings)}."
        return f"There is no storage option {key!r}. {hint}"


def client_arguments(settings: dict[str, str], flags: frozenset[str]) -> dict[str, Any]:
    """Return the arguments of an obstore client that normalised options stand for, all but the bucket.

    Args:
        settings: the options; they are used up.
        flags: those that are true or false.

    Raises:
        InvalidError: a value is not valid.
    """
    timeout = _seconds(settings, "timeout_seconds", 120)
    retry = _seconds(settings, "retry_seconds", 60)
    retries = int(_seconds(settings, "retries", 8))
    endpoint = settings.get("endpoint")
    is_http = str((endpoint or "").startswith("http://"))
    allow_http = flag("allow_http", settings.pop("allow_http", is_http))
    if endpoint and "://" not in endpoint:
        settings["endpoint"] = ("http://" if allow_http else "https://") + endpoint
    flags |= {"skip_signature"}
    return {
        "config": {key: flag(key, value) if key in flags else value for key, value in settings.items()},
        "client_options": {
            "allow_http": allow_http,
            "connect_timeout": timedelta(seconds=min(10, timeout)),
            "timeout": timedelta(seconds=timeout),
        },
        "retry_config": {
            "max_retries": retries,
            "retry_timeout": timedelta(seconds=retry),
            "backoff": {
                "init_backoff": timedelta(milliseconds=100),
                "max_backoff": timedelta(seconds=5),
                "base": 2,
            },
        },
    }


def flag(key: str, value: str) -> bool:
    """Return the value of an option that is true or false.

    Raises:
        InvalidError: it is neither.
    """
    lowered = str(value).strip().lower()
    if lowered not in ("true", "false"):
        raise InvalidError(f"The storage option {key} is {value!r}. Give true or false.")
    return lowered == "true"


def _seconds(options: dict[str, str], key: str, default: float) -> float:
    text = options.pop(key, None)
    try:
        value = default if text is None else float(text)
    except ValueError:
        value = -1
    if value < 0:
        raise InvalidError(f"The storage option {key} is {text!r}. Give a number that is not negative.")
    return value


S3: Final = Vendor(
    example="s3://bucket/path",
    noun="bucket",
    no_bucket=("NoSuchBucket",),
    version="e_tag",
    credentials="access_key_id, secret_access_key",
)

S3_NAMES: Final = OptionNames(
    meanings={
        **COMMON_OPTIONS,
        "region": "region of the bucket",
        "access_key_id": "id of the access key; without it the environment or the machine's role gives one",
        "secret_access_key": "the secret access key",
        "session_token": "token of temporary credentials",
        "virtual_hosted_style_request": "whether the bucket is part of the host name",
    },
    others={
        "endpoint_url": "endpoint",
        "default_region": "region",
        "access_key": "access_key_id",
        "access.key": "access_key_id",
        "secret_key": "secret_access_key",
        "secret.key": "secret_access_key",
        "token": "session_token",
        "session.token": "session_token",
        "endpoint.region": "region",
    },
    prefixes=("fs.s3a.", "aws_", "s3.", "s3_"),
    negated={
        "path.style.access": "virtual_hosted_style_request",
        "connection.ssl.enabled": "allow_http",
    },
)
_FLAGS: Final = frozenset({"virtual_hosted_style_request"})
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
"""Variables of the environment that name the server, as in AWS's own clients, the most specific one first."""


def open_s3(uri: str, options: Mapping[str, str]) -> Bucket:
    """Return the bucket at an address; calls with equal arguments share a client.

    Without an endpoint in the options that of the environment counts, with all that follows from it.

    Raises:
        InvalidError: the address has no bucket, an option does not exist, or its value is not valid.
    """
    name, prefix = split_address(uri, S3)
    settings = S3_NAMES.normalised(options)
    if "endpoint" not in settings and (endpoint := first_given(os.environ, *_ENDPOINTS)):
        settings["endpoint"] = endpoint
    client = _s3_client(name, prefix, tuple(sorted(settings.items())), os.getpid())
    return Bucket(S3, name, f"s3://{name}", client, joined(f"s3a://{name}", prefix).rstrip("/"))


@lru_cache(maxsize=32)
def _s3_client(bucket: str, prefix: str, settings: tuple[tuple[str, str], ...], _process: int) -> S3Store:
    """Open a client, one per process: the threads of a client do not survive a fork."""
    return S3Store(bucket, prefix=prefix or None, **client_arguments(dict(settings), _FLAGS))


GCS: Final = Vendor(
    example="gs://bucket/path",
    noun="bucket",
    no_bucket=("NoSuchBucket",),
    version="version",
    credentials="service_account or GOOGLE_APPLICATION_CREDENTIALS",
)

GCS_NAMES: Final = OptionNames(
    meanings={
        **COMMON_OPTIONS,
        "service_account": "path of the key file of a service account",
        "service_account_key": "the content of such a file",
        "application_credentials": "path of a file with credentials, as in GOOGLE_APPLICATION_CREDENTIALS",
        "bearer_token": "an access token; it is not renewed",
    },
    others={
        "base_url": "endpoint",
        "service.host": "endpoint",
        "storage.root.url": "endpoint",
        "service_account_path": "service_account",
        "auth.service.account.json.keyfile": "service_account",
        "token": "bearer_token",
        "oauth2.token": "bearer_token",
    },
    prefixes=("fs.gs.", "google.cloud.", "google_", "gcs.", "gcs_"),
    ignored=frozenset({"project.id", "project-id", "auth.type", "auth.service.account.enable"}),
)
_EMULATOR: Final = "STORAGE_EMULATOR_HOST"
_CREDENTIALS: Final = frozenset(
    {"service_account", "service_account_key", "application_credentials", "bearer_token"}
)
_NAMED_IN_ENVIRONMENT: Final = ("GOOGLE_BASE_URL",)


def open_gcs(uri: str, options: Mapping[str, str]) -> Bucket:
    """Return the bucket at an address; calls with equal arguments share a client.

    Raises:
        InvalidError: the address has no bucket, an option does not exist or is not valid, or the file with
            the credentials cannot be read.
    """
    name, prefix = split_address(uri, GCS)
    settings = GCS_NAMES.normalised(options)
    emulator = first_given(os.environ, _EMULATOR)
    if emulator and "endpoint" not in settings and not first_given(os.environ, *_NAMED_IN_ENVIRONMENT):
        settings["endpoint"] = emulator if "://" in emulator else f"http://{emulator}"
        if not _CREDENTIALS.intersection(settings):
            settings["bearer_token"] = "anonymous"
    address = f"gs://{name}"
    client = _gcs_client(name, prefix, tuple(sorted(settings.items())), os.getpid())
    return Bucket(GCS, name, address, client, joined(address, prefix).rstrip("/"))


@lru_cache(maxsize=32)
def _gcs_client(bucket: str, prefix: str, settings: tuple[tuple[str, str], ...], _process: int) -> GCSStore:
    """Open a client, one per process: the threads of a client do not survive a fork."""
    arguments = client_arguments(dict(settings), frozenset())
    config = arguments.pop("config")
    if "endpoint" in config:
        config["base_url"] = config.pop("endpoint").rstrip("/")
    if "bearer_token" in config:
        token: GCSCredential = {"token": config.pop("bearer_token"), "expires_at": None}
        arguments["credential_provider"] = lambda: token
    try:
        return GCSStore(bucket, prefix=prefix or None, config=config, **arguments)
    except BaseError as error:
        raise InvalidError(
            f"The credentials for gs://{bucket} cannot be used ({str(error).splitlines()[0]}). Correct"
            f" {GCS.credentials}."
        ) from error
