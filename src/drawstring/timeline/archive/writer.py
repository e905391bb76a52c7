"""Moving instants from the active timeline into the archived one, whichever layout the table has.

    write the archive -> delete requested and inflight files -> delete completed files, oldest first

An instant without its completed file would look pending, and one that is gone while an older one is still
there would look as if it had never been: hence the order. A process that dies in between leaves instants in
both places; the next run takes them off the active timeline without archiving them again.

Layout 1 has files of log blocks, and object stores cannot append: while the newest file is small, it is
written anew under the next number with the new block behind. Readers that find both count an instant once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
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
from drawstring.timeline.archive.history_writer import HistoryWriter
from drawstring.timeline.archive.manifests import outrun
from drawstring.timeline.archive.reader import LogArchive, open_archive
from drawstring.timeline.instants import instant_time
from drawstring.timeline.layout import parse_instant

_ARCHIVE: Final = re.compile(r"\.commits_\.archive\.(\d{1,18})_1-0-1", re.ASCII)
_SMALL_BYTES: Final = 1 << 20
_PLANNED: Final = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT, Action.CLEAN})


@dataclass(frozen=True, slots=True)
class StateFile:
    """A file of the active timeline: the state that it brings an instant to, and the file itself."""

    instant: Instant
    status: FileStatus

    @property
    def key(self) -> tuple[str, Action]:
        """The instant that it belongs to, whatever that is called while pending."""
        return self.instant.requested, self.instant.action.completed_action


def state_files(storage: Storage, config: TableConfig, instants: Iterable[Instant]) -> list[StateFile]:
    """Return all files of some instants, by requested time and state."""
    wanted = {(each.requested, each.action.completed_action) for each in instants}
    return [each for each in state_files_of(storage, config) if each.key in wanted]


def state_files_of(storage: Storage, config: TableConfig) -> list[StateFile]:
    """Return all files of the active timeline, by requested time and state."""
    layout = config.layout
    found = [
        StateFile(instant, status)
        for status in storage.list_files(config.timeline_folder)
        if (instant := parse_instant(status.name, layout)) is not None
    ]
    return sorted(found, key=lambda each: (each.instant.requested, each.instant.state, each.status.path))


def archive_instants(
    storage: Storage, config: TableConfig, archiving: Archiving, instants: Sequence[Instant]
) -> None:
    """Move completed instants into the archive; the caller holds the table lock.

    Args:
        storage: the table's files.
        config: the table.
        archiving: sizes of the archive's files.
        instants: what to move, oldest first.

    Raises:
        ConflictError: another process archived meanwhile, because this one stood still.
        CorruptTableError: a file of the timeline or of the archive is damaged.
    """
    files = state_files(storage, config, instants)
    try:
        if files:
            _ARCHIVERS[config.layout.archive_format](storage, config, archiving, files)
    except FileNotFoundError as error:
        raise outrun(str(error.filename or error)) from error


def _to_history(
    storage: Storage, config: TableConfig, archiving: Archiving, files: Sequence[StateFile]
) -> None:
    history = HistoryWriter(storage, config.history_folder, archiving)
    known = (
        _keys(open_archive(storage, config).completed(""))
        if history.may_have(files[0].instant.requested)
        else frozenset()
    )
    if rows := _rows(storage, [each for each in files if each.key not in known]):
        history.write(rows)
    _take_off(storage, config, files)
    history.tidy()


def _to_log_files(
    storage: Storage, config: TableConfig, _archiving: Archiving, files: Sequence[StateFile]
) -> None:
    known = _keys(LogArchive(storage, config.history_folder).newest())
    _append(storage, config, [each for each in files if each.key not in known])
    _take_off(storage, config, files)


_ARCHIVERS: Final[
    Mapping[ArchiveFormat, Callable[[Storage, TableConfig, Archiving, Sequence[StateFile]], None]]
] = {ArchiveFormat.LOG_FILES: _to_log_files, ArchiveFormat.HISTORY: _to_history}


def _keys(found: Iterable[Instant]) -> frozenset[tuple[str, Action]]:
    return frozenset((each.requested, each.action.completed_action) for each in found)


def _take_off(storage: Storage, config: TableConfig, files: Sequence[StateFile]) -> None:
    storage.delete([each.status.path for each in files if not each.instant.is_completed])
    storage.sync([config.timeline_folder])
    for each in files:
        if each.instant.is_completed:
            storage.delete([each.status.path])
            if each.instant.is_write:  # only writes say where the active timeline begins
                storage.sync([config.timeline_folder])
    storage.sync([config.timeline_folder])


def _rows(storage: Storage, files: Sequence[StateFile]) -> list[HistoryRow]:
    plans = {
        each.key: each.status.path
        for each in reversed(files)
        if each.instant.state is not State.COMPLETED and each.status.size_bytes and _has_plan(each)
    }
    return [
        HistoryRow(
            requested=each.instant.requested,
            completed=each.instant.completed or each.instant.requested,
            action=str(each.instant.action),
            metadata=storage.read(each.status.path),
            plan=storage.read(plans[each.key]) if each.key in plans else None,
        )
        for each in files
        if each.instant.is_completed
    ]


def _has_plan(file: StateFile) -> bool:
    """Tell whether a pending file says what was planned: of commits only those of services do."""
    action = file.instant.action
    return action.completed_action in _PLANNED and action not in (Action.COMMIT, Action.DELTA_COMMIT)


def _append(storage: Storage, config: TableConfig, files: Sequence[StateFile]) -> None:
    if not files:
        return
    states = [
        ArchivedState(
            requested=each.instant.requested,
            action=str(each.instant.action),
            state=each.instant.state.name,
            reached=instant_time(each.status.modified_ms, config.timezone),
            content=storage.read(each.status.path) if each.status.size_bytes else b"",
        )
        for each in files
    ]
    content, schema = encode_archive_entries(states)
    block = encode_block(BlockType.AVRO_DATA, {HeaderKey.SCHEMA: schema}, content)
    listed = storage.list_files(config.history_folder)
    numbered = sorted((int(match[1]), each) for each in listed if (match := _ARCHIVE.fullmatch(each.name)))
    number, newest = numbered[-1] if numbered else (0, None)
    grows = newest is not None and newest.size_bytes < _SMALL_BYTES
    before = storage.read(newest.path) if grows and newest is not None else b""
    name = f".commits_.archive.{number + 1}_1-0-1"
    path = join_path(config.history_folder, name)
    if not storage.put_if_absent(path, before + block):
        raise outrun(path)
    storage.sync(folders_above([path]))
    if grows and newest is not None:
        storage.delete([newest.path])
