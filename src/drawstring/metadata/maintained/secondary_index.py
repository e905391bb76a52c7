"""Keeps a partition `secondary_index_<name>`: which records have a value of a column (as Apache Hudi 1.2.0).

    files of the instant ── values that came or went (`value_changes`) ──> by file group of the index, spilled
                                                     file group by file group ──> records, removed keys

A record that moves to another file group keeps its value, so compactions and clusterings change nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.bounds import EXCHANGE_BYTES_MAX, worker_threads
from drawstring.base.errors import CorruptTableError
from drawstring.config.table.config import TableConfig
from drawstring.engine.spill import SpillingGroups
from drawstring.engine.streams import stream
from drawstring.filegroups.read.tasks import InstantRange
from drawstring.formats.metadata.index_definitions import INDEX_DEFINITIONS
from drawstring.merge.versions import flat
from drawstring.metadata.definitions import define, definitions
from drawstring.metadata.lookups import group_numbers
from drawstring.metadata.maintained.protocol import GroupChange, InitialPartition, TableChange, TableFacts
from drawstring.metadata.maintained.sizing import GLOBAL_SIZING, records_in
from drawstring.metadata.maintained.value_changes import (
    CHANGED,
    HASHED,
    GroupValues,
    ReadValueChanges,
    TouchedGroups,
)
from drawstring.metadata.partitions import IS_REMOVED, KEY, RECORD_INDEX, SECONDARY, TYPE, Kind, record_schema
from drawstring.metadata.record_index import RecordIndex
from drawstring.metadata.secondary_keys import text_form
from drawstring.model.commit import CommitMetadata, WriteOperation
from drawstring.schema.meta import with_meta
from drawstring.storage.protocol import Storage
from drawstring.timeline.table_schema import table_schema

SECONDARY_INDEX: Final = "secondary_index"
PREFIX: Final = "secondary_index_"
"""Beginning of the names of the partitions."""

_SERVICES: Final = (WriteOperation.COMPACT, WriteOperation.LOG_COMPACT, WriteOperation.CLUSTER)
_RECORD_TYPE: Final = 7
_HASHES_VALUE: Final = "V2"


@dataclass(frozen=True, slots=True)
class SecondaryIndexMaintainer:
    """Keeps a secondary index; see `PartitionMaintainer`.

    Attributes:
        partition: of the metadata table.
        column: the column of an index to be built; None for what the definition says.
        memory_bytes: bytes of changes to hold in memory; more of them are spilled to disk.
    """

    partition: str
    column: str | None = None
    memory_bytes: int = EXCHANGE_BYTES_MAX

    def changes(self, change: TableChange) -> Iterator[GroupChange]:
        """Yield the values that records got, and those that they lost."""
        commit = change.commit
        if commit is None or commit.compacted or commit.operation in _SERVICES:
            return
        groups = list(TouchedGroups(change, commit).groups())
        if not groups:
            return
        read = ReadValueChanges(
            change.storage.spec,
            change.read_config,
            change.schema,
            InstantRange.of(change.timeline_after),
            self._column(change.storage),
            _partitioned_index(change),
        )
        hashed = self._hashed(change.storage, change.config)
        yield from self._by_group(groups, read, change.file_ids(self.partition), hashed)

    def define(self, storage: Storage, config: TableConfig) -> None:
        """Write which column is indexed."""
        version = {"version": self._version(storage, config)} if config.rules.has_index_versions else {}
        defined = {
            "indexName": self.partition,
            "indexType": SECONDARY_INDEX,
            "indexFunction": "identity",
            "sourceFields": [self._column(storage)],
            "indexOptions": {},
            **version,
        }
        define(storage, defined)

    def initial(self, facts: TableFacts) -> InitialPartition:
        """Return the index of the records that a table has."""
        slices = list(facts.view.all_slices())
        records = sum(records_in(facts.storage, each) for each in slices)
        name = self.partition.replace("_", "-")
        ids = [f"{name}-{number:04}-0" for number in range(GLOBAL_SIZING.groups(records))]
        read = ReadValueChanges(
            facts.storage.spec,
            facts.read_config,
            with_meta(table_schema(facts.storage, facts.store, facts.timeline, facts.config)),
            InstantRange.of(facts.timeline),
            self._column(facts.storage),
        )
        groups = [GroupValues(None, each) for each in slices]
        hashed = self._hashed(facts.storage, facts.config)
        return InitialPartition(tuple(ids), self._by_group(groups, read, ids, hashed))

    def can_keep(self, facts: TableFacts, commit: CommitMetadata | None) -> bool:
        """Return whether the index can be kept: its values are written the same way before and after.

        Args:
            facts: the table as it is.
            commit: of the instant that is about to complete, if it is a write.
        """
        fields = self._definition(facts.storage).get("sourceFields") or []
        if len(fields) != 1 or RECORD_INDEX not in facts.config.metadata_partitions:
            return False
        schema = table_schema(facts.storage, facts.store, facts.timeline, facts.config)
        form = form_of(schema, facts.config, fields[0])
        if form is None or not isinstance(facts, TableChange) or commit is None:
            return form is not None
        return form_of(facts.schema, facts.config, fields[0]) == form

    def _by_group(
        self, groups: Sequence[GroupValues], read: ReadValueChanges, ids: Sequence[str], hashed: str
    ) -> Iterator[GroupChange]:
        held = SpillingGroups(CHANGED, self.memory_bytes)
        try:
            for batch in stream(groups, read, worker_threads()):
                numbers = group_numbers(batch.column(hashed), len(ids))
                for number in np.unique(numbers):
                    held.add(ids[number], batch.filter(pa.array(numbers == number)))
            for file_id in sorted(map(str, held.groups())):
                rows = pa.Table.from_batches(held.batches(file_id), CHANGED)
                yield self._group_change(file_id, rows)
        finally:
            held.close()

    def _group_change(self, file_id: str, rows: pa.Table) -> GroupChange:
        """Return what changes in a file group; a record that one file group lost and another got stays."""
        flags = rows.column(IS_REMOVED)
        come = pc.unique(flat(rows.filter(pc.invert(flags)).column(KEY)))
        gone = pc.unique(flat(rows.filter(flags).column(KEY)))
        gone = gone.filter(pc.invert(pc.is_in(gone, value_set=come)))
        stored = record_schema(Kind.SECONDARY_INDEX).field(SECONDARY).type
        lives = pa.StructArray.from_arrays([pa.repeat(pa.scalar(False), len(come))], fields=list(stored))
        kinds = pa.repeat(pa.scalar(_RECORD_TYPE, pa.int32()), len(come))
        return GroupChange(
            self.partition, file_id, pa.table({KEY: come, TYPE: kinds, SECONDARY: lives}), gone
        )

    def _definition(self, storage: Storage) -> dict[str, Any]:
        return definitions(storage).get(self.partition, {})

    def _column(self, storage: Storage) -> str:
        """Return the indexed column.

        Raises:
            CorruptTableError: the definition of the index is missing.
        """
        fields = [self.column] if self.column else self._definition(storage).get("sourceFields")
        if not fields:
            raise CorruptTableError(f"The index {self.partition} is not in {INDEX_DEFINITIONS}.")
        return str(fields[0])

    def _version(self, storage: Storage, config: TableConfig) -> str:
        latest = _HASHES_VALUE if config.rules.has_index_versions else "V1"
        known = self._definition(storage)
        return str(known.get("version") or "V1") if known else latest

    def _hashed(self, storage: Storage, config: TableConfig) -> str:
        """Return the column of changes whose hash tells the file group."""
        return HASHED if self._version(storage, config) == _HASHES_VALUE else KEY


def form_of(schema: pa.Schema, config: TableConfig, column: str) -> str | None:
    """Return how the values of a column are written in an index; None if it cannot be indexed.

    Args:
        schema: the columns of the table.
        config: its settings.
        column: a name.
    """
    is_dropped = config.drop_partition_columns and column in config.partition_fields
    if column not in schema.names or is_dropped:
        return None
    return text_form(schema.field(column).type)


def _partitioned_index(change: TableChange) -> RecordIndex | None:
    index = RecordIndex.of(change.metadata, change.storage.spec)
    return index if index.is_partitioned else None
