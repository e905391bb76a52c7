"""Keeps the partition `column_stats`: statistics of columns in each data file (as Apache Hudi 1.2.0).

    write, compaction, clustering, ...   a record for each column in each base and log file
    clean                                a tombstone for each column in each file that it deleted

Bounds contain each value of the file, NaN and long texts included: Hudi skips a file with a record without
bounds. It reads files without any records, and so does this release: log files with a part of the columns,
and bootstrapped base files. Time travel uses the statistics of older files, so they stay until a clean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Final

import pyarrow as pa

from drawstring.base.bounds import EXCHANGE_BYTES_MAX, worker_threads
from drawstring.base.clock import SystemClock
from drawstring.config.table.config import TableConfig
from drawstring.engine.streams import stream
from drawstring.metadata.column_ranges import COLUMN_STATS
from drawstring.metadata.definitions import define, definitions
from drawstring.metadata.maintained.added_columns import null_statistics
from drawstring.metadata.maintained.file_summaries import (
    DataFile,
    ReadSummaries,
    files_of,
    reader_of,
    written_files,
)
from drawstring.metadata.maintained.grouping import Grouping
from drawstring.metadata.maintained.indexed_columns import IndexedColumns
from drawstring.metadata.maintained.protocol import GroupChange, InitialPartition, TableChange, TableFacts
from drawstring.metadata.partitions import Kind, record_schema
from drawstring.metadata.statistics_encoding import Described, encode_deleted, encode_statistics
from drawstring.model.clean import CleanMetadata
from drawstring.model.commit import WriteOperation
from drawstring.model.files import FileStatus, LogFile, join_path, parse_data_file
from drawstring.storage.protocol import Storage
from drawstring.timeline.table_schema import table_schema

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
            described += [Described(file.partition, file.name, each) for each in summaries.columns.values()]
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
