"""Migration of the timeline to the other layout, written next to the current timeline.

    layout 1   .hoodie/<T>.<action>              .hoodie/archived/.commits_.archive.<n>_1-0-1
    layout 2   .hoodie/timeline/<T>_<C>.<action>     .hoodie/timeline/history/...

The current timeline is not touched, so the table can be read meanwhile. The table properties say which of the
two timelines counts, so replacing the properties switches over. A process that dies before or after that
leaves the other timeline behind; `remove_timeline` deletes it.

Hudi moves instants one by one, so a process that dies in between leaves a timeline in two halves. Here one
whole timeline counts at every moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from drawstring.base.errors import DrawstringError
from drawstring.config.keys.archive import Archiving
from drawstring.config.table.config import TableConfig
from drawstring.formats.log_inline import BlockType, HeaderKey, encode_block
from drawstring.formats.metadata.archive_entries import encode_archive_entries
from drawstring.formats.metadata.archive_layouts import archived_states, history_rows
from drawstring.formats.metadata.commit import is_clustering
from drawstring.formats.metadata.commit_layouts import commit_in_layout
from drawstring.formats.metadata.history_rows import HistoryRow
from drawstring.model.files import join_path
from drawstring.model.instant import WRITE_ACTIONS, Action, Instant, State
from drawstring.model.table_version import ArchiveFormat
from drawstring.storage.paths import folders_above, joined
from drawstring.storage.protocol import Storage
from drawstring.timeline.archive.lsm_timeline import LsmTimeline
from drawstring.timeline.archive.lsm_timeline_writer import LsmTimelineWriter
from drawstring.timeline.archive.reader import LogArchive
from drawstring.timeline.archive.writer import StateFile, state_files_of
from drawstring.timeline.inferred_completion_times import completion_times
from drawstring.timeline.instants import MOVED, copy_notes, delete_notes, epoch_ms_of, file_name
from drawstring.timeline.properties_store import make_timeline_folders

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
    moved = join_path(config.timeline_folder, MOVED)
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
    for rows in _chunks(row for records_of_file in records for row in history_rows(records_of_file)):
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


def _chunks(rows: Iterable[HistoryRow]) -> Iterator[list[HistoryRow]]:
    """Yield rows in lists of bounded size, without duplicates of an instant."""
    seen: set[tuple[str, str]] = set()
    chunk: list[HistoryRow] = []
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
