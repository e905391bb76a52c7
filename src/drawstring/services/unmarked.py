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
from collections.abc import Iterable, Iterator
from typing import Final

from drawstring.base.errors import CorruptTableError, UnsupportedError
from drawstring.filegroups.markers import Markers
from drawstring.formats.log_inline.blocks import scan_blocks
from drawstring.model.files import BaseFile, FileStatus, LogFile, join_path
from drawstring.model.instant import WRITE_ACTIONS, Instant, State
from drawstring.storage.protocol import Storage
from drawstring.timeline.store import TimelineStore

LOST_FOLDER: Final = ".hoodie/.lost"
_CHUNK_BYTES: Final = 8 << 20
_log: Final = logging.getLogger("drawstring")


def keep_unmarked(
    storage: Storage, store: TimelineStore, pending: Instant, files: Iterable[FileStatus], layout: int
) -> None:
    """Copy the files of a write that may have been completed, before it is rolled back; can be done twice.

    Args:
        storage: the table's.
        store: its timeline, the pending files of which are kept as well.
        pending: the write.
        files: all data files of the table, listed only if they are asked for.
        layout: of the timeline; in layout 1 only blocks tell whose some log files are.
    """
    paths = list(unmarked_files(storage, pending, files, layout))
    if not paths:
        return
    folder = f"{LOST_FOLDER}/{pending.requested}"
    states = (Instant(pending.requested, pending.action, each) for each in (State.REQUESTED, State.INFLIGHT))
    for path in (*paths, *map(store.path, states)):
        _copy(storage, path, join_path(folder, path))
    _log.warning("%s: it is rolled back, and what it wrote is kept in %s", what_it_lacks(pending), folder)


def what_it_lacks(pending: Instant) -> str:
    """Say what is the matter with a write."""
    return (
        f"the pending {pending.action} {pending.requested} has files and no markers, so it may have been"
        " completed, and the file that says so been lost from the timeline"
    )


def unmarked_files(
    storage: Storage, pending: Instant, files: Iterable[FileStatus], layout: int
) -> Iterator[str]:
    """Yield the paths of the files of a write that may have been completed; see `keep_unmarked`."""
    is_inflight_write = pending.action in WRITE_ACTIONS and pending.state is State.INFLIGHT
    if is_inflight_write and not Markers(storage, pending.requested).are_there():
        yield from (each.path for each in files if _is_of(storage, each, pending.requested, layout))


def kept_writes(storage: Storage) -> list[str]:
    """Return the folders of kept writes."""
    return storage.list_folders(LOST_FOLDER)


def _is_of(storage: Storage, status: FileStatus, instant: str, layout: int) -> bool:
    file = BaseFile.parse(status) or LogFile.parse(status)
    if file is None or file.instant == instant:
        return file is not None
    return layout == 1 and isinstance(file, LogFile) and _has_block(storage, status, instant)


def _has_block(storage: Storage, status: FileStatus, instant: str) -> bool:
    try:
        with storage.open(status.path) as file:
            return any(block.instant == instant for block in scan_blocks(file, status.size_bytes))
    except (CorruptTableError, UnsupportedError):
        return False


def _copy(storage: Storage, path: str, to: str) -> None:
    if not storage.exists(path):
        return
    with storage.open(path) as source, storage.create(to) as target:
        while chunk := source.read(_CHUNK_BYTES):
            target.write(chunk)
