"""Options of S3 stores: the names that users of other clients bring along, and the client's settings."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from datetime import timedelta
from functools import lru_cache
from typing import Any, Final

from obstore.store import S3Store

from drawstring.base.errors import InvalidError

OPTIONS: Final[Mapping[str, str]] = {
    "endpoint": "address of the server, for stores other than AWS",
    "region": "region of the bucket",
    "access_key_id": "name of the key; the environment and the instance's role are asked without it",
    "secret_access_key": "the key",
    "session_token": "of temporary credentials",
    "allow_http": "whether to talk without TLS; by default if the endpoint starts with http://",
    "virtual_hosted_style_request": "whether the bucket is part of the host name",
    "skip_signature": "whether the bucket is read without credentials",
    "timeout_seconds": "longest time for one request, 120",
    "retry_seconds": "longest time for a request and its repetitions, 60",
    "retries": "how often a request is repeated, 8",
}
"""Option names with what they mean."""

_OTHER_NAMES: Final[Mapping[str, str]] = {
    "endpoint_url": "endpoint",
    "default_region": "region",
    "access_key": "access_key_id",
    "access.key": "access_key_id",
    "secret_key": "secret_access_key",
    "secret.key": "secret_access_key",
    "token": "session_token",
    "session.token": "session_token",
    "endpoint.region": "region",
}
_PREFIXES: Final = ("spark.hadoop.", "fs.s3a.", "aws_", "s3.", "s3_")
_FLAGS: Final = frozenset({"allow_http", "virtual_hosted_style_request", "skip_signature"})


def open_s3(bucket: str, prefix: str, options: Mapping[str, str]) -> S3Store:
    """Return a client for a prefix in a bucket; equal arguments share one.

    Raises:
        InvalidError: an option that does not exist, or a value that makes no sense.
    """
    return _open(bucket, prefix, tuple(sorted(normalised(options).items())), os.getpid())


def normalised(options: Mapping[str, str]) -> dict[str, str]:
    """Return options under their names here: without `aws_` or `fs.s3a.` in front, in lower case.

    Raises:
        InvalidError: an option that does not exist.
    """
    named: dict[str, str] = {}
    for key, value in options.items():
        short = key.lower()
        for prefix in _PREFIXES:
            short = short.removeprefix(prefix)
        if short in ("path.style.access", "connection.ssl.enabled"):
            name = "virtual_hosted_style_request" if short == "path.style.access" else "allow_http"
            named[name] = "false" if _flag(key, value) else "true"
            continue
        name = _OTHER_NAMES.get(short, short)
        if name not in OPTIONS:
            raise InvalidError(_unknown(key, short))
        named[name] = str(value)
    return named


@lru_cache(maxsize=32)
def _open(bucket: str, prefix: str, options: tuple[tuple[str, str], ...], _process: int) -> S3Store:
    """Open a client; one of another process, inherited by a fork, has no living threads."""
    given = dict(options)
    timeout = _seconds(given, "timeout_seconds", 120)
    retry = _seconds(given, "retry_seconds", 60)
    retries = int(_seconds(given, "retries", 8))
    endpoint = given.get("endpoint")
    allow_http = given.pop("allow_http", str((endpoint or "").startswith("http://")))
    if endpoint and "://" not in endpoint:
        given["endpoint"] = ("http://" if _flag("allow_http", allow_http) else "https://") + endpoint
    config: dict[str, Any] = {
        key: _flag(key, value) if key in _FLAGS else value for key, value in given.items()
    }
    return S3Store(
        bucket,
        prefix=prefix or None,
        config=config,  # type: ignore[arg-type]
        client_options={
            "allow_http": _flag("allow_http", allow_http),
            "connect_timeout": timedelta(seconds=min(10, timeout)),
            "timeout": timedelta(seconds=timeout),
        },
        retry_config={
            "max_retries": retries,
            "retry_timeout": timedelta(seconds=retry),
            "backoff": {
                "init_backoff": timedelta(milliseconds=100),
                "max_backoff": timedelta(seconds=5),
                "base": 2,
            },
        },
    )


def _seconds(options: dict[str, str], key: str, default: float) -> float:
    text = options.pop(key, None)
    try:
        value = default if text is None else float(text)
    except ValueError:
        value = -1
    if value < 0:
        raise InvalidError(f"storage option {key} is {text!r}: give a number that is not negative")
    return value


def _flag(key: str, value: str) -> bool:
    lowered = str(value).strip().lower()
    if lowered not in ("true", "false"):
        raise InvalidError(f"storage option {key} is {value!r}: give true or false")
    return lowered == "true"


def _unknown(key: str, short: str) -> str:
    near = difflib.get_close_matches(short, [*OPTIONS, *_OTHER_NAMES], n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(OPTIONS)}"
    return f"unknown storage option {key!r}: {hint}"
