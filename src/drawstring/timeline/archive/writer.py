"""The writer of the archived timeline: moves instants out of the active timeline, in either layout.

    write the archive -> delete requested and inflight files -> delete completed files, oldest first

The order matters: an instant without its completed file would look pending, and an instant that is gone while
an older one remains would look as if it had never existed. A process that dies in between leaves instants in
both places; the next run removes them from the active timeline without archiving them again.

Layout 1 uses files of log blocks, and object stores cannot append: while the newest file is small, it is
copied under the next number with the new block added. Readers that find both files count an instant once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from drawstring.config.keys.archive import Archiving
from drawstring.config.table.config import TableConfig
from drawstring.formats.log_inline import BlockType, HeaderKey, encode_block
from drawstring.formats.metadata.archive_entries import ArchivedState, encode_archive_entries
from drawstring.formats.metadata.history_rows import HistoryRow
from drawstring.model.files import FileStatus, join_path
from drawstring.model.instant import Action, Instant, State
from drawstring.model.table_version import ArchiveFormat
from drawstring.storage.paths import folders_above
from drawstring.storage.protocol import Storage
from drawstring.timeline.archive.lsm_timeline_writer import LsmTimelineWriter
from drawstring.timeline.archive.manifests import archived_meanwhile
from drawstring.timeline.archive.reader import LogArchive, open_archive
from drawstring.timeline.instants import instant_time, parse_instant

_ARCHIVE: Final = re.compile(r"\.commits_\.archive\.(\d{1,18})_1-0-1", re.ASCII)
_SMALL_BYTES: Final = 1 << 20
_PLANNED: Final = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT, Action.CLEAN})


@dataclass(frozen=True, slots=True)
class StateFile:
    """A file of the active timeline with the instant and state that it stands for."""

    instant: Instant
    status: FileStatus

    @property
    def key(self) -> tuple[str, Action]:
        """The instant that the file belongs to, with the action name that it has when completed."""
        return self.instant.requested, self.instant.action.completed_action


def state_files(storage: Storage, config: TableConfig, instants: Iterable[Instant]) -> list[StateFile]:
    """Return all files of some instants, by requested time and state."""
    keys = {(instant.requested, instant.action.completed_action) for instant in instants}
    return [file for file in state_files_of(storage, config) if file.key in keys]


def state_files_of(storage: Storage, config: TableConfig) -> list[StateFile]:
    """Return all files of the active timeline, by requested time and state."""
    layout = config.layout
    files = [
        StateFile(instant, status)
        for status in storage.list_files(config.timeline_folder)
        if (instant := parse_instant(status.name, layout)) is not None
    ]
    return sorted(files, key=lambda file: (file.instant.requested, file.instant.state, file.status.path))


@dataclass(frozen=True, slots=True)
class Leaving:
    """Instants that are in the archive, and still on the active timeline.

    Attributes:
        storage: the table's files.
        folder: of the active timeline.
        files: their files there, oldest first.
    """

    storage: Storage
    folder: str
    files: Sequence[StateFile]

    @property
    def completed(self) -> list[StateFile]:
        """The completed files."""
        return [file for file in self.files if file.instant.is_completed]


def archive_instants(
    storage: Storage,
    config: TableConfig,
    archiving: Archiving,
    instants: Sequence[Instant],
    check: Callable[[], None],
) -> None:
    """Move completed instants into the archive; for arguments and errors see `add_to_archive`."""
    shorten(add_to_archive(storage, config, archiving, instants, check))


def add_to_archive(
    storage: Storage,
    config: TableConfig,
    archiving: Archiving,
    instants: Sequence[Instant],
    check: Callable[[], None],
) -> Leaving:
    """Add completed instants to the archive; the caller holds the table lock, and calls `shorten` then.

    Args:
        storage: the table's files.
        config: the table's settings.
        archiving: file sizes of the archive.
        instants: the instants to move, oldest first.
        check: makes sure that the table lock is still held.

    Raises:
        ConflictError: another process archived meanwhile, because this one stalled.
        CorruptTableError: a file of the timeline or of the archive is damaged.
    """
    files = state_files(storage, config, instants)
    try:
        if files:
            _ARCHIVERS[config.layout.archive_format](storage, config, archiving, files, check)
    except FileNotFoundError as error:
        raise archived_meanwhile(str(error.filename or error)) from error
    return Leaving(storage, config.timeline_folder, files)


def shorten(*timelines: Leaving) -> None:
    """Remove archived instants from active timelines, oldest first, as a power cut leaves them too.

    Each step waits for the disk. Those of several timelines are done together, as a journaling file system
    writes its journal once for their folders.
    """
    for each in timelines:
        each.storage.delete([file.status.path for file in each.files if not file.instant.is_completed])
    _sync(timelines)
    for files in zip_longest(*(each.completed for each in timelines)):
        for each, file in zip(timelines, files, strict=True):
            if file is not None:
                each.storage.delete([file.status.path])
        if any(file.instant.is_write for file in files if file is not None):
            _sync(timelines)  # only writes determine where an active timeline starts
    _sync(timelines)


def _sync(timelines: Sequence[Leaving]) -> None:
    for each in timelines:
        if each.files:
            each.storage.sync([each.folder])


def _to_history(
    storage: Storage,
    config: TableConfig,
    archiving: Archiving,
    files: Sequence[StateFile],
    check: Callable[[], None],
) -> None:
    history = LsmTimelineWriter(storage, config.history_folder, archiving, check)
    archived = (
        _keys(open_archive(storage, config).completed(""))
        if history.may_have(files[0].instant.requested)
        else frozenset()
    )
    if rows := _rows(storage, [file for file in files if file.key not in archived]):
        history.write(rows)
    history.tidy()


def _to_log_files(
    storage: Storage,
    config: TableConfig,
    _archiving: Archiving,
    files: Sequence[StateFile],
    check: Callable[[], None],
) -> None:
    archived = _keys(LogArchive(storage, config.history_folder).newest())
    check()
    _append(storage, config, [file for file in files if file.key not in archived])


_ARCHIVERS: Final[
    Mapping[
        ArchiveFormat,
        Callable[[Storage, TableConfig, Archiving, Sequence[StateFile], Callable[[], None]], None],
    ]
] = {ArchiveFormat.LOG_FILES: _to_log_files, ArchiveFormat.HISTORY: _to_history}


def _keys(instants: Iterable[Instant]) -> frozenset[tuple[str, Action]]:
    return frozenset((instant.requested, instant.action.completed_action) for instant in instants)


def _rows(storage: Storage, files: Sequence[StateFile]) -> list[HistoryRow]:
    plans = {
        file.key: file.status.path
        for file in reversed(files)
        if file.instant.state is not State.COMPLETED and file.status.size_bytes and _has_plan(file)
    }
    return [
        HistoryRow(
            requested=file.instant.requested,
            completed=file.instant.completed or file.instant.requested,
            action=str(file.instant.action),
            metadata=storage.read(file.status.path),
            plan=storage.read(plans[file.key]) if file.key in plans else None,
        )
        for file in files
        if file.instant.is_completed
    ]


def _has_plan(file: StateFile) -> bool:
    """Return whether a pending file holds a plan: of commits, only those of table services do."""
    action = file.instant.action
    return action.completed_action in _PLANNED and action not in (Action.COMMIT, Action.DELTA_COMMIT)


def _append(storage: Storage, config: TableConfig, files: Sequence[StateFile]) -> None:
    if not files:
        return
    states = [
        ArchivedState(
            requested=file.instant.requested,
            action=str(file.instant.action),
            state=file.instant.state.name,
            reached=instant_time(file.status.modified_ms, config.timezone),
            content=storage.read(file.status.path) if file.status.size_bytes else b"",
        )
        for file in files
    ]
    content, schema = encode_archive_entries(states)
    block = encode_block(BlockType.AVRO_DATA, {HeaderKey.SCHEMA: schema}, content)
    listed = storage.list_files(config.history_folder)
    numbered = sorted((int(match[1]), file) for file in listed if (match := _ARCHIVE.fullmatch(file.name)))
    number, newest = numbered[-1] if numbered else (0, None)
    is_extended = newest is not None and newest.size_bytes < _SMALL_BYTES
    old_content = storage.read(newest.path) if is_extended and newest is not None else b""
    name = f".commits_.archive.{number + 1}_1-0-1"
    path = join_path(config.history_folder, name)
    if not storage.put_if_absent(path, old_content + block):
        raise archived_meanwhile(path)
    storage.sync(folders_above([path]))
    if is_extended and newest is not None:
        storage.delete([newest.path])
