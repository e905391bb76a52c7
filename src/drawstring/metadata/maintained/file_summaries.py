"""Summaries of the columns of data files, for the statistics in the metadata table.

    base file          its footer; a column that the footer has no bounds of is read
    log file           the records in it, deletes left out; its writer has them in hand, others read them
    partial log file   read; as it lacks columns, it gets no statistics of its own

A column that a base file lacks is null in all its rows. Partition columns that the table leaves out of its
files are not, and have no summary. The rows of a bootstrapped base file are read, since its footer describes
the meta columns alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

import pyarrow as pa

from drawstring.config.table.config import TableConfig
from drawstring.filegroups.read.bootstrap_reader import base_rows_of
from drawstring.filegroups.read.open_logs import OpenLogs, open_logs
from drawstring.filegroups.read.slice_reader import read_slice
from drawstring.filegroups.read.tasks import InstantRange, LogReading, ReadTask
from drawstring.formats.base_files import Selection, is_parquet
from drawstring.formats.parquet.summaries import column_summaries, summaries_of_rows
from drawstring.metadata.maintained.protocol import TableChange, TableFacts
from drawstring.metadata.statistics import keeps_order
from drawstring.metadata.statistics_encoding import Stored
from drawstring.model.column_summary import ColumnSummary
from drawstring.model.commit import CommitMetadata
from drawstring.model.files import BaseFile, FileSlice, FileStatus, LogFile, parse_data_file
from drawstring.schema.evolve import conform
from drawstring.schema.fields import leaf_type, top_level
from drawstring.schema.meta import COMMIT_TIME, PARTITION_PATH, RECORD_KEY
from drawstring.storage import open_spec
from drawstring.storage.protocol import StorageSpec

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
