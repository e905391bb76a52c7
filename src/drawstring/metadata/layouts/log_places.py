"""Where the log files of a delta commit of the metadata table go, and how they are found again.

layout 1    another log file of the latest slice, which its name holds; blocks tell the delta commit
layout 2    a log file named after the delta commit
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from drawstring.base.errors import CorruptTableError
from drawstring.config.table.config import TableConfig
from drawstring.filegroups.view.file_groups import table_view
from drawstring.formats.log_files import log_blocks
from drawstring.metadata.metadata_table import damaged
from drawstring.model.files import FileSlice, LogFile
from drawstring.storage.protocol import Storage
from drawstring.timeline.store import TimelineStore


@dataclass(frozen=True, slots=True)
class LogPlace:
    """Where a new log file goes.

    Attributes:
        instant: the time that its name holds.
        version: of the log file.
        base_file: name of the base file of its slice; empty for none, and in layout 2.
        earlier: names of the log files before it in the slice; none in layout 2.
    """

    instant: str
    version: int = 1
    base_file: str = ""
    earlier: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LogPlaces:
    """Finds where the log files of a delta commit go.

    Attributes:
        storage: files of the metadata table.
        config: its settings.
        store: its timeline, which is loaded.
    """

    storage: Storage
    config: TableConfig
    store: TimelineStore
    _slices: dict[str, Mapping[str, FileSlice]] = field(default_factory=dict)

    def of(self, requested: str, partition: str, file_id: str) -> LogPlace:
        """Return where a log file goes.

        Args:
            requested: requested time of the delta commit.
            partition: of the metadata table.
            file_id: the file group.

        Raises:
            MetadataTableError: the file group is not there.
        """
        if not self.config.rules.names_logs_by_slice:
            return LogPlace(requested)
        latest = self._latest(partition).get(file_id)
        if latest is None:
            raise damaged(self.storage, f"the file group {file_id} of {partition} is missing")
        return LogPlace(
            latest.base_instant,
            max((log.version for log in latest.logs), default=0) + 1,
            "" if latest.base is None else latest.base.status.name,
            tuple(log.status.name for log in latest.logs),
        )

    def _latest(self, partition: str) -> Mapping[str, FileSlice]:
        if partition not in self._slices:
            view = table_view(self.storage, self.config, self.store.loaded, self.store)
            groups = view.stored_groups(partition)
            self._slices[partition] = {each.file_id: each.slices[-1] for each in groups}
        return self._slices[partition]


def logs_of(storage: Storage, requested: str) -> Iterator[str]:
    """Yield the paths of the log files of layout 1 that a delta commit wrote; reads the heads of all.

    Args:
        storage: files of the metadata table.
        requested: requested time of the delta commit.

    Raises:
        CorruptTableError: a log file is damaged.
        MetadataTableError: one of them has blocks of other delta commits, too.
    """
    for folder in storage.list_folders(""):
        for log in filter(None, map(LogFile.parse, storage.list_files(folder))):
            instants = _instants_in(storage, log)
            if requested not in instants:
                continue
            if len(instants) > 1:
                raise damaged(storage, f"{log.status.path} has blocks that cannot be taken back one by one")
            yield log.status.path


def _instants_in(storage: Storage, log: LogFile) -> set[str]:
    try:
        with storage.open(log.status.path) as file:
            return {block.instant for block in log_blocks(file, log) if block.instant}
    except CorruptTableError as error:
        raise error.at(path=log.status.path) from error
