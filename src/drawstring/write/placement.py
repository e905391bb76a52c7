r"""Prepare the rows of a write in workers, and place them in the files of their file groups.

Preparing gives every row its record key, partition path and location. Placing gives each file group its
rows:

rows of one group --- no slice yet -----------------> new base file(s); with an id that all writers give the
                  |                                   file group: a log file
                  \-- MERGE_ON_READ ----------------> log file on the slice
                   \- COPY_ON_WRITE, or small file --> base file rewritten with the changes

Large file groups are placed in pieces that fit in memory; all rows of a key are in one piece:

rows ── fit into memory ──> one piece
    \─ do not ───────────> partitioned by a hash of the key, spilled to disk beyond a bound;
                            sorted there for sorted files (`lsm_tree`), each piece a range of keys

Repeated records: a table may have several records with one key in a file group, and a condition may change
only some of them. A change names its record by its key, in log files and when a base file is rewritten. So
an UPDATE, DELETE or MERGE would change all rows with the key, or lose some. `RepeatedRecords` refuses it.

To find them, `base_counts` counts how often each key is in the base file, from the key columns only. A file
slice has at most as many records with a key as its base file has rows with it, or one record of a log file:
log files have one record for each key once they are merged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base import limits
from drawstring.base.clock import Ids
from drawstring.base.errors import InvalidError
from drawstring.base.resources import BATCH_ROWS
from drawstring.config.table_config import TableConfig, TableType
from drawstring.engine.grouping import GroupKey, coalesced, contiguous_groups, first_batches, grouped_ahead
from drawstring.engine.spill import SpillingGroups, sorted_order
from drawstring.filegroups.append_handle import LOG_WRITERS, LogTarget, log_content, log_name
from drawstring.filegroups.base_file_writer import (
    FileSettings,
    MetaColumnWriter,
    NewFileGroupWriter,
    announced_successor,
    close_together,
    ensure_partition_metadata,
    with_generated_keys,
)
from drawstring.filegroups.copy_on_write import extend_slice, rewrite_slice
from drawstring.filegroups.file_slice_reader import ReadKeys
from drawstring.filegroups.file_system_view import SliceLookup
from drawstring.filegroups.late_materialization import may_stage
from drawstring.filegroups.log_merge import KeyTexts
from drawstring.filegroups.log_scanner import key_numbers
from drawstring.filegroups.read_task import ReadTask, nullable
from drawstring.filegroups.sorted_merge import sorted_by_key
from drawstring.filegroups.write.changes import (
    ACTION,
    Changes,
    RowAction,
    acted,
    deletes,
    joined,
    split_deletes,
    upserts,
)
from drawstring.filegroups.write.markers import TOGETHER_MIN
from drawstring.formats.parquet.staged import staged
from drawstring.index.protocol import (
    IS_DELETED,
    LOCATION,
    LOCATION_SCHEMA,
    UNKNOWN,
    DualWrite,
    Index,
    Location,
)
from drawstring.index.tag_context import TagContext
from drawstring.keygen.key_generator import KeyGenerator
from drawstring.merge.record_version import Array, combined_chunks
from drawstring.model.commit import WriteStat
from drawstring.model.files import FileSlice, TaskContext, join_path
from drawstring.schema.evolution import conform
from drawstring.schema.fields import PARTITION_PATH, RECORD_KEY
from drawstring.storage import open_spec
from drawstring.storage.protocol import Storage
from drawstring.write.assign_inserts import IS_NEW, key_places


def in_key_ranges(rows: Iterator[pa.RecordBatch], bytes_max: int) -> Iterator[pa.Table]:
    """Divide rows of a sorted file group (`place.in_pieces`): a piece follows those with lower keys.

    So they can be written to one sorted file, piece by piece.

    Args:
        rows: prepared rows, which are not all in memory.
        bytes_max: about how many bytes of rows a piece has.
    """
    yield from _cut(sorted_by_key(rows, bytes_max), bytes_max)


def _cut(batches: Iterator[pa.RecordBatch], bytes_max: int) -> Iterator[pa.Table]:
    """Cut sorted rows between two keys wherever there are enough rows."""
    held: list[pa.RecordBatch] = []
    held_bytes = 0
    for batch in batches:
        if held_bytes > bytes_max:
            last = held[-1].column(RECORD_KEY)[-1]
            same = pc.sum(pc.equal(batch.column(RECORD_KEY), last)).as_py() or 0
            if same:
                held.append(batch.slice(0, same))
            if same < batch.num_rows:
                yield pa.Table.from_batches(held)
                held, held_bytes = [], 0
            batch = batch.slice(same)
        if batch.num_rows:
            held.append(batch)
            held_bytes += batch.nbytes
    if held:
        yield pa.Table.from_batches(held)


@dataclass(frozen=True, slots=True)
class Prepare:
    """A batch function that adds key, partition path and, with an index that hashes, the location.

    Attributes:
        config: the table.
        schema: columns that the write keeps: the table's, none for a delete.
        key_schema: columns that keys and partition paths are made from, as the table types them.
        index: the index of the write.
    """

    config: TableConfig
    schema: pa.Schema
    key_schema: pa.Schema
    index: Index

    @property
    def output_schema(self) -> pa.Schema:
        """Columns of the prepared batches."""
        added = (
            [RECORD_KEY, PARTITION_PATH, LOCATION] if self.index.is_hashed else [RECORD_KEY, PARTITION_PATH]
        )
        return pa.schema([*self.schema, *(pa.field(name, pa.string()) for name in added)])

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Prepare a stream of batches.

        Raises:
            InvalidError: a record key is null, or a column does not fit the table.
        """
        generator = KeyGenerator(self.config, is_writing=True)
        output = self.output_schema
        for batch in batches:
            # Of no columns a batch would have no rows either.
            named = conform(batch, self.key_schema) if self.key_schema.names else batch
            keys, paths = generator.keys_and_paths(named)
            columns = [*conform(batch, self.schema).columns, keys, paths]
            locations = self.index.locations(keys, paths)
            if locations is not None:
                columns.append(locations)
            yield pa.RecordBatch.from_arrays(columns, schema=output)


_PIECES: Final = 64
_HASH_FACTOR: Final = 1_048_573
"""The hash places of a file group's keys lie close together: this factor takes further digits of them."""


def in_pieces(rows: Iterator[pa.RecordBatch], *, is_sorted: bool = False) -> Iterator[pa.Table]:
    """Yield the rows of a file group in pieces; all rows of a key are in one piece, in their order.

    Args:
        rows: prepared rows, at least one batch.
        is_sorted: whether a piece follows those with lower keys, if there are several.
    """
    bytes_max = limits.in_force.piece_bytes_max
    held, held_bytes = first_batches(rows, bytes_max)
    if held_bytes <= bytes_max:
        yield pa.Table.from_batches(held)
    elif is_sorted:
        yield from in_key_ranges(chain(held, rows), bytes_max)
    else:
        yield from _divided(chain(held, rows), held[0].schema, bytes_max)


def _divided(rows: Iterator[pa.RecordBatch], schema: pa.Schema, bytes_max: int) -> Iterator[pa.Table]:
    pieces = SpillingGroups(schema, bytes_max)
    try:
        for batch in rows:
            numbers = ((key_places(batch.column(RECORD_KEY)) * _HASH_FACTOR) % 1.0 * _PIECES).astype(np.int64)
            for number in np.unique(numbers).tolist():
                pieces.add(number, batch.filter(pa.array(numbers == number)))
        for group in pieces.groups():
            yield pa.Table.from_batches(list(pieces.batches(group)))
            pieces.drop(group)
    finally:
        pieces.close()


@dataclass(frozen=True, slots=True)
class PlaceGroups:
    """Task that writes rows grouped by partition and location.

    Attributes:
        settings: settings of the write.
        index: index of the write.
        lookup: slices of the table; None if every file group is new (overwrite).
        ids: generates file ids.
        is_delete: whether the rows are keys to delete.
        combine: whether duplicate keys are merged.
        filled: file groups (partition path, file id) whose base file is rewritten if they get new records.
        merges: whether a record replaces one with the same key; otherwise it is added, except to sorted
            files, which have a key once.
        sort_by: sort columns of the rows of a new file group.
        grouping: the grouping columns, the partition path first.
        dual_write: dual write of buckets that are being resized.
        repeated: refuses to change some of several records with a key; None where rows mean all of them.
    """

    settings: FileSettings
    index: Index
    lookup: SliceLookup | None
    ids: Ids
    is_delete: bool = False
    combine: bool = True
    filled: frozenset[tuple[str, str]] = frozenset()
    merges: bool = True
    sort_by: tuple[str, ...] = ()
    grouping: tuple[str, ...] = (PARTITION_PATH, LOCATION)
    dual_write: DualWrite | None = None
    repeated: RepeatedRecords | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch], context: TaskContext) -> Iterator[WriteStat]:
        """Write the file groups of one task."""
        storage = open_spec(self.settings.storage)
        meta_columns = self.settings.meta_column_writer(context.task)
        work = _GroupWork(self, storage, meta_columns, context)
        rows_with_keys = with_record_keys(coalesced(batches), self.settings, context.task)
        for groups in grouped_ahead(contiguous_groups(rows_with_keys, self.grouping)):
            work.announce([self._place_of(key) for key, _ in groups])
            try:
                for key, rows in groups:
                    yield from work.place(*self._place_of(key), rows)
                yield from work.finish()
            except BaseException:
                work.abort()
                raise

    def _place_of(self, key: GroupKey) -> tuple[str, Location]:
        partition, *texts = key
        return partition, Location.decode(texts[0], is_hashed=self.index.is_hashed) if texts else UNKNOWN


class _GroupWork:
    """Writes the file groups of one task, one after the other; new ones are finished together."""

    def __init__(
        self, task: PlaceGroups, storage: Storage, meta_columns: MetaColumnWriter, context: TaskContext
    ) -> None:
        self._task = task
        self._storage = storage
        self._meta_columns = meta_columns
        self._context = context
        self._targets: dict[tuple[str, Location], FileSlice | None] = {}
        self._new: dict[tuple[str, Location], tuple[NewFileGroupWriter, str | None]] = {}

    def announce(self, places: Sequence[tuple[str, Location]]) -> None:
        """Look at the markers of rivals again, and have those of the next groups made together.

        Only groups that are written in the usual way have theirs made together.
        """
        if self._task.lookup is not None:
            self._task.lookup.reload_rival_markers()
        if len(places) >= TOGETHER_MIN and self._task.dual_write is None:
            files = [file for each in places for file in self._announced(*each)]
            self._task.settings.markers(self._storage).expect(files)

    def _announced(self, partition: str, location: Location) -> Iterator[tuple[str, str]]:
        """Yield the paths of the files that a group may get, and the types of their markers."""
        task, token, settings = self._task, self._context.write_token, self._task.settings
        target = self._targets[partition, location] = self._target(partition, location)
        if target is None:
            if not (task.is_delete or self._shared_group(partition, location)):
                groups, file_id = self._new_groups(partition, location)
                yield groups.announced(file_id)
            return
        is_log = self._merges and settings.config.table_type is TableType.MERGE_ON_READ
        if is_log:
            name, _ = log_name(LogTarget(settings, self._storage, target, token))
            yield join_path(partition, name), settings.config.rules.log_marker
        if not is_log or (partition, target.file_id) in task.filled:
            yield announced_successor(settings, target, token)

    @property
    def _merges(self) -> bool:
        return self._task.merges or self._task.settings.config.has_sorted_files

    def finish(self) -> Iterator[WriteStat]:
        """Finish the files of new file groups."""
        if self._new:
            yield from close_together([groups for groups, _ in self._new.values()])
            self._new = {}

    def abort(self) -> None:
        """Give up the files that are open."""
        for groups, _ in self._new.values():
            groups.abort()

    def place(
        self, partition: str, location: Location, rows: Iterator[pa.RecordBatch]
    ) -> Iterator[WriteStat]:
        task = self._task
        if task.dual_write and task.lookup:
            new_bucket = task.dual_write.target(partition, location, task.lookup)
            if new_bucket is not None:
                yield from self._log(new_bucket, self._pieces(rows), named_by=new_bucket.base_instant)
                return
        target = self._target(partition, location)
        if target is None:
            yield from self._create(partition, location, rows)
            return
        if not self._merges:
            yield self._extend(target, rows)
            return
        pieces = self._pieces(rows)
        if task.repeated is not None:
            pieces = task.repeated.refused(target, pieces, is_delete=task.is_delete)
        if task.settings.config.table_type is TableType.MERGE_ON_READ:
            yield from self._append(target, pieces)
        else:
            yield from self._rewrite(target, joined([self._changes(piece) for piece in pieces]))

    def _pieces(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        return in_pieces(rows, is_sorted=self._task.settings.config.has_sorted_files)

    def _append(self, target: FileSlice, pieces: Iterator[pa.Table]) -> Iterator[WriteStat]:
        """Write a log file, or rewrite the base file if new records fill it; these fit into memory."""
        task = self._task
        if (target.partition, target.file_id) in task.filled:
            rows = pa.concat_tables(list(pieces))
            if pc.any(rows.column(IS_NEW)).as_py():
                yield from self._rewrite(target, self._changes(rows))
                return
            pieces = iter((rows,))
        yield from self._log(target, pieces)

    def _log(
        self, target: FileSlice, pieces: Iterator[pa.Table], named_by: str | None = None
    ) -> Iterator[WriteStat]:
        settings = replace(self._task.settings, logs_named_by=named_by) if named_by else self._task.settings
        changes = (each for each in map(self._changes, pieces) if not each.is_nothing)
        first = next(changes, None)
        if first is not None:
            token = self._context.write_token
            place = LogTarget(settings, self._storage, target, token, may_be_planned=True)
            pieces = (log_content(place, each, self._meta_columns) for each in chain((first,), changes))
            yield from LOG_WRITERS[settings.config.rules.log_format](place, pieces)

    def _rewrite(self, target: FileSlice, changes: Changes) -> Iterator[WriteStat]:
        if not changes.is_nothing:
            settings = self._task.settings
            stat = rewrite_slice(settings, self._storage, target, changes, self._meta_columns, self._context)
            if stat is not None:
                yield stat

    def _target(self, partition: str, location: Location) -> FileSlice | None:
        if (partition, location) in self._targets:
            return self._targets.pop((partition, location))
        lookup = self._task.lookup
        if lookup is None or location.is_new:
            return None
        target = self._task.index.slice_for(location, lookup.slices(partition))
        if target is not None:
            lookup.refuse_pending_clustering(target.partition, target.file_id)
            lookup.refuse_rivals(target.partition, target.file_id)
        return target

    def _extend(self, target: FileSlice, rows: Iterator[pa.RecordBatch]) -> WriteStat:
        added = self._resolved(rows)
        return extend_slice(
            self._task.settings, self._storage, target, added, self._meta_columns, self._context
        )

    def _changes(self, rows: pa.Table) -> Changes:
        if self._task.is_delete:
            return deletes(rows)
        return acted(rows, self._task.settings)

    def _create(
        self, partition: str, location: Location, rows: Iterator[pa.RecordBatch]
    ) -> Iterator[WriteStat]:
        if self._task.is_delete:
            return
        task = self._task
        shared = self._shared_group(partition, location)
        if shared is not None:
            ensure_partition_metadata(self._storage, partition, task.settings.instant)
            yield from self._log(shared, self._pieces(rows))
            return
        groups, file_id = self._new_groups(partition, location)
        for batch in self._resolved(rows):
            groups.write(batch, file_id)

    def _new_groups(self, partition: str, location: Location) -> tuple[NewFileGroupWriter, str | None]:
        """Return the writer of a new file group, and the file id if the location determines it."""
        place, task = (partition, location), self._task
        if place not in self._new:
            how = self._context, self._meta_columns, task.ids
            file_id = task.index.new_file_id(location, task.ids) if task.index.is_hashed else None
            self._new[place] = NewFileGroupWriter(task.settings, self._storage, partition, *how), file_id
        return self._new[place]

    def _shared_group(self, partition: str, location: Location) -> FileSlice | None:
        """Return the empty slice of a new file group that other writers may begin at the same moment."""
        lookup = self._task.lookup
        file_id = self._task.index.shared_file_id(location)
        if lookup is None or file_id is None or lookup.was_replaced(partition, file_id):
            return None
        return FileSlice(partition, file_id, self._task.settings.instant, None)

    def _resolved(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settings = self._task.settings
        if settings.config.has_sorted_files:
            for piece in self._pieces(rows):
                yield from sorted_by_key(acted(piece, settings).records.to_batches())
        elif self._task.combine and not self._task.sort_by:
            yield from self._merged(rows)
        elif self._task.sort_by:
            table = pa.Table.from_batches(list(rows))
            combine = self._task.combine
            changes = upserts(table, settings) if combine else split_deletes(table, settings.config)
            ordered = changes.records.take(sorted_order(changes.records, self._task.sort_by))
            yield from ordered.to_batches(max_chunksize=BATCH_ROWS)
        else:
            for batch in rows:
                yield from split_deletes(pa.Table.from_batches([batch]), settings.config).records.to_batches()

    def _merged(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for piece in in_pieces(rows):
            yield from acted(piece, self._task.settings).records.to_batches()


def with_record_keys(
    batches: Iterator[pa.RecordBatch], settings: FileSettings, task: int
) -> Iterator[pa.RecordBatch]:
    """Yield prepared rows with record keys, generated if the table has no key columns."""
    if settings.config.record_key_fields:
        return batches
    return with_generated_keys(batches, settings.instant, task)


def base_counts(task: ReadTask, keys: pa.Array) -> Array | None:
    """Return how many rows of the base file of a slice have each of some keys.

    Args:
        task: the slice, and the table.
        keys: distinct record keys (string).

    Returns:
        None if the base file is not a Parquet file that has all columns under their names.

    Raises:
        CorruptTableError: the base file is missing or damaged.
    """
    base = task.file_slice.base
    counts = np.zeros(len(keys), np.int64)
    if base is None:
        return counts
    if not may_stage(task):
        return None
    with staged(open_spec(task.storage), base.status.path, task.schema, None) as file:
        present = {*file.schema.names}
        stored = pa.schema([each for each in task.schema if each.name in present])
        wanted = key_numbers(keys, task.config, stored, ()) or KeyTexts(keys, task.config)
        columns = tuple(wanted.columns)
        if not present.issuperset(columns):
            return None
        texts = keys.cast(pa.binary()) if task.config.populate_meta_fields else None
        groups = [group for group in file.groups if texts is None or file.may_have_any(group, texts)]
        for span in file.spans(groups):
            for batch in file.rows(span, columns):
                _, numbers = wanted.find(conform(batch, nullable(task.schema, columns)))
                counts += np.bincount(numbers, minlength=len(keys))
    return counts


@dataclass(frozen=True, slots=True)
class RepeatedRecords:
    """Refuses changes of some of several records with a key. Picklable.

    Attributes:
        read: reads the keys of a slice.
    """

    read: ReadKeys

    @staticmethod
    def of(context: TagContext) -> RepeatedRecords:
        """Return the check for a write."""
        return RepeatedRecords(context.key_reader(LOCATION_SCHEMA))

    def refused(
        self, file_slice: FileSlice, pieces: Iterator[pa.Table], *, is_delete: bool
    ) -> Iterator[pa.Table]:
        """Yield the rows, which change records of a slice.

        Args:
            file_slice: the slice.
            pieces: prepared rows of its file group, perhaps with actions; those of a key together.
            is_delete: whether all of them are deletes.

        Raises:
            InvalidError: the slice has more records with a key, or several of one to update or merge.
        """
        for rows in pieces:
            self._check(file_slice, rows, is_delete=is_delete)
            yield rows

    def _check(self, file_slice: FileSlice, rows: pa.Table, *, is_delete: bool) -> None:
        actions = combined_chunks(rows.column(ACTION)) if ACTION in rows.column_names else None
        changed = combined_chunks(rows.column(RECORD_KEY))
        if actions is not None:
            changed = changed.filter(pc.not_equal(actions, int(RowAction.INSERT)))
        keys = pc.unique(changed)
        if not len(keys):
            return
        # Rows with actions were tagged, which finds a repeated record as often as it is there.
        is_plain = is_delete and actions is None
        wanted = _counts(keys, changed) if is_plain else np.ones(len(keys), np.int64)
        in_base = base_counts(self.read.task(file_slice), keys)
        if in_base is not None and (in_base <= wanted).all():
            return
        stored = np.zeros(len(keys), np.int64)
        for batch in self.read(file_slice):
            stored += _counts(keys, batch.column(RECORD_KEY).filter(pc.invert(batch.column(IS_DELETED))))
        if (stored > wanted).any():
            key = keys[int(np.argmax(stored > wanted))].as_py()
            raise InvalidError(
                f"The table has several records with the key {key!r} in one file group, and this would change"
                " some of them, or give them different values. Records are changed by their key, so all of"
                " them would change. Delete all records with the key, then insert those that shall stay; or"
                " write the rows of the partition that shall stay by insert_overwrite.",
                path=f"{file_slice.partition}/{file_slice.file_id}".lstrip("/"),
            )


def _counts(keys: pa.Array, among: pa.Array) -> Array:
    """Return how often each of some distinct keys is among others."""
    found = pc.index_in(among, value_set=keys).drop_null().to_numpy(zero_copy_only=False)
    return np.bincount(found, minlength=len(keys))
