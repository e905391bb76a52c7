"""Update the metadata table before and after the completion of an instant of the table.

    before the completed file    its delta commit; a rollback rolls back that of the instant it rolls back
    after it                     compaction of the metadata table, if it is due

`maintainers_of` returns the maintainers of the partitions. In the metadata table of another engine, only
the partitions that this release maintains stay. The others leave the table properties before they become
stale, as Hudi does with those that a writer does not enable.

An indexing action of the table builds partitions (`BuildingPartitions`):

    requested, not run    the partition does not exist yet
    running               it is registered as being built, and writers add their records to it
    completed             it is registered as complete, or its process died just before that
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from drawstring.base.clock import Clock, Ids
from drawstring.base.errors import ConflictError, DrawstringError, MetadataTableError
from drawstring.base.lazy import cached_property
from drawstring.config.keys.index import DEFAULT_COMPACTION, MetadataCompaction
from drawstring.config.table_config import TableConfig
from drawstring.formats.metadata.commit import decode_commit
from drawstring.formats.metadata.index_definitions import DEFINITIONS_KEY, INDEX_DEFINITIONS
from drawstring.formats.metadata.plans import decode_clean, decode_indexing
from drawstring.formats.metadata.rollback import decode_rollback
from drawstring.metadata.building import BegunPartition, add_partition, begin_partition, build, can_build
from drawstring.metadata.column_ranges import COLUMN_STATS, PARTITION_STATS
from drawstring.metadata.compaction import (
    compact,
    compact_logs,
    delta_commits_since_compaction,
    is_log_compaction_due,
    warn_of_waiting,
)
from drawstring.metadata.definitions import definitions, undefine
from drawstring.metadata.partitions.bloom_filters import BloomFilterMaintainer
from drawstring.metadata.partitions.column_stats import (
    ColumnStatsMaintainer,
    IndexedColumns,
    PartitionStatsMaintainer,
    add_to_definition,
    listed_columns,
)
from drawstring.metadata.partitions.expression_index import EXPRESSION_INDEX_PREFIX, ExpressionIndexMaintainer
from drawstring.metadata.partitions.files import FilesMaintainer, command_files, forgotten_files
from drawstring.metadata.partitions.maintainer import PartitionMaintainer, TableChange, TableFacts
from drawstring.metadata.partitions.record_index import RecordIndexMaintainer
from drawstring.metadata.partitions.secondary_index import PREFIX, SecondaryIndexMaintainer
from drawstring.metadata.table import (
    BUILDING_KEY,
    FILES,
    METADATA_FOLDER,
    PARTITIONS_KEY,
    MetadataTable,
    about_metadata,
    inflight_partitions,
    missing_instant_error,
    missing_instants,
    open_metadata_table,
)
from drawstring.metadata.writer import EncodedDelta, MetadataWriter
from drawstring.model.commit import CommitMetadata, WriteOperation, WriterFacts
from drawstring.model.files import join_path, parse_data_file
from drawstring.model.instant import WRITE_ACTIONS, Action, Instant
from drawstring.model.plans import IndexPlan
from drawstring.schema.avro import avro_to_arrow
from drawstring.schema.fields import without_meta
from drawstring.storage.protocol import Storage, Subfolder
from drawstring.timeline.properties import load_config, save_properties
from drawstring.timeline.schema import table_schema
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline


def maintainer_of(partition: str) -> PartitionMaintainer | None:
    """Return what keeps a partition of the metadata table; None if this release cannot.

    Args:
        partition: of the metadata table.
    """
    match partition:
        case "files":
            return FilesMaintainer()
        case "record_index":
            return RecordIndexMaintainer()
        case "bloom_filters":
            return BloomFilterMaintainer()
        case "column_stats":
            return ColumnStatsMaintainer()
        case "partition_stats":
            return PartitionStatsMaintainer()
    if partition.startswith(EXPRESSION_INDEX_PREFIX):
        return ExpressionIndexMaintainer(partition)
    return SecondaryIndexMaintainer(partition) if partition.startswith(PREFIX) else None


def with_columns(
    maintainers: dict[str, PartitionMaintainer], added: tuple[str, ...]
) -> dict[str, PartitionMaintainer]:
    """Return what keeps some partitions over an instant that adds columns to the table.

    Args:
        maintainers: by partition of the metadata table.
        added: the columns that statistics get.
    """
    if not added:
        return maintainers
    of_columns: dict[str, PartitionMaintainer] = {
        COLUMN_STATS: ColumnStatsMaintainer(added=added),
        PARTITION_STATS: PartitionStatsMaintainer(added),
    }
    return {partition: of_columns.get(partition, each) for partition, each in maintainers.items()}


def is_supported(partition: str, facts: TableFacts, commit: CommitMetadata | None) -> bool:
    """Return whether this release can keep a partition of the metadata table over an instant.

    Args:
        partition: of the metadata table.
        facts: the table as it is.
        commit: of the instant that is about to complete, if it is a write.

    Raises:
        CorruptTableError: the definitions of the indexes, or the schema of the table, are damaged.
    """
    maintainer = maintainer_of(partition)
    if isinstance(maintainer, SecondaryIndexMaintainer):
        return maintainer.can_keep(facts, commit)
    if isinstance(maintainer, ExpressionIndexMaintainer):
        return maintainer.can_keep(facts)
    return maintainer is not None


def maintainers_of(partitions: Iterable[str]) -> dict[str, PartitionMaintainer]:
    """Return what keeps some partitions of the metadata table, those left out that this release cannot keep.

    Args:
        partitions: of the metadata table.
    """
    found = ((each, maintainer_of(each)) for each in partitions)
    return {partition: each for partition, each in found if each is not None}


BUILD: Final = "drawstring.delta.commit"
"""Fact of a built partition: requested time of the delta commit of its base files."""


@dataclass(frozen=True, slots=True)
class BuildingPartitions:
    """What becomes of partitions that are registered as being built.

    Attributes:
        built: those of a completed action, whose process died before it registered them.
        running: those of a pending action.
    """

    built: frozenset[str]
    running: frozenset[str]

    @staticmethod
    def of(
        storage: Storage, store: TimelineStore, timeline: Timeline, names: Iterable[str]
    ) -> BuildingPartitions:
        """Look the partitions up in the indexing actions of a table; others were given up.

        Args:
            storage: the table's files.
            store: its timeline.
            timeline: as loaded.
            names: the partitions that are registered as being built.

        Raises:
            CorruptTableError: a plan is damaged.
        """
        wanted = {*names}
        if not wanted:
            return BuildingPartitions(frozenset(), frozenset())
        pending = {name for _, plan in pending_plans(store, timeline) for name in plan.names}
        built: set[str] = set()
        for instant in timeline.completed_of(Action.INDEXING):
            for each in decode_indexing(store.read(instant)).partitions:
                if each.name in wanted - pending and has_files(storage, each.name, each.extra.get(BUILD)):
                    built.add(each.name)
        return BuildingPartitions(frozenset(built), frozenset(wanted & pending))


def pending_plans(store: TimelineStore, timeline: Timeline) -> Iterator[tuple[Instant, IndexPlan]]:
    """Yield the pending indexing actions with their plans.

    Raises:
        CorruptTableError: a plan is damaged.
    """
    for instant in timeline.pending_of(Action.INDEXING):
        yield instant, decode_indexing(store.read_requested(instant))


def has_files(storage: Storage, partition: str, requested: str | None) -> bool:
    """Return whether a partition of the metadata table has files of a delta commit.

    Args:
        storage: the table's files.
        partition: of the metadata table.
        requested: requested time of the delta commit; None for none.
    """
    files = map(parse_data_file, storage.list_files(join_path(METADATA_FOLDER, partition)))
    return requested is not None and any(each is not None and each.instant == requested for each in files)


_WITH_PLAN: Final = frozenset({WriteOperation.COMPACT, WriteOperation.LOG_COMPACT, WriteOperation.CLUSTER})
"""Operations that run again, at the same instant, after a crash."""

_RESIZING: Final = (Action.CLUSTERING, Action.REPLACE_COMMIT)
"""Actions of an instant that resizes buckets."""

_log = logging.getLogger("drawstring")


@dataclass(frozen=True)
class MetadataMaintainer:
    """Maintains the metadata table of a table, whose lock the caller holds.

    Attributes:
        storage: the table's files.
        clock: creation times of files.
        ids: makes the names of files distinct.
        check: raises an error if the table lock was lost.
        compaction: when the metadata table is compacted.
    """

    storage: Storage
    clock: Clock
    ids: Ids
    check: Callable[[], None]
    compaction: MetadataCompaction = DEFAULT_COMPACTION

    def update(
        self,
        config: TableConfig,
        instant: Instant,
        content: bytes,
        held: Mapping[str, WriterFacts],
        timeline: Timeline,
        encoded: EncodedDelta | None = None,
    ) -> tuple[str, ...]:
        """Bring the metadata table to the state after an instant, before the put of its completed file.

        Args:
            config: settings of the table, as read since the completion of the instant was claimed.
            instant: the completed instant to be.
            content: content of its completed file.
            held: by path, what the writers of its files hold; empty if another process wrote them.
            timeline: of the table, as it was loaded last.
            encoded: the change of the list of files, if it was encoded before.

        Returns:
            The columns of which there are statistics from this instant on, to be passed to `define`.

        Raises:
            MetadataTableError: the metadata table is damaged, or lacks a completed write.
        """
        with about_metadata(self._own):
            change = self._change_of(config, instant, content, held)
        kept = self._drop_other_partitions(config, change)
        with about_metadata(self._own):
            if instant.action is Action.ROLLBACK:
                self._roll_back(instant, content)
            if instant.action is Action.ROLLBACK or change is None:
                return ()
            added = _added_columns(change)
            maintainers = with_columns(maintainers_of(kept), added).values()
            changes = (each for maintainer in maintainers for each in maintainer.changes(change))
            known = encoded if kept == [FILES] else None
            has_plan = change.commit is None or change.commit.operation in _WITH_PLAN
            done = self._writer.commit(instant, content, changes, known, has_plan=has_plan)
            self._check_complete(timeline)
            if done is not None:
                self._discard_if_late(instant, done)
            return added

    def define(self, added: Sequence[str]) -> None:
        """Say in the definition of the index which columns have statistics now.

        Args:
            added: columns that are new in it.
        """
        if added:
            add_to_definition(self.storage, added)

    def _discard_if_late(self, instant: Instant, done: Instant) -> None:
        """Take the delta commit of an instant back that others archived or rolled back since.

        This process lost the table lock then, and stood still: the one that it wrote comes too late.
        """
        try:
            self.check()
        except ConflictError:
            timeline = TimelineStore(self.storage, load_config(self.storage), self.clock).load()
            if timeline.find(instant.requested) is None:
                self._writer.discard(done)

    def _check_complete(self, timeline: Timeline) -> None:
        """Make sure that no engine wrote without the metadata table; needs no further request."""
        missing = next(missing_instants(self._writer.store.loaded, timeline), None)
        if missing is not None:
            raise missing_instant_error(self._own, missing)

    def take_back(self, instant: Instant) -> None:
        """Take back the delta commit of an instant that is about to leave the timeline of the table.

        One of its time that is another action's stays (`Timeline.shares_time`).

        Raises:
            MetadataTableError: the metadata table is damaged.
        """
        timeline = TimelineStore(self.storage, load_config(self.storage), self.clock).load()
        if timeline.shares_time(instant):
            return
        with about_metadata(self._own):
            self._writer.roll_back(instant.requested)

    def build(self, config: TableConfig, completing: Instant | None = None) -> bool:
        """Build the metadata table of a table that has none; False if that has to wait.

        Args:
            config: the table's settings.
            completing: the instant that is about to complete, if there is one.

        Raises:
            ConflictError: the table lock was lost.
            CorruptTableError: a file of the table is missing or damaged.
        """
        timeline = TimelineStore(self.storage, config, self.clock).load()
        if not can_build(self.storage, config, timeline, completing):
            return False
        build(self.storage, self.clock, self.ids, self.check)
        return True

    def add(self, wanted: Mapping[str, PartitionMaintainer]) -> None:
        """Add partitions that the metadata table does not have.

        Args:
            wanted: what keeps them, by partition of the metadata table.

        Raises:
            MetadataTableError: the metadata table is damaged.
        """
        wanted = self._with_listed(wanted)
        config = load_config(self.storage)
        for partition in sorted(wanted.keys() - {*config.metadata_partitions}):
            facts = TableFacts(self.storage, config, self.clock)
            with about_metadata(self._own):
                config = add_partition(facts, self.ids, partition, wanted[partition], self.check)

    def _with_listed(self, wanted: Mapping[str, PartitionMaintainer]) -> Mapping[str, PartitionMaintainer]:
        """Drop statistics that lack columns of a list, and return what builds them again with these."""
        of_files = wanted.get(COLUMN_STATS)
        if not isinstance(of_files, ColumnStatsMaintainer) or of_files.columns is None:
            return wanted
        config = load_config(self.storage)
        with about_metadata(self._own):
            columns = listed_columns(TableFacts(self.storage, config, self.clock), of_files.columns)
        if columns is None:
            return wanted
        dropped = {COLUMN_STATS, PARTITION_STATS} & {*config.metadata_partitions}
        self.drop(dropped)
        return {**maintainers_of(dropped), **wanted, COLUMN_STATS: ColumnStatsMaintainer(columns)}

    def add_again(self, partitions: Iterable[str]) -> None:
        """Add partitions that an earlier metadata table had, as far as this release can keep them.

        Args:
            partitions: of the metadata table.

        Raises:
            MetadataTableError: the metadata table is damaged.
        """
        for partition in sorted(partitions):
            facts = TableFacts(self.storage, load_config(self.storage), self.clock)
            with about_metadata(self._own):
                is_kept = is_supported(partition, facts, None)
            self.add(maintainers_of([partition] if is_kept else []))

    def begin(self, wanted: Mapping[str, PartitionMaintainer]) -> list[BegunPartition]:
        """Make empty partitions, to which all writers add their records from now on; no reader uses them.

        Args:
            wanted: what keeps them, by partition of the metadata table.

        Raises:
            MetadataTableError: the metadata table is damaged.
        """
        config = load_config(self.storage)
        facts = TableFacts(self.storage, config, self.clock)
        with about_metadata(self._own):
            begun = [begin_partition(facts, self.ids, *each, self.check) for each in sorted(wanted.items())]
        for maintainer in wanted.values():
            maintainer.define(self.storage, config)
        defined = {DEFINITIONS_KEY: INDEX_DEFINITIONS}
        self._register(config.metadata_partitions, {*inflight_partitions(config), *wanted}, defined)
        return begun

    def finish(self, partitions: Collection[str]) -> None:
        """Register partitions that were being built as complete.

        Args:
            partitions: of the metadata table.
        """
        config = load_config(self.storage)
        ready = {*config.metadata_partitions, *partitions}
        self._register(ready, {*inflight_partitions(config)} - ready)
        _log.info("Added %s to the metadata table of %s.", ", ".join(sorted(partitions)), config.name)

    def settle(self) -> frozenset[str]:
        """Register the partitions of completed indexing actions whose processes died before they did it.

        Raises:
            CorruptTableError: the timeline is damaged.
        """
        config = load_config(self.storage)
        facts = TableFacts(self.storage, config, self.clock)
        built = BuildingPartitions.of(
            self.storage, facts.store, facts.timeline, inflight_partitions(config)
        ).built
        if built:
            self.finish(built)
        return built

    def _register(
        self, ready: Iterable[str], building: Iterable[str], more: Mapping[str, str] | None = None
    ) -> None:
        """Say in the table properties which partitions are complete, and which are being built."""
        properties = {**load_config(self.storage).properties, **(more or {})}
        registered = {PARTITIONS_KEY: ",".join(sorted(ready)), BUILDING_KEY: ",".join(sorted(building))}
        save_properties(self.storage, {**properties, **registered}, self.clock)

    def drop(self, partitions: Collection[str]) -> None:
        """Delete partitions of the metadata table, and the definitions of their indexes.

        Args:
            partitions: of the metadata table; not `files`.
        """
        config = load_config(self.storage)
        kept = [each for each in config.metadata_partitions if each not in partitions]
        building = [each for each in inflight_partitions(config) if each not in partitions]
        self._unregister(kept, building, partitions)
        undefine(self.storage, partitions)
        _log.info("Dropped %s from the metadata table of %s.", ", ".join(sorted(partitions)), config.name)

    def compact(self) -> None:
        """Compact the metadata table if it is due; a failure leaves that to the next write.

        Raises:
            MetadataTableError: the metadata table is damaged.
        """
        writer = self._writer
        if not self._may_be_due(writer.store.loaded):  # without one request more for most writes
            return
        config = load_config(self.storage)
        try:
            run = self._due(writer.store.load())
            if run is None:
                return
            timeline = TimelineStore(self.storage, config, self.clock).load()
            table = open_metadata_table(self.storage, config, timeline, self.clock)
            # A power cut must not take back a commit whose files the new base file already lists.
            self.storage.sync([config.timeline_folder])
            with about_metadata(self._own):
                if run(writer, table, timeline) is None:
                    warn_of_waiting(table, timeline, self.compaction.waiting)
        except MetadataTableError:
            raise
        except (DrawstringError, OSError) as error:
            _log.warning("The metadata table of %s could not be compacted now: %s", config.name, error)

    def _may_be_due(self, own: Timeline) -> bool:
        """Return whether a service is due when one delta commit more is on the timeline."""
        first = self.compaction.log_blocks if self.compaction.logs else self.compaction.delta_commits
        return len(delta_commits_since_compaction(own)) + 1 >= min(first, self.compaction.delta_commits)

    def _due(self, own: Timeline) -> Callable[[MetadataWriter, MetadataTable, Timeline], object] | None:
        """Return the service that is due."""
        if len(delta_commits_since_compaction(own)) >= self.compaction.delta_commits:
            return partial(compact, check=self.check)
        blocks = self.compaction.log_blocks
        if self.compaction.logs and is_log_compaction_due(self._writer.store, blocks):
            return partial(compact_logs, blocks=blocks, check=self.check)
        return None

    def _roll_back(self, instant: Instant, content: bytes) -> None:
        """Take back the delta commit of an instant that is rolled back, and the names of its files.

        Others have named files of a resizing: log files that writes put into its new buckets. In version 6 a
        rollback adds log files.
        """
        undone = decode_rollback(content, "")
        self._writer.roll_back(undone.instant, by=instant.requested)
        changes = command_files(undone)
        if undone.action in _RESIZING:
            config = load_config(self.storage)
            change = TableChange(self.storage, config, self.clock, instant)
            changes = changes.joined(forgotten_files(change.metadata, undone.instant))
        if changes.files:
            self._writer.commit(instant, content, [changes.in_group()], has_plan=True)

    def _change_of(
        self, config: TableConfig, instant: Instant, content: bytes, held: Mapping[str, WriterFacts]
    ) -> TableChange | None:
        """Return what an instant changes in the table, None if it changes no files."""
        if instant.action in WRITE_ACTIONS:
            commit = decode_commit(content)
            stats = tuple(replace(each, held=held.get(each.path)) for each in commit.stats)
            return TableChange(self.storage, config, self.clock, instant, commit=replace(commit, stats=stats))
        if instant.action is Action.CLEAN:
            return TableChange(self.storage, config, self.clock, instant, clean=decode_clean(content))
        return None

    @cached_property
    def _writer(self) -> MetadataWriter:
        return MetadataWriter.of(self.storage, self.clock, self.ids)

    @property
    def _own(self) -> Subfolder:
        return Subfolder(self.storage, METADATA_FOLDER)

    def _drop_other_partitions(self, config: TableConfig, change: TableChange | None) -> list[str]:
        """Unregister the partitions that this release cannot keep, and delete them; return the others."""
        building = inflight_partitions(config)
        if not building and config.metadata_partitions == (FILES,):
            return [FILES]
        facts = change or TableFacts(self.storage, config, self.clock)
        commit = None if change is None else change.commit
        states = BuildingPartitions.of(self.storage, facts.store, facts.timeline, building)
        with about_metadata(self._own):
            ready = sorted({*config.metadata_partitions, *states.built})
            kept = [each for each in ready if is_supported(each, facts, commit)]
            running = [each for each in sorted(states.running) if is_supported(each, facts, commit)]
        others = sorted({*ready, *building} - {*kept, *running})
        if states.built:
            self.finish(states.built)
        if not others:
            return [*kept, *running]
        self._unregister(kept, running, others)
        _log.warning(
            "Dropped %s from the metadata table of %s: this release maintains only %s, and stale ones would"
            " mislead readers. Other engines can build them again.",
            ", ".join(others),
            config.name,
            ", ".join(kept),
        )
        return [*kept, *running]

    def _unregister(self, kept: Sequence[str], building: Sequence[str], others: Collection[str]) -> None:
        """Take partitions off the table properties, then delete them."""
        self._register(kept, building)
        for partition in others:
            self.storage.delete_tree(join_path(METADATA_FOLDER, partition))


def summarized_columns(storage: Storage, config: TableConfig) -> tuple[str, ...]:
    """Return the columns that have statistics in the metadata table.

    Args:
        storage: the table's files.
        config: its settings.
    """
    if COLUMN_STATS not in config.metadata_partitions:
        return ()
    return tuple(definitions(storage).get(COLUMN_STATS, {}).get("sourceFields") or ())


def _added_columns(change: TableChange) -> tuple[str, ...]:
    """Return the columns that an instant adds to the table, and that the index of the first columns gets.

    Args:
        change: what the instant changes.
    """
    commit, config = change.commit, change.config
    if commit is None or not commit.schema_json or COLUMN_STATS not in config.metadata_partitions:
        return ()
    known = {*(definitions(change.storage).get(COLUMN_STATS, {}).get("sourceFields") or ())}
    wanted = IndexedColumns().among(without_meta(avro_to_arrow(commit.schema_json)), config)
    if not known or known.issuperset(wanted):
        return ()
    before = table_schema(change.storage, change.store, change.timeline, config)
    if not known.issuperset(IndexedColumns().among(before, config)):
        return ()
    return tuple(name for name in wanted if name not in known and name not in before.names)
