"""Which files a compaction left that died while it ran. Those of the next attempt would stand beside them."""

from __future__ import annotations

from collections.abc import Iterable

from drawstring.base.errors import UnsupportedError
from drawstring.model.files import BaseFile, FileStatus, LogFile
from drawstring.storage.protocol import Storage
from drawstring.txn.rollback.file_owners import instants_in


def files_of_attempt(
    storage: Storage, requested: str, listed: Iterable[FileStatus], marked: Iterable[FileStatus]
) -> list[str]:
    """Return the paths of the files that an attempt left.

    Log files of layout 1 are named by their slice, and those of a pending compaction are other writers': only
    markers and blocks tell whose they are.

    Args:
        storage: the table's.
        requested: requested time of the compaction or log compaction.
        listed: all data files of the table.
        marked: those that the attempt's markers name.

    Raises:
        UnsupportedError: another engine appended its blocks to a log file of another write, or it cannot be
            told whose they are.
    """
    bases = {each.path for each in listed if (base := BaseFile.parse(each)) and base.instant == requested}
    return sorted(bases | {each.path for each in marked if _is_own_log(storage, each, requested)})


def _is_own_log(storage: Storage, marked: FileStatus, requested: str) -> bool:
    if LogFile.parse(marked) is None or not storage.exists(marked.path):
        return False
    owners = instants_in(storage, marked.path)
    if owners is None or owners - {requested}:
        raise UnsupportedError(
            "another engine began this log compaction in a log file that has blocks of another write, or that"
            " cannot be read: finish it there",
            instant=requested,
            path=marked.path,
        )
    return True
