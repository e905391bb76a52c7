"""Temporary files of killed writers: no reader lists them, they only take up space.

They are searched where there is reason to: after a failed write, in the table's own folders and in the
partitions that it wrote to; by a clean, in those folders and the partitions that it cleans; by `validate` and
`repair`, everywhere. Young files, and files whose process is alive, are left alone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from drawstring.base.clock import Clock
from drawstring.base.errors import DrawstringError
from drawstring.config.table.config import TableConfig
from drawstring.metadata.partitions import METADATA_FOLDER
from drawstring.model.files import HOODIE_FOLDER, FileStatus, join_path
from drawstring.storage.protocol import Storage
from drawstring.txn.heartbeats import HEARTBEAT_FOLDER
from drawstring.txn.holds import HOLD_FOLDER

AGE_MS: Final = 600_000
"""Least age of a temporary file that is taken for abandoned; in use they live until the lock is free."""

_log: Final = logging.getLogger("drawstring")


def own_folders(config: TableConfig) -> list[str]:
    """Return the folders of a table in which it writes metadata files by way of temporary files."""
    folders = (HOODIE_FOLDER, config.timeline_folder, config.history_folder, HEARTBEAT_FOLDER, HOLD_FOLDER)
    partitions = config.metadata_partitions
    of_metadata = (*partitions, config.timeline_folder) if partitions else ()
    return list(dict.fromkeys((*folders, *(join_path(METADATA_FOLDER, each) for each in of_metadata))))


def left_behind(storage: Storage, clock: Clock, folders: Iterable[str]) -> list[FileStatus]:
    """Return the temporary files directly in some folders that are old enough to be abandoned.

    Args:
        storage: the table's files.
        clock: the current time.
        folders: paths relative to the table.
    """
    before_ms = clock.now_ms() - AGE_MS
    files = (status for folder in dict.fromkeys(folders) for status in storage.list_unfinished(folder))
    return [status for status in files if status.modified_ms < before_ms]


def sweep_leftovers(storage: Storage, clock: Clock, folders: Iterable[str]) -> None:
    """Delete abandoned temporary files directly in some folders; files that cannot be deleted stay."""
    try:
        storage.drop_unfinished(status.path for status in left_behind(storage, clock, folders))
    except (DrawstringError, OSError) as error:
        _log.warning("Temporary files of a killed process could not be deleted and stay for now: %s", error)
