"""Pending writes that may have been completed: their data files exist, but their markers do not.

A marker is created before every data file, and markers are removed last: after the write completed or, in a
rollback, after the inflight file was removed. So a failed write leaves markers with its files, here and in
Hudi. A write that is inflight, with files and without markers, was either completed and its completed file
lost, or the table was copied with a failed write but without its markers.

The two cases cannot be told apart, and a failed write must not block later ones. So the write is rolled back
like any other, but its files, which may be the only copy of their rows, are first copied to `.hoodie/.lost`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from drawstring.base.errors import TABLE_DISK, disk_errors
from drawstring.filegroups.write.markers import Markers
from drawstring.model.files import FileStatus, LogFile, join_path
from drawstring.model.instant import WRITE_ACTIONS, Instant, State
from drawstring.model.table_version import VersionRules
from drawstring.storage.protocol import Storage, folders_above
from drawstring.timeline.store import TimelineStore
from drawstring.txn.rollback.file_owners import instants_in, is_named_by

LOST_FOLDER: Final = ".hoodie/.lost"
_CHUNK_BYTES: Final = 8 << 20
_log: Final = logging.getLogger("drawstring")


def may_be_completed(
    storage: Storage, pending: Instant, files: Iterable[FileStatus], rules: VersionRules
) -> bool:
    """Return whether a pending write may have been completed: it has files and no markers.

    Args:
        storage: the table's files.
        pending: the write; False for other actions.
        files: all data files of the table, consumed only if there are no markers.
        rules: of the table version: whether only the blocks tell which write a log file belongs to.
    """
    if pending.action not in WRITE_ACTIONS or pending.state is not State.INFLIGHT:
        return False
    if Markers(storage, pending.requested).are_there():
        return False
    time, is_shared = pending.requested, rules.names_logs_by_slice
    return any(
        is_named_by(status, time) or (is_shared and _has_block(storage, status, time)) for status in files
    )


def keep_files(storage: Storage, store: TimelineStore, pending: Instant, paths: Iterable[str]) -> None:
    """Copy the files of a write that may have been completed, before its rollback; idempotent.

    Args:
        storage: the table's files.
        store: the table's timeline; the write's timeline files are copied as well.
        pending: the write.
        paths: the files that the rollback deletes or appends commands to.
    """
    folder = f"{LOST_FOLDER}/{pending.requested}"
    states = (
        Instant(pending.requested, pending.action, state) for state in (State.REQUESTED, State.INFLIGHT)
    )
    existing = [path for path in (*paths, *map(store.path, states)) if storage.exists(path)]
    copies = [join_path(folder, path) for path in existing]
    for path, copy in zip(existing, copies, strict=True):
        _copy(storage, path, copy)
    storage.sync(folders_above(copies))
    _log.warning(
        "%s It is rolled back, and copies of its files are kept in %s.", describe_missing(pending), folder
    )


def describe_missing(pending: Instant) -> str:
    """Describe the problem of a write that may have been completed, as a sentence."""
    return (
        f"The pending {pending.action} {pending.requested} has files and no markers, so it may have been"
        " completed, and its completed file may have been lost from the timeline."
    )


def kept_writes(storage: Storage) -> list[str]:
    """Return the folders with copies of rolled back writes."""
    return storage.list_folders(LOST_FOLDER)


def _has_block(storage: Storage, status: FileStatus, instant: str) -> bool:
    return LogFile.parse(status) is not None and instant in (instants_in(storage, status.path) or ())


def _copy(storage: Storage, path: str, to: str) -> None:
    if not storage.exists(path):
        return
    with disk_errors(TABLE_DISK, to), storage.open(path) as source, storage.create(to) as target:
        while chunk := source.read(_CHUNK_BYTES):
            target.write(chunk)
