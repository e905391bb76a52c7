"""S3, and stores with the same interface: `s3://bucket/path`, also with the schemes `s3a` and `s3n`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from obstore.store import S3Store

from drawstring.storage.bucket import Bucket, Vendor, divided, first_given
from drawstring.storage.paths import joined
from drawstring.storage.store_options import OF_ALL_STORES, OptionNames, client_arguments

VENDOR: Final = Vendor(
    example="s3://bucket/path",
    noun="bucket",
    no_bucket=("NoSuchBucket",),
    version="e_tag",
    credentials="access_key_id, secret_access_key",
)

NAMES: Final = OptionNames(
    meanings={
        **OF_ALL_STORES,
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
    name, prefix = divided(uri, VENDOR)
    settings = NAMES.normalised(options)
    if "endpoint" not in settings and (endpoint := first_given(os.environ, *_ENDPOINTS)):
        settings["endpoint"] = endpoint
    client = _client(name, prefix, tuple(sorted(settings.items())), os.getpid())
    return Bucket(VENDOR, name, f"s3://{name}", client, joined(f"s3a://{name}", prefix).rstrip("/"))


@lru_cache(maxsize=32)
def _client(bucket: str, prefix: str, settings: tuple[tuple[str, str], ...], _process: int) -> S3Store:
    """Open a client, one per process: the threads of a client do not survive a fork."""
    return S3Store(bucket, prefix=prefix or None, **client_arguments(dict(settings), _FLAGS))
