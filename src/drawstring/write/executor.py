"""Run a write operation in one commit.

    check the call -> roll back failed writes
    begin -> prepare (keys, partition paths, locations of hashing indexes)
          -> tag locations (index) -> shuffle by file group -> place (files) -> commit

`write` takes rows of the caller, `write_source` any source. The duplicate policy of inserts says what
happens to a row whose key exists: keep both rows, drop the new one, or fail.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.clock import Stopwatch
from drawstring.base.errors import InvalidError, LostRaceError, UnsupportedError
from drawstring.config.keys.concurrency import ConcurrencyMode
from drawstring.config.options.write_options import WriteOptions
from drawstring.engine.protocol import Rows
from drawstring.filegroups.file_slice_reader import ReadKeys
from drawstring.filegroups.file_system_view import SliceLookup
from drawstring.filegroups.read_task import InstantRange
from drawstring.filegroups.write.changes import ACTION
from drawstring.formats.metadata.commit import encode_requested_replace
from drawstring.index.factory import partitions_to_build
from drawstring.index.protocol import IS_DELETED, LOCATION, Index, IndexCommit, completing_instant
from drawstring.index.tag_context import TagContext
from drawstring.model.commit import CommitMetadata, WriteStat
from drawstring.model.files import FileSlice
from drawstring.model.result import CommitResult
from drawstring.schema.fields import PARTITION_PATH, RECORD_KEY
from drawstring.timeline.timeline import Timeline
from drawstring.txn.conflict_resolution import (
    OwnChanges,
    cancel_conflicting_clusterings,
    other_first_write,
    write_lookup,
)
from drawstring.txn.events import emit_commit
from drawstring.txn.reservations import conflict_scope, refuse_reserved, reserve
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import LockedTable, begin, lock_table, recover
from drawstring.write.bulk_insert import Arrangement, PlaceNew
from drawstring.write.delete_partition import DELETE_PARTITION, delete_partitions
from drawstring.write.facts import WriteFacts
from drawstring.write.merge import FOUND_LOCATION, KeepLocation
from drawstring.write.placement import PlaceGroups
from drawstring.write.plan import Verb, WritePlan, plan_write, verb_of, with_columns_set
from drawstring.write.replaced_file_groups import replaced_by
from drawstring.write.retry import (
    Turn,
    checked_timeline,
    flush_to_commit,
    lock_released,
    own_changes,
    rivals_of,
    run_attempts,
    schema_to_commit,
)
from drawstring.write.sizing import Sizer
from drawstring.write.source import BoundSource, InputRows, PartialRows, WriteSource
from drawstring.write.stream_positions import StreamStep
from drawstring.write.validation import validate_commit
from drawstring.write.write_outcome import WriteOutcome

_KEY_EXISTS_COLUMN: Final = "_drawstring_known"
_PARTITION_OF_KEY_COLUMN: Final = "_drawstring_known_in"


def drop_existing_keys(rows: Rows, index: Index, context: TagContext, *, fails: bool) -> Rows:
    """Return the rows whose keys are new in their partitions or, with a global index, in the table.

    Args:
        rows: prepared rows, persisted because they are read twice.
        index: index of the write.
        context: slices of the table.
        fails: whether an existing key is an error.
    """
    on = (RECORD_KEY,) if index.is_global else (RECORD_KEY, PARTITION_PATH)
    partitions = context.partitions() if index.is_global else sorted(path for (path,) in rows.keys(on))
    slices = [file_slice for path in partitions for file_slice in context.slices(path)]
    texts = (RECORD_KEY, _PARTITION_OF_KEY_COLUMN if index.is_global else PARTITION_PATH, _KEY_EXISTS_COLUMN)
    schema = pa.schema([*(pa.field(name, pa.string()) for name in texts), (IS_DELETED, pa.bool_())])
    reader = ReadLiveKeys(context.key_reader(schema))
    joined = rows.join_keys(on, slices, reader, schema, narrow=True)
    return joined.map_batches(DropExistingKeys(rows.schema, fails), rows.schema)


@dataclass(frozen=True, slots=True)
class ReadLiveKeys:
    """Yields the keys of the live records of a slice.

    Attributes:
        keys: reads all keys.
    """

    keys: ReadKeys

    def __call__(self, file_slice: FileSlice) -> Iterator[pa.RecordBatch]:
        for batch in self.keys(file_slice):
            yield batch.filter(pc.invert(batch.column(IS_DELETED)))


@dataclass(frozen=True, slots=True)
class DropExistingKeys:
    """Batch function that drops rows whose key exists.

    Attributes:
        schema: columns of the rows.
        fails: whether an existing key is an error.
    """

    schema: pa.Schema
    fails: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            is_known = batch.column(_KEY_EXISTS_COLUMN).is_valid()
            if self.fails and pc.any(is_known).as_py():
                key = batch.filter(is_known).column(RECORD_KEY)[0].as_py()
                raise InvalidError(
                    f"The rows to insert have keys that the table already has, for example {key!r}, and"
                    " hoodie.datasource.insert.dup.policy is fail. Upsert them, or set the policy to drop."
                )
            yield batch.filter(pc.invert(is_known)).select(self.schema.names)


def write(
    context: TableContext,
    operation: str,
    rows: Rows,
    options: WriteOptions,
    extra: Mapping[str, str] | None = None,
    step: StreamStep | None = None,
) -> WriteOutcome:
    """Run one write operation in one commit.

    Args:
        context: the table.
        operation: `insert`, `upsert`, `delete`, `bulk_insert`, `append`, `insert_overwrite` or
            `insert_overwrite_table`.
        rows: the rows, in the engine of the open table.
        options: options of the write.
        extra: extra metadata of the commit (`extraMetadata`).
        step: the step of the stream of which the rows are a batch.

    Raises:
        ConflictError: another writer holds the lock or committed first, or a clustering of file groups to be
            changed stays pending; nothing was written.
        InvalidError: the rows or the options do not fit the table; nothing was written.
        UnsupportedError: the table needs a feature that this release cannot write.
    """
    if operation.lower() == DELETE_PARTITION:
        return delete_partitions(context, rows, options, extra)
    source: WriteSource = PartialRows(rows) if options.partial_update else InputRows(rows)
    return write_source(context, source, verb_of(operation), options, extra, step)


def write_source(
    context: TableContext,
    source: WriteSource,
    requested: Verb,
    options: WriteOptions,
    extra: Mapping[str, str] | None = None,
    step: StreamStep | None = None,
) -> WriteOutcome:
    """Run one write in one commit; see `write`.

    Args:
        context: the table.
        source: source of the rows.
        requested: rules of the requested operation.
        options: options of the write.
        extra: extra metadata of the commit.
        step: the step of a stream.
    """
    entries = {**options.commit_metadata, **(extra or {}), **(step.entries if step else {})}
    write = _Write(context, source, requested, options, entries, step, Stopwatch(), [])
    is_beside_others = options.concurrency.mode != ConcurrencyMode.SINGLE_WRITER
    if is_beside_others and requested.keeps_apart and source.reads_once:
        # Hardly anything conflicts with new file groups: storing the rows for it would not pay.
        return write.attempt(Turn.BESIDE)
    if is_beside_others:
        write = replace(write, source=source.repeatable())
    return run_attempts(context, options, write.attempt)


@dataclass(frozen=True, slots=True)
class _Write:
    """A write as requested.

    Attributes:
        context: the table.
        source: source of the rows.
        requested: rules of the requested operation.
        options: options of the write.
        extra: extra metadata of the commit.
        step: the step of a stream, if the rows are a batch of one.
        watch: measures the write with all its attempts.
        lost: what its attempts so far were about to commit.
    """

    context: TableContext
    source: WriteSource
    requested: Verb
    options: WriteOptions
    extra: Mapping[str, str]
    step: StreamStep | None
    watch: Stopwatch
    lost: list[OwnChanges]

    def attempt(self, turn: Turn) -> WriteOutcome:
        """Run the write once.

        Raises:
            LostRaceError: another writer committed a conflicting change meanwhile.
            ReservedError: another writer goes first where this one wrote before; nothing has begun.
        """
        options = self.options
        with lock_table(self.context, options.locking) as locked:
            with locked.lock.race_if_lost():
                bound = self.source.bind(locked)
                verb = bound.acts_as(self.requested, locked.config)
                facts, plan = _planned(locked, bound, verb, options)
                self._checked(facts, turn)
                recovered = recover(locked, options.failed_writes, facts.timeline)
                if recovered is not locked:
                    bound = self.source.bind(recovered)
                    facts, plan = _planned(recovered, bound, verb, options)
                if self.lost or turn is Turn.FIRST:
                    refuse_reserved(
                        self.context, facts.timeline, conflict_scope(self.lost), options.failed_writes
                    )
            self.watch.lap("plan")
            return self._committed(recovered, bound, verb, facts, plan, turn=turn)

    def _checked(self, facts: WriteFacts, turn: Turn, own: OwnChanges | None = None) -> Timeline:
        """Check the write under the lock; with its changes, as it is about to commit beside others."""
        timeline = facts.timeline
        if own is not None:
            reserved = conflict_scope(self.lost) if turn is Turn.FIRST else None
            self.lost.append(own)  # unless it commits
            timeline = checked_timeline(facts, own, self.options, reserved)
        if self.step is not None:
            self.step.check_against(facts.locked, timeline)
        return timeline

    def _lookup(self, facts: WriteFacts, plan: WritePlan, turn: Turn) -> SliceLookup:
        """Return the file slices that the write may build on."""
        rivals = rivals_of(facts, self.options) if turn is Turn.BESIDE else ()
        dual = plan.dual_write is not None
        return write_lookup(facts.locked, facts.timeline, self.options, has_dual_write=dual, rivals=rivals)

    def _committed(
        self,
        locked: LockedTable,
        bound: BoundSource,
        verb: Verb,
        facts: WriteFacts,
        plan: WritePlan,
        *,
        turn: Turn,
    ) -> WriteOutcome:
        """Put the instant on the timeline, write the files and commit."""
        context, options, watch = self.context, self.options, self.watch
        content = encode_requested_replace(verb.operation) if verb.replaces else b""
        action, alone, failed = verb.action(locked.config), turn is Turn.ALONE, options.failed_writes
        with begin(locked, action, facts.time, content, failed, is_flushed=alone) as transaction:
            if turn is Turn.FIRST:
                reserve(locked, facts.time, conflict_scope(self.lost))
            lookup = self._lookup(facts, plan, turn)
            sizer = Sizer(facts, lookup, options.sizing, plan.index.can_index_log_files)
            with nullcontext() if alone else lock_released(transaction, facts):
                stats = placed(bound, plan, verb, sizer)
                replaced = replaced_by(verb, stats, lookup) if verb.replaces else {}
                extra = {**self.extra, "schema": plan.schema_json}
                metadata = CommitMetadata(tuple(stats), verb.operation, extra, replaced)
                flush_to_commit(facts, transaction.instant, metadata, options, encodes=not alone)
            watch.lap("write")
            timeline = facts.timeline
            if not alone:
                timeline = self._checked(facts, turn, own_changes(metadata, verb, bound, plan, options))
                _refuse_other_plan(facts, timeline, plan, bound, verb, options)
                extra["schema"] = schema_to_commit(facts, plan.schema_json, timeline, options)
            if not (metadata.touched or options.allow_empty_commit):
                transaction.abandon()
                empty = CommitResult.nothing(self.requested.name, watch.seconds())
                return WriteOutcome(context, locked.config, options, empty, timeline)
            if options.validators.names:
                validate_commit(transaction, timeline, metadata, options.validators)
            cancel_conflicting_clusterings(locked, timeline, options, metadata)
            locked.guard.want(partitions_to_build(plan.index, options, locked.config))
            change = IndexCommit(context.storage, timeline, facts.time, _overwritten(verb, metadata))
            with completing_instant(plan.index, change):
                completed = transaction.commit(metadata, plan.settings.config.history)
        watch.lap("commit")
        result = CommitResult.of(completed, self.requested.name, plan.once(stats), watch.seconds())
        result = emit_commit(context, locked.config, result, watch.laps)
        after = timeline.with_completed(completed)
        return WriteOutcome(
            context, locked.config, options, result, after, stats, self.requested.merges_files
        )


def placed(source: BoundSource, plan: WritePlan, verb: Verb, sizer: Sizer) -> list[WriteStat]:
    """Write the data files of a source and the index files, and release the source.

    Args:
        source: source of the rows.
        plan: plan of the write.
        verb: rules of the operation.
        sizer: divides new records among files.
    """
    try:
        stats = _place(source, plan, verb, sizer)
    finally:
        source.release()
    plan.index.after_files_written(sizer.facts.locked.context.storage, (stat.partition for stat in stats))
    return stats


def _planned(
    locked: LockedTable, source: BoundSource, verb: Verb, options: WriteOptions
) -> tuple[WriteFacts, WritePlan]:
    """Check the call against the table and plan the write."""
    timeline = locked.store.load()
    facts = WriteFacts(locked, timeline, locked.store.new_time(timeline))
    plan = _checked_plan(facts, source, verb, options)
    if verb.replaces:
        return facts, plan
    dual_write = plan.index.dual_write(locked.store, timeline, options.clustering)
    return facts, replace(plan, dual_write=dual_write)


def _checked_plan(facts: WriteFacts, source: BoundSource, verb: Verb, options: WriteOptions) -> WritePlan:
    """Plan a write, and check its index against earlier writes."""
    plan = with_columns_set(plan_write(facts, source.schema, verb, options), source.sets, options)
    if facts.timeline.latest_write() is not None:
        names_index = bool(options.index_type or facts.locked.config.index_type)
        plan.index.check_table(facts.existing_writes(names_index=names_index))
    return plan


def _refuse_other_plan(
    facts: WriteFacts,
    now: Timeline,
    planned: WritePlan,
    source: BoundSource,
    verb: Verb,
    options: WriteOptions,
) -> None:
    """Make sure that a first write is planned in the same way after the first writes of others.

    Until a table has rows, its index and the names of its partitions are up to the options and the rows.

    Args:
        facts: the table when the write began.
        now: the timeline under the lock of the commit.
        planned: how the write was carried out.
        source: of its rows.
        verb: rules of the operation.
        options: of the write.

    Raises:
        LostRaceError: it is not.
    """
    if facts.timeline.latest_write() is not None or now.latest_write() is None:
        return
    facts = replace(facts, timeline=now)
    try:
        plan = _checked_plan(facts, source, verb, options)
    except (InvalidError, UnsupportedError) as error:
        raise _other_first_write(facts, error.message) from error
    if plan.settings.config != planned.settings.config:
        raise _other_first_write(facts, "the keys or partition paths of its rows would be other ones.")


def _other_first_write(facts: WriteFacts, why: str) -> LostRaceError:
    first = facts.timeline.writes()[0]
    return other_first_write(facts.time, first, facts.locked.store.commit_metadata(first), why)


def _place(source: BoundSource, plan: WritePlan, verb: Verb, sizer: Sizer) -> list[WriteStat]:
    """Shuffle the rows by file group and write the files."""
    prepared = source.prepared(plan)
    if plan.duplicates == "none":
        return _place_prepared(prepared, source, plan, verb, sizer)
    persisted = prepared.persist()
    try:
        new = drop_existing_keys(
            persisted, plan.index, _tag_context(plan, verb, sizer), fails=plan.duplicates == "fail"
        )
        return _place_prepared(new, source, plan, verb, sizer)
    finally:
        persisted.release()


def _tag_context(plan: WritePlan, verb: Verb, sizer: Sizer) -> TagContext:
    instants = InstantRange.of(sizer.facts.timeline)
    return TagContext(sizer.lookup, plan.settings, instants, verb.is_delete)


def _place_prepared(
    prepared: Rows, source: BoundSource, plan: WritePlan, verb: Verb, sizer: Sizer
) -> list[WriteStat]:
    lookup = None if verb.replaces else sizer.lookup
    task = PlaceGroups(plan.settings, plan.index, lookup, plan.ids, verb.is_delete, plan.combine)
    task = replace(task, sort_by=plan.arrangement.sort_by, dual_write=plan.dual_write)
    task = replace(task, repeated=source.repeated(lambda: _tag_context(plan, verb, sizer)))
    if LOCATION in prepared.schema.names:
        return _run(prepared, task)
    if not verb.looks_up:
        return _place_new(prepared, task, plan.arrangement, verb, sizer)
    if not verb.is_delete:
        prepared = plan.index.merge_across_partitions(prepared, plan.settings)
    persisted = prepared.persist()
    try:
        located = plan.index.tag_location(persisted, _tag_context(plan, verb, sizer))
        if FOUND_LOCATION in located.schema.names:
            schema = pa.schema([each for each in located.schema if each.name != FOUND_LOCATION])
            located = located.map_batches(KeepLocation(schema), schema)
        if plan.settings.partial:  # a rewritten base file needs whole records
            sizer = sizer.without_small_files()
        if verb.is_delete or (plan.settings.partial and ACTION not in located.schema.names):
            return plan.looked_up(_run(located, task))
        with sizer.sized(persisted, located) as (rows, filled):
            return plan.looked_up(_run(rows, replace(task, filled=filled)))
    finally:
        persisted.release()


def _place_new(
    prepared: Rows, task: PlaceGroups, arranged: Arrangement, verb: Verb, sizer: Sizer
) -> list[WriteStat]:
    """Write rows without tagging."""
    if verb.fills_files and sizer.has_to_count(combine=task.combine):
        persisted = prepared.persist()
        try:
            with sizer.sized(persisted, persisted) as (rows, filled):
                merges = sizer.fills_logs or not sizer.sizing.allow_duplicates
                return _run(rows, replace(task, filled=filled, merges=merges))
        finally:
            persisted.release()
    if (task.combine or arranged.by_partition) and not task.settings.config.has_sorted_files:
        return _run(prepared, replace(task, lookup=None, grouping=(PARTITION_PATH,)))
    if arranged.sort_by:
        prepared = prepared.sort(arranged.sort_by, global_sort=arranged.global_sort)
    return prepared.run(PlaceNew(task.settings, task.ids, is_sorted=bool(arranged.sort_by)))


def _run(rows: Rows, task: PlaceGroups) -> list[WriteStat]:
    rows = rows.consume()
    if task.dual_write is not None:
        rows = rows.map_batches(task.dual_write, rows.schema)
    return rows.exchange(task.grouping).run(task)


def _overwritten(verb: Verb, metadata: CommitMetadata) -> list[str]:
    """Return the partitions whose file groups are all new."""
    written = {stat.partition for stat in metadata.stats} if verb.replaces else ()
    return sorted({*written, *metadata.replaced})
