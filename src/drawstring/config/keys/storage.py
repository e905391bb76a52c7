"""Options of the storage that a table is opened with; they hold for all that is done with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from drawstring.config.options.option import Kind, Option, Scope, text_of

SYNC: Final = "drawstring.storage.sync"

STORAGE_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        SYNC,
        "Whether files and folders on local disks are flushed before a change is acknowledged, so that a"
        " power cut takes nothing back. Without it writes are faster, and a power cut or a crash of the"
        " machine may damage the table beyond repair; the end of a process never does.",
        scope=Scope.STORAGE,
        kind=Kind.FLAG,
        default=True,
    ),
)
_OPTIONS: Final = {key: option for option in STORAGE_OPTIONS for key in option.keys}


def is_storage_key(key: str) -> bool:
    """Tell whether an option is one of these, whatever the storage."""
    return key.lower() in _OPTIONS


def is_synced(options: Mapping[str, object]) -> bool:
    """Tell whether local files are to be flushed.

    Args:
        options: of the storage, under whatever names.

    Raises:
        InvalidError: a value that is neither true nor false.
    """
    for key, value in options.items():
        text = text_of(value) if key.lower() == SYNC else None
        if text is not None:
            return bool(_OPTIONS[SYNC].parse(key, text))
    return True
