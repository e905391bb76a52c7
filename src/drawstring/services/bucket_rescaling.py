"""Rewrite of partitions into another number of buckets, in one replacecommit (RFC-89).

partitions, count ── rules ──> partitions whose count changes ── read, hash, shuffle ──> a base file a bucket
        ──> hashing config at the time of the commit, which counts once it is completed ──> replacecommit

The table lock is held throughout, and no other write may be pending: a writer that planned with the old count
would put new keys where nobody looks for them. Rows keep their commit times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from drawstring.base.clock import Ids, Stopwatch
from drawstring.base.errors import ConflictError, InvalidError
from drawstring.config.options.write_options import WriteOptions
from drawstring.engine.grouping import coalesced, contiguous_groups
from drawstring.filegroups.base_file_writer import BaseFileWriter, FileSettings, as_stored, with_record_keys
from drawstring.filegroups.file_slice_reader import read_slice
from drawstring.filegroups.file_system_view import SliceLookup
from drawstring.filegroups.read_task import InstantRange, ReadTask, nullable
from drawstring.filegroups.sorted_merge import sorted_by_key
from drawstring.formats.metadata.commit import encode_requested_replace
from drawstring.index.bucket import BucketCounts, BucketIndex, save_counts
from drawstring.index.existing_writes import ExistingWrites
from drawstring.index.factory import choose_index
from drawstring.index.protocol import LOCATION, Location
from drawstring.model.commit import CommitMetadata, WriteOperation, WriteStat
from drawstring.model.files import TaskContext
from drawstring.model.instant import Action
from drawstring.model.result import CommitResult
from drawstring.schema.fields import RECORD_KEY
from drawstring.services.compaction_task import file_settings
from drawstring.storage import open_spec
from drawstring.timeline.properties import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.conflict_resolution import write_lookup
from drawstring.txn.events import emit_commit
from drawstring.txn.reservations import Parts, refuse_reserved
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import LockedTable, begin, lock_table, recover_and_load
from drawstring.write.delete_partition import refuse_pending_compactions
from drawstring.write.replaced_file_groups import replaced_groups

RESCALE: Final = "rescale_buckets"
_PARTITION: Final = "_drawstring_partition"
_ALL: Final = ".*"
_SPECIAL: Final = re.compile(r"[\x00-\x7f]")


def rescale_buckets(
    context: TableContext, buckets: int, partitions: Sequence[str] | None, options: WriteOptions
) -> CommitResult:
    """Give partitions another number of buckets, and rewrite those that exist.

    Args:
        context: the open table.
        buckets: the number.
        partitions: partition paths, in which `*` matches any text; None for all.
        options: of writes: codec, lock wait.

    Raises:
        ConflictError: another write is pending, or a file group is part of a pending compaction.
        InvalidError: the table has no simple bucket index or rows, or the number is invalid.
    """
    if buckets < 1:
        raise InvalidError(f"{buckets} is no number of buckets. Use a number from 1 on.")
    return _rescale(context, lambda counts: _ruled(counts, buckets, partitions), options)


@dataclass(frozen=True, slots=True)
class BucketRules:
    """Numbers of buckets that a table shall have.

    Attributes:
        expressions: `pattern,count;pattern,count`: the first pattern that a partition path has applies.
        default: number for other partitions; None for the one that the table has.
        is_added: whether the rules of the table stay and apply behind these.
    """

    expressions: str
    default: int | None = None
    is_added: bool = False

    def instead_of(self, counts: BucketCounts) -> BucketCounts:
        """Return the counts that these rules make of those of a table.

        Raises:
            InvalidError: a rule or the default is invalid.
        """
        if self.default is not None and self.default < 1:
            raise InvalidError(f"{self.default} is no number of buckets. Use a number from 1 on.")
        stays = counts.expressions if self.is_added else ""
        expressions = f"{self.expressions};{stays}" if stays else self.expressions
        return BucketCounts(self.default or counts.default, expressions).check()


def rescale_by_rules(context: TableContext, rules: BucketRules, options: WriteOptions) -> CommitResult:
    """Give a table other rules for its numbers of buckets, and rewrite the partitions that have others.

    Args:
        context: the open table.
        rules: the rules.
        options: of writes: codec, lock wait.

    Raises:
        ConflictError: as `rescale_buckets`.
        InvalidError: as `rescale_buckets`.
    """
    return _rescale(context, rules.instead_of, options)


def plan_rescaling(context: TableContext, rules: BucketRules, options: WriteOptions) -> dict[str, int]:
    """Return the partitions that `rescale_by_rules` would rewrite, with their new numbers of buckets."""
    config = load_config(context.storage)
    store = TimelineStore(context.storage, config, context.clock)
    timeline = store.load()
    index = _bucket_index(ExistingWrites(context.storage, config, store, timeline), options)
    counts = rules.instead_of(index.counts)
    return {path: counts.of(path) for path in _moved(context.lookup(config, timeline), index, counts)}


def _rescale(
    context: TableContext, counts_of: Callable[[BucketCounts], BucketCounts], options: WriteOptions
) -> CommitResult:
    """Rewrite the partitions whose number of buckets changes."""
    watch = Stopwatch()
    with lock_table(context, options.locking) as locked:
        with locked.lock.race_if_lost():
            locked, timeline = recover_and_load(locked, options.failed_writes)
        index = _bucket_index(
            ExistingWrites(locked.context.storage, locked.config, locked.store, timeline), options
        )
        counts = counts_of(index.counts)
        if counts == index.counts:
            return CommitResult.nothing(RESCALE, watch.seconds())
        lookup = write_lookup(locked, timeline, options)
        moved = _moved(lookup, index, counts)
        _refuse_others(locked, timeline, lookup, moved, options)
        return _rescaled(_Rescaling(locked, timeline, lookup, index, counts, options, watch), moved)


def _moved(lookup: SliceLookup, index: BucketIndex, counts: BucketCounts) -> list[str]:
    """Return the partitions whose number of buckets changes."""
    return [path for path in lookup.partitions() if counts.of(path) != index.counts.of(path)]


def _bucket_index(table: ExistingWrites, options: WriteOptions) -> BucketIndex:
    """Return the index of the table.

    Raises:
        InvalidError: it has no buckets that can be rescaled, or no rows; or its rows are in other buckets.
    """
    config = table.config
    is_hashed = (options.index_type or config.index_type) == "BUCKET"
    index = choose_index(options, config, table.storage.spec, table.timeline) if is_hashed else None
    if not isinstance(index, BucketIndex):
        raise InvalidError(
            "Only tables with hoodie.index.type=BUCKET and the simple bucket engine have numbers of buckets"
            " to change. Cluster a table with consistent hashing; other tables have no buckets."
        )
    if table.timeline.latest_write() is None:
        raise InvalidError("The table has no rows yet. Create it with the number of buckets that you want.")
    index.check_table(table)
    return index


def _ruled(counts: BucketCounts, buckets: int, partitions: Sequence[str] | None) -> BucketCounts:
    """Return the counts with a further rule, which comes before the others."""
    if partitions is None:
        return BucketCounts(counts.default, f"{_ALL},{buckets}").check()
    if not partitions or not all(partitions):
        raise InvalidError("No partition was given. Give paths, or leave the partitions out to mean all.")
    rules = [f"^{_pattern(path)}$,{buckets}" for path in dict.fromkeys(partitions)]
    earlier = [each for each in counts.expressions.split(";") if each and each not in rules]
    patterns = {each.rpartition(",")[0] for each in rules}
    kept = [each for each in earlier if each.rpartition(",")[0] not in patterns]
    return BucketCounts(counts.default, ";".join((*rules, *kept))).check()


def _pattern(path: str) -> str:
    """Return the pattern of a partition path, without the characters that end a pattern or a rule."""
    return "".join(_ALL if each == "*" else _SPECIAL.sub(_escaped, each) for each in path)


def _escaped(found: re.Match[str]) -> str:
    letter = found[0]
    return letter if letter.isalnum() or letter in "_=/-" else f"\\x{ord(letter):02X}"


def _refuse_others(
    locked: LockedTable, timeline: Timeline, lookup: SliceLookup, moved: Sequence[str], options: WriteOptions
) -> None:
    """Refuse to go on beside other writes, which know the old counts, and pending services.

    Raises:
        ConflictError: there is one.
    """
    for pending in timeline.pending_writes():
        raise ConflictError(
            "Another write is under way that goes by the old numbers of buckets. Let it end, then rescale the"
            " buckets.",
            table=locked.context.storage.spec.uri,
            instant=pending.requested,
        )
    refuse_reserved(locked.context, timeline, Parts(frozenset(moved)), options.failed_writes)
    refuse_pending_compactions(locked, moved, lookup, "rescaled")


@dataclass(frozen=True, slots=True)
class _Rescaling:
    """Everything that is known before anything is written.

    Attributes:
        locked: the table, locked and recovered.
        timeline: its timeline.
        lookup: its file slices.
        index: the index with the old counts.
        counts: the new counts.
        options: options of the call.
        watch: measures the call.
    """

    locked: LockedTable
    timeline: Timeline
    lookup: SliceLookup
    index: BucketIndex
    counts: BucketCounts
    options: WriteOptions
    watch: Stopwatch


def _rescaled(work: _Rescaling, moved: Sequence[str]) -> CommitResult:
    """Rewrite partitions and commit."""
    locked, options = work.locked, work.options
    replaced = replaced_groups(moved, work.lookup)
    time = locked.store.new_time(work.timeline)
    requested = encode_requested_replace(WriteOperation.BUCKET_RESCALE)
    with begin(locked, Action.REPLACE_COMMIT, time, requested, options.failed_writes) as transaction:
        settings, schema_json = file_settings(locked, work.timeline, time, options)
        stats = _written(work, moved, settings)
        extra = {**options.commit_metadata, "schema": schema_json}
        metadata = CommitMetadata(tuple(stats), WriteOperation.BUCKET_RESCALE, extra, replaced)
        save_counts(locked.context.storage, work.counts, time)
        completed = transaction.commit(metadata)
    result = CommitResult.of(completed, RESCALE, stats, work.watch.seconds())
    return emit_commit(locked.context, locked.config, result, work.watch.laps)


def _written(work: _Rescaling, moved: Sequence[str], settings: FileSettings) -> list[WriteStat]:
    columns, context = tuple(settings.full_schema.names), work.locked.context
    tasks = [
        ReadTask(
            settings.storage,
            settings.config,
            each,
            settings.full_schema,
            columns,
            instants=InstantRange.of(work.timeline),
        )
        for partition in moved
        for each in work.lookup.slices(partition)
    ]
    index = BucketIndex(work.counts.default, work.index.hash_fields, work.counts.expressions)
    stored = nullable(settings.full_schema, columns)
    read = _ReadForBuckets(index, stored)
    rows = context.engine.read(tasks, read, read.schema).exchange((_PARTITION, LOCATION))
    return rows.run(_WriteBuckets(index, settings, stored, context.ids))


@dataclass(frozen=True, slots=True)
class _ReadForBuckets:
    """Reads the rows of a slice as they are stored, with their partition and new bucket.

    Attributes:
        index: the index with the new counts.
        stored: columns of the rows.
    """

    index: BucketIndex
    stored: pa.Schema

    @property
    def schema(self) -> pa.Schema:
        """Columns of the batches."""
        return pa.schema([*self.stored, (_PARTITION, pa.string()), (LOCATION, pa.string())])

    def __call__(self, task: ReadTask) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a slice."""
        partition = task.file_slice.partition
        for batch in read_slice(task):
            keys = with_record_keys(batch, task.config).column(RECORD_KEY).cast(pa.string())
            paths = pa.array([partition] * batch.num_rows, pa.string())
            places = self.index.locations(keys, paths)
            yield pa.RecordBatch.from_arrays([*batch.columns, paths, places], schema=self.schema)


@dataclass(frozen=True, slots=True)
class _WriteBuckets:
    """Writes a base file for each bucket, one after the other.

    Attributes:
        index: names the file groups.
        settings: of the files.
        stored: columns of the rows.
        ids: names the file groups.
    """

    index: BucketIndex
    settings: FileSettings
    stored: pa.Schema
    ids: Ids

    def __call__(self, batches: Iterator[pa.RecordBatch], context: TaskContext) -> Iterator[WriteStat]:
        """Write the buckets of one task."""
        config, storage = self.settings.config, open_spec(self.settings.storage)
        for (partition, place), rows in contiguous_groups(coalesced(batches), (_PARTITION, LOCATION)):
            file_id = self.index.new_file_id(Location.decode(place, is_hashed=True), self.ids)
            stored: Iterator[pa.RecordBatch] = (each.select(self.stored.names) for each in rows)
            if config.has_sorted_files:
                stored = sorted_by_key(stored)
            writer = BaseFileWriter(self.settings, storage, partition, file_id, context.write_token)
            try:
                for batch in stored:
                    writer.write(as_stored(batch, writer.name, config))
            except BaseException:
                writer.abort()
                raise
            yield writer.close(inserts=writer.rows)
