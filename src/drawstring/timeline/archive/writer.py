"""The writer of the archived timeline: moves instants out of the active timeline, in either layout.

    no lock    read the instants, make the files of the archive, stage them (`prepare`)
    lock       these files, then what lists them (`publish`)
    no lock    delete requested and inflight files, then completed files, oldest first (`shorten`)

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
from typing import Final, Protocol

from drawstring.config.keys.services import Archiving
from drawstring.config.table_config import TableConfig
from drawstring.formats.log_inline import BlockType, HeaderKey, encode_block
from drawstring.formats.metadata.archive import ArchivedInstantRow, ArchivedState, encode_archive_entries
from drawstring.model.files import FileStatus, join_path
from drawstring.model.instant import Action, Instant, State
from drawstring.model.table_version import ArchiveFormat
from drawstring.storage.protocol import Storage, folders_above
from drawstring.timeline.archive.lsm import LsmTimelineWriter, archived_meanwhile
from drawstring.timeline.archive.reader import LogArchive, open_archive
from drawstring.timeline.timeline import instant_time, parse_instant

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


class Addition(Protocol):
    """What is added to an archive, made before the table lock is taken to publish it.

    The folder is flushed after each of the three steps, the last time before anything leaves the timeline.
    """

    def is_current(self) -> bool:
        """Return whether nobody else has archived since it was made."""

    def put_files(self, check: Callable[[], None]) -> None:
        """Store the new files; `check` makes sure that the table lock is still held."""

    def put_list(self, check: Callable[[], None]) -> None:
        """Store what says which files count, where files do not say that."""

    def count(self, check: Callable[[], None]) -> None:
        """Make the new files count, and the old ones no longer."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """Instants of an active timeline that are about to be added to its archive.

    Attributes:
        storage: the table's files.
        config: the table's settings.
        files: the files of the instants, oldest first.
        archive_folders: the folders that have the names of the archive's files, and of its folder.
        addition: what the archive gets; None if it has all of them.
        drop: gives up what was staged and not published; never fails.
    """

    storage: Storage
    config: TableConfig
    files: Sequence[StateFile]
    archive_folders: Sequence[str] = ()
    addition: Addition | None = None
    drop: Callable[[], None] = lambda: None

    def is_current(self) -> bool:
        """Return whether nobody else has archived since."""
        return self.addition is None or self.addition.is_current()


def archive_instants(
    storage: Storage,
    config: TableConfig,
    archiving: Archiving,
    instants: Sequence[Instant],
    check: Callable[[], None],
) -> None:
    """Move completed instants into the archive under the table lock; see `prepare` and `publish`."""
    prepared = prepare(storage, config, archiving, instants)
    publish(check, prepared)
    shorten(prepared)


def prepare(
    storage: Storage, config: TableConfig, archiving: Archiving, instants: Sequence[Instant]
) -> Prepared:
    """Make what the archive gets of completed instants; needs no table lock, and changes nothing.

    Args:
        storage: the table's files.
        config: the table's settings.
        archiving: file sizes of the archive.
        instants: the instants to move, oldest first.

    Raises:
        ConflictError: another process archived meanwhile.
        CorruptTableError: a file of the timeline or of the archive is damaged.
    """
    files = state_files(storage, config, instants)
    if not files:
        return Prepared(storage, config, files)
    try:
        return _PREPARING[config.layout.archive_format](storage, config, archiving, files)
    except FileNotFoundError as error:
        raise archived_meanwhile(str(error.filename or error)) from error


def publish(check: Callable[[], None], *prepared: Prepared) -> None:
    """Make instants part of the archives of their tables; the caller holds the table lock.

    Args:
        check: makes sure that the table lock is still held.
        prepared: the instants of each timeline.

    Raises:
        ConflictError: another process archived meanwhile, because this one stalled.
    """
    additions = [each.addition for each in prepared if each.addition is not None]
    for each in additions:
        each.put_files(check)
    _sync_archives(prepared)
    for each in additions:
        each.put_list(check)
    _sync_archives(prepared)
    for each in additions:
        each.count(check)


def shorten(*prepared: Prepared) -> None:
    """Remove archived instants from active timelines, oldest first, as a power cut leaves them too.

    It needs no table lock: the instants are in the archive, and nobody works on them any more. Others may
    find some of them gone that they have just seen on the timeline; the archive has these.

    Each step waits for the disk. Those of several timelines are done together, as a journaling file system
    writes its journal once for their folders.
    """
    _sync_archives(prepared)
    for each in prepared:
        each.storage.delete([file.status.path for file in each.files if not file.instant.is_completed])
    _sync_timelines(prepared)
    completed = ([file for file in each.files if file.instant.is_completed] for each in prepared)
    for files in zip_longest(*completed):
        for each, file in zip(prepared, files, strict=True):
            if file is not None:
                each.storage.delete([file.status.path])
        if any(file.instant.is_write for file in files if file is not None):
            _sync_timelines(prepared)  # only writes determine where an active timeline starts
    _sync_timelines(prepared)


def _sync_archives(prepared: Sequence[Prepared]) -> None:
    for each in prepared:
        if each.files:  # also where others added them, who may not have flushed that yet
            each.storage.sync(each.archive_folders)


def _sync_timelines(prepared: Sequence[Prepared]) -> None:
    for each in prepared:
        if each.files:
            each.storage.sync([each.config.timeline_folder])


class _HistoryAddition:
    """Instants for an archive of layout 2.

    Args:
        writer: has the new files.
    """

    def __init__(self, writer: LsmTimelineWriter) -> None:
        self._writer = writer

    def is_current(self) -> bool:
        return self._writer.is_current()

    def put_files(self, check: Callable[[], None]) -> None:
        self._writer.put_files(check)

    def put_list(self, check: Callable[[], None]) -> None:
        self._writer.put_manifest(check)

    def count(self, check: Callable[[], None]) -> None:
        self._writer.put_version(check)
        self._writer.sweep(check)


def _history(
    storage: Storage, config: TableConfig, archiving: Archiving, files: Sequence[StateFile]
) -> Prepared:
    writer = LsmTimelineWriter(storage, config.history_folder, archiving)
    archived = (
        _keys(open_archive(storage, config).completed(""))
        if writer.may_have(files[0].instant.requested)
        else frozenset()
    )
    rows = _rows(storage, [file for file in files if file.key not in archived])
    if not rows:
        return Prepared(storage, config, files, [config.history_folder])
    drop = writer.prepare(rows)
    return Prepared(storage, config, files, [config.history_folder], _HistoryAddition(writer), drop)


class _LogAddition:
    """Instants for an archive of layout 1: a file with the block, and with the newest file if that is small.

    Args:
        storage: the table's files.
        folder: of the archive.
        last: the newest file, as it was before the instants in it were read.
        block: of the instants.
    """

    def __init__(
        self, storage: Storage, folder: str, last: tuple[int, FileStatus | None], block: bytes
    ) -> None:
        self._storage = storage
        self._folder = folder
        self._number, self._newest = last
        newest = self._newest
        self._extended = newest.path if newest is not None and newest.size_bytes < _SMALL_BYTES else None
        self._content = (storage.read(self._extended) if self._extended else b"") + block

    def is_current(self) -> bool:
        return _last_file(self._storage, self._folder) == (self._number, self._newest)

    def put_files(self, check: Callable[[], None]) -> None:
        check()
        path = join_path(self._folder, f".commits_.archive.{self._number + 1}_1-0-1")
        if not self._storage.put_if_absent(path, self._content):
            raise archived_meanwhile(path)

    def put_list(self, check: Callable[[], None]) -> None:
        """Do nothing: each file counts."""

    def count(self, check: Callable[[], None]) -> None:
        if self._extended:
            self._storage.delete([self._extended])

    def stage(self) -> Callable[[], None]:
        """Stage the new file; return what drops it if it is not put."""
        return self._storage.stage([(self._folder, self._content)])


def _last_file(storage: Storage, folder: str) -> tuple[int, FileStatus | None]:
    """Return the number of the newest file of an archive, and the file; 0 and None without one."""
    listed = storage.list_files(folder)
    numbered = [(int(match[1]), each) for each in listed if (match := _ARCHIVE.fullmatch(each.name))]
    return max(numbered, key=lambda each: each[0], default=(0, None))


def _log_file(
    storage: Storage, config: TableConfig, _archiving: Archiving, files: Sequence[StateFile]
) -> Prepared:
    last = _last_file(storage, config.history_folder)
    archived = _keys(LogArchive(storage, config.history_folder).newest())
    new = [file for file in files if file.key not in archived]
    folders = folders_above([f"{config.history_folder}/"])
    if not new:
        return Prepared(storage, config, files, folders)
    addition = _LogAddition(storage, config.history_folder, last, _block(storage, config, new))
    return Prepared(storage, config, files, folders, addition, addition.stage())


_PREPARING: Final[
    Mapping[ArchiveFormat, Callable[[Storage, TableConfig, Archiving, Sequence[StateFile]], Prepared]]
] = {ArchiveFormat.LOG_FILES: _log_file, ArchiveFormat.HISTORY: _history}


def _keys(instants: Iterable[Instant]) -> frozenset[tuple[str, Action]]:
    return frozenset((instant.requested, instant.action.completed_action) for instant in instants)


def _rows(storage: Storage, files: Sequence[StateFile]) -> list[ArchivedInstantRow]:
    plans = {
        file.key: file.status.path
        for file in reversed(files)
        if file.instant.state is not State.COMPLETED and file.status.size_bytes and _has_plan(file)
    }
    return [
        ArchivedInstantRow(
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


def _block(storage: Storage, config: TableConfig, files: Sequence[StateFile]) -> bytes:
    """Return the log block with the states of some instants."""
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
    return encode_block(BlockType.AVRO_DATA, {HeaderKey.SCHEMA: schema}, content)
