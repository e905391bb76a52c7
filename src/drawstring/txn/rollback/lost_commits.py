"""Pending writes that may have been completed once: their files are there, and their markers are not.

A marker precedes every data file, and markers go last: once their write is completed or, when it is rolled
back, once its inflight file is gone. So a dead writer leaves markers with its files, here and in Hudi. A
write that is inflight, with files and without any marker, had been completed and the file that says so was
lost; or somebody copied a table with a dead write, and left the markers out.

Nobody can tell these two apart, and a dead write must not be in the way of the next one. So it is rolled back
as any other, but its files, which may be the only copy of their rows, are kept below `.hoodie/.lost` first.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from drawstring.base.disk_errors import TABLE_DISK, disk_errors
from drawstring.filegroups.write.markers import Markers
from drawstring.model.files import FileStatus, LogFile, join_path
from drawstring.model.instant import WRITE_ACTIONS, Instant, State
from drawstring.model.table_version import VersionRules
from drawstring.storage.paths import folders_above
from drawstring.storage.protocol import Storage
from drawstring.timeline.store import TimelineStore
from drawstring.txn.rollback.file_owners import instants_in, is_named_by

LOST_FOLDER: Final = ".hoodie/.lost"
_CHUNK_BYTES: Final = 8 << 20
_log: Final = logging.getLogger("drawstring")


def may_be_completed(
    storage: Storage, pending: Instant, files: Iterable[FileStatus], rules: VersionRules
) -> bool:
    """Tell whether a pending write may have been completed once: it has files, and no markers.

    Args:
        storage: the table's.
        pending: the write; other actions never are.
        files: all data files of the table, looked at only if markers are missing.
        rules: of the table's version; only blocks tell whose a log file is that is named by its slice.
    """
    if pending.action not in WRITE_ACTIONS or pending.state is not State.INFLIGHT:
        return False
    if Markers(storage, pending.requested).are_there():
        return False
    time, is_shared = pending.requested, rules.names_logs_by_slice
    return any(is_named_by(each, time) or (is_shared and _has_block(storage, each, time)) for each in files)


def keep_files(storage: Storage, store: TimelineStore, pending: Instant, paths: Iterable[str]) -> None:
    """Copy the files of a write that may have been completed, before it is rolled back; can be done twice.

    Args:
        storage: the table's.
        store: its timeline, the pending files of which are kept as well.
        pending: the write.
        paths: what the rollback deletes or adds commands to.
    """
    folder = f"{LOST_FOLDER}/{pending.requested}"
    states = (Instant(pending.requested, pending.action, each) for each in (State.REQUESTED, State.INFLIGHT))
    kept = [path for path in (*paths, *map(store.path, states)) if storage.exists(path)]
    copies = [join_path(folder, path) for path in kept]
    for path, copy in zip(kept, copies, strict=True):
        _copy(storage, path, copy)
    storage.sync(folders_above(copies))
    _log.warning("%s: it is rolled back, and what it wrote is kept in %s", what_it_lacks(pending), folder)


def what_it_lacks(pending: Instant) -> str:
    """Say what is the matter with a write."""
    return (
        f"the pending {pending.action} {pending.requested} has files and no markers, so it may have been"
        " completed, and the file that says so been lost from the timeline"
    )


def kept_writes(storage: Storage) -> list[str]:
    """Return the folders of kept writes."""
    return storage.list_folders(LOST_FOLDER)


def _has_block(storage: Storage, status: FileStatus, instant: str) -> bool:
    return LogFile.parse(status) is not None and instant in (instants_in(storage, status.path) or ())


def _copy(storage: Storage, path: str, to: str) -> None:
    if not storage.exists(path):
        return
    with disk_errors(TABLE_DISK, to), storage.open(path) as source, storage.create(to) as target:
        while chunk := source.read(_CHUNK_BYTES):
            target.write(chunk)
