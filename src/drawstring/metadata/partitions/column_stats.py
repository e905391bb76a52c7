"""Update the partitions `column_stats` and `partition_stats`, statistics of columns (as Apache Hudi 1.2.0).

`column_stats`, statistics of columns in each data file:

    write, compaction, clustering, ...   a record for each column in each base and log file
    clean                                a tombstone for each column in each file that it deleted

Bounds contain each value of the file, NaN and long texts included: Hudi skips a file with a record without
bounds. It reads files without any records: log files with a part of the columns, and bootstrapped base
files. This release reads them too. Time travel uses the statistics of older files, so they stay until a
clean.

`partition_stats`, statistics of columns in each partition:

    partitions that an instant writes to ── files of their latest slices ──> one record for each column
        files of the instant             their summaries
        files with column_stats          these
        other files                      are read
    a partition that has no slice left   a tombstone for each column

Hudi does not read a partition that has no record here while another one has, nor a partition without
bounds. So the bounds of a partition are always those of all its files together, and `isTightBound` says so:
the newest record replaces earlier ones. Ranges of floats that may hide values (`metadata.column_ranges`)
count as endless.

Summaries of the columns of data files:

    base file          its footer; a column that the footer has no bounds of is read
    log file           the records in it, deletes left out; its writer has them in memory, others read them
    partial log file   read; as it lacks columns, it gets no statistics of its own

A column that a base file lacks is null in all its rows. Partition columns that the table leaves out of its
files are not null, and have no summary. The rows of a bootstrapped base file are read, since its footer
describes the meta columns alone.

Added columns: files of commits before the commit that added a column lack it, so all of its values in them
are null, and their statistics say so. Hudi skips files without a record for a condition such as `added IS
NULL`. The records are made of the statistics of another column, and no file is read. An index of columns
that a user chose stays with these columns.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.base.clock import SystemClock
from drawstring.base.resources import EXCHANGE_BYTES_MAX, worker_threads
from drawstring.config.keys.index import MetadataPartitions
from drawstring.config.table_config import TableConfig
from drawstring.engine.local import stream
from drawstring.filegroups.file_slice_reader import read_slice
from drawstring.filegroups.log_scanner import OpenLogs, open_logs
from drawstring.filegroups.read.bootstrap_reader import base_rows_of
from drawstring.filegroups.read_task import InstantRange, LogReading, ReadTask
from drawstring.formats.data_file import Selection, is_parquet
from drawstring.formats.parquet.statistics import column_summaries, summaries_of_rows
from drawstring.merge.record_version import combined_chunks
from drawstring.metadata.column_ranges import COLUMN_STATS, PARTITION_STATS, may_hide_values
from drawstring.metadata.column_stats_record import (
    MAX,
    MIN,
    ColumnStatistics,
    Stored,
    bounds_cast_to,
    column_key,
    encode_deleted,
    encode_statistics,
    keeps_order,
)
from drawstring.metadata.definitions import define, definitions
from drawstring.metadata.merging import is_true
from drawstring.metadata.partitions.maintainer import (
    GroupChange,
    Grouping,
    InitialPartition,
    PartitionMaintainer,
    TableChange,
    TableFacts,
)
from drawstring.metadata.record_tables import looked_up
from drawstring.metadata.table import (
    KEY,
    STATISTICS,
    Kind,
    Lookup,
    MetadataTable,
    name_hash,
    open_metadata_table,
    record_schema,
)
from drawstring.model.commit import ColumnSummary, CommitMetadata, WriteOperation, bounds_of, merged
from drawstring.model.files import BaseFile, FileSlice, FileStatus, LogFile, join_path, parse_data_file
from drawstring.model.plans import CleanMetadata
from drawstring.schema.evolution import conform
from drawstring.schema.fields import (
    COMMIT_TIME,
    META_COLUMNS,
    PARTITION_PATH,
    RECORD_KEY,
    leaf_type,
    top_level,
)
from drawstring.storage import open_spec
from drawstring.storage.protocol import Storage, StorageSpec
from drawstring.timeline.schema import table_schema

INDEXED_META: Final = (COMMIT_TIME, PARTITION_PATH, RECORD_KEY)
"""Meta columns that have statistics, before the columns of the table."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file to describe.

    Attributes:
        partition: partition path.
        file: the file.
        held: the summaries, if its writer made them.
    """

    partition: str
    file: BaseFile | LogFile
    held: tuple[ColumnSummary, ...] | None = None

    @property
    def name(self) -> str:
        """Name of the file."""
        return self.file.status.name


@dataclass(frozen=True, slots=True)
class FileSummaries:
    """The summaries of a file.

    Attributes:
        columns: by name of the column.
        has_statistics: whether they become statistics of the file.
    """

    columns: dict[str, ColumnSummary]
    has_statistics: bool = True


@dataclass(frozen=True, slots=True)
class ReadSummaries:
    """Makes the summaries of files. Picklable.

    Attributes:
        storage: opens the table.
        config: the table.
        schema: its columns with meta columns.
        columns: the columns to summarize.
        is_v2: whether the index has version V2.
        instants: the instants whose log blocks count.
    """

    storage: StorageSpec
    config: TableConfig
    schema: pa.Schema
    columns: tuple[str, ...]
    is_v2: bool
    instants: InstantRange

    def __call__(self, file: DataFile) -> FileSummaries:
        """Return the summaries of a file.

        Raises:
            CorruptTableError: the file is missing or damaged.
            UnsupportedError: this release cannot read it.
        """
        if file.held is not None:
            wanted = set(self.columns)
            held = {each.column: each for each in file.held if each.column in wanted}
            unknown = tuple(name for name in self.columns if name not in held)
            if not held or not unknown:
                return FileSummaries(held)
            # Its writer did not know of columns that the table got meanwhile.
            read = replace(self, columns=unknown)(replace(file, held=None))
            return FileSummaries(held | read.columns, read.has_statistics)
        if isinstance(file.file, LogFile):
            return self._of_log(file.partition, file.file)
        is_renamed = self.config.renames(file.file.instant) is not None
        if file.file.source is not None or is_renamed or not is_parquet(file.file.status.path):
            columns = self._of_base_rows(file.file, self.columns)
            return FileSummaries(columns, has_statistics=file.file.source is None)
        return FileSummaries(self._of_parquet(file.file))

    def type_of(self, column: str) -> pa.DataType:
        """Return the type that the table has for a column."""
        kind = leaf_type(self.schema, column)
        if kind is None:
            raise ValueError(f"{column!r} is no column")
        return kind

    def _of_parquet(self, base: BaseFile) -> dict[str, ColumnSummary]:
        storage = open_spec(self.storage)
        found, rows = column_summaries(storage, base.status.path, self.columns, self.schema)
        strange = [name for name, each in found.items() if not self._is_ordered(each)]
        if strange:
            found |= self._of_base_rows(base, strange)
        absent = [name for name in self.columns if name not in found]
        return found | {
            name: ColumnSummary(name, pa.nulls(2, self.type_of(name)), rows, rows) for name in absent
        }

    def _is_ordered(self, summary: ColumnSummary) -> bool:
        stored, kind = summary.bounds.type, self.type_of(summary.column)
        return stored in (kind, pa.null()) or keeps_order(stored, kind)

    def _of_base_rows(self, base: BaseFile, columns: Sequence[str]) -> dict[str, ColumnSummary]:
        names = top_level(columns, self.schema)
        types = pa.schema([self.schema.field(name) for name in names])
        storage = open_spec(self.storage)
        if self.config.renames(base.instant) is not None:
            return summaries_of_rows(renamed_rows(self, base, types), columns)
        batches = base_rows_of(storage, base, Selection(names, types=types), self.schema, self.config)
        return summaries_of_rows((conform(each, types) for each in batches), columns)

    def _of_log(self, partition: str, log: LogFile) -> FileSummaries:
        names = top_level(self.columns, self.schema)
        schema = pa.schema([self.schema.field(name).with_nullable(True) for name in names])
        reading = LogReading(open_spec(self.storage), self.config, schema, self.instants)
        with open_logs(reading, FileSlice(partition, log.file_id, log.instant, None, (log,))) as logs:
            is_partial = any(each.block.is_partial for each in logs.placed)
            # In version 6 a log file of a pending write is in the slice already; its delta commit adds it.
            blocks = [each for each in logs.placed if each.block.kind.is_data]
            is_pending = bool(blocks) and not any(self.instants.admits(each.instant) for each in blocks)
            summaries = summaries_of_rows(log_rows(logs), self.columns)
            return FileSummaries(summaries, has_statistics=not (is_partial or is_pending))


class ReadsFiles(Protocol):
    """What reads columns of the files of a table."""

    @property
    def storage(self) -> StorageSpec:
        """Opens the table."""

    @property
    def config(self) -> TableConfig:
        """The table, with the versions of its schema."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table."""


def renamed_rows(reader: ReadsFiles, base: BaseFile, types: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Return the rows of a base file whose columns have other names than those of the table.

    Args:
        reader: knows the table.
        base: the file.
        types: the columns to read, by the names of the table.
    """
    file_slice = FileSlice("", base.file_id, base.instant, base, ())
    task = ReadTask(reader.storage, reader.config, file_slice, reader.schema, tuple(types.names))
    return (conform(each, types) for each in read_slice(task))


def log_rows(logs: OpenLogs) -> Iterator[pa.RecordBatch]:
    """Yield the records in log files, deletes left out."""
    for placed in logs.placed:
        if placed.block.kind.is_data:
            yield from logs.rows(placed)


def reader_of(facts: TableFacts, names: Sequence[str], *, is_v2: bool) -> ReadSummaries:
    """Return what makes the summaries of the files of a table.

    Args:
        facts: the table.
        names: columns to summarize, if the table has them.
        is_v2: whether the index has version V2.
    """
    timeline = facts.timeline_after if isinstance(facts, TableChange) else facts.timeline
    schema = facts.schema
    dropped = facts.config.partition_fields if facts.config.drop_partition_columns else ()
    known = (name for name in dict.fromkeys(names) if name not in dropped)
    columns = tuple(name for name in known if is_indexable(schema, name, is_v2=is_v2))
    instants = InstantRange.of(timeline)
    return ReadSummaries(facts.storage.spec, facts.read_config, schema, columns, is_v2, instants)


def is_indexable(schema: pa.Schema, column: str, *, is_v2: bool) -> bool:
    """Return whether an index can have statistics of a column.

    Args:
        schema: the columns of the table.
        column: its name.
        is_v2: whether the index has version V2.
    """
    kind = leaf_type(schema, column)
    return kind is not None and Stored.of(kind, is_v2=is_v2) is not None


def written_files(commit: CommitMetadata) -> Iterator[DataFile]:
    """Yield the data files that a commit wrote, each once."""
    by_path = {each.path: each for each in commit.stats if each.path}
    for path, stat in by_path.items():
        file = parse_data_file(FileStatus(path, stat.size_bytes))
        if file is not None and not (isinstance(file, LogFile) and file.is_cdc):
            yield DataFile(stat.partition, file, None if stat.held is None else stat.held.statistics)


def files_of(slices: Iterable[FileSlice]) -> Iterator[DataFile]:
    """Yield the files of some slices."""
    for each in slices:
        if each.base is not None:
            yield DataFile(each.partition, each.base)
        yield from (DataFile(each.partition, log) for log in each.logs if not log.is_cdc)


COLUMNS_MAX: Final = 32
"""Number of columns to index (`hoodie.metadata.index.column.stats.max.columns.to.index`)."""


@dataclass(frozen=True, slots=True)
class IndexedColumns:
    """The columns of a table that a new index gets statistics of.

    Attributes:
        names: their names; empty for the first columns.
        count_max: number of the first columns.
    """

    names: tuple[str, ...] = ()
    count_max: int = COLUMNS_MAX

    def among(self, schema: pa.Schema, config: TableConfig) -> tuple[str, ...]:
        """Return the columns, meta columns first.

        Args:
            schema: the columns of the table without meta columns.
            config: the table.
        """
        is_v2 = config.rules.has_index_versions
        given = [each for each in self.names if each not in META_COLUMNS]
        # Hudi 1.2.0 fails at conditions on columns of bytes that have statistics of version V2.
        known = given or [each.name for each in schema if not pt.is_binary(each.type)]
        chosen = [each for each in known if is_indexable(schema, each, is_v2=is_v2)]
        meta = INDEXED_META if config.populate_meta_fields else ()
        return (*meta, *(chosen if given else chosen[: self.count_max]))


def listed_columns(facts: TableFacts, asked: IndexedColumns) -> IndexedColumns | None:
    """Return the columns of an index together with those of a list, None if it has these already.

    Args:
        facts: the table.
        asked: columns that a write asks statistics of.
    """
    known = definitions(facts.storage).get(COLUMN_STATS, {}).get("sourceFields") or ()
    if not asked.names or not known or COLUMN_STATS not in facts.config.metadata_partitions:
        return None
    schema = table_schema(facts.storage, facts.store, facts.timeline, facts.config)
    if {*known}.issuperset(asked.among(schema, facts.config)):
        return None
    return IndexedColumns((*dict.fromkeys((*known, *asked.names)),))


def add_to_definition(storage: Storage, added: Sequence[str]) -> None:
    """Say that the index has statistics of more columns; the caller holds the table lock."""
    defined = definitions(storage).get(COLUMN_STATS)
    if defined is not None:
        define(storage, {**defined, "sourceFields": [*dict.fromkeys((*defined["sourceFields"], *added))]})


def null_statistics(
    change: TableChange,
    partition: str,
    added: Sequence[pa.Field],
    *,
    is_v2: bool,
    without: Collection[str] = (),
) -> Iterator[pa.Table]:
    """Yield the records of added columns for what has records of another column.

    Args:
        change: what the instant changes.
        partition: of the metadata table.
        added: the columns, with the types of the table.
        is_v2: whether the statistics have version V2.
        without: names of files or partitions that are left out.
    """
    fields = definitions(change.storage)[COLUMN_STATS]["sourceFields"]
    rows = looked_up(change.metadata, partition, Lookup(prefixes=(name_hash(fields[0]),)))
    rows = rows.filter(pc.invert(combined_chunks(rows.column(STATISTICS)).field("isDeleted")))
    statistics = combined_chunks(rows.column(STATISTICS))
    rows = rows.filter(
        pc.invert(pc.is_in(statistics.field("fileName"), pa.array(list(without), pa.string())))
    )
    statistics = combined_chunks(rows.column(STATISTICS))
    names = statistics.field("fileName").to_pylist()
    counts = statistics.field("valueCount").fill_null(0).to_pylist()
    if not names:
        return
    rest = pc.utf8_slice_codeunits(combined_chunks(rows.column(KEY)), len(name_hash("")))
    for column in added:
        bounds = pa.nulls(2, column.type)
        described = [
            ColumnStatistics(*_place(partition, name), ColumnSummary(column.name, bounds, count, count))
            for name, count in zip(names, counts, strict=True)
        ]
        records = encode_statistics(described, is_v2=is_v2)
        keys = pc.binary_join_element_wise(name_hash(column.name), rest, "")
        yield records.set_column(records.column_names.index(KEY), KEY, keys)


def _place(partition: str, name: str) -> tuple[str, str | None]:
    """Return partition path and name of the file, of which one is enough: the keys are known."""
    return ("", name) if partition == COLUMN_STATS else (name, None)


GROUPS: Final = 2
"""Number of file groups of a new partition (`hoodie.metadata.index.column.stats.file.group.count`)."""

_FILES_AT_ONCE: Final = 64
_SCHEMA: Final = record_schema(Kind.STATISTICS)


@dataclass(frozen=True, slots=True)
class ColumnStatsMaintainer:
    """Keeps the statistics of columns in files; see `PartitionMaintainer`.

    Attributes:
        columns: the columns that an index to be built has; None for those that the definition of an earlier
            index says.
        memory_bytes: bytes of records to hold in memory; more of them are spilled to disk.
        added: columns that the instant adds to the table, and the index gets.
    """

    columns: IndexedColumns | None = None
    memory_bytes: int = EXCHANGE_BYTES_MAX
    added: tuple[str, ...] = ()

    def changes(self, change: TableChange) -> Iterator[GroupChange]:
        """Yield the statistics of the files that an instant wrote, and tombstones of those it deleted."""
        ids = change.file_ids(COLUMN_STATS)
        reader = self.reader(change)
        if change.commit is not None and change.commit.operation != WriteOperation.BOOTSTRAP:
            yield from self._described(
                reader, list(written_files(change.commit)), ids, self._of_added(change)
            )
        elif change.clean is not None:
            yield from self._grouped(_tombstones(change.clean, reader.columns), ids)

    def _of_added(self, change: TableChange) -> Iterator[pa.RecordBatch]:
        """Yield the statistics of added columns in the files that lack them."""
        if self.added:
            reader = self.reader(change)
            fields = [pa.field(name, reader.type_of(name)) for name in self.added]
            for records in null_statistics(change, COLUMN_STATS, fields, is_v2=reader.is_v2):
                yield from records.to_batches()

    def define(self, storage: Storage, config: TableConfig) -> None:
        """Write which columns have statistics."""
        reader = self.reader(TableFacts(storage, config, SystemClock()), is_new=True)
        defined = {
            "indexName": COLUMN_STATS,
            "indexType": COLUMN_STATS,
            "indexFunction": COLUMN_STATS,
            "sourceFields": list(reader.columns),
            "indexOptions": {},
            "version": "V2" if reader.is_v2 else "V1",
        }
        define(storage, defined)

    def initial(self, facts: TableFacts) -> InitialPartition:
        """Return the statistics of all committed files of a table."""
        ids = [f"col-stats-{number:04}-0" for number in range(GROUPS)]
        reader = self.reader(facts, is_new=True)
        return InitialPartition(tuple(ids), self._described(reader, list(stored_files(facts)), ids))

    def reader(self, facts: TableFacts, *, is_new: bool = False) -> ReadSummaries:
        """Return what makes the summaries of files of a table.

        Args:
            facts: the table.
            is_new: whether it is for an index to be built.
        """
        defined = {} if is_new and self.columns else definitions(facts.storage).get(COLUMN_STATS) or {}
        is_v2 = facts.config.rules.has_index_versions
        if defined and not is_new:
            is_v2 = defined.get("version") == "V2"
        names = defined.get("sourceFields")
        if not names:
            schema = table_schema(facts.storage, facts.store, facts.timeline, facts.config)
            names = (self.columns or IndexedColumns()).among(schema, facts.config)
        return reader_of(facts, [*names, *self.added], is_v2=is_v2)

    def _described(
        self,
        reader: ReadSummaries,
        files: Sequence[DataFile],
        ids: Sequence[str],
        more: Iterable[pa.RecordBatch] = (),
    ) -> Iterator[GroupChange]:
        parts = [files[at : at + _FILES_AT_ONCE] for at in range(0, len(files), _FILES_AT_ONCE)]
        return self._grouped(chain(stream(parts, partial(_describe, reader), worker_threads()), more), ids)

    def _grouped(self, batches: Iterable[pa.RecordBatch], ids: Sequence[str]) -> Iterator[GroupChange]:
        return Grouping(COLUMN_STATS, _SCHEMA, ids, self.memory_bytes).changes(batches)


def _describe(reader: ReadSummaries, files: Sequence[DataFile]) -> Iterator[pa.RecordBatch]:
    """Yield the statistics of files."""
    described = []
    for file in files:
        summaries = reader(file)
        if summaries.has_statistics:
            described += [
                ColumnStatistics(file.partition, file.name, each) for each in summaries.columns.values()
            ]
    yield from encode_statistics(described, is_v2=reader.is_v2).to_batches()


def stored_files(facts: TableFacts) -> Iterator[DataFile]:
    """Yield the committed files of a table, those of older slices and replaced file groups included."""
    for partition in facts.view.partitions():
        for group in facts.view.stored_groups(partition):
            yield from files_of(group.slices)


def deleted_files(clean: CleanMetadata) -> list[DataFile]:
    """Return the data files that a clean deleted."""
    cleaned = clean.partitions.items()
    names = ((path, name) for path, each in cleaned for name in (*each.deleted, *each.failed))
    parsed = ((path, parse_data_file(FileStatus(join_path(path, name), 0))) for path, name in names)
    return [
        DataFile(path, file)
        for path, file in parsed
        if file is not None and not (isinstance(file, LogFile) and file.is_cdc)
    ]


def _tombstones(clean: CleanMetadata, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    deleted = [(column, each.partition, each.name) for each in deleted_files(clean) for column in columns]
    yield from encode_deleted(deleted).to_batches()


GROUP: Final = "partition-stats-0000-0"
"""The one file group of the partition."""

_NO_KEYS: Final = pa.array([], pa.string())


def statistics_maintainers(
    options: MetadataPartitions, config: TableConfig
) -> dict[str, PartitionMaintainer]:
    """Return what keeps the statistics that a write asks for, by partition of the metadata table.

    Args:
        options: of the write.
        config: the table.
    """
    columns = IndexedColumns(options.column_stats_columns, options.column_stats_columns_max)
    of_files = ColumnStatsMaintainer(columns)
    if not (options.partition_stats and config.partition_fields and config.rules.has_all_indexes):
        return {COLUMN_STATS: of_files}
    return {COLUMN_STATS: of_files, PARTITION_STATS: PartitionStatsMaintainer()}


@dataclass(frozen=True, slots=True)
class PartitionStatsMaintainer:
    """Keeps the statistics of columns in partitions; see `PartitionMaintainer`.

    Attributes:
        added: columns that the instant adds to the table, and the index gets.
    """

    added: tuple[str, ...] = ()

    def changes(self, change: TableChange) -> Iterator[GroupChange]:
        """Yield the statistics of the partitions that an instant writes to."""
        if change.commit is None:
            return
        reader = ColumnStatsMaintainer(added=self.added).reader(change)
        table = PartitionSummaries(
            reader, _with_statistics(change.metadata), CachedSummaries.of(reader, change.commit)
        )
        touched = sorted({partition for partition, _ in change.commit.touched})
        rows = [table.records(path, list(files_of(change.view_after.slices(path)))) for path in touched]
        if self.added:
            fields = [pa.field(name, reader.type_of(name)) for name in self.added]
            rows += null_statistics(change, PARTITION_STATS, fields, is_v2=reader.is_v2, without=touched)
        if rows:
            (file_id,) = change.file_ids(PARTITION_STATS)
            yield GroupChange(PARTITION_STATS, file_id, pa.concat_tables(rows), _NO_KEYS)

    def define(self, storage: Storage, config: TableConfig) -> None:
        """Do nothing: the definition of the statistics of files says which columns these are."""

    def initial(self, facts: TableFacts) -> InitialPartition:
        """Return the statistics of all partitions of a table."""
        metadata = open_metadata_table(facts.storage, facts.config, facts.timeline, facts.clock)
        reader = ColumnStatsMaintainer().reader(facts)
        table = PartitionSummaries(reader, _with_statistics(metadata), CachedSummaries(reader, {}))
        slices = ((path, facts.view.slices(path)) for path in facts.view.partitions())
        rows = [table.records(path, list(files_of(each))) for path, each in slices if each]
        changes = [GroupChange(PARTITION_STATS, GROUP, pa.concat_tables(rows), _NO_KEYS)] if rows else []
        return InitialPartition((GROUP,), iter(changes))


def _with_statistics(metadata: MetadataTable) -> MetadataTable | None:
    return metadata if COLUMN_STATS in metadata.ready else None


class Summarizer(Protocol):
    """Makes the summaries of columns of files."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns."""
        ...

    @property
    def is_v2(self) -> bool:
        """Whether the statistics have version V2."""
        ...

    def type_of(self, column: str) -> pa.DataType:
        """Return the type of the values of a column."""
        ...

    def __call__(self, file: DataFile) -> FileSummaries:
        """Return the summaries of a file."""
        ...


@dataclass(frozen=True, slots=True)
class CachedSummaries:
    """Makes the summaries of files, with those of an instant at hand.

    Attributes:
        reader: makes the summaries.
        written: the files of the instant by partition and name.
    """

    reader: Summarizer
    written: Mapping[tuple[str, str], DataFile]

    @staticmethod
    def of(reader: Summarizer, commit: CommitMetadata) -> CachedSummaries:
        return CachedSummaries(reader, {(each.partition, each.name): each for each in written_files(commit)})

    def has(self, file: DataFile) -> bool:
        """Return whether the instant wrote a file."""
        return (file.partition, file.name) in self.written

    def summaries(self, file: DataFile) -> FileSummaries:
        """Return the summaries of a file."""
        return self.reader(self.written.get((file.partition, file.name), file))


@dataclass(frozen=True, slots=True)
class PartitionSummaries:
    """Combines the statistics of the files of partitions.

    Attributes:
        reader: knows the columns.
        metadata: has statistics of files; None for none.
        read: makes the summaries of other files.
        index: the partition of the metadata table that has them; that of an expression does not count nulls
            as values.
    """

    reader: Summarizer
    metadata: MetadataTable | None
    read: CachedSummaries
    index: str = COLUMN_STATS

    def records(self, partition: str, files: Sequence[DataFile]) -> pa.Table:
        """Return the records of a partition.

        Args:
            partition: partition path.
            files: the files of its latest slices.
        """
        if not files:
            return encode_deleted([(column, partition, None) for column in self.reader.columns])
        known = self._stored(partition, [each for each in files if not self.read.has(each)])
        complete = set.intersection(*(set(each.names) for each in known.values())) if known else set()
        others = [self.read.summaries(each) for each in files if each.name not in complete]
        described = []
        for column in self.reader.columns:
            stored = [known[column].summary(complete)] if complete else []
            of_others = [each.columns[column] for each in others if column in each.columns]
            if stored or of_others:
                summary = merged([*stored, *of_others], self.reader.type_of(column))
                described.append(ColumnStatistics(partition, None, self._as_stored(summary)))
        return encode_statistics(described, is_v2=self.reader.is_v2)

    def _as_stored(self, summary: ColumnSummary) -> ColumnSummary:
        return summary if self._counts_nulls else replace(summary, values=summary.values - summary.nulls)

    @property
    def _counts_nulls(self) -> bool:
        return self.index == COLUMN_STATS

    def _stored(self, partition: str, files: Sequence[DataFile]) -> dict[str, _Stored]:
        """Return what the metadata table says of each column, of files of which it says enough."""
        if self.metadata is None or not files:
            return {}
        prefixes = tuple(column_key(column, partition) for column in self.reader.columns)
        rows = looked_up(self.metadata, self.index, Lookup(prefixes=prefixes))
        statistics: pa.StructArray = combined_chunks(rows.column(STATISTICS))
        names = pa.array([each.name for each in files], pa.string())
        is_here = is_true(pc.is_in(statistics.field("fileName"), value_set=names))
        statistics = statistics.filter(pa.array(is_here & ~is_true(statistics.field("isDeleted"))))
        of_columns = statistics.field("columnName")
        return {
            column: _Stored.of(
                column,
                statistics.filter(pc.equal(of_columns, column)),
                self.reader.type_of(column),
                counts_nulls=self._counts_nulls,
            )
            for column in self.reader.columns
        }


@dataclass(frozen=True, slots=True)
class _Stored:
    """Stored statistics of a column in some files, with bounds or without values."""

    column: str
    statistics: pa.StructArray
    least: pa.Array
    greatest: pa.Array
    counts_nulls: bool

    @staticmethod
    def of(column: str, statistics: pa.StructArray, kind: pa.DataType, *, counts_nulls: bool) -> _Stored:
        """Leave out the files whose bounds are not known."""
        least, greatest = (bounds_cast_to(statistics, name, kind) for name in (MIN, MAX))
        if pt.is_floating(kind):
            hides = pa.array(may_hide_values(statistics.field("fileName"), least, greatest))
            least = pc.if_else(hides, pa.scalar(-math.inf, kind), least)
            greatest = pc.if_else(hides, pa.scalar(math.inf, kind), greatest)
        has_bounds = is_true(pc.and_(least.is_valid(), greatest.is_valid()))
        values, nulls = (_counts(statistics.field(name)) for name in ("valueCount", "nullCount"))
        chosen = pa.array(has_bounds | ((values >= 0) & (values == (nulls if counts_nulls else 0))))
        known = statistics.filter(chosen)
        return _Stored(column, known, least.filter(chosen), greatest.filter(chosen), counts_nulls)

    @property
    def names(self) -> list[str]:
        """Names of the files."""
        return list(self.statistics.field("fileName").to_pylist())

    def summary(self, names: Iterable[str]) -> ColumnSummary:
        """Return the summary of the column in some of the files together."""
        chosen = pc.is_in(self.statistics.field("fileName"), value_set=pa.array(sorted(names), pa.string()))
        statistics = self.statistics.filter(chosen)
        bounds = pa.chunked_array([self.least.filter(chosen), self.greatest.filter(chosen)])
        values, *totals = [
            int(np.maximum(_counts(statistics.field(name)), 0).sum())
            for name in ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")
        ]
        rows = values if self.counts_nulls else values + totals[0]
        return ColumnSummary(self.column, bounds_of(bounds), rows, *totals)


def _counts(counts: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return counts, -1 where they are unknown."""
    return np.asarray(counts.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)
