"""The instants that data files of failed writes belong to: by file name, or by the blocks of a log file.

Log files of layout 1 are named after their file slice, and log files in the buckets of a pending resizing
after the resizing (`filegroups.view.missing_files`). Any write may have appended blocks to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from drawstring.base.errors import CorruptTableError, UnsupportedError
from drawstring.formats.log_files import log_blocks
from drawstring.model.files import FileStatus, LogFile, parse_data_file
from drawstring.storage.protocol import Storage


def is_named_by(status: FileStatus, instant: str) -> bool:
    """Return whether a file is a base or log file named after an instant."""
    file = parse_data_file(status)
    return file is not None and file.instant == instant


def instants_in(storage: Storage, path: str) -> frozenset[str] | None:
    """Return the instant times in the blocks of a log file, None if it cannot be read.

    Args:
        storage: the table's files.
        path: of the log file; torn blocks are ignored.
    """
    log = LogFile.parse(FileStatus(path, 0))
    if log is None:
        return None
    try:
        with storage.open(path) as file:
            blocks = log_blocks(file, log) if file.size() else []
            return frozenset(block.instant for block in blocks if block.instant)
    except (CorruptTableError, UnsupportedError):
        return None


def own_logs(storage: Storage, marked: Iterable[FileStatus], instant: str) -> list[str]:
    """Return the log files (version 6) that hold blocks of one write alone, though named after another.

    Args:
        storage: the table's files.
        marked: the files that the write's markers name.
        instant: requested time of the write.
    """
    logs = (each for each in map(LogFile.parse, marked) if each is not None and not each.is_cdc)
    paths = [log.status.path for log in logs if log.instant != instant and storage.exists(log.status.path)]
    owners = ((path, instants_in(storage, path)) for path in paths)
    return [path for path, instants in owners if instants is not None and instants <= {instant}]


def appended_logs(storage: Storage, files: Iterable[FileStatus], instant: str) -> Iterator[LogFile]:
    """Yield log files (version 6) named after another instant that hold, or may hold, blocks of this one."""
    for status in files:
        log = LogFile.parse(status)
        if log is not None and not log.is_cdc and log.instant != instant:
            # An unreadable file is included: a command for an instant without blocks does no harm.
            instants = instants_in(storage, status.path)
            if instants is None or instant in instants:
                yield log
