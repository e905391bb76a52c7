"""The options of an ingestion as typed fields, and those that go on to the writes."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from drawstring.base.errors import InvalidError
from drawstring.config.keys.pipelines.ingest import INGEST_OPTIONS, IngestOptions
from drawstring.config.options.option import Option, Value, text_of
from drawstring.config.options.registry import OPTION_OF_KEY, add_option, fields_of
from drawstring.config.options.unknown_keys import close_key, known_keys, pass_over_unknown, unknown_key
from drawstring.config.table.properties import properties_in_text

_OPTION_OF_KEY: Final[Mapping[str, Option]] = {
    key: option for option in INGEST_OPTIONS for key in option.keys
}
_OWN: Final = "drawstring.ingest."
_PREFIXES: Final = ("hoodie.streamer.", "hoodie.deltastreamer.", _OWN, "hoodie.errortable.")
_OF_OTHERS: Final = (
    "hoodie.streamer.transformer.sql.",
    "hoodie.streamer.ingestion.",
    "hoodie.deltastreamer.ingestion.",
    "hoodie.errortable.writeconfig.",
)
_NAMED_BY_USERS: Final = ("hoodie.streamer.transformer.sql.", "hoodie.errortable.writeconfig.")
_WITH_NAMES: Final = ("hoodie.streamer.ingestion.", "hoodie.deltastreamer.ingestion.")
"""Beginnings of keys that go on with the name of a table."""

_log: Final = logging.getLogger("drawstring")


def parse_ingest_options(given: Mapping[str, Any]) -> IngestOptions:
    """Parse the options of an ingestion.

    Args:
        given: options by Hudi's keys; those of writes are passed over.

    Raises:
        InvalidError: an option is misspelled or has no valid value, or two contradict each other.
    """
    parsed: dict[Option, tuple[str, Value]] = {}
    for name, value in given.items():
        key, text = name.lower(), text_of(value)
        option = _OPTION_OF_KEY.get(key)
        if option is None:
            _check_key(name, given)
        elif text is not None:
            add_option(parsed, option, key, text)
    return IngestOptions(**fields_of(INGEST_OPTIONS, parsed))


def tell_ignored(given: Mapping[str, Any]) -> None:
    """Log which options of HoodieStreamer have no effect."""
    ignored = [
        name
        for name in given
        if _is_of_ingestion(name.lower())
        and name.lower() not in _OPTION_OF_KEY
        and not name.lower().startswith(_OF_OTHERS)
    ]
    if ignored:
        _log.warning("Options of HoodieStreamer that have no effect here: %s.", ", ".join(sorted(ignored)))


def write_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that go on to writes."""
    return {key: value for key, value in given.items() if not _is_of_ingestion(key.lower())}


def properties_in(file: str) -> dict[str, str]:
    """Return the options in a file of Java properties, as HoodieStreamer's `--props` names one.

    Args:
        file: path of a file in UTF-8, with the syntax of `java.util.Properties`.

    Raises:
        InvalidError: there is no such file, or it is another one.
    """
    try:
        return properties_in_text(Path(file).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InvalidError(f"There is no file {file}. Give the path of a file of properties.") from error
    except (UnicodeDecodeError, IsADirectoryError) as error:
        raise InvalidError(f"{file} is no file of properties. Give the path of one, in UTF-8.") from error


def _is_of_ingestion(key: str) -> bool:
    return key in _OPTION_OF_KEY or (key.startswith(_PREFIXES) and key not in OPTION_OF_KEY)


def _check_key(name: str, given: Mapping[str, Any]) -> None:
    """Refuse a key of ingestions that is a slip, or drawstring's own and unknown; warn of others."""
    key = name.lower()
    if not _is_of_ingestion(key) or key.startswith(_NAMED_BY_USERS) or key in known_keys():
        return
    near = close_key(key)
    if near is not None or key.startswith(_OWN):
        raise unknown_key(name, near)
    if not key.startswith(_WITH_NAMES):
        pass_over_unknown(name, given)
