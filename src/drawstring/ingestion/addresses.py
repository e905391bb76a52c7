"""Whether two addresses are one place, or one is inside the other."""

from __future__ import annotations

import os
import posixpath
from typing import Final

_SAME_STORES: Final = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs"}
"""Schemes that name the same store, by the one that stands for both."""


def is_within(inner: str, outer: str) -> bool:
    """Tell whether an address is that of a folder, or below it."""
    return comparable(inner).startswith(comparable(outer))


def comparable(uri: str) -> str:
    """Return an address that ends in a slash; links and relative parts of local ones are followed."""
    plain = uri.removeprefix("file://") if uri.startswith("file:///") else uri.removeprefix("file:")
    scheme, mark, rest = plain.partition("://")
    if not mark:
        return os.path.realpath(plain).rstrip("/") + "/"
    return f"{_SAME_STORES.get(scheme, scheme)}://{posixpath.normpath(rest)}/"
