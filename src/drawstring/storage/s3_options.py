"""Options of S3 stores, under our names and those of other clients, and the client that they configure."""

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
    "access_key_id": "id of the access key; without it the environment and the instance's role provide one",
    "secret_access_key": "the secret access key",
    "session_token": "token of temporary credentials",
    "allow_http": "whether connections without TLS are allowed; default: if the endpoint starts with http://",
    "virtual_hosted_style_request": "whether the bucket is part of the host name",
    "skip_signature": "whether the bucket is read without credentials",
    "timeout_seconds": "timeout of one request, default 120",
    "retry_seconds": "timeout of a request with its retries, default 60",
    "retries": "number of retries of a request, default 8",
}
"""Option names and their meanings."""

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
    """Return a client for a prefix in a bucket; calls with equal arguments share one.

    Raises:
        InvalidError: an option does not exist, or its value is not valid.
    """
    return _open(bucket, prefix, tuple(sorted(normalised(options).items())), os.getpid())


def normalised(options: Mapping[str, str]) -> dict[str, str]:
    """Return options under the names of `OPTIONS`: lower case, without prefixes such as `aws_` or `fs.s3a.`.

    Raises:
        InvalidError: an option does not exist.
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
    """Open a client, one per process: the threads of a client do not survive a fork."""
    settings = dict(options)
    timeout = _seconds(settings, "timeout_seconds", 120)
    retry = _seconds(settings, "retry_seconds", 60)
    retries = int(_seconds(settings, "retries", 8))
    endpoint = settings.get("endpoint")
    allow_http = settings.pop("allow_http", str((endpoint or "").startswith("http://")))
    if endpoint and "://" not in endpoint:
        settings["endpoint"] = ("http://" if _flag("allow_http", allow_http) else "https://") + endpoint
    config: dict[str, Any] = {
        key: _flag(key, value) if key in _FLAGS else value for key, value in settings.items()
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
        raise InvalidError(f"The storage option {key} is {text!r}. Give a number that is not negative.")
    return value


def _flag(key: str, value: str) -> bool:
    lowered = str(value).strip().lower()
    if lowered not in ("true", "false"):
        raise InvalidError(f"The storage option {key} is {value!r}. Give true or false.")
    return lowered == "true"


def _unknown(key: str, short: str) -> str:
    near = difflib.get_close_matches(short, [*OPTIONS, *_OTHER_NAMES], n=1)
    hint = f"Did you mean {near[0]!r}?" if near else f"The options are {', '.join(OPTIONS)}."
    return f"There is no storage option {key!r}. {hint}"
