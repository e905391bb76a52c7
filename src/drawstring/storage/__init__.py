"""Local files and object stores behind one protocol, through which all I/O of a table goes."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from drawstring.base.errors import InvalidError, UnsupportedError, printable
from drawstring.base.lazy import lazy_import
from drawstring.config.keys.read import is_storage_key, is_synced
from drawstring.storage.local import FileSystem, LocalStorage
from drawstring.storage.protocol import Storage, StorageSpec

if TYPE_CHECKING:
    from drawstring.storage.azure import open_azure
    from drawstring.storage.memory import MemoryStorage
    from drawstring.storage.object_store import Bucket, ObjectStorage, open_gcs, open_s3
else:
    lazy_import(
        globals(),
        open_azure="drawstring.storage.azure:open_azure",
        open_gcs="drawstring.storage.object_store:open_gcs",
        MemoryStorage="drawstring.storage.memory:MemoryStorage",
        ObjectStorage="drawstring.storage.object_store:ObjectStorage",
        open_s3="drawstring.storage.object_store:open_s3",
    )

__all__ = ["Storage", "StorageSpec", "is_object_store", "open_spec", "open_storage", "register_scheme"]

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?=/)")
_OBJECT_STORES: Final[Mapping[str, Callable[[str, Mapping[str, str]], Bucket]]] = {
    "s3": open_s3,
    "s3a": open_s3,
    "s3n": open_s3,
    "gs": open_gcs,
    "abfss": open_azure,
    "abfs": open_azure,
    "wasbs": open_azure,
    "wasb": open_azure,
    "az": open_azure,
}
_registered: dict[str, Callable[[str], Storage]] = {}


def register_scheme(scheme: str, opener: Callable[[str], Storage]) -> None:
    """Let this process open addresses with one more scheme, whose files live no longer than the process.

    Args:
        scheme: what comes before `://`, in lower case.
        opener: opens the storage at an address.
    """
    _registered[scheme] = opener


def open_storage(uri: str | os.PathLike[str], options: Mapping[str, str] | None = None) -> Storage:
    """Open the storage at a table's address.

    Args:
        uri: `/path`, `file://`, `memory://`, `s3://` (also `s3a://`), `gs://`, `abfss://` or
            `az://`.
        options: of the object store, such as `endpoint`, `region`, `access_key_id`, and
            `drawstring.storage.sync` of local files.

    Raises:
        InvalidError: the address or an option is not valid.
        UnsupportedError: the scheme of the address is not supported.
    """
    address: Any = uri
    text = os.fspath(address) if isinstance(address, str | os.PathLike) else None
    if not isinstance(text, str) or "\0" in text:
        raise InvalidError(f"{uri!r} is not the address of a table. Give a path or a URI.")
    if not text.strip():
        raise InvalidError("The address of the table is empty. Give a path or a URI.")
    if not text.isascii() and printable(text) != text:
        raise InvalidError(
            f"The address {text!r} has a character that UTF-8 does not have. Rename the folder."
        )
    given: Any = options
    if not (given is None or isinstance(given, Mapping)):
        kind = type(given).__name__
        raise InvalidError(f'storage_options is a dictionary, not {kind}. Give it as {{"region": "..."}}.')
    scheme = _scheme(text)
    if scheme == "":
        return _local(text, options or {})
    if scheme == "file":
        return _local(_path_of_file_uri(text), options or {})
    if scheme == "memory":
        return MemoryStorage(text)
    if scheme in _registered:
        return _registered[scheme](text)
    if scheme in _OBJECT_STORES:
        of_store = {key: value for key, value in (options or {}).items() if not is_storage_key(key)}
        spec = StorageSpec(text.rstrip("/"), of_store)
        return ObjectStorage(spec, _OBJECT_STORES[scheme](text, of_store))
    raise UnsupportedError(
        f"Addresses with the scheme {scheme}:// are not supported. Use a local path, file://, memory:// or"
        f" {', '.join(f'{known}://' for known in _OBJECT_STORES)}."
    )


def _local(path: str, options: Mapping[str, str]) -> LocalStorage:
    return LocalStorage(path, files=FileSystem(sync=not options or is_synced(options)))


def is_object_store(uri: str) -> bool:
    """Return whether an address belongs to an object store, which takes options."""
    return _scheme(uri) in _OBJECT_STORES


def is_lasting(uri: str) -> bool:
    """Return whether files at an address outlive the process, so that their names are given once."""
    return _scheme(uri) not in ("memory", *_registered)


def open_spec(spec: StorageSpec) -> Storage:
    """Open, in a worker, the storage that a spec describes."""
    return open_storage(spec.uri, spec.options)


def _scheme(uri: str) -> str:
    match = _SCHEME.match(uri)
    return match[1].lower() if match else ""


def _path_of_file_uri(uri: str) -> str:
    """Return the path in `file:/p`, `file:///p` or `file://localhost/p`."""
    rest = uri.partition(":")[2]
    if rest.startswith("//"):
        host, _, path = rest[2:].partition("/")
        if host not in ("", "localhost"):
            raise InvalidError(
                f"{uri} names another machine ({host}), but file:// reads local files only."
                " Leave the host out."
            )
        rest = "/" + path
    return unquote(rest)
