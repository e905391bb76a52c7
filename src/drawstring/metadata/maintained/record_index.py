"""Keeps the partition `record_index`: where each key is (payload and sizes of Apache Hudi 1.2.0).

    files of the instant ── keys that came or went (`key_changes`) ──> by file group of the index, spilled
                                                       file group by file group ──> records, removed keys

A key that one file group of the table loses and another one gets has moved: only its new place is written.
Updates change nothing. Compactions change nothing either; clusterings move all keys that they touch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import methodcaller
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.bounds import EXCHANGE_BYTES_MAX, worker_threads
from drawstring.config.table.config import TableConfig
from drawstring.engine.grouping import split_by
from drawstring.engine.spill import SpillingGroups
from drawstring.engine.streams import stream
from drawstring.filegroups.read.sorted_runs import SortedRun, fenced
from drawstring.filegroups.read.tasks import InstantRange
from drawstring.merge.order import number_keys
from drawstring.merge.versions import flat
from drawstring.metadata.definitions import (
    define_record_index,
    definitions,
    has_repeated_keys,
    is_partitioned_index,
    note_repeated_keys,
)
from drawstring.metadata.encoding import VALUE, encoded_values
from drawstring.metadata.locations import location_rows
from drawstring.metadata.lookups import group_numbers
from drawstring.metadata.maintained.key_changes import (
    CHANGED,
    INSTANT_MS,
    GroupKeys,
    ReadKeyChanges,
)
from drawstring.metadata.maintained.protocol import (
    GroupChange,
    InitialPartition,
    SortedGroup,
    TableChange,
    TableFacts,
)
from drawstring.metadata.maintained.repeated_keys import (
    may_repeat_keys,
    place_columns,
    repeated_since_begin,
    repeats_keys,
)
from drawstring.metadata.maintained.sizing import GLOBAL_SIZING, PARTITIONED_SIZING, records_in
from drawstring.metadata.maintained.slices import slice_at
from drawstring.metadata.metadata_table import MetadataTable
from drawstring.metadata.partitions import IS_REMOVED, KEY, RECORD_INDEX
from drawstring.metadata.record_index import (
    FILE_ID,
    PARTITION,
    RecordIndex,
    group_id,
)
from drawstring.metadata.stored.rows import ENCODED
from drawstring.model.commit import CommitMetadata, WriteOperation, WriteStat
from drawstring.model.files import BaseFile, FileSlice, FileStatus, LogFile, join_path
from drawstring.schema.meta import with_meta
from drawstring.storage.protocol import Storage
from drawstring.timeline.instants import epoch_ms_of
from drawstring.timeline.table_schema import table_schema

_SERVICES: Final = (WriteOperation.COMPACT, WriteOperation.LOG_COMPACT)
GroupIds = dict["str | None", list[str]]
"""Ids of the file groups of the index, by the partition of their keys; under None of a global index."""


@dataclass(frozen=True, slots=True)
class RecordIndexMaintainer:
    """Keeps the record index of a table; see `PartitionMaintainer`.

    Attributes:
        is_partitioned: whether an index to be built has file groups for each partition of the table; None for
            what the definition of an earlier index says.
        memory_bytes: bytes of changes to hold in memory; more of them are spilled to disk.
    """

    is_partitioned: bool | None = None
    memory_bytes: int = EXCHANGE_BYTES_MAX // 2

    def changes(self, change: TableChange) -> Iterator[GroupChange]:
        """Yield the keys that came to file groups, and those that are gone."""
        commit = change.commit
        if commit is None or commit.compacted or commit.operation in _SERVICES:
            return
        groups = list(_Touched(change, commit).groups())
        if not groups:
            return
        index = RecordIndex.of(change.metadata, change.storage.spec)
        ids: GroupIds = {name: [each.file_id for each in slices] for name, slices in index.groups.items()}
        schema = change.schema
        instants = InstantRange.of(change.timeline_after)
        is_building = RECORD_INDEX in change.metadata.building
        if is_building:  # a look-up may miss keys that it does not have yet
            read = ReadKeyChanges(change.storage.spec, change.read_config, schema, instants)
            groups = [_compared(change, each) for each in groups]
        else:
            read = ReadKeyChanges(change.storage.spec, change.read_config, schema, instants, index)
            groups = list(read.looked_up(groups))
        watches = not is_building and may_repeat_keys(change, commit, index)
        watches = watches and not has_repeated_keys(definitions(change.storage))
        place = place_columns(change.config)
        for file_id, rows in self._by_group(groups, read, ids):
            if watches and repeats_keys(rows, index, file_id, place):
                note_repeated_keys(change.storage, change.config, is_partitioned=index.is_partitioned)
                watches = False
            yield _group_change(file_id, rows)

    def define(self, storage: Storage, config: TableConfig) -> None:
        """Write whether each partition has an index of its own."""
        define_record_index(storage, config, is_partitioned=self._is_partitioned(storage))

    def _is_partitioned(self, storage: Storage) -> bool:
        if self.is_partitioned is not None:
            return self.is_partitioned
        return is_partitioned_index(definitions(storage).get(RECORD_INDEX, {}))

    def initial(self, facts: TableFacts) -> InitialPartition:
        """Return the index of the records that a table has."""
        slices = list(facts.view.all_slices())
        timezone = facts.config.timezone
        groups = [GroupKeys(None, each, epoch_ms_of(each.base_instant, timezone) or 0) for each in slices]
        ids = _new_ids(facts, slices, is_partitioned=self._is_partitioned(facts.storage))
        schema = with_meta(table_schema(facts.storage, facts.store, facts.timeline, facts.config))
        read = ReadKeyChanges(facts.storage.spec, facts.read_config, schema, InstantRange.of(facts.timeline))
        file_ids = tuple(sorted(each for some in ids.values() for each in some))
        arranged = _LastOfEachKey()
        rows = self._sorted_groups(groups, read, ids, arranged)
        return InitialPartition(file_ids, rows, partial(self._complete, arranged))

    def _complete(self, arranged: _LastOfEachKey, facts: TableFacts, metadata: MetadataTable | None) -> None:
        """Note keys that the table repeated before the index was built, or while it was."""
        repeats = arranged.repeats
        if not repeats and metadata is not None:
            repeats = repeated_since_begin(facts, RecordIndex.of(metadata, facts.storage.spec))
        if repeats:
            is_partitioned = self._is_partitioned(facts.storage)
            note_repeated_keys(facts.storage, facts.config, is_partitioned=is_partitioned)

    def _by_group(
        self, groups: Sequence[GroupKeys], read: ReadKeyChanges, ids: GroupIds
    ) -> Iterator[tuple[str, pa.Table]]:
        held = SpillingGroups(CHANGED, self.memory_bytes)
        try:
            for batch in stream(groups, read, worker_threads()):
                for file_id, part in _divided(batch, ids):
                    held.add(file_id, part)
            for file_id in sorted(map(str, held.groups())):
                yield file_id, pa.Table.from_batches(held.batches(file_id), CHANGED)
        finally:
            held.close()

    def _sorted_groups(
        self, groups: Sequence[GroupKeys], read: ReadKeyChanges, ids: GroupIds, arranged: _LastOfEachKey
    ) -> Iterator[SortedGroup]:
        held = SpillingGroups(ENCODED, self.memory_bytes, arranged)
        try:
            for batch in stream(groups, _ReadEncoded(read), worker_threads()):
                for file_id, part in _divided(batch, ids):
                    held.add(file_id, part.select(ENCODED.names))
            for file_id in sorted(map(str, held.groups())):
                yield SortedGroup(RECORD_INDEX, file_id, _merged(held.runs(file_id), arranged))
                held.drop(file_id)
        finally:
            held.close()


@dataclass(frozen=True, slots=True)
class _ReadEncoded:
    """Yields the records of the keys of a file group as they are stored, with the partition of the table."""

    read: ReadKeyChanges

    def __call__(self, group: GroupKeys) -> Iterator[pa.RecordBatch]:
        for batch in self.read(group):
            places = (batch.column(name) for name in (KEY, PARTITION, FILE_ID, INSTANT_MS))
            values = encoded_values(location_rows(*places))
            yield pa.record_batch({KEY: batch.column(KEY), PARTITION: batch.column(PARTITION), VALUE: values})


class _LastOfEachKey:
    """Sorts rows by key and keeps the last one of equal keys.

    Attributes:
        repeats: whether equal keys were at different places so far.
    """

    def __init__(self) -> None:
        self.repeats = False

    def __call__(self, batches: Sequence[pa.RecordBatch]) -> pa.Table:
        """Return the rows to keep."""
        rows = pa.Table.from_batches(batches).combine_chunks()
        rows = rows.take(pc.sort_indices(rows.column(KEY)))  # a stable sort
        keys = flat(rows.column(KEY))
        differs = pc.not_equal(keys[:-1], keys[1:])
        places = flat(rows.column(VALUE).cast(pa.large_binary()))
        moves = pc.not_equal(places[:-1], places[1:])
        self.repeats |= bool(pc.any(pc.and_not(moves, differs), min_count=0).as_py())
        return rows.filter(pa.concat_arrays([differs, pa.array([True] * min(1, len(keys)))]))


def _merged(runs: Sequence[Iterator[pa.RecordBatch]], arranged: _LastOfEachKey) -> Iterator[pa.Table]:
    """Yield the rows of sorted runs in the order of their keys, of equal keys those of the last run."""
    windows = [SortedRun([("", run)], methodcaller("column", KEY)) for run in runs]
    for parts in fenced(windows):
        yield arranged([batch for part in parts for batch in part])


def _new_ids(facts: TableFacts, slices: Sequence[FileSlice], *, is_partitioned: bool) -> GroupIds:
    """Return the ids of the file groups of a new index."""
    counts: dict[str | None, int] = defaultdict(int) if is_partitioned else defaultdict(int, {None: 0})
    for each in slices:
        counts[each.partition if is_partitioned else None] += records_in(facts.storage, each)
    sizing = PARTITIONED_SIZING if is_partitioned else GLOBAL_SIZING
    return {
        name: [group_id(number, name) for number in range(sizing.groups(records))]
        for name, records in counts.items()
    }


@dataclass(frozen=True, slots=True)
class _Touched:
    """The file groups that an instant writes to or replaces."""

    change: TableChange
    commit: CommitMetadata

    def groups(self) -> Iterator[GroupKeys]:
        by_group: dict[tuple[str, str], list[WriteStat]] = defaultdict(list)
        for stat in self.commit.stats:
            if stat.path:
                by_group[stat.partition, stat.file_id].append(stat)
        for place, stats in by_group.items():
            yield from self._written(place, stats)
        if self.commit.operation != WriteOperation.CLUSTER:
            for place in sorted(self.commit.superseded):
                before = slice_at(self.change.view, place)
                if before is not None:
                    yield GroupKeys(before, None, self._instant_ms)

    def _written(self, place: tuple[str, str], stats: list[WriteStat]) -> Iterator[GroupKeys]:
        bases = [each for each in stats if not each.is_log]
        if self.commit.operation == WriteOperation.CLUSTER:
            yield GroupKeys(None, slice_at(self.change.view_after, place), self._instant_ms)
        elif all(each.held is not None and each.held.changed_keys is not None for each in stats):
            yield from self._held(place, stats)
        elif not bases:
            logged = FileSlice(*place, self.change.instant.requested, None, tuple(map(_log_file, stats)))
            yield GroupKeys(None, slice_at(self.change.view_after, place), self._instant_ms, logged)
        elif bases[0].num_inserts or bases[0].num_deletes or not bases[0].prev_base_file:
            yield GroupKeys(_former(bases[0]), _slice_of(bases[0]), self._instant_ms)

    def _held(self, place: tuple[str, str], stats: list[WriteStat]) -> Iterator[GroupKeys]:
        for stat in stats:
            if stat.held is not None and stat.held.changed_keys is not None:
                at = FileSlice(*place, self.change.instant.requested, None)
                yield GroupKeys(None, at, self._instant_ms, held=stat.held.changed_keys)

    @property
    def _instant_ms(self) -> int:
        return epoch_ms_of(self.change.instant.requested, self.change.config.timezone) or 0


def _compared(change: TableChange, group: GroupKeys) -> GroupKeys:
    """Return a file group with the slice that it had, rather than its new log files."""
    if group.logged is None:
        return group
    return replace(group, before=slice_at(change.view, group.place), logged=None)


def _slice_of(stat: WriteStat) -> FileSlice:
    base = BaseFile.parse(FileStatus(stat.path, stat.size_bytes))
    instant = "" if base is None else base.instant
    return FileSlice(stat.partition, stat.file_id, instant, base)


def _former(stat: WriteStat) -> FileSlice | None:
    """Return the slice that a base file replaces; it has no log files, whose records would be lost."""
    if not stat.prev_base_file:
        return None
    base = BaseFile.parse(FileStatus(join_path(stat.partition, stat.prev_base_file), 0))
    return FileSlice(stat.partition, stat.file_id, stat.prev_commit, base)


def _log_file(stat: WriteStat) -> LogFile:
    file = LogFile.parse(FileStatus(stat.path, stat.size_bytes))
    if file is None:
        raise ValueError(f"{stat.path!r} is not the name of a log file")
    return file


def _divided(batch: pa.RecordBatch, ids: GroupIds) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the file groups of the index with the changes that belong to them."""
    if None in ids:
        yield from _by_hash(batch, ids[None])
        return
    for (partition,), part in split_by(batch, (PARTITION,)):
        yield from _by_hash(part, ids.setdefault(partition, [group_id(0, partition)]))


def _by_hash(batch: pa.RecordBatch, file_ids: Sequence[str]) -> Iterator[tuple[str, pa.RecordBatch]]:
    numbers = group_numbers(batch.column(KEY), len(file_ids))
    for number in np.unique(numbers):
        yield file_ids[number], batch.filter(pa.array(numbers == number))


def _group_change(file_id: str, rows: pa.Table) -> GroupChange:
    """Return what changes in a file group of the index; the last place of a key counts."""
    flags = rows.column(IS_REMOVED)
    come, gone = rows.filter(pc.invert(flags)), rows.filter(flags)
    codes, distinct = number_keys(come.column(KEY))
    last = np.zeros(distinct, np.int64)
    last[codes] = np.arange(come.num_rows)
    come = come.take(pa.array(last))
    keys, partitions, file_ids, instants = (
        flat(come.column(name)) for name in (KEY, PARTITION, FILE_ID, INSTANT_MS)
    )
    removed = pc.unique(flat(gone.column(KEY)))
    removed = removed.filter(pc.invert(pc.is_in(removed, value_set=keys)))
    records = location_rows(keys, partitions, file_ids, instants)
    return GroupChange(RECORD_INDEX, file_id, records, removed)
