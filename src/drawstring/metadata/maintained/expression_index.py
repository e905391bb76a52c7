"""Keeps the partitions `expr_index_<name>`: the values of an expression in files (as Apache Hudi 1.2.0).

    write, compaction, clustering, ...   a record for each base and log file
                                         with bounds, one for each partition that it wrote to as well
    clean                                a tombstone for each file that it deleted

Bounds are those of the values that are not null, which alone are counted; those of partitions are of the
files of the latest slices (`partition_stats`). A filter has the texts of the values, nulls left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.bounds import EXCHANGE_BYTES_MAX, worker_threads
from drawstring.base.errors import CorruptTableError, InvalidError
from drawstring.config.table.config import TableConfig
from drawstring.engine.streams import stream
from drawstring.formats.bloom.filters import DYNAMIC, BloomFilter
from drawstring.formats.metadata.index_definitions import INDEX_DEFINITIONS
from drawstring.metadata.column_ranges import COLUMN_STATS
from drawstring.metadata.definitions import define, definitions
from drawstring.metadata.expressions.index import PREFIX, ExpressionIndex
from drawstring.metadata.keys import NAME_HASH_CHARS, name_hash
from drawstring.metadata.maintained.bloom_filters import filter_records
from drawstring.metadata.maintained.column_stats import deleted_files, stored_files
from drawstring.metadata.maintained.expression_values import ReadExpression
from drawstring.metadata.maintained.file_summaries import DataFile, files_of, written_files
from drawstring.metadata.maintained.grouping import Grouping
from drawstring.metadata.maintained.partition_stats import PartitionSummaries, SummariesAtHand
from drawstring.metadata.maintained.protocol import GroupChange, InitialPartition, TableChange, TableFacts
from drawstring.metadata.metadata_table import MetadataTable
from drawstring.metadata.partitions import KEY, Kind, record_schema
from drawstring.metadata.statistics_encoding import Described, encode_deleted, encode_statistics
from drawstring.model.commit import CommitMetadata, WriteOperation
from drawstring.storage.protocol import Storage

GROUPS: Final = 2
"""Number of file groups of a new index (`hoodie.metadata.index.expression.file.group.count`)."""

_PARTITION: Final = "__partition_stat__"
_SCHEMA: Final = record_schema(Kind.EXPRESSION_INDEX)


@dataclass(frozen=True, slots=True)
class ExpressionIndexMaintainer:
    """Keeps an expression index; see `PartitionMaintainer`.

    Attributes:
        partition: of the metadata table.
        index: an index to be built; None for the one that the table defines.
        memory_bytes: bytes of records to hold in memory; more of them are spilled to disk.
    """

    partition: str
    index: ExpressionIndex | None = None
    memory_bytes: int = EXCHANGE_BYTES_MAX

    def changes(self, change: TableChange) -> Iterator[GroupChange]:
        """Yield the records of the files that an instant wrote, and tombstones of those it deleted."""
        read = ReadExpression.of(change, self._index(change.storage))
        if change.commit is not None:
            rows = self._written(change, change.commit, read)
        elif change.clean is not None:
            rows = iter(_tombstones(read.index, deleted_files(change.clean)))
        else:
            return
        yield from self._grouped(rows, change.file_ids(self.partition))

    def define(self, storage: Storage, config: TableConfig) -> None:
        """Write which expression the index is of."""
        define(storage, self._index(storage).definition(config))

    def initial(self, facts: TableFacts) -> InitialPartition:
        """Return the index of all committed files of a table."""
        read = ReadExpression.of(facts, self._index(facts.storage))
        name = self.partition.replace("_", "-")
        ids = [f"{name}-{number:04}-0" for number in range(GROUPS)]
        return InitialPartition(tuple(ids), self._grouped(self._stored(facts, read), ids))

    def can_keep(self, facts: TableFacts) -> bool:
        """Return whether the index can be kept: this release knows its function for the type of its column.

        Args:
            facts: the table as it is, or as it is once an instant is complete.
        """
        index = self.index or ExpressionIndex.of(definitions(facts.storage).get(self.partition, {}))
        return index is not None and is_indexable(index, ReadExpression.of(facts, index).schema, facts.config)

    def _index(self, storage: Storage) -> ExpressionIndex:
        """Return the index.

        Raises:
            CorruptTableError: its definition is missing.
        """
        index = self.index or ExpressionIndex.of(definitions(storage).get(self.partition, {}))
        if index is None:
            raise CorruptTableError(f"The index {self.partition} is not in {INDEX_DEFINITIONS}.")
        return index

    def _written(
        self, change: TableChange, commit: CommitMetadata, read: ReadExpression
    ) -> Iterator[pa.RecordBatch]:
        is_bootstrap = commit.operation == WriteOperation.BOOTSTRAP
        yield from _described([] if is_bootstrap else list(written_files(commit)), read)
        if read.index.kind == COLUMN_STATS:
            touched = sorted({partition for partition, _ in commit.touched})
            slices = ((path, change.view_after.slices(path)) for path in touched)
            at_hand = SummariesAtHand.of(read, commit)
            table = PartitionSummaries(read, change.metadata, at_hand, self.partition)
            yield from _partition_records(table, ((path, list(files_of(each))) for path, each in slices))

    def _stored(self, facts: TableFacts, read: ReadExpression) -> Iterator[pa.RecordBatch]:
        yield from _described(list(stored_files(facts)), read)
        if read.index.kind == COLUMN_STATS:
            table = PartitionSummaries(read, None, SummariesAtHand(read, {}), self.partition)
            slices = ((path, facts.view.slices(path)) for path in facts.view.partitions())
            yield from _partition_records(
                table, ((path, list(files_of(each))) for path, each in slices if each)
            )

    def _grouped(self, batches: Iterable[pa.RecordBatch], ids: Sequence[str]) -> Iterator[GroupChange]:
        return Grouping(self.partition, _SCHEMA, ids, self.memory_bytes).changes(batches)


def is_indexable(index: ExpressionIndex, schema: pa.Schema, config: TableConfig) -> bool:
    """Return whether an index can be of its column.

    Args:
        index: the index.
        schema: the columns of the table.
        config: its settings.
    """
    is_dropped = config.drop_partition_columns and index.column in config.partition_fields
    if index.column not in schema.names or is_dropped:
        return False
    return index.result_type(schema.field(index.column).type) is not None


def defined_indexes(storage: Storage, metadata: MetadataTable) -> list[ExpressionIndex]:
    """Return the expression indexes of a table that can be used.

    Args:
        storage: the table's files.
        metadata: the metadata table.

    Raises:
        CorruptTableError: the definitions are damaged.
    """
    names = [name for name in metadata.ready if name.startswith(PREFIX)]
    known = definitions(storage) if names else {}
    found = (ExpressionIndex.of(known.get(name, {})) for name in names)
    return [each for each in found if each is not None]


def _described(files: Sequence[DataFile], read: ReadExpression) -> Iterator[pa.RecordBatch]:
    describe = _statistics if read.index.kind == COLUMN_STATS else _filter
    return stream(files, partial(describe, read), worker_threads())


def _statistics(read: ReadExpression, file: DataFile) -> Iterator[pa.RecordBatch]:
    """Yield the bounds of the values in a file."""
    summaries = read(file)
    if summaries.has_statistics:
        found = (replace(each, values=each.values - each.nulls) for each in summaries.columns.values())
        described = [Described(file.partition, file.name, each) for each in found]
        yield from _full(encode_statistics(described, is_v2=read.is_v2))


def _filter(read: ReadExpression, file: DataFile) -> Iterator[pa.RecordBatch]:
    """Yield the filter of the values in a file; none if they are not all known."""
    settings = read.index.settings
    made = BloomFilter.empty(
        int(settings.get("numentries", BloomFilter.DEFAULT_CAPACITY)),
        int(settings.get("maxentries", BloomFilter.DEFAULT_KEYS_MAX)),
        float(settings.get("fpp", BloomFilter.DEFAULT_RATE)),
    )
    rows = 0
    try:
        for values, is_whole in read.batches(file):
            if not is_whole:
                return
            rows += len(values)
            made.add(values.cast(pa.string()).drop_null())
    except InvalidError:
        return
    if rows:
        records = filter_records([file.file], [DYNAMIC], [made.encode().encode()], is_deleted=False)
        yield from _full(pa.Table.from_batches([records]))


def _partition_records(
    table: PartitionSummaries, files: Iterable[tuple[str, Sequence[DataFile]]]
) -> Iterator[pa.RecordBatch]:
    """Yield the records of partitions, whose keys say that they are of partitions."""
    for path, of_slices in files:
        rows = table.records(path, of_slices)
        keys = rows.column(KEY)
        column = pc.utf8_slice_codeunits(keys, 0, NAME_HASH_CHARS)
        partition = pc.utf8_slice_codeunits(keys, NAME_HASH_CHARS)
        named = pc.binary_join_element_wise(column, name_hash(_PARTITION), partition, "")
        yield from _full(rows.set_column(0, KEY, named))


def _tombstones(index: ExpressionIndex, deleted: Sequence[DataFile]) -> list[pa.RecordBatch]:
    """Return the records that delete those of files."""
    if index.kind == COLUMN_STATS:
        rows = encode_deleted([(index.column, each.partition, each.name) for each in deleted])
    else:
        files = [each.file for each in deleted]
        count = len(files)
        rows = pa.Table.from_batches([filter_records(files, [""] * count, [b""] * count, is_deleted=True)])
    return _full(rows)


def _full(rows: pa.Table) -> list[pa.RecordBatch]:
    """Return records with all columns of an expression index."""
    columns = [
        rows.column(each.name) if each.name in rows.schema.names else pa.nulls(len(rows), each.type)
        for each in _SCHEMA
    ]
    return list(pa.table(columns, schema=_SCHEMA).to_batches())
