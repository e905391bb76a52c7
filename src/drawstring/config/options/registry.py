"""The registry of all options: lookup by key, and suggestions for misspelled keys."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from drawstring.base.errors import InvalidError
from drawstring.config.keys.concurrency import is_of_users_provider
from drawstring.config.keys.ingest import INGEST_OPTIONS
from drawstring.config.keys.read import READ_OPTIONS, STORAGE_OPTIONS
from drawstring.config.keys.unsupported import CHECKED_OPTIONS
from drawstring.config.keys.without_effect import options_without_effect
from drawstring.config.keys.write import COMMIT_METADATA_PREFIX, WRITE_OPTIONS
from drawstring.config.options.option import Given, Option, Scope, Value, text_of
from drawstring.config.options.unknown_keys import close_key, pass_over_unknown, unknown_key
from drawstring.config.table.schema_versions import LATEST_SCHEMA
from drawstring.model.commit import STREAM_POSITIONS, STREAM_QUERY

_LOG: Final = logging.getLogger("drawstring.config")

ALL_OPTIONS: Final[tuple[Option, ...]] = (*WRITE_OPTIONS, *READ_OPTIONS, *CHECKED_OPTIONS, *STORAGE_OPTIONS)
OPTION_OF_KEY: Final[Mapping[str, Option]] = {key: option for option in ALL_OPTIONS for key in option.keys}
_OF_USERS_LOCK: Final = "it is of the lock provider"
_OURS: Final = ("hoodie.", "drawstring.")
_OF_COMMITS: Final = (
    "schema",
    LATEST_SCHEMA,
    STREAM_POSITIONS,
    STREAM_QUERY,
)
"""Entries of the metadata of commits that have a meaning of their own."""

_OF_INGESTION: Final = frozenset(key for option in INGEST_OPTIONS for key in option.keys)
_BARE: Final = tuple(key for key in OPTION_OF_KEY if not key.startswith(_OURS))


def check_is_given(given: object) -> None:
    """Check that options are a dictionary by texts.

    Raises:
        InvalidError: they are not.
    """
    if not isinstance(given, Mapping):
        raise InvalidError(
            f"options is a dictionary by Hudi's keys, not {type(given).__name__}."
            ' Give it as options={"hoodie.index.type": "BUCKET"}.'
        )
    wrong = next((name for name in given if not isinstance(name, str)), None)
    if wrong is not None:
        raise InvalidError(f"{wrong!r} is no key of an option. Give Hudi's keys as texts.")


def parse_options(given: Given, scope: Scope) -> dict[Option, tuple[str, Value]]:
    """Parse the given options of a scope.

    Keys are compared case-insensitively. As in Hudi, options of other scopes are ignored with their values,
    since scripts pass one set of options to reads and writes. Keys that are neither Hudi's nor drawstring's
    are ignored, too.

    Args:
        given: texts or Python values by key.
        scope: the scope to parse.

    Returns:
        The key under which each option was given, and its value.

    Raises:
        InvalidError: a key is unknown, a value is not valid, or two values contradict each other.
        UnsupportedError: a value is not supported by this release.
    """
    check_is_given(given)
    parsed: dict[Option, tuple[str, Value]] = {}
    ignored: dict[str, str] = {}
    other_scopes: list[str] = []
    prefix = _commit_metadata_prefix(given)
    for name, value in given.items():
        key, text = name.lower(), text_of(value)
        option = OPTION_OF_KEY.get(key)
        if text is None or (option is None and name.startswith(prefix)):
            continue
        if option is None:
            reason = _reason_without_effect(name, given)
            if reason:
                ignored[key] = reason
        elif option.applies_to(scope):
            add_option(parsed, option, key, text)
            if option.warning and parsed[option][1]:
                _warn(f"{key}={text}: {option.warning}")
        else:
            other_scopes.append(key)
    if other_scopes:
        _LOG.debug("Ignored options that do not apply to a %s: %s.", scope, ", ".join(other_scopes))
    if ignored:
        _LOG.info("Ignored options: %s.", "; ".join(f"{key} ({why})" for key, why in ignored.items()))
    return parsed


def fields_of(options: tuple[Option, ...], parsed: Mapping[Option, tuple[str, Value]]) -> dict[str, Any]:
    """Return the values of options by field; an empty value counts as not given."""
    fields: dict[str, Any] = {}
    for option in options:
        if option.field:
            value = parsed[option][1] if option in parsed else option.default
            fields[option.field] = option.default if value in ("", ()) else value
    return fields


def check_names(given: Given, *, takes_metadata: bool = True) -> None:
    """Refuse names that are not option keys, in calls that take nothing but options.

    Args:
        given: values by name.
        takes_metadata: whether the call may have metadata of commits among its options.

    Raises:
        InvalidError: a name is not an option key, such as `index_type`.
    """
    prefix = _commit_metadata_prefix(given)
    for name in given:
        key = name.lower()
        is_metadata = takes_metadata and name.startswith(prefix)
        if key not in OPTION_OF_KEY and not key.startswith(_OURS) and not is_metadata:
            raise unknown_key(name)


def commit_metadata(given: Given) -> dict[str, str]:
    """Return the extra metadata of a commit among options: those whose keys begin as an option says."""
    prefix = _commit_metadata_prefix(given)
    texts = {name: text_of(value) for name, value in given.items() if name.startswith(prefix)}
    found = {
        name: text for name, text in texts.items() if text is not None and name.lower() not in OPTION_OF_KEY
    }
    if taken := [name for name in found if name in _OF_COMMITS]:
        raise InvalidError(
            f"{taken[0]} is an entry that commits have already, so it cannot be metadata of yours. Rename it."
        )
    return found


def _commit_metadata_prefix(given: Given) -> str:
    found = (text_of(value) for key, value in given.items() if key.lower() == COMMIT_METADATA_PREFIX)
    prefix = next(found, None) or "_"
    if any(prefix.lower().startswith(ours) or ours.startswith(prefix.lower()) for ours in _OURS):
        raise InvalidError(
            f"{COMMIT_METADATA_PREFIX} is {prefix!r}, as options begin: misspelt ones would become metadata"
            " of the commit. Give a prefix of your own, such as 'job_'."
        )
    return prefix


def add_option(parsed: dict[Option, tuple[str, Value]], option: Option, key: str, text: str) -> None:
    """Parse a value and add it to those of other options.

    Args:
        parsed: by option its key and its value.
        option: the option.
        key: the key by which it was given.
        text: the value as text.

    Raises:
        InvalidError: the value is invalid, or differs from that of another key of the option.
    """
    value = option.parse(key, text)
    earlier = parsed.setdefault(option, (key, value))
    if earlier[1] != value:
        raise InvalidError(
            f"{earlier[0]} and {key} are the same option but differ ({text_of(earlier[1])!r} and {text!r}). "
            "Drop one of them."
        )


@cache
def _warn(message: str) -> None:
    """Log a warning once per process: each batch of a stream has the same options."""
    _LOG.warning("%s", message)


def _reason_without_effect(name: str, given: Given) -> str | None:
    """Return why a key without an option of its own may be passed over; None for keys that nobody knows.

    Raises:
        InvalidError: the key is a slip of a known one, or unknown keys are refused.
    """
    key = name.lower()
    if not key.startswith(_OURS):
        if difflib.get_close_matches(key, _BARE, n=1, cutoff=0.85):
            raise unknown_key(key)
        return None
    if key in options_without_effect():
        return options_without_effect()[key]
    if is_of_users_provider(key, given) and close_key(key) is None:
        return _OF_USERS_LOCK
    if key not in _OF_INGESTION:
        pass_over_unknown(name, given)
    return None
