"""Options of the storage, given when a table is opened; they apply to all operations on the table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from drawstring.config.options.option import Kind, Option, Scope, text_of

SYNC: Final = "drawstring.storage.sync"

STORAGE_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        SYNC,
        "Whether files and folders on local disks are flushed before a change is acknowledged, so that"
        " acknowledged changes survive a power cut. Without it writes are faster, but a power cut or a crash"
        " of the machine may damage the table beyond repair; the crash of a process never does.",
        scope=Scope.STORAGE,
        kind=Kind.FLAG,
        default=True,
    ),
)
_OPTIONS: Final = {key: option for option in STORAGE_OPTIONS for key in option.keys}


def is_storage_key(key: str) -> bool:
    """Return whether a key is one of these options, which are not passed to object stores."""
    return key.lower() in _OPTIONS


def is_synced(options: Mapping[str, object]) -> bool:
    """Return whether local files have to be flushed.

    Args:
        options: storage options; other keys are ignored.

    Raises:
        InvalidError: a value is neither true nor false.
    """
    for key, value in options.items():
        text = text_of(value) if key.lower() == SYNC else None
        if text is not None:
            return bool(_OPTIONS[SYNC].parse(key, text))
    return True
