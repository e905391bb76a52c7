"""A prefix in a bucket of an object store, and in which points the stores differ."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from obstore.store import AzureStore, GCSStore, S3Store

from drawstring.base.errors import InvalidError
from drawstring.storage.paths import checked_folder

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


def divided(uri: str, vendor: Vendor) -> tuple[str, str]:
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
