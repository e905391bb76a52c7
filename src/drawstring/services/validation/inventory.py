"""The inventory of a table: all its files, and the metadata of its commits as far as it can be read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from drawstring.base.errors import DrawstringError
from drawstring.config.table_config import TableConfig
from drawstring.filegroups.file_system_view import FileGroupView, FixedListing
from drawstring.filegroups.view.missing_files import needed
from drawstring.model.commit import CommitMetadata, WriteStat
from drawstring.model.files import HOODIE_FOLDER, BaseFile, FileStatus, LogFile, parse_data_file
from drawstring.model.instant import Instant, time_of
from drawstring.model.result import Finding, Severity
from drawstring.storage.protocol import Storage
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Inventory:
    """A table as it is on storage.

    Attributes:
        storage: the table's files.
        config: the table's settings.
        store: the table's timeline store.
        timeline: the current timeline.
        files: all files outside of `.hoodie`, by folder.
        commits: the metadata of the completed writes of the active timeline, if readable.
        unreadable: a finding for each write whose metadata cannot be read.
        worked_on: requested times of the pending actions that a live process works on.
    """

    storage: Storage
    config: TableConfig
    store: TimelineStore
    timeline: Timeline
    files: Mapping[str, list[FileStatus]]
    commits: Mapping[Instant, CommitMetadata]
    unreadable: tuple[Finding, ...] = field(default=())
    worked_on: frozenset[str] = frozenset()

    def data_files(self) -> Iterator[FileStatus]:
        """Yield base files, log files and change logs."""
        for statuses in self.files.values():
            yield from (status for status in statuses if parse_data_file(status))

    def view(self) -> FileGroupView:
        """Return the file groups and slices, also of folders that lost their partition metadata."""
        listing = FixedListing(status for statuses in self.files.values() for status in statuses)
        return FileGroupView(self.timeline, self.config, listing, self.store)

    def live_stats(self) -> Iterator[tuple[Instant, WriteStat]]:
        """Yield the write statistics of the files in the latest slices."""
        newest: dict[tuple[str, str], str] = {}
        for instant, commit in self.commits.items():
            for stat in commit.stats:
                if BaseFile.parse(FileStatus(stat.path, 0)):
                    group = stat.partition, stat.file_id
                    newest[group] = max(newest.get(group, ""), instant.requested)
        replaced = {
            (partition, file_id)
            for commit in self.commits.values()
            for partition, file_ids in commit.replaced.items()
            for file_id in file_ids
        }
        paths = {status.path for status in self.data_files()}
        for instant, commit in self.commits.items():
            for stat in needed(self.timeline, instant, commit.stats, paths):
                group = stat.partition, stat.file_id
                if group not in replaced and self._is_live(instant, stat, newest.get(group, "")):
                    yield instant, stat

    def _is_live(self, instant: Instant, stat: WriteStat, newest_base: str) -> bool:
        log = LogFile.parse(FileStatus(stat.path, 0))
        if log is None:
            return instant.requested == newest_base
        if self.config.rules.names_logs_by_slice:
            return log.instant >= newest_base
        return time_of(instant) >= newest_base


def take_inventory(storage: Storage, config: TableConfig, store: TimelineStore) -> Inventory:
    """List a table and read its commits.

    Raises:
        CorruptTableError: the timeline cannot be read.
    """
    timeline = store.load()
    files: dict[str, list[FileStatus]] = defaultdict(list)
    for status in storage.list_files(""):
        files[""].append(status)
    for folder in storage.list_folders(""):
        if folder != HOODIE_FOLDER:
            for status in storage.list_tree(folder):
                files[status.folder].append(status)
    commits: dict[Instant, CommitMetadata] = {}
    unreadable = []
    for instant in timeline.writes():
        try:
            commits[instant] = store.commit_metadata(instant)
        except DrawstringError as error:
            text = f"{error.message} The rows of this write cannot be checked."
            finding = Finding(Severity.ERROR, "commit", text, error.path, instant.requested)
            unreadable.append(finding)
    return Inventory(storage, config, store, timeline, files, commits, tuple(unreadable))
