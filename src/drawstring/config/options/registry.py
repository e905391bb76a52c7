"""All options in one place: what is known, which key means what, and what a typo was meant to be."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Mapping
from typing import Any, Final

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.keys.ignored import IGNORED_KEYS, meant_key, reason_to_ignore
from drawstring.config.keys.read import READ_OPTIONS
from drawstring.config.keys.storage import STORAGE_OPTIONS
from drawstring.config.keys.unsupported import CHECKED_OPTIONS, KNOWN_LOCK_PROVIDERS, LOCK_PROVIDER
from drawstring.config.keys.write import WRITE_OPTIONS
from drawstring.config.options.option import Given, Option, Scope, Value, text_of

_LOG: Final = logging.getLogger("drawstring.config")

ALL_OPTIONS: Final[tuple[Option, ...]] = (*WRITE_OPTIONS, *READ_OPTIONS, *CHECKED_OPTIONS, *STORAGE_OPTIONS)
OPTION_OF_KEY: Final[Mapping[str, Option]] = {key: option for option in ALL_OPTIONS for key in option.keys}
_OURS: Final = ("hoodie.", "drawstring.")
_SUGGESTED: Final = (*OPTION_OF_KEY, *IGNORED_KEYS)
_BARE: Final = tuple(key for key in OPTION_OF_KEY if not key.startswith(_OURS))


def parse_options(given: Given, scope: Scope) -> dict[Option, tuple[str, Value]]:
    """Return the options of a scope that were given, each with the key that it was given under.

    Keys are compared without case. Keys of the other scope are passed over, values and all, as in Hudi:
    scripts pass one set of options to everything. Keys that are neither Hudi's nor drawstring's are the
    caller's business.

    Raises:
        InvalidError: an unknown key, a value that makes no sense, or two that contradict each other.
        UnsupportedError: a value that this release does not carry out.
    """
    found: dict[Option, tuple[str, Value]] = {}
    left_aside: dict[str, str] = {}
    elsewhere: list[str] = []
    for name, value in given.items():
        key, text = name.lower(), text_of(value)
        option = OPTION_OF_KEY.get(key)
        if text is None:
            continue
        if option is None:
            reason = _reason(key, text)
            if reason:
                left_aside[key] = reason
        elif option.scope is scope:
            _add(found, option, key, text)
        else:
            elsewhere.append(key)
    if elsewhere:
        _LOG.debug("options passed over: %s (they say nothing to a %s)", ", ".join(elsewhere), scope)
    if left_aside:
        _LOG.info("options left aside: %s", "; ".join(f"{key} ({why})" for key, why in left_aside.items()))
    return found


def fields_of(options: tuple[Option, ...], found: Mapping[Option, tuple[str, Value]]) -> dict[str, Any]:
    """Return the values of options by field; what was given empty counts as not given."""
    fields: dict[str, Any] = {}
    for option in options:
        if option.field:
            value = found[option][1] if option in found else option.default
            fields[option.field] = option.default if value in ("", ()) else value
    return fields


def check_names(given: Given) -> None:
    """Refuse names that are nobody's, in calls that take Hudi's options and nothing else.

    Raises:
        InvalidError: a name that is no option, as `index_type`.
    """
    for name in given:
        key = name.lower()
        if key not in OPTION_OF_KEY and not key.startswith(_OURS):
            raise unknown_key(name)


def unknown_key(key: str, near: str | None = None) -> InvalidError:
    """Return the error for a key that does not exist, suggesting the nearest one.

    Args:
        key: as it was given.
        near: the nearest one, where it is known.
    """
    near = near or _nearest(key.lower())
    hint = f"did you mean {near!r}?" if near else "see docs/options.md for those that exist"
    return InvalidError(f"unknown option {key!r}: {hint}")


def _nearest(key: str) -> str | None:
    dotted = key.replace("_", ".")
    for spelled in (dotted, f"hoodie.{dotted}"):
        if spelled in OPTION_OF_KEY:
            return spelled
    for spelled in (key, f"hoodie.{dotted}"):
        if found := difflib.get_close_matches(spelled, _SUGGESTED, n=1, cutoff=0.75):
            return found[0]
    return None


def _add(found: dict[Option, tuple[str, Value]], option: Option, key: str, text: str) -> None:
    value = option.parse(key, text)
    earlier = found.setdefault(option, (key, value))
    if earlier[1] != value:
        raise InvalidError(
            f"{earlier[0]} and {key} mean the same but differ ({text_of(earlier[1])!r} and {text!r}): "
            "leave out one"
        )


def _reason(key: str, text: str) -> str | None:
    """Return why a key that is no option may be left aside; None when it is not ours."""
    if not key.startswith(_OURS):
        if difflib.get_close_matches(key, _BARE, n=1, cutoff=0.85):
            raise unknown_key(key)
        return None
    if key == LOCK_PROVIDER and text.rpartition(".")[2] not in KNOWN_LOCK_PROVIDERS:
        raise UnsupportedError(
            f"{key}={text}: drawstring cannot take this lock, so writers of Hudi would not notice it; "
            f"use one of {', '.join(sorted(KNOWN_LOCK_PROVIDERS))}, or write with drawstring alone"
        )
    reason = reason_to_ignore(key)
    near = meant_key(key, OPTION_OF_KEY)
    if reason is None or near is not None:
        raise unknown_key(key, near)
    return reason
