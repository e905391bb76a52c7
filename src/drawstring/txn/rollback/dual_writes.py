"""Log files that a failed write put into the buckets of a pending resizing (dual writes).

They are named after the resizing (`filegroups.view.missing_files`), so markers and blocks tell which
write they belong to. In layout 1 rollback commands invalidate their blocks as in all log files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from drawstring.filegroups.view.missing_files import named_otherwise
from drawstring.model.files import FileStatus
from drawstring.model.instant import Action, Instant
from drawstring.storage.protocol import Storage
from drawstring.timeline.timeline import Timeline
from drawstring.txn.rollback.file_owners import instants_in


def copies_of(
    storage: Storage, timeline: Timeline, write: Instant, files: Iterable[FileStatus], marked: Iterable[str]
) -> Iterator[str]:
    """Yield the paths of the dual-write log files of a write, in layout 2.

    Args:
        storage: the table's files.
        timeline: the current timeline.
        write: the write, not completed.
        files: all data files of the table.
        marked: paths that the write's markers name.
    """
    yield from (path for path in marked if named_otherwise(path, write.requested))
    resizings = {
        instant.requested
        for instant in timeline.instants
        if instant.action.completed_action is Action.REPLACE_COMMIT
        and instant.requested < write.requested
        and (not instant.is_completed or (instant.completed or "") > write.requested)
    }
    own = frozenset((write.requested,))
    for status in files if resizings else ():
        log = named_otherwise(status.path, write.requested)
        if log and log.instant in resizings and instants_in(storage, status.path) == own:
            yield status.path


def holds_blocks_of_others(storage: Storage, path: str, requested: str) -> bool:
    """Return whether a file is not a dual-write log file, or may hold blocks of other writes."""
    log = named_otherwise(path, requested)
    if log is None:
        return True
    if not storage.exists(path):
        return False
    instants = instants_in(storage, path)
    return instants is None or bool(instants - {requested})
