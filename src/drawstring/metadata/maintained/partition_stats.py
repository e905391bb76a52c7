"""Keeps the partition `partition_stats`: statistics of columns in each partition (as Apache Hudi 1.2.0).

    partitions that an instant writes to ── files of their latest slices ──> one record for each column
        files of the instant             their summaries
        files with column_stats          these
        other files                      are read
    a partition that has no slice left   a tombstone for each column

Hudi does not read a partition that has no record here while another one has, nor one without bounds. So the
bounds of a partition are always those of all its files together, and `isTightBound` says so: the newest
record replaces earlier ones. Ranges of floats that may hide values (`column_ranges`) count as endless.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.config.keys.metadata import MetadataPartitions
from drawstring.config.table.config import TableConfig
from drawstring.merge.versions import flat
from drawstring.metadata.column_ranges import COLUMN_STATS, PARTITION_STATS, may_hide_values
from drawstring.metadata.contents import looked_up
from drawstring.metadata.lookups import Lookup
from drawstring.metadata.maintained.added_columns import null_statistics
from drawstring.metadata.maintained.column_stats import ColumnStatsMaintainer
from drawstring.metadata.maintained.file_summaries import (
    DataFile,
    FileSummaries,
    files_of,
    written_files,
)
from drawstring.metadata.maintained.indexed_columns import IndexedColumns
from drawstring.metadata.maintained.protocol import (
    GroupChange,
    InitialPartition,
    PartitionMaintainer,
    TableChange,
    TableFacts,
)
from drawstring.metadata.merging import is_true
from drawstring.metadata.metadata_table import MetadataTable, open_metadata_table
from drawstring.metadata.partitions import STATISTICS
from drawstring.metadata.statistics import MAX, MIN, bounds_kept_as
from drawstring.metadata.statistics_encoding import Described, column_key, encode_deleted, encode_statistics
from drawstring.model.column_summary import ColumnSummary, bounds_of, merged
from drawstring.model.commit import CommitMetadata
from drawstring.storage.protocol import Storage

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
            reader, _with_statistics(change.metadata), SummariesAtHand.of(reader, change.commit)
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
        table = PartitionSummaries(reader, _with_statistics(metadata), SummariesAtHand(reader, {}))
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
class SummariesAtHand:
    """Makes the summaries of files, with those of an instant at hand.

    Attributes:
        reader: makes the summaries.
        written: the files of the instant by partition and name.
    """

    reader: Summarizer
    written: Mapping[tuple[str, str], DataFile]

    @staticmethod
    def of(reader: Summarizer, commit: CommitMetadata) -> SummariesAtHand:
        return SummariesAtHand(reader, {(each.partition, each.name): each for each in written_files(commit)})

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
    read: SummariesAtHand
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
                described.append(Described(partition, None, self._as_stored(summary)))
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
        statistics: pa.StructArray = flat(rows.column(STATISTICS))
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
        least, greatest = (bounds_kept_as(statistics, name, kind) for name in (MIN, MAX))
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
