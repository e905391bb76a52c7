"""Temporary files that killed writers left: listed by no reader, and in nobody's way but for their space.

They are looked for where there is a reason to: after a dead write, in the folders of the table's own files
and in the partitions that it wrote to; by a clean, in those folders and the partitions that it cleans; by
`validate` and `repair` everywhere. A young one is left alone, and one whose process lives in any case.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from drawstring.base.clock import Clock
from drawstring.base.errors import DrawstringError
from drawstring.config.table.config import TableConfig
from drawstring.model.files import HOODIE_FOLDER, FileStatus
from drawstring.storage.protocol import Storage
from drawstring.txn.heartbeats import HEARTBEAT_FOLDER
from drawstring.txn.holds import HOLD_FOLDER

AGE_MS: Final = 600_000
"""How old a temporary file is at least that is taken for left behind; they live for some milliseconds."""

_log: Final = logging.getLogger("drawstring")


def own_folders(config: TableConfig) -> list[str]:
    """Return the folders of a table in which it makes files other than data, by way of temporary ones."""
    named = (HOODIE_FOLDER, config.timeline_folder, config.history_folder, HEARTBEAT_FOLDER, HOLD_FOLDER)
    return list(dict.fromkeys(named))


def left_behind(storage: Storage, clock: Clock, folders: Iterable[str]) -> list[FileStatus]:
    """Return the temporary files directly in some folders that are old enough.

    Args:
        storage: the table's files.
        clock: tells how old they are.
        folders: paths relative to the table.
    """
    before_ms = clock.now_ms() - AGE_MS
    found = (status for folder in dict.fromkeys(folders) for status in storage.list_unfinished(folder))
    return [status for status in found if status.modified_ms < before_ms]


def sweep_leftovers(storage: Storage, clock: Clock, folders: Iterable[str]) -> None:
    """Delete the temporary files directly in some folders; what cannot be deleted now stays."""
    try:
        storage.drop_unfinished(status.path for status in left_behind(storage, clock, folders))
    except (DrawstringError, OSError) as error:
        _log.warning("temporary files that a killed process left stay for now: %s", error)
