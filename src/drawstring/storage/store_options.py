"""Options of object stores, under our names and those of other clients, and what all stores share of them."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from drawstring.base.errors import InvalidError

OF_ALL_STORES: Final[Mapping[str, str]] = {
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
