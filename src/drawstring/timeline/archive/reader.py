"""Read the archived timeline in either layout, and the completion times of archived writes.

    layout 1   .commits_.archive.<n>_1-0-1   log files of Avro blocks with entries of several instants each
    layout 2   see `timeline.archive.lsm`

In layout 1 small archives that were merged into a new one may remain until the merge plan
(`mergeArchivePlan`) is deleted. So an instant that appears twice counts once, and a torn end of such a file
is ignored.

Completion times (`ArchivedCompletionTimes`): a log file of layout 2 belongs to the newest base file that
was requested before its write completed. The active timeline does not have the completion time of an
archived write. It matters only if the file group has a base file that was requested after the write, so it
is read only then. drawstring leaves such writes on the timeline, Apache Hudi 1.2.0 does not
(`CompletionTimeQueryViewV2` reads them from the archive).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from threading import Lock
from typing import Any, Final, Protocol, TypeVar

from drawstring.base.errors import CorruptTableError, DrawstringError, MissingFileError
from drawstring.config.table_config import TableConfig
from drawstring.formats.log_inline import BlockType, read_content, scan_blocks
from drawstring.formats.metadata.archive import ArchiveEntry, decode_archive_entries, decode_archive_records
from drawstring.model.commit import CommitMetadata
from drawstring.model.files import FileStatus
from drawstring.model.instant import Action, Instant, State
from drawstring.model.table_version import ArchiveFormat
from drawstring.storage.protocol import Storage
from drawstring.timeline.archive.lsm import LsmTimeline, missing_instant_error

_ARCHIVE: Final = re.compile(r"\.commits_\.archive\.(\d{1,18})(?:_.*)?", re.ASCII)
_MERGE_PLAN: Final = "mergeArchivePlan"
_ACTIONS: Final = frozenset(action.value for action in Action)
_T = TypeVar("_T")


class Archive(Protocol):
    """Instants that were moved out of the active timeline into the archive."""

    def is_empty(self) -> bool:
        """Return whether nothing was archived."""
        ...

    def completed(self, start: str, end: str | None = None) -> list[Instant]:
        """Return the completed instants in a range, start exclusive and end inclusive.

        The range is in completion times, in layout 1 in requested times.
        """
        ...

    def commit_metadata(self, instant: Instant) -> CommitMetadata:
        """Return the commit metadata of an archived write."""
        ...

    def writes(self) -> Iterator[tuple[Instant, CommitMetadata]]:
        """Yield the archived writes with their metadata, newest first as far as files tell."""
        ...


def open_archive(storage: Storage, config: TableConfig) -> Archive:
    """Return the archive of a table, not yet read."""
    return _ARCHIVES[config.layout.archive_format](storage, config.history_folder)


def archived_commit(storage: Storage, config: TableConfig, instant: Instant) -> CommitMetadata | None:
    """Return the commit metadata of a write that the archive of a table has; None if it does not."""
    try:
        return open_archive(storage, config).commit_metadata(instant)
    except DrawstringError:  # the caller says that the instant is missing
        return None


class LogArchive:
    """The archived instants of a table in layout 1; file names contain no times, so all files are read once.

    Args:
        storage: the table's files.
        folder: the folder of the archive.
    """

    def __init__(self, storage: Storage, folder: str) -> None:
        self._storage = storage
        self._folder = folder
        self._commits: dict[Instant, CommitMetadata | None] | None = None

    def is_empty(self) -> bool:
        return not any(_ARCHIVE.fullmatch(status.name) for status in self._storage.list_files(self._folder))

    def completed(self, start: str, end: str | None = None) -> list[Instant]:
        return [
            instant
            for instant in sorted(self._entries())
            if start < instant.requested and (end is None or instant.requested <= end)
        ]

    def commit_metadata(self, instant: Instant) -> CommitMetadata:
        """Return the commit metadata of an archived write.

        Raises:
            CorruptTableError: the archive does not have it.
        """
        commit = self._entries().get(instant)
        if commit is None:
            raise missing_instant_error(instant)
        return commit

    def writes(self) -> Iterator[tuple[Instant, CommitMetadata]]:
        for instant, commit in sorted(self._entries().items(), key=lambda each: each[0], reverse=True):
            if commit is not None and instant.is_write:
                yield instant, commit

    def newest(self) -> list[Instant]:
        """Return the instants of the newest file."""
        listed = self._storage.list_files(self._folder)
        files = self._numbered(listed)
        entries = self._read(max(files, key=lambda each: each[0])[1], is_merging=False) if files else []
        return [_instant(entry) for entry in entries if entry.action in _ACTIONS]

    def records(self) -> Iterator[list[dict[str, Any]]]:
        """Yield the entries of all states, undecoded, by file, oldest first."""
        listed = self._storage.list_files(self._folder)
        is_merging = any(status.name == _MERGE_PLAN for status in listed)
        for _, status in sorted(self._numbered(listed), key=lambda each: each[0]):
            yield self._decoded(status, is_merging, decode_archive_records)

    def _entries(self) -> dict[Instant, CommitMetadata | None]:
        if self._commits is None:
            listed = self._storage.list_files(self._folder)
            files = self._numbered(listed)
            is_merging = any(status.name == _MERGE_PLAN for status in listed)
            self._commits = {
                _instant(entry): entry.commit
                for _, status in sorted(files, key=lambda each: each[0])
                for entry in self._read(status, is_merging)
                if entry.action in _ACTIONS
            }
        return self._commits

    def _numbered(self, listed: list[FileStatus]) -> list[tuple[int, FileStatus]]:
        return [(int(match[1]), status) for status in listed if (match := _ARCHIVE.fullmatch(status.name))]

    def _read(self, status: FileStatus, is_merging: bool) -> list[ArchiveEntry]:
        return self._decoded(status, is_merging, decode_archive_entries)

    def _decoded(
        self, status: FileStatus, is_merging: bool, decode: Callable[[bytes, str], list[_T]]
    ) -> list[_T]:
        try:
            with self._storage.open(status.path) as file:
                blocks = scan_blocks(file, file.size()) if file.size() else []
                torn = next((block for block in blocks if block.kind is BlockType.CORRUPT), None)
                if torn is not None and not is_merging:
                    raise CorruptTableError(
                        f"The archived timeline is damaged at byte {torn.offset}. Restore it from a backup."
                    )
                return [
                    entry
                    for block in blocks
                    if block.kind is BlockType.AVRO_DATA and block.schema_json
                    for entry in decode(read_content(file, block), block.schema_json)
                ]
        except FileNotFoundError as error:
            raise MissingFileError(
                "A file of the archived timeline is missing. Restore it from a backup.", path=status.path
            ) from error
        except DrawstringError as error:
            raise error.at(path=status.path) from error.__cause__


def _instant(entry: ArchiveEntry) -> Instant:
    return Instant(entry.requested, Action(entry.action).completed_action, State.COMPLETED)


_ARCHIVES: Final[Mapping[ArchiveFormat, Callable[[Storage, str], Archive]]] = {
    ArchiveFormat.LOG_FILES: LogArchive,
    ArchiveFormat.HISTORY: LsmTimeline,
}


class ArchivedCompletionTimes:
    """Completion times of the archived writes of one table.

    Args:
        storage: the table's files.
        config: its archive.
    """

    def __init__(self, storage: Storage, config: TableConfig) -> None:
        self._storage = storage
        self._config = config
        self._lock = Lock()  # several threads slice file groups
        self._since: str | None = None
        self._times: dict[str, str] = {}

    def of(self, requested: str, since: str) -> str:
        """Return when an archived write completed, if that was after a time; otherwise its requested time.

        Args:
            requested: requested time of the write.
            since: completion times up to this one are not looked up.

        Raises:
            CorruptTableError: the archive is damaged.
        """
        with self._lock:
            if self._since is None or since < self._since:
                instants = open_archive(self._storage, self._config).completed(since)
                self._times = {each.requested: each.completed or each.requested for each in instants}
                self._since = since
            return self._times.get(requested, requested)
