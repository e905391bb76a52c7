"""Whose data files are that no commit tells of: names say it, or blocks where these bear another time.

Log files of layout 1 are named by their slice, and those in a bucket that a resizing is going to make by the
resizing (`filegroups.view.dual_write_files`). Any write may have put blocks into them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from drawstring.base.errors import CorruptTableError, UnsupportedError
from drawstring.formats.log_inline.blocks import scan_blocks
from drawstring.model.files import HOODIE_FOLDER, FileStatus, LogFile, parse_data_file
from drawstring.storage.protocol import Storage


def data_files(storage: Storage) -> Iterator[FileStatus]:
    """List the table without its `.hoodie` folder: markers may be missing."""
    yield from storage.list_files("")
    for folder in storage.list_folders(""):
        if folder != HOODIE_FOLDER:
            yield from storage.list_tree(folder)


def is_named_by(status: FileStatus, instant: str) -> bool:
    """Tell whether a file is a base or log file that bears the time of an instant."""
    file = parse_data_file(status)
    return file is not None and file.instant == instant


def instants_in(storage: Storage, path: str) -> frozenset[str] | None:
    """Return the times of the actions that wrote the blocks of a log file, None if it cannot be read.

    Args:
        storage: the table's.
        path: of the log file. A torn block is nobody's.
    """
    try:
        with storage.open(path) as file:
            return frozenset(block.instant for block in scan_blocks(file, file.size()) if block.instant)
    except (CorruptTableError, UnsupportedError):
        return None


def own_logs(storage: Storage, marked: Iterable[FileStatus], instant: str) -> list[str]:
    """Return the paths of log files named by another instant (version 6) that a write made for itself.

    Args:
        storage: the table's.
        marked: the files that its markers name.
        instant: its requested time.
    """
    logs = (each for each in map(LogFile.parse, marked) if each is not None and not each.is_cdc)
    paths = [log.status.path for log in logs if log.instant != instant and storage.exists(log.status.path)]
    owners = ((path, instants_in(storage, path)) for path in paths)
    return [path for path, found in owners if found is not None and found <= {instant}]


def appended_logs(storage: Storage, files: Iterable[FileStatus], instant: str) -> Iterator[LogFile]:
    """Find the log files of version 6 named by another instant that have, or may have, blocks of this one."""
    for status in files:
        log = LogFile.parse(status)
        if log is not None and not log.is_cdc and log.instant != instant:
            # Where it cannot be told: a command for an instant that has no blocks does no harm.
            found = instants_in(storage, status.path)
            if found is None or instant in found:
                yield log
