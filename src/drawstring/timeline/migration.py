"""Migrate the timeline to the other layout, by writing it next to the current timeline.

    layout 1   .hoodie/<T>.<action>              .hoodie/archived/.commits_.archive.<n>_1-0-1
    layout 2   .hoodie/timeline/<T>_<C>.<action>     .hoodie/timeline/history/...

The current timeline does not change, so the table can be read meanwhile. The table properties say which of
the two timelines counts, so replacing the properties makes the switch. A process that dies before or after
that leaves the other timeline behind; `remove_timeline` deletes it. Hudi moves instants one by one, so a
process that dies in between leaves a timeline in two halves. Here one whole timeline counts at every
moment.

Completion times (`completion_times`, pure): the instants of layout 1 have none, and layout 2 has them in
names. As in Hudi, the modification time of the completed file is used instead. The modification times of
requested files show whether it can be trusted, since their names say when they were put. In a copied table
all files are as old as the copy. Layout 2 assigns log files to file slices by completion time, so log files
would follow base files that already contain their records. In such a table an instant is taken to have
completed before the next one was requested, which is the order that readers of layout 1 use.

    requested  10 commit    20 commit    30 commit
    modified   99           99           99           all by a copy
    completed  19           29           99

Where the times can be trusted, too, no instant completes before it was requested. In a MERGE_ON_READ table,
no instant that was requested before a compaction completes after that compaction was planned: the
compaction waits for such writers.

No completion time equals the requested time of another instant. A write can complete and the next one be
requested within one millisecond. But layout 2 uses every time once, and the stored position of a reader,
which is one time, would be ambiguous. Such an instant is taken to have completed one millisecond earlier.

`BootstrapSources` finds the source files of bootstrapped base files in the table's bootstrap index.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Final

from drawstring.base.errors import CorruptTableError, DrawstringError
from drawstring.config.keys.services import Archiving
from drawstring.config.table_config import TableConfig
from drawstring.formats.bootstrap_index import BY_PARTITION, read_bootstrap_index, source_files
from drawstring.formats.log_inline import BlockType, HeaderKey, encode_block
from drawstring.formats.metadata.archive import (
    ArchivedInstantRow,
    archived_instant_rows,
    archived_states,
    encode_archive_entries,
)
from drawstring.formats.metadata.commit import commit_in_layout, is_clustering
from drawstring.model.files import METADATA_BOOTSTRAP, BaseFile, FileSlice, FileStatus, join_path
from drawstring.model.instant import WRITE_ACTIONS, Action, Instant, State
from drawstring.model.table_version import ArchiveFormat
from drawstring.storage.protocol import Storage, folders_above, joined
from drawstring.timeline.archive.lsm import LsmTimeline, LsmTimelineWriter
from drawstring.timeline.archive.reader import LogArchive
from drawstring.timeline.archive.writer import StateFile, state_files_of
from drawstring.timeline.properties import make_timeline_folders
from drawstring.timeline.timeline import (
    MOVED_MARKER,
    copy_notes,
    delete_notes,
    epoch_ms_of,
    file_name,
    instant_time,
    time_before,
)

InstantKey = tuple[str, Action]

_LATE_MS_MAX: Final = 10_000
"""How much later than the time in its name a requested file may have been put."""


def completion_times(
    files: Sequence[StateFile], timezone: str, *, is_merge_on_read: bool
) -> Mapping[InstantKey, str]:
    """Return the completion time of each completed instant.

    Args:
        files: of the active timeline.
        timezone: of the instant times.
        is_merge_on_read: whether the table is MERGE_ON_READ.
    """
    completed = [file for file in files if file.instant.is_completed]
    if _are_times_original(files, timezone):
        compactions = (
            file for file in completed if is_merge_on_read and file.instant.action is Action.COMMIT
        )
        bounds = sorted({file.instant.requested for file in compactions})
    else:
        bounds = sorted({file.instant.requested for file in files})
    requested = frozenset(file.instant.requested for file in files)
    return {file.key: _distinct(_completion(file, timezone, bounds), file, requested) for file in completed}


def _are_times_original(files: Sequence[StateFile], timezone: str) -> bool:
    """Return whether the requested files are as old as their names say."""
    for file in files:
        if file.instant.state is State.REQUESTED:
            requested_ms = epoch_ms_of(file.instant.requested, timezone)
            if requested_ms is not None and abs(file.status.modified_ms - requested_ms) > _LATE_MS_MAX:
                return False
    return True


def _completion(file: StateFile, timezone: str, bounds: Sequence[str]) -> str:
    """Return the modification time, bounded by the requested time and the next of the given bounds."""
    requested = file.instant.requested
    time = max(instant_time(file.status.modified_ms, timezone), requested)
    later = bisect_right(bounds, requested)
    return time if later == len(bounds) else min(time, max(time_before(bounds[later]), requested))


def _distinct(time: str, file: StateFile, requested: Set[str]) -> str:
    """Move a completion time back, up to its own request, until no instant was requested at it."""
    while time in requested and time > file.instant.requested:
        time = time_before(time)
    return time


_CHUNK_BYTES: Final = 16 << 20
_CHUNK_ROWS: Final = 5_000


@dataclass(frozen=True, slots=True)
class MigratedInstants:
    """The numbers of copied instants: of the active timeline, and archived."""

    active: int
    archived: int


def copy_timeline(
    storage: Storage,
    old: TableConfig,
    new: TableConfig,
    archiving: Archiving,
    check: Callable[[], None],
) -> MigratedInstants:
    """Write the timeline of a table in the other layout; the caller holds the table lock.

    Args:
        storage: the table's files; there is no timeline in the other layout.
        old: the table's current settings.
        new: the table's settings after the migration.
        archiving: file sizes of the archive.
        check: makes sure that the table lock is still held.

    Returns:
        The numbers of instants copied.

    Raises:
        CorruptTableError: a file of the timeline or of the archive is damaged.
    """
    make_timeline_folders(storage, new)
    archived = _ARCHIVERS[new.layout.archive_format](storage, old, new, archiving, check)
    files = list(_first_completions(state_files_of(storage, old)))
    instants = _new_instants(storage, old, new, files)
    for file, instant in zip(files, instants, strict=True):
        _copy(storage, new, file, instant)
    copy_notes(storage, old, new)
    _sync(storage, new)
    return MigratedInstants(len({file.key for file in files}), archived)


def remove_timeline(storage: Storage, config: TableConfig) -> int:
    """Delete the timeline of a layout that does not count, its archive first; return its number of files.

    A reader may have read the properties before they were replaced. A marker file tells it to read them
    again while timeline files are being deleted, and so does a timeline without instants.
    """
    moved = join_path(config.timeline_folder, MOVED_MARKER)
    files = state_files_of(storage, config)
    count = len(storage.list_tree(config.history_folder)) + len(files)
    if not count and not storage.exists(moved):
        return 0
    storage.put(moved, b"")
    storage.delete_tree(config.history_folder)
    storage.delete([each.status.path for each in files if not each.instant.is_completed])
    storage.delete([each.status.path for each in files if each.instant.is_completed])
    delete_notes(storage, config)
    storage.delete([moved])
    if config.timeline_path:
        storage.delete_tree(config.timeline_folder)
    _sync(storage, config)
    return count


def _sync(storage: Storage, config: TableConfig) -> None:
    folders = (config.timeline_folder, config.history_folder)
    storage.sync(folders_above(joined(folder, "") for folder in folders))


def _first_completions(files: list[StateFile]) -> Iterator[StateFile]:
    """Yield the files without later completions of one instant, which do not count."""
    completed: set[tuple[str, Action]] = set()
    for file in files:
        if file.instant.is_completed and file.key in completed:
            continue
        if file.instant.is_completed:
            completed.add(file.key)
        yield file


def _new_instants(
    storage: Storage, old: TableConfig, new: TableConfig, files: list[StateFile]
) -> list[Instant]:
    """Return the instant of each file in the new layout."""
    if not new.layout.has_completion_times:
        return [replace(file.instant, completed=None) for file in files]
    times = completion_times(files, old.timezone, is_merge_on_read=old.is_merge_on_read)
    clusterings = {
        file.instant.requested
        for file in files
        if file.instant.action is Action.REPLACE_COMMIT
        and file.instant.state is State.REQUESTED
        and is_clustering(storage.read(file.status.path))
    }
    return [_with_time(file.instant, times, clusterings) for file in files]


def _with_time(instant: Instant, times: Mapping[tuple[str, Action], str], clusterings: set[str]) -> Instant:
    if instant.is_completed:
        return replace(instant, completed=times[instant.requested, instant.action.completed_action])
    if instant.action is Action.REPLACE_COMMIT and instant.requested in clusterings:
        return replace(instant, action=Action.CLUSTERING)
    return instant


def _copy(storage: Storage, new: TableConfig, file: StateFile, instant: Instant) -> None:
    action = file.instant.action
    data = storage.read(file.status.path)
    is_plan = action is Action.REPLACE_COMMIT and instant.state is State.REQUESTED
    if action in WRITE_ACTIONS and not is_plan:
        try:
            data = commit_in_layout(
                data, new.layout, replace=action is Action.REPLACE_COMMIT and instant.is_completed
            )
        except DrawstringError as error:
            raise error.at(instant=instant.requested, path=file.status.path) from error.__cause__
    path = join_path(new.timeline_folder, file_name(instant, new.layout))
    storage.put(path, data)
    completed = file.instant.completed
    if completed is not None and instant.completed is None:
        modified_ms = epoch_ms_of(completed, new.timezone)
        if modified_ms is not None:
            storage.set_modified(path, modified_ms)


def _to_history(
    storage: Storage,
    old: TableConfig,
    new: TableConfig,
    archiving: Archiving,
    check: Callable[[], None],
) -> int:
    records = LogArchive(storage, old.history_folder).records()
    writer = LsmTimelineWriter(storage, new.history_folder, archiving)
    count = 0
    for rows in _chunks(row for records_of_file in records for row in archived_instant_rows(records_of_file)):
        writer.write(sorted(rows, key=lambda row: row.requested), check)
        count += len(rows)
    if count:
        writer.tidy(check)
    return count


def _to_archive(
    storage: Storage,
    old: TableConfig,
    new: TableConfig,
    archiving: Archiving,
    _check: Callable[[], None],
) -> int:
    rows = LsmTimeline(storage, old.history_folder).rows()
    count = 0
    for number, chunk in enumerate(_chunks(row for rows_of_file in rows for row in rows_of_file), start=1):
        content, schema = encode_archive_entries([state for row in chunk for state in archived_states(row)])
        block = encode_block(BlockType.AVRO_DATA, {HeaderKey.SCHEMA: schema}, content)
        storage.put(join_path(new.history_folder, f".commits_.archive.{number}_1-0-1"), block)
        count += len(chunk)
    return count


_ARCHIVERS: Final[
    Mapping[
        ArchiveFormat,
        Callable[[Storage, TableConfig, TableConfig, Archiving, Callable[[], None]], int],
    ]
] = {
    ArchiveFormat.LOG_FILES: _to_archive,
    ArchiveFormat.HISTORY: _to_history,
}


def _chunks(rows: Iterable[ArchivedInstantRow]) -> Iterator[list[ArchivedInstantRow]]:
    """Yield rows in lists of bounded size, without duplicates of an instant."""
    seen: set[tuple[str, str]] = set()
    chunk: list[ArchivedInstantRow] = []
    size = 0
    for row in rows:
        if (row.requested, row.action) in seen:
            continue
        seen.add((row.requested, row.action))
        chunk.append(row)
        size += len(row.metadata) + len(row.plan or b"")
        if size >= _CHUNK_BYTES or len(chunk) >= _CHUNK_ROWS:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


class BootstrapSources:
    """The bootstrap index of a table, read on first use.

    Args:
        storage: the table's files.
        config: the table's settings.
    """

    def __init__(self, storage: Storage, config: TableConfig) -> None:
        self._storage = storage
        self._is_bootstrapped = config.is_bootstrapped
        self._entries: Mapping[str, bytes] | None = None
        self._known: dict[str, Mapping[str, str]] = {}

    def with_source(self, base: BaseFile | None) -> BaseFile | None:
        """Return a base file together with its source file, if it was bootstrapped with metadata only.

        Raises:
            CorruptTableError: the index is missing or damaged.
        """
        if base is None or base.instant != METADATA_BOOTSTRAP or not self._is_bootstrapped:
            return base
        uri = self._sources(base.status.folder).get(base.file_id)
        return base if uri is None else replace(base, source=uri)

    def of(self, partition: str, base_file: str | None) -> str | None:
        """Return the address of the source file of a base file; None if its rows are in the file itself.

        Args:
            partition: partition path.
            base_file: name of the base file; None for none.
        """
        base = BaseFile.parse(FileStatus(join_path(partition, base_file), 0)) if base_file else None
        bootstrapped = self.with_source(base)
        return bootstrapped.source if bootstrapped else None

    def on(self, slices: Iterable[FileSlice]) -> list[FileSlice]:
        """Return file slices whose base files have their source files.

        Raises:
            CorruptTableError: the index is missing or damaged.
        """
        if not self._is_bootstrapped:
            return list(slices)
        return [replace(each, base=self.with_source(each.base)) for each in slices]

    def _sources(self, partition: str) -> Mapping[str, str]:
        if partition not in self._known:
            if self._entries is None:
                self._entries = self._load()
            entry = self._entries.get(partition)
            self._known[partition] = {} if entry is None else source_files(entry)
        return self._known[partition]

    def _load(self) -> Mapping[str, bytes]:
        try:
            with self._storage.open(BY_PARTITION) as file:
                return read_bootstrap_index(file, file.size())
        except FileNotFoundError as error:
            raise CorruptTableError(
                "The table was bootstrapped, but its bootstrap index, which names the files that hold its"
                " rows, is missing. Restore it from a backup.",
                path=BY_PARTITION,
            ) from error
        except DrawstringError as error:
            raise error.at(path=BY_PARTITION) from error.__cause__
