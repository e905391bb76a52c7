"""Which log files a dead write left in buckets that a resizing is going to make.

They bear the resizing's time (`filegroups.view.dual_write_files`), so names do not tell whose they are:
markers and blocks do. In layout 1 command blocks take them back as they do with all log files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from drawstring.filegroups.view.dual_write_files import named_otherwise
from drawstring.model.files import FileStatus
from drawstring.model.instant import Action, Instant
from drawstring.storage.protocol import Storage
from drawstring.timeline.timeline import Timeline
from drawstring.txn.rollback.file_owners import instants_in


def copies_of(
    storage: Storage, timeline: Timeline, write: Instant, files: Iterable[FileStatus], marked: Iterable[str]
) -> Iterator[str]:
    """Yield the paths of the copies that a write made, in layout 2.

    Args:
        storage: the table's.
        timeline: as it is.
        write: the write, which did not complete.
        files: all data files of the table.
        marked: paths that its markers name.
    """
    yield from (path for path in marked if named_otherwise(path, write.requested))
    resizings = {
        each.requested
        for each in timeline.instants
        if each.action.completed_action is Action.REPLACE_COMMIT
        and each.requested < write.requested
        and (not each.is_completed or (each.completed or "") > write.requested)
    }
    own = frozenset((write.requested,))
    for status in files if resizings else ():
        log = named_otherwise(status.path, write.requested)
        if log and log.instant in resizings and instants_in(storage, status.path) == own:
            yield status.path


def holds_blocks_of_others(storage: Storage, path: str, requested: str) -> bool:
    """Tell whether a file is anything else than a log file with blocks of one write alone, or none yet."""
    log = named_otherwise(path, requested)
    if log is None:
        return True
    if not storage.exists(path):
        return False
    found = instants_in(storage, path)
    return found is None or bool(found - {requested})
