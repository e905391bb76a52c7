"""Google Cloud Storage: `gs://bucket/path`.

Without options the credentials are those that Google's own clients find: `GOOGLE_APPLICATION_CREDENTIALS`,
what `gcloud auth application-default login` stored, or the service account of the machine.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from obstore.exceptions import BaseError
from obstore.store import GCSStore

from drawstring.base.errors import InvalidError
from drawstring.storage.bucket import Bucket, Vendor, divided, first_given
from drawstring.storage.paths import joined
from drawstring.storage.store_options import OF_ALL_STORES, OptionNames, client_arguments

if TYPE_CHECKING:
    from obstore.store import GCSCredential

VENDOR: Final = Vendor(
    example="gs://bucket/path",
    noun="bucket",
    no_bucket=("NoSuchBucket",),
    version="version",
    credentials="service_account or GOOGLE_APPLICATION_CREDENTIALS",
)

NAMES: Final = OptionNames(
    meanings={
        **OF_ALL_STORES,
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
    name, prefix = divided(uri, VENDOR)
    settings = NAMES.normalised(options)
    emulator = first_given(os.environ, _EMULATOR)
    if emulator and "endpoint" not in settings and not first_given(os.environ, *_NAMED_IN_ENVIRONMENT):
        settings["endpoint"] = emulator if "://" in emulator else f"http://{emulator}"
        if not _CREDENTIALS.intersection(settings):
            settings["bearer_token"] = "anonymous"
    address = f"gs://{name}"
    client = _client(name, prefix, tuple(sorted(settings.items())), os.getpid())
    return Bucket(VENDOR, name, address, client, joined(address, prefix).rstrip("/"))


@lru_cache(maxsize=32)
def _client(bucket: str, prefix: str, settings: tuple[tuple[str, str], ...], _process: int) -> GCSStore:
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
            f" {VENDOR.credentials}."
        ) from error
