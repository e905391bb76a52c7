"""Partitions and files of a table from its metadata table, instead of from storage.

    read `files` ── all completed writes in it? ── yes ──> partitions and files
         │                        │
         └── damaged              └── no ──> a warning, and the storage is listed

The metadata table of a table that others also write without it would hide their files, so every completed
write and clean of the active timeline has to be in it. What was completed before it was built is in what it
began with.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base import limits
from drawstring.base.clock import Clock, SystemClock
from drawstring.base.errors import MetadataTableError, UnsupportedError
from drawstring.base.text_format import log_level_of
from drawstring.config.table_config import TableConfig
from drawstring.filegroups.columnar_view import FileColumns
from drawstring.filegroups.file_system_view import Listing, storage_listing
from drawstring.metadata.record_tables import all_files, path_of, records
from drawstring.metadata.table import (
    ALL_PARTITIONS,
    FILES,
    KEY,
    NAME,
    ROOT_PARTITION,
    SIZE,
    MetadataTable,
    missing_instant_error,
    missing_instants,
    open_metadata_table,
)
from drawstring.model.files import FileStatus, join_path
from drawstring.model.instant import Action, is_metadata_table_time
from drawstring.storage import open_spec
from drawstring.storage.protocol import Storage, StorageSpec
from drawstring.timeline.timeline import Timeline

_ATTEMPTS = 2
"""Its own services may delete files of the metadata table while it is read."""

_FEW = 4
"""Number of partitions that are looked up in a long list before all files are read."""

_LONG_BYTES = 1 << 20
"""Size of the base file of a list that is better looked up than read."""

T = TypeVar("T")
_log = logging.getLogger("drawstring")


class NamedFiles:
    """The partitions and files that the metadata table names.

    Args:
        files: columns `key`, `name` and `size_bytes`, sorted by key.
    """

    is_complete = True

    def __init__(self, files: pa.Table) -> None:
        self._files = files
        encoded = files.column(KEY).combine_chunks().dictionary_encode()
        ends = pc.value_counts(encoded.indices).field("counts").to_numpy().cumsum().tolist()
        keys = encoded.dictionary.to_pylist()
        self._ranges = {key: (end, start) for key, end, start in zip(keys, ends, [0, *ends], strict=False)}

    def partitions(self) -> list[str]:
        """Return all partition paths, sorted."""
        return sorted(path_of(name) for name in self._rows(ALL_PARTITIONS).column(NAME).to_pylist())

    def files(self, partition: str) -> list[FileStatus]:
        """Return the files of a partition."""
        rows = self._rows(partition or ROOT_PARTITION)
        pairs = zip(rows.column(NAME).to_pylist(), rows.column(SIZE).to_pylist(), strict=True)
        return [FileStatus(join_path(partition, name), size) for name, size in pairs]

    def columns(self, partitions: Sequence[str]) -> FileColumns | None:
        """Return the files of many partitions; None if these have few files."""
        ranges = [self._ranges.get(path or ROOT_PARTITION, (0, 0)) for path in partitions]
        ends, starts = np.array(ranges, np.int64).reshape(-1, 2).T
        counts = ends - starts
        if counts.sum() < limits.in_force.sliced_files_min:
            return None
        numbers = np.repeat(np.arange(len(partitions)), counts)
        rows = np.arange(counts.sum()) + (starts - (np.cumsum(counts) - counts))[numbers]
        files = self._files.take(pa.array(rows))
        return FileColumns(
            partitions,
            numbers,
            files.column(NAME).combine_chunks(),
            files.column(SIZE).combine_chunks().to_numpy(),
        )

    def _rows(self, key: str) -> pa.Table:
        end, start = self._ranges.get(key, (0, 0))
        return self._files.slice(start, end - start)


class MetadataListing:
    """Lists a table by its metadata table, or if that is damaged or behind, in another way.

    The first few partitions are looked up; whoever asks for more gets all files read at once. Where it is
    unpickled nothing is read yet.

    Args:
        storage: the table's files.
        config: the table.
        timeline: the table's timeline.
        clock: for the timeline of the metadata table.
        fallback: the other way.
    """

    def __init__(
        self, storage: Storage, config: TableConfig, timeline: Timeline, clock: Clock, fallback: Listing
    ) -> None:
        self._table = storage, config, timeline, clock
        self._fallback = fallback
        self._source: Listing | None = None
        self._metadata: MetadataTable | None = None
        self._found: dict[str, list[FileStatus]] = {}

    def __reduce__(self) -> tuple[Callable[..., MetadataListing], tuple[StorageSpec, TableConfig, Timeline]]:
        storage, config, timeline, _ = self._table
        return _reopened, (storage.spec, config, timeline)

    @property
    def is_complete(self) -> bool:
        """Whether the storage is listed: all completed writes are in a metadata table that is used."""
        return self.metadata is None

    @property
    def metadata(self) -> MetadataTable | None:
        """The metadata table that is listed; None if another way is."""
        if self._metadata is None and self._source is None:
            self._try(lambda _: None)
        return self._metadata

    def partitions(self) -> list[str]:
        """Return all partition paths, sorted."""
        return self._loaded().partitions()

    def files(self, partition: str) -> list[FileStatus]:
        """Return the files of a partition."""
        is_asked = self._source is None and partition not in self._found and len(self._found) < _FEW
        if is_asked and self._is_long():
            found = self._try(lambda table: NamedFiles(records(table, FILES, [partition])))
            if found is not None:
                self._found[partition] = found.files(partition)
        known = self._found.get(partition)
        return self._loaded().files(partition) if known is None else known

    def columns(self, partitions: Sequence[str]) -> FileColumns | None:
        """Return the files of many partitions at once; None if these are few, or the storage is listed."""
        is_few = len(partitions) <= _FEW and self._source is None
        return None if is_few else self._loaded().columns(partitions)

    def _is_long(self) -> bool:
        bases = self._try(lambda table: [each.base for each in table.slices(FILES)]) or ()
        return any(base is not None and base.status.size_bytes > _LONG_BYTES for base in bases)

    def _loaded(self) -> Listing:
        # Not a cached property: in Python 3.11 its lock lets the queries of all tables wait for each other.
        if self._source is None:
            self._source = self._try(lambda table: NamedFiles(all_files(table))) or self._fallback
        return self._source

    def _try(self, read: Callable[[MetadataTable], T]) -> T | None:
        """Return what is read of the metadata table; if that fails, list in the other way from now on."""
        for attempt in range(_ATTEMPTS):
            try:
                table = self._metadata or usable_table(*self._table)
                result = read(table)
                self._metadata = table
                return result
            except (MetadataTableError, UnsupportedError) as error:
                self._metadata = None
                if attempt + 1 == _ATTEMPTS:
                    self._tell(str(error))
        self._source = self._fallback
        return None

    def _tell(self, error: str) -> None:
        """Warn once for each state of the table."""
        storage, _, timeline, _ = self._table
        level = log_level_of(storage.spec.uri, str(timeline.latest_time()), error)
        _log.log(level, "The storage is listed instead of the metadata table: %s", error)


def _reopened(spec: StorageSpec, config: TableConfig, timeline: Timeline) -> MetadataListing:
    storage = open_spec(spec)
    return MetadataListing(storage, config, timeline, SystemClock(), storage_listing(storage))


def listing_by_metadata(
    storage: Storage, config: TableConfig, timeline: Timeline, clock: Clock
) -> MetadataListing | None:
    """Return what lists a table by its metadata table; None if it has none.

    Args:
        storage: the table's files.
        config: the table.
        timeline: the table's timeline.
        clock: for the timeline of the metadata table.
    """
    if FILES not in config.metadata_partitions:
        return None
    return MetadataListing(storage, config, timeline, clock, storage_listing(storage))


def named_files(storage: Storage, config: TableConfig, timeline: Timeline, clock: Clock) -> NamedFiles:
    """Return the files that the metadata table of a table names.

    Args:
        storage: the table's files.
        config: the table, which has a metadata table.
        timeline: the table's timeline.
        clock: for the timeline of the metadata table.

    Raises:
        MetadataTableError: the metadata table is damaged, or lacks a completed write.
    """
    return NamedFiles(all_files(usable_table(storage, config, timeline, clock)))


def usable_table(storage: Storage, config: TableConfig, timeline: Timeline, clock: Clock) -> MetadataTable:
    """Open the metadata table of a table; see `named_files`."""
    table = open_metadata_table(storage, config, timeline, clock)
    missing = next(missing_instants(table.own_timeline, timeline), None)
    if missing is not None:
        raise missing_instant_error(table.storage, missing)
    return table


def knows_later_writes(table: MetadataTable, timeline: Timeline) -> bool:
    """Return whether a metadata table may describe a state later than a timeline that was loaded before it.

    Names and statistics of files stay true. What describes the latest rows, such as statistics of a partition
    or the file group of a key, belongs to the state that it was stored for.

    Args:
        table: the metadata table.
        timeline: the timeline of the table.
    """
    known = {instant.requested for instant in timeline.instants}
    return any(
        instant.requested not in known and not timeline.is_archived(instant.requested)
        for instant in table.timeline.completed_of(Action.DELTA_COMMIT)
        if not is_metadata_table_time(instant.requested)
    )
