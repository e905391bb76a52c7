"""Define the maintainers of partitions of the metadata table: the protocol, its input and its output.

    instant of the table ──> TableChange ──> PartitionMaintainer.changes ──> a log file for each GroupChange
    table as it is       ──> TableFacts  ──> PartitionMaintainer.initial ──> a base file for each GroupChange

The statistics of the files carry what their writers had in memory (`WriteStat.held`). A process that
completes an instant for another process has none of that: a maintainer then reads the files.

`Grouping` divides the records of a partition among its file groups by the hash of their keys.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

import pyarrow as pa

from drawstring.base.clock import Clock
from drawstring.base.lazy import cached_property
from drawstring.config.table.schema_versions import LATEST_SCHEMA
from drawstring.config.table_config import TableConfig
from drawstring.engine.spill import SpillingGroups
from drawstring.filegroups.file_system_view import FileGroupView, table_view
from drawstring.metadata.table import KEY, MetadataTable, group_numbers, open_metadata_table
from drawstring.model.commit import CommitMetadata
from drawstring.model.files import parse_data_file
from drawstring.model.instant import Instant
from drawstring.model.plans import CleanMetadata
from drawstring.schema.avro import avro_to_arrow
from drawstring.schema.fields import with_meta, without_meta
from drawstring.schema.internal_schema import with_version
from drawstring.storage.protocol import Storage
from drawstring.timeline.archive.reader import ArchivedCompletionTimes
from drawstring.timeline.migration import BootstrapSources
from drawstring.timeline.schema import table_schema, with_history
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class GroupChange:
    """What changes in one file group of the metadata table.

    Attributes:
        partition: of the metadata table.
        file_id: the file group.
        rows: records with distinct keys: `key`, `type`, and columns of `metadata_record` that have a value.
        removed: keys of records that are removed, as text.
    """

    partition: str
    file_id: str
    rows: pa.Table
    removed: pa.Array

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write."""
        return not self.rows.num_rows and not len(self.removed)


@dataclass(frozen=True, slots=True)
class SortedGroup:
    """The records that a file group of the metadata table begins with, of which not all fit into memory.

    Attributes:
        partition: of the metadata table.
        file_id: the file group.
        parts: records in the order of their keys, each once, with columns as of `write_base_file`; to be read
            before the next file group.
    """

    partition: str
    file_id: str
    parts: Iterator[pa.Table]


@dataclass(frozen=True)
class TableFacts:
    """A table whose metadata table is written; the caller holds the table lock.

    Attributes:
        storage: files of the table.
        config: its settings.
        clock: for reading timelines.
    """

    storage: Storage
    config: TableConfig
    clock: Clock

    @cached_property
    def store(self) -> TimelineStore:
        """The files of the timeline of the table."""
        return TimelineStore(self.storage, self.config, self.clock)

    @cached_property
    def timeline(self) -> Timeline:
        """The timeline of the table as stored; an instant that is about to complete is pending in it."""
        return self.store.load()

    @cached_property
    def read_config(self) -> TableConfig:
        """The settings with the versions of the schema, for those who read columns of files."""
        return self._after(with_history(self.config, self.storage, self.store, self.timeline))

    def _after(self, config: TableConfig) -> TableConfig:
        return config

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the table, once the instant is complete if there is one, with meta columns."""
        return with_meta(table_schema(self.storage, self.store, self.timeline, self.config))

    @cached_property
    def view(self) -> FileGroupView:
        """The file groups of the table with the committed files."""
        return table_view(self.storage, self.config, self.timeline, self.store)


@dataclass(frozen=True)
class TableChange(TableFacts):
    """What an instant changes in a table, just before it completes.

    Attributes:
        instant: the completed instant to be.
        commit: of a write or a service that writes files; its statistics have what this process holds.
        clean: of a clean.
    """

    instant: Instant
    commit: CommitMetadata | None = None
    clean: CleanMetadata | None = None

    def _after(self, config: TableConfig) -> TableConfig:
        """Return settings with the version of the schema that the commit has."""
        latest = None if self.commit is None else self.commit.extra.get(LATEST_SCHEMA)
        if config.history is None or latest is None:
            return config
        return replace(config, history=with_version(config.history, json.loads(latest)))

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the table once the instant is complete, with meta columns."""
        if self.commit is None or not self.commit.schema_json:
            return with_meta(table_schema(self.storage, self.store, self.timeline, self.config))
        return with_meta(without_meta(avro_to_arrow(self.commit.schema_json)))

    @cached_property
    def metadata(self) -> MetadataTable:
        """The metadata table before the change, with the partitions that are being built."""
        opened = open_metadata_table(self.storage, self.config, self.timeline, self.clock)
        return opened.with_building()

    @cached_property
    def timeline_after(self) -> Timeline:
        """The timeline of the table as it is once the instant is complete."""
        others = (each for each in self.timeline.instants if each.requested != self.instant.requested)
        instants = sorted((*others, self.instant), key=lambda each: each.requested)
        return self.timeline.with_instants(tuple(instants))

    @cached_property
    def view_after(self) -> FileGroupView:
        """The file groups of the table as they are once the instant is complete."""
        reader = _KnowsCommit(self.store, self.instant, self.commit)
        return table_view(self.storage, self.config, self.timeline_after, reader)

    def file_ids(self, partition: str) -> list[str]:
        """Return the file groups of a partition of the metadata table, in the order that hashes refer to."""
        return [each.file_id for each in self.metadata.slices(partition)]

    def may_have_files(self, partition: str) -> bool:
        """Return whether a partition of the table has data files, committed or not, or may get earlier ones.

        Of the records of two delta commits those of the later requested time count: what a write that began
        before a clean adds would be deleted by the clean, although the write completes after it.
        """
        if any(each.requested < self.instant.requested for each in self.timeline.pending_writes()):
            return True
        return any(parse_data_file(status) for status in self.storage.list_files(partition))


@dataclass(frozen=True, slots=True)
class _KnowsCommit:
    """Reads the metadata of instants, of which one has no completed file yet."""

    store: TimelineStore
    instant: Instant
    commit: CommitMetadata | None

    @property
    def sources(self) -> BootstrapSources:
        """The source files of bootstrapped base files."""
        return self.store.sources

    @property
    def archived_completion_times(self) -> ArchivedCompletionTimes:
        """The completion times of archived writes."""
        return self.store.archived_completion_times

    def commit_metadata(self, instant: Instant) -> CommitMetadata:
        """Return the metadata of a write."""
        if self.commit is not None and instant.requested == self.instant.requested:
            return self.commit
        return self.store.commit_metadata(instant)

    def read_requested(self, instant: Instant) -> bytes:
        """Return the plan that an instant was requested with."""
        return self.store.read_requested(instant)


def _nothing_more(facts: TableFacts, metadata: MetadataTable | None) -> None:
    """Do nothing once a partition is built."""


@dataclass(frozen=True, slots=True)
class InitialPartition:
    """A partition of the metadata table to be built.

    Attributes:
        file_ids: all of its file groups.
        changes: the records of its file groups, at most one change for each; nothing is removed.
        complete: called under the table lock before the partition is registered, once the changes were read
            and the index is defined; with the metadata table if others added to the partition meanwhile.
    """

    file_ids: tuple[str, ...]
    changes: Iterator[GroupChange | SortedGroup]
    complete: Callable[[TableFacts, MetadataTable | None], None] = _nothing_more


class PartitionMaintainer(Protocol):
    """Keeps one partition of the metadata table."""

    def changes(self, change: TableChange) -> Iterator[GroupChange]:
        """Yield what an instant changes, at most one change for each file group.

        Raises:
            CorruptTableError: a file of the table is missing or damaged.
            MetadataTableError: the metadata table is damaged.
        """
        ...

    def define(self, storage: Storage, config: TableConfig) -> None:
        """Write the definition of the index that the partition holds, if it is one."""
        ...

    def initial(self, facts: TableFacts) -> InitialPartition:
        """Return the partition as it is for the committed files of a table.

        Raises:
            CorruptTableError: a file of the table is missing or damaged.
        """
        ...


_NO_KEYS: Final = pa.array([], pa.string())


@dataclass(frozen=True, slots=True)
class Grouping:
    """How the records of a partition are divided.

    Attributes:
        partition: of the metadata table.
        schema: of its records.
        ids: ids of its file groups, in the order of their numbers.
        memory_bytes: bytes of records that are held in memory; the others go to the disk.
    """

    partition: str
    schema: pa.Schema
    ids: Sequence[str]
    memory_bytes: int

    def changes(self, batches: Iterable[pa.RecordBatch]) -> Iterator[GroupChange]:
        """Yield the records of each file group that has any; nothing is deleted by its key."""
        held = SpillingGroups(self.schema, self.memory_bytes)
        try:
            for batch in batches:
                numbers = group_numbers(batch.column(KEY), len(self.ids))
                for number in sorted(set(numbers.tolist())):
                    held.add(self.ids[number], batch.filter(pa.array(numbers == number)))
            for file_id in sorted(map(str, held.groups())):
                rows = pa.Table.from_batches(held.batches(file_id), self.schema)
                yield GroupChange(self.partition, file_id, rows, _NO_KEYS)
        finally:
            held.close()
