"""Update a partition `secondary_index_<name>`: the record keys of each value (as Apache Hudi 1.2.0).

    files of the instant ── values that were added or removed ──> by file group of the index, spilled
                                                   file group by file group ──> records, removed keys

A record that moves to another file group has the same value, so compactions and clusterings change nothing.

A key of the index is the text of a column's value, and the record key (`metadata.table`):

    text                          as it is
    int, long                     decimal
    float, double                 as Java formats them: 1.5, 1.0E10
    date                          days since 1970-01-01
    timestamp (micros, UTC)       microseconds since then

A key in the files of the index has at most 32,767 bytes. Values with texts of more than half of that are
left out of the index, and look-ups of them do without it. Version V1 of the index hashes the whole key to
find its file group, V2 the value with the `$` behind it.

The values that an instant gives to records or removes from them:

    base file rewritten     the values before and after of records that are new, changed or gone are compared;
                            the others have the same commit time as before
    log files written       the same for the records that the log files write or delete
    other base files        the same for all records
    file group replaced     all its records lose their values

A record that several instants wrote has the value that merging leaves, so slices are merged before they are
compared. Where each partition of the table has its own record index, a key may be in several of them. Its
value then stays in the index as long as the key has another location, since a look-up finds all locations
of a key.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.base.errors import CorruptTableError
from drawstring.base.lazy import cached_property
from drawstring.base.resources import BATCH_ROWS, EXCHANGE_BYTES_MAX, HFILE_KEY_BYTES_MAX, worker_threads
from drawstring.config.table_config import TableConfig
from drawstring.engine.local import stream
from drawstring.engine.spill import SpillingGroups
from drawstring.filegroups.file_slice_reader import read_slice
from drawstring.filegroups.file_system_view import FileGroupView
from drawstring.filegroups.log_merge import SliceMerge
from drawstring.filegroups.log_scanner import record_keys
from drawstring.filegroups.read_task import InstantRange, ReadTask
from drawstring.formats.metadata.index_definitions import INDEX_DEFINITIONS
from drawstring.keygen.texts import java_text
from drawstring.merge.record_version import combined_chunks
from drawstring.metadata.definitions import define, definitions
from drawstring.metadata.partitions.maintainer import GroupChange, InitialPartition, TableChange, TableFacts
from drawstring.metadata.partitions.record_index import GLOBAL_SIZING, records_in
from drawstring.metadata.record_index_lookup import FILE_ID, PARTITION, RecordIndex
from drawstring.metadata.table import (
    IS_REMOVED,
    KEY,
    RECORD_INDEX,
    SECONDARY,
    TYPE,
    Kind,
    group_numbers,
    record_schema,
)
from drawstring.model.commit import CommitMetadata, WriteOperation, WriteStat
from drawstring.model.files import FileSlice, FileStatus, LogFile
from drawstring.schema.fields import RECORD_KEY, with_meta
from drawstring.storage.protocol import Storage, StorageSpec
from drawstring.timeline.schema import table_schema

_TO_ESCAPE: Final = r"[\\$\x00]"
_ESCAPED: Final = r"\\\0"
_NULL: Final = "\0"
_PLAIN: Final = "plain"
_TEXT_BYTES_MAX: Final = HFILE_KEY_BYTES_MAX // 2
_MOMENT: Final = pa.timestamp("us", "UTC")


def text_form(kind: pa.DataType) -> str | None:
    """Return how values of a type are written, None if they cannot be indexed.

    Types of one form write a value of both in the same way.
    """
    if pt.is_string(kind) or pt.is_int32(kind) or pt.is_int64(kind):
        return _PLAIN
    if pt.is_float32(kind) or pt.is_float64(kind) or pt.is_date32(kind) or kind == _MOMENT:
        return str(kind)
    return None


def indexed_texts(values: pa.Array) -> pa.Array:
    """Return the texts of values of a type that can be indexed; null for null."""
    if pt.is_date32(values.type):
        values = values.cast(pa.int32())
    return java_text(values, "")


def secondary_keys(values: pa.Array, record_keys: pa.Array) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Return the keys of records of an index, the parts of them with the value and the `$`, and record keys.

    Args:
        values: of the indexed column.
        record_keys: of the same rows (string).
    """
    is_indexed = are_indexed(values)
    if not pc.all(is_indexed, min_count=0).as_py():
        values, record_keys = values.filter(is_indexed), record_keys.filter(is_indexed)
    distinct = values.dictionary_encode()
    escaped = _escape(indexed_texts(distinct.dictionary)).take(distinct.indices).fill_null(_NULL)
    prefixes = pc.binary_join_element_wise(escaped, "", "$")
    return (
        pc.binary_join_element_wise(prefixes, _escape(combined_chunks(record_keys)), ""),
        prefixes,
        record_keys,
    )


def are_indexed(values: pa.Array) -> pa.Array:
    """Return which values an index has: texts that are not too long, and all others, null among them."""
    longest = pc.max(pc.binary_length(values)).as_py() or 0 if pt.is_string(values.type) else 0
    if longest <= _TEXT_BYTES_MAX // 2:  # a letter and its escape have two bytes at most
        return pa.repeat(True, len(values))
    return pc.less_equal(pc.binary_length(_escape(values)), _TEXT_BYTES_MAX).fill_null(True)


def _escape(texts: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(texts, _TO_ESCAPE, _ESCAPED)


HASHED: Final = "hashed"
CHANGED: Final = pa.schema([(KEY, pa.string()), (HASHED, pa.string()), (IS_REMOVED, pa.bool_())])
"""Columns of changes: key of a record of the index, the part with the value, and whether it is gone."""

_PAIRS: Final = pa.schema([(KEY, pa.string()), (HASHED, pa.string()), (RECORD_KEY, pa.string())])


@dataclass(frozen=True, slots=True)
class GroupValues:
    """A file group that an instant writes to or replaces.

    Attributes:
        before: its slice before the instant; None for none.
        after: its slice after the instant; None for none.
        logged: the log files of the instant alone; None if it wrote a base file, or replaced the group.
        written_at: the instant, if only records that it wrote have it as their commit time; else None.
        gone: with `written_at`, the keys that the group has no more; None if that is unknown.
    """

    before: FileSlice | None
    after: FileSlice | None
    logged: FileSlice | None = None
    written_at: str | None = None
    gone: pa.Array | None = None


@dataclass(frozen=True)
class ChangedGroups:
    """Finds the file groups that an instant writes to or replaces.

    Attributes:
        change: the instant.
        commit: its metadata.
    """

    change: TableChange
    commit: CommitMetadata

    def groups(self) -> Iterator[GroupValues]:
        """Yield the file groups."""
        logs: dict[tuple[str, str], list[LogFile] | None] = {}
        for stat in self.commit.stats:
            if stat.path:
                log = LogFile.parse(FileStatus(stat.path, stat.size_bytes))
                found = logs.setdefault((stat.partition, stat.file_id), [])
                if log is None or found is None:
                    logs[stat.partition, stat.file_id] = None
                else:
                    found.append(log)
        for place, files in logs.items():
            before, after = self._before.get(place), self._after.get(place)
            if files:
                logged = FileSlice(*place, self.change.instant.requested, None, tuple(files))
                yield GroupValues(before, after, logged)
            elif before is None or after is None or not self.change.config.populate_meta_fields:
                yield GroupValues(before, after)
            else:
                gone = self._gone(place)
                yield GroupValues(before, after, written_at=self.change.instant.requested, gone=gone)
        for place in sorted(self.commit.superseded - logs.keys()):
            yield GroupValues(self._before.get(place), None)

    def _gone(self, place: tuple[str, str]) -> pa.Array | None:
        """Return the keys that a rewritten base file has no more, if its writer knew them."""
        stats = self._stats[place]
        held = [each.held.changed_keys for each in stats if each.held is not None]
        known = [each for each in held if each is not None]
        if len(known) == len(stats):
            return pa.concat_arrays(
                [combined_chunks(each.column(KEY).filter(each.column(IS_REMOVED))) for each in known]
            )
        return None if any(each.num_deletes for each in stats) else pa.array([], pa.string())

    @cached_property
    def _stats(self) -> dict[tuple[str, str], list[WriteStat]]:
        found: dict[tuple[str, str], list[WriteStat]] = defaultdict(list)
        for each in self.commit.stats:
            found[each.partition, each.file_id].append(each)
        return found

    @cached_property
    def _before(self) -> dict[tuple[str, str], FileSlice]:
        return self._slices(self.change.view)

    @cached_property
    def _after(self) -> dict[tuple[str, str], FileSlice]:
        return self._slices(self.change.view_after)

    def _slices(self, view: FileGroupView) -> dict[tuple[str, str], FileSlice]:
        partitions = {stat.partition for stat in self.commit.stats if stat.path}
        partitions |= {partition for partition, _ in self.commit.superseded}
        return {(path, each.file_id): each for path in sorted(partitions) for each in view.slices(path)}


@dataclass(frozen=True, slots=True)
class ReadValueChanges:
    """Yields what changes in a file group; see `CHANGED`. Picklable.

    Attributes:
        storage: opens the table.
        config: the table.
        schema: its columns with meta columns.
        instants: the instants whose log blocks count once the instant is complete.
        column: the indexed column.
        index: the record index before the instant, if each partition has its own; else None.
    """

    storage: StorageSpec
    config: TableConfig
    schema: pa.Schema
    instants: InstantRange
    column: str
    index: RecordIndex | None = None

    def __call__(self, group: GroupValues) -> Iterator[pa.RecordBatch]:
        """Read one file group."""
        among = self._among(group)
        old, new = (self._pairs(each, among) for each in (group.before, group.after))
        gone = old.filter(pc.invert(pc.is_in(old.column(KEY), value_set=new.column(KEY))))
        come = new.filter(pc.invert(pc.is_in(new.column(KEY), value_set=old.column(KEY))))
        yield from _batches(self._without_others(gone, group.before), is_removed=True)
        yield from _batches(come, is_removed=False)

    def _among(self, group: GroupValues) -> pa.Array | None:
        """Return the keys of the records whose value may have changed; None for all."""
        if group.logged is not None:
            return SliceMerge(self._task(group.logged)).log_keys
        if group.written_at is None or group.before is None or group.after is None:
            return None
        written = self._keys(group.after, group.written_at)
        gone = group.gone
        if gone is None:
            old, new = self._keys(group.before), self._keys(group.after)
            gone = old.filter(pc.invert(pc.is_in(old, value_set=new)))
        return pa.concat_arrays([written, gone])

    def _keys(self, file_slice: FileSlice, written_at: str | None = None) -> pa.Array:
        """Return the record keys of a slice, or of its records with a commit time."""
        task = replace(self._task(file_slice), columns=(RECORD_KEY,))
        if written_at is not None:
            task = replace(task, commit_times=(written_at,))
        keys = [combined_chunks(batch.column(RECORD_KEY)) for batch in read_slice(task)]
        return pa.concat_arrays([pa.array([], pa.string()), *keys])

    def _pairs(self, file_slice: FileSlice | None, among: pa.Array | None) -> pa.Table:
        """Return the records of the index for the live rows of a slice, or for those with some keys."""
        if file_slice is None or (among is not None and not len(among)):
            return _PAIRS.empty_table()
        return pa.Table.from_batches(self._read(file_slice, among), _PAIRS)

    def _read(self, file_slice: FileSlice, among: pa.Array | None) -> Iterator[pa.RecordBatch]:
        for batch in read_slice(self._task(file_slice, among)):
            keys = combined_chunks(record_keys(batch, self.config))
            values = combined_chunks(batch.column(self.column))
            if among is not None:
                chosen = pc.is_in(keys, value_set=among)
                keys, values = keys.filter(chosen), values.filter(chosen)
            yield pa.RecordBatch.from_arrays([*secondary_keys(values, keys)], schema=_PAIRS)

    def _task(self, file_slice: FileSlice, among: pa.Array | None = None) -> ReadTask:
        config = self.config
        keys = (RECORD_KEY,) if config.populate_meta_fields else config.record_key_fields
        columns = tuple(dict.fromkeys((*keys, self.column)))
        only = None if among is None or not file_slice.logs else tuple(among.to_pylist())
        return ReadTask(
            self.storage, config, file_slice, self.schema, columns, instants=self.instants, keys=only
        )

    def _without_others(self, gone: pa.Table, before: FileSlice | None) -> pa.Table:
        """Leave out the records whose keys are in other file groups as well."""
        if self.index is None or before is None or not gone.num_rows:
            return gone
        names = (name for name in self.index.groups if name is not None)
        found = self.index.locations(combined_chunks(gone.column(RECORD_KEY)), names)
        is_here = pc.and_(
            pc.equal(found.column(PARTITION), before.partition),
            pc.equal(found.column(FILE_ID), before.file_id),
        )
        others = combined_chunks(found.filter(pc.invert(is_here)).column(KEY))
        return gone.filter(pc.invert(pc.is_in(gone.column(RECORD_KEY), value_set=others)))


def _batches(pairs: pa.Table, *, is_removed: bool) -> Iterator[pa.RecordBatch]:
    for batch in pairs.to_batches(BATCH_ROWS):
        flags = pa.repeat(pa.scalar(is_removed), batch.num_rows)
        yield pa.RecordBatch.from_arrays([batch.column(KEY), batch.column(HASHED), flags], schema=CHANGED)


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
        groups = list(ChangedGroups(change, commit).groups())
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
        come = pc.unique(combined_chunks(rows.filter(pc.invert(flags)).column(KEY)))
        gone = pc.unique(combined_chunks(rows.filter(flags).column(KEY)))
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
