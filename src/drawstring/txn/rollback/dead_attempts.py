"""Files of a compaction attempt that died; they must not remain beside those of the next attempt."""

from __future__ import annotations

from collections.abc import Iterable

from drawstring.base.errors import UnsupportedError
from drawstring.model.files import BaseFile, FileStatus, LogFile
from drawstring.storage.protocol import Storage
from drawstring.txn.rollback.file_owners import instants_in


def files_of_attempt(
    storage: Storage, requested: str, listed: Iterable[FileStatus], marked: Iterable[FileStatus]
) -> list[str]:
    """Return the paths of the files of an attempt.

    Log files of layout 1 are named after their file slice, and log files named after a pending compaction
    belong to other writers: only markers and blocks tell which log files the attempt wrote.

    Args:
        storage: the table's files.
        requested: requested time of the compaction or log compaction.
        listed: all data files of the table.
        marked: the files that the attempt's markers name.

    Raises:
        UnsupportedError: another engine appended its blocks to a log file of another write, or a marked log
            file cannot be read.
    """
    bases = {each.path for each in listed if (base := BaseFile.parse(each)) and base.instant == requested}
    return sorted(bases | {each.path for each in marked if _is_own_log(storage, each, requested)})


def _is_own_log(storage: Storage, marked: FileStatus, requested: str) -> bool:
    log = LogFile.parse(marked)
    if log is None or not storage.exists(marked.path):
        return False
    if log.native is not None and log.instant == requested:
        return True
    owners = instants_in(storage, marked.path)
    if owners is None or owners - {requested}:
        raise UnsupportedError(
            "Another engine began this log compaction in a log file that cannot be read or has blocks of"
            " another write. Finish the log compaction there.",
            instant=requested,
            path=marked.path,
        )
    return True
