"""Update the partition `record_index`: where each key is (payload and sizes of Apache Hudi 1.2.0).

    files of the instant ── keys that were added or removed ──> by file group of the index, spilled
                                                 file group by file group ──> records, removed keys

A key that one file group of the table loses and another one gets has moved: only its new location is
written. Updates and compactions change nothing. Clusterings move all keys that they touch.

The keys that an instant adds to file groups or removes from them:

    new base file              all its keys are added
    rewritten base file        the keys that it has and the former one had not, and the reverse
    log files                  of the keys in them: those that are live and not in the index at this file
                               group; and those that the index has there and that are not live any more
    replaced file group        all its keys are removed, unless a service put them elsewhere

A log file says which keys it writes or deletes, but not whether a delete is late and loses. So the slice is
merged only for keys whose location may have changed: for none in updates of records that the index knows.

Repeated keys: a table may have several records with one key, although its record index has one location for
each key.

    insert, bulk_insert     do not look keys up
    index not global        looks them up in the partition of the row, and the record index may be global

Look-ups would then miss records. So a write that brings such a key notes it in the definition of the index,
and queries do without the index from then on. Hudi ignores the note, and misses the records. The write is
not refused, because Hudi runs pipelines that repeat keys. To delete the surplus records is not enough,
since a delete removes the key from the index: `repair` rebuilds the indexes once no key is repeated.

`IndexSizing` gives the number of file groups of a new index, by the number of records of the table.
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

from drawstring.base.resources import BATCH_ROWS, EXCHANGE_BYTES_MAX, map_in_threads, worker_threads
from drawstring.config.table_config import TableConfig
from drawstring.engine.grouping import split_by
from drawstring.engine.local import stream
from drawstring.engine.spill import SpillingGroups
from drawstring.filegroups.file_slice_reader import ReadKeys
from drawstring.filegroups.file_system_view import FileGroupView
from drawstring.filegroups.log_merge import SliceMerge
from drawstring.filegroups.log_scanner import record_keys
from drawstring.filegroups.read_task import InstantRange, ReadTask
from drawstring.filegroups.sorted_merge import SortedRun, merge_by_fences
from drawstring.formats.data_file import key_summary
from drawstring.merge.record_version import combined_chunks, number_keys
from drawstring.metadata.definitions import (
    define_record_index,
    definitions,
    has_repeated_keys,
    is_partitioned_index,
    note_repeated_keys,
)
from drawstring.metadata.log_format import VALUE, encoded_values
from drawstring.metadata.partitions.maintainer import (
    GroupChange,
    InitialPartition,
    SortedGroup,
    TableChange,
    TableFacts,
)
from drawstring.metadata.reader import ENCODED
from drawstring.metadata.record_index_lookup import (
    FILE_ID,
    PARTITION,
    IndexFileGroup,
    RecordIndex,
    group_id,
    location_rows,
)
from drawstring.metadata.table import IS_REMOVED, KEY, RECORD_INDEX, MetadataTable, group_numbers
from drawstring.model.commit import CommitMetadata, WriteOperation, WriteStat
from drawstring.model.files import BaseFile, FileSlice, FileStatus, LogFile, join_path
from drawstring.schema.fields import RECORD_KEY, with_meta
from drawstring.storage.protocol import Storage, StorageSpec
from drawstring.timeline.schema import table_schema
from drawstring.timeline.timeline import epoch_ms_of

INSTANT_MS: Final = "instant_ms"
CHANGED: Final = pa.schema(
    [
        (KEY, pa.string()),
        (PARTITION, pa.string()),
        (FILE_ID, pa.string()),
        (INSTANT_MS, pa.int64()),
        (IS_REMOVED, pa.bool_()),
    ]
)
"""Columns of changes: a key, where it came to or from, when, and whether it is gone."""

_LOG_BYTES_MAX: Final = 32 << 20
"""Bytes of log files whose keys are looked up at once."""

_READ: Final = pa.schema(
    [(RECORD_KEY, pa.string()), (PARTITION, pa.string()), (FILE_ID, pa.string()), (IS_REMOVED, pa.bool_())]
)


@dataclass(frozen=True, slots=True)
class GroupKeys:
    """A file group that an instant writes to or replaces.

    Attributes:
        before: the slice whose keys it had; None for none, or if `logged` or `held` tells the changes.
        after: the slice whose keys it has; None for none.
        instant_ms: when keys that come get there, milliseconds since the epoch.
        logged: the log files of the instant alone; None if it wrote a base file.
        held: the changes, if the writer of the file knew them: columns `key` and `is_removed`.
        here: the keys of the log files that the index has in the file group.
    """

    before: FileSlice | None
    after: FileSlice | None
    instant_ms: int
    logged: FileSlice | None = None
    held: pa.Table | None = None
    here: pa.Array | None = None

    @property
    def place(self) -> tuple[str, str]:
        """Partition path and file id."""
        known = self.logged or self.after or self.before
        return ("", "") if known is None else (known.partition, known.file_id)


@dataclass(frozen=True, slots=True)
class ReadKeyChanges:
    """Yields what changes in a file group; see `CHANGED`. Picklable.

    Attributes:
        storage: opens the table.
        config: the table.
        schema: its columns with meta columns.
        instants: the instants whose log blocks count once the instant is complete.
        index: the record index before; None if it is being built.
    """

    storage: StorageSpec
    config: TableConfig
    schema: pa.Schema
    instants: InstantRange
    index: RecordIndex | None = None

    def __call__(self, group: GroupKeys) -> Iterator[pa.RecordBatch]:
        """Read one file group."""
        if group.held is not None:
            flags = group.held.column(IS_REMOVED)
            yield from self._changed(group, group.held.column(KEY).filter(flags), is_removed=True)
            yield from self._changed(group, group.held.column(KEY).filter(pc.invert(flags)))
        elif group.logged is not None:
            yield from self._logged(group, group.logged)
        elif group.before is None or group.after is None:
            known = group.before or group.after
            for keys in [] if known is None else self._live(known):
                yield from self._changed(group, keys, is_removed=group.after is None)
        else:
            yield from self._compared(group, group.before, group.after)

    def _compared(self, group: GroupKeys, before: FileSlice, after: FileSlice) -> Iterator[pa.RecordBatch]:
        old, new = (pa.chunked_array(list(self._live(each)), pa.string()) for each in (before, after))
        yield from self._changed(group, _without(old, new), is_removed=True)
        yield from self._changed(group, _without(new, old))

    def _logged(self, group: GroupKeys, logged: FileSlice) -> Iterator[pa.RecordBatch]:
        merge = SliceMerge(self._task(logged))
        named = merge.log_keys
        here = named.slice(0, 0) if group.here is None else group.here
        doubtful = pc.unique(pa.concat_arrays([merge.deleted_keys(), _without(named, here)]))
        if not len(doubtful):
            return
        live = pa.chunked_array([], pa.string())
        if group.after is not None:
            keys = self._live(group.after, doubtful)
            live = pa.chunked_array(
                [each.filter(pc.is_in(each, value_set=doubtful)) for each in keys], pa.string()
            )
        dead = _without(doubtful, live)
        yield from self._changed(group, dead.filter(pc.is_in(dead, value_set=here)), is_removed=True)
        yield from self._changed(group, _without(live, here))

    def looked_up(self, groups: Sequence[GroupKeys]) -> Iterator[GroupKeys]:
        """Yield file groups with what the index has there of the keys in their log files.

        Each look-up reads much of the index, which has keys in the order of their hashes: so the keys of as
        many file groups as fit into memory are looked up at once.
        """
        for part in _by_log_bytes(groups):
            named = map_in_threads(self._named, part, worker_threads())
            if self.index is not None and self.index.is_partitioned:
                by_partition: dict[str, list[int]] = defaultdict(list)
                for number, group in enumerate(part):
                    by_partition[group.place[0]].append(number)
                numbers_at_once = list(by_partition.values())
            else:
                numbers_at_once = [list(range(len(part)))]
            for numbers in numbers_at_once:
                found = self._locations([named[each] for each in numbers], part[numbers[0]].place[0])
                for each in numbers:
                    yield replace(part[each], here=_at(found, part[each].place))

    def _named(self, group: GroupKeys) -> pa.Array:
        """Return the keys in the log files of a file group."""
        if group.logged is None:
            return pa.array([], pa.string())
        return SliceMerge(self._task(group.logged)).log_keys

    def _locations(self, keys: Sequence[pa.Array], partition: str) -> pa.Table | None:
        wanted = pc.unique(pa.chunked_array(list(keys), pa.string()))
        return self.index.locations(wanted, (partition,)) if self.index is not None and len(wanted) else None

    def _live(self, file_slice: FileSlice, among: pa.Array | None = None) -> Iterator[pa.Array]:
        """Yield the keys of the live records of a slice, or at least those among some keys."""
        if among is None:
            read = ReadKeys(self.storage, self.config, self.schema, self.instants, _READ)
            for batch in read(file_slice):
                yield batch.filter(pc.invert(batch.column(IS_REMOVED))).column(RECORD_KEY)
            return
        task = replace(self._task(file_slice), keys=tuple(among.to_pylist()))
        for batch in SliceMerge(task).batches():
            yield record_keys(batch, self.config)

    def _task(self, file_slice: FileSlice) -> ReadTask:
        config = self.config
        columns = (RECORD_KEY,) if config.populate_meta_fields else config.record_key_fields
        return ReadTask(self.storage, config, file_slice, self.schema, columns, instants=self.instants)

    def _changed(
        self, group: GroupKeys, keys: pa.Array | pa.ChunkedArray, *, is_removed: bool = False
    ) -> Iterator[pa.RecordBatch]:
        values = (*group.place, group.instant_ms, is_removed)
        for start in range(0, len(keys), BATCH_ROWS):
            part = combined_chunks(keys.slice(start, BATCH_ROWS))
            constants = (pa.repeat(pa.scalar(each), len(part)) for each in values)
            yield pa.RecordBatch.from_arrays([part, *constants], schema=CHANGED)


def _by_log_bytes(groups: Sequence[GroupKeys]) -> Iterator[list[GroupKeys]]:
    """Yield the file groups in parts whose log files come to a bounded number of bytes."""
    part: list[GroupKeys] = []
    size_bytes = 0
    for group in groups:
        logs = () if group.logged is None else group.logged.logs
        own_bytes = sum(log.status.size_bytes for log in logs)
        if part and size_bytes + own_bytes > _LOG_BYTES_MAX:
            yield part
            part, size_bytes = [], 0
        part.append(group)
        size_bytes += own_bytes
    if part:
        yield part


def _at(found: pa.Table | None, place: tuple[str, str]) -> pa.Array:
    """Return the keys that are in a file group."""
    if found is None:
        return pa.array([], pa.string())
    partition, file_id = place
    is_here = pc.and_(pc.equal(found.column(PARTITION), partition), pc.equal(found.column(FILE_ID), file_id))
    return combined_chunks(found.column(KEY).filter(is_here))


def _without(keys: pa.Array | pa.ChunkedArray, others: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the keys that are not among others."""
    known = combined_chunks(keys)
    return known.filter(pc.invert(pc.is_in(known, value_set=combined_chunks(others))))


_LOOKED_UP: Final = (WriteOperation.UPSERT, WriteOperation.DELETE)
_MOVING_OPERATIONS: Final = (WriteOperation.CLUSTER, WriteOperation.BUCKET_RESCALE)


def may_repeat_keys(change: TableChange, commit: CommitMetadata, index: RecordIndex) -> bool:
    """Return whether a write may bring keys that the table has elsewhere.

    One that looked its keys up in all partitions does not: it moved those that were in another one, and lost
    to writes that brought the same keys meanwhile.

    Args:
        change: what it changes.
        commit: its metadata.
        index: the record index of the table.
    """
    if commit.operation in _MOVING_OPERATIONS:
        return False
    if all(each.held is not None and each.held.is_looked_up for each in commit.stats):
        return False
    looks_everywhere = index.is_partitioned or not change.config.partition_fields  # whatever its options name
    return commit.operation not in _LOOKED_UP or not looks_everywhere


def place_columns(config: TableConfig) -> Sequence[str]:
    """Return the columns that tell one place of a key from another one.

    While buckets are resized, a record is in the old and in the new file group of its bucket.
    """
    return (PARTITION,) if config.index_type == "BUCKET" else (PARTITION, FILE_ID)


def repeats_keys(rows: pa.Table, index: RecordIndex, file_id: str, place: Sequence[str]) -> bool:
    """Return whether keys that come to file groups are in others, too.

    Args:
        rows: the changes of one file group of the index; see `CHANGED`.
        index: the index before.
        file_id: the file group.
        place: see `place_columns`.

    Raises:
        CorruptTableError: a file of the index is missing or damaged.
    """
    columns = [KEY, *place]
    flags = rows.column(IS_REMOVED)
    come = rows.filter(pc.invert(flags)).select(columns)
    if not come.num_rows:
        return False
    keys = pc.unique(come.column(KEY).combine_chunks())
    slices = (each for some in index.groups.values() for each in some if each.file_id == file_id)
    known = [batch.select(columns) for each in slices for batch in index.read(IndexFileGroup(each, keys))]
    gone = rows.filter(flags).select(columns).group_by(columns).aggregate([])
    before = pa.Table.from_batches(known, come.schema).join(gone, columns, join_type="left anti")
    places = pa.concat_tables([before, come]).group_by(columns).aggregate([])
    return bool(places.num_rows > len(keys))


def repeated_since_begin(facts: TableFacts, index: RecordIndex) -> bool:
    """Return whether writes repeated keys while an index was built, when they could not look them up in it.

    Args:
        facts: the table, locked.
        index: its index, of which the base files are written; what writes added is in its log files.

    Raises:
        CorruptTableError: a file of the index is missing or damaged.
    """
    columns = [KEY, *place_columns(facts.config)]
    for file_slice in (each for some in index.groups.values() for each in some):
        places = _several(index.logged(file_slice), columns)
        if _several(places, [KEY, PARTITION]).num_rows:
            return True
        if places.num_rows:  # those in file groups that were clustered since are none any more
            known = {(each.partition, each.file_id) for each in _latest(facts, places)}
            at = zip(places.column(PARTITION).to_pylist(), places.column(FILE_ID).to_pylist(), strict=True)
            is_known = pa.array([each in known for each in at], pa.bool_())
            if _several(places.filter(is_known), columns).num_rows:
                return True
    return False


def _several(places: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return the places of the keys that have several."""
    distinct = places.group_by(columns).aggregate([]).group_by(KEY).aggregate([([], "count_all")])
    keys = distinct.filter(pc.greater(distinct.column("count_all"), 1)).column(KEY)
    return places.filter(pc.is_in(places.column(KEY), value_set=keys))


def _latest(facts: TableFacts, places: pa.Table) -> Iterator[FileSlice]:
    for path in pc.unique(places.column(PARTITION)).to_pylist():
        yield from facts.view.slices(path)


def slice_at(view: FileGroupView, place: tuple[str, str]) -> FileSlice | None:
    """Return the slice of a file group, given by partition path and file id; None without one."""
    partition, file_id = place
    return next((each for each in view.slices(partition) if each.file_id == file_id), None)


_GIB: Final = 1 << 30
_RECORD_BYTES: Final = 48
"""Bytes of a record that Hudi expects when it chooses the number of file groups."""

_SMALL_BYTES: Final = 1 << 20
"""Size of base files whose records do not count: the number of file groups depends on millions."""


@dataclass(frozen=True, slots=True)
class IndexSizing:
    """How many file groups an index gets.

    Attributes:
        groups_min, groups_max: bounds of the number.
        growth: factor by which the number of records may grow
            (`hoodie.metadata.record.index.growth.factor`).
        group_bytes_max: size of a file group (`hoodie.metadata.record.index.max.filegroup.size`).
    """

    groups_min: int = 10
    groups_max: int = 10_000
    growth: float = 2.0
    group_bytes_max: int = _GIB

    def groups(self, records: int) -> int:
        """Return the number of file groups for a number of records."""
        if self.groups_min == self.groups_max:
            return self.groups_min
        expected = int(np.ceil(records * self.growth)) // max(1, self.group_bytes_max // _RECORD_BYTES)
        return min(max(expected, self.groups_min), self.groups_max)


GLOBAL_SIZING: Final = IndexSizing()
PARTITIONED_SIZING: Final = IndexSizing(1, 10)


def records_in(storage: Storage, file_slice: FileSlice) -> int:
    """Return the number of records in the base file of a slice, 0 for a small one.

    Args:
        storage: the table's files.
        file_slice: one of its slices.

    Raises:
        CorruptTableError: the base file is missing or damaged.
    """
    base = file_slice.base
    if base is None or base.status.size_bytes < _SMALL_BYTES:
        return 0
    summary = key_summary(storage, base.status.path)
    return 0 if summary is None else summary.rows


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
        groups = list(_ChangedGroups(change, commit).groups())
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
        keys = combined_chunks(rows.column(KEY))
        differs = pc.not_equal(keys[:-1], keys[1:])
        places = combined_chunks(rows.column(VALUE).cast(pa.large_binary()))
        moves = pc.not_equal(places[:-1], places[1:])
        self.repeats |= bool(pc.any(pc.and_not(moves, differs), min_count=0).as_py())
        return rows.filter(pa.concat_arrays([differs, pa.array([True] * min(1, len(keys)))]))


def _merged(runs: Sequence[Iterator[pa.RecordBatch]], arranged: _LastOfEachKey) -> Iterator[pa.Table]:
    """Yield the rows of sorted runs in the order of their keys, of equal keys those of the last run."""
    windows = [SortedRun([("", run)], methodcaller("column", KEY)) for run in runs]
    for parts in merge_by_fences(windows):
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
class _ChangedGroups:
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
        combined_chunks(come.column(name)) for name in (KEY, PARTITION, FILE_ID, INSTANT_MS)
    )
    removed = pc.unique(combined_chunks(gone.column(KEY)))
    removed = removed.filter(pc.invert(pc.is_in(removed, value_set=keys)))
    records = location_rows(keys, partitions, file_ids, instants)
    return GroupChange(RECORD_INDEX, file_id, records, removed)
