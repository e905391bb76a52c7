"""Keeps the metadata table equal to the table: the actions around the completion of an instant.

    before the completed file    its delta commit; a rollback takes back that of the instant it rolls back
    after it                     compaction of the metadata table, if it is due

Of the metadata table of another engine only the partitions that this release maintains are kept; the others
leave the table properties before they become stale, as Hudi does with those that a writer does not enable.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from drawstring.base.cached import cached_property
from drawstring.base.clock import Clock, Ids
from drawstring.base.errors import ConflictError, DrawstringError, MetadataTableError
from drawstring.config.keys.metadata import DEFAULT_COMPACTION, MetadataCompaction
from drawstring.config.table.config import TableConfig
from drawstring.formats.metadata.clean import decode_clean
from drawstring.formats.metadata.commit import decode_commit
from drawstring.formats.metadata.index_definitions import DEFINITIONS_KEY, INDEX_DEFINITIONS
from drawstring.formats.metadata.rollback import decode_rollback
from drawstring.metadata.building import BegunPartition, add_partition, begin_partition, build, can_build
from drawstring.metadata.column_ranges import COLUMN_STATS, PARTITION_STATS
from drawstring.metadata.compaction.base_files import compact, later_delta_commits, tell_waiting
from drawstring.metadata.compaction.log_files import compact_logs, is_log_compaction_due
from drawstring.metadata.definitions import undefine
from drawstring.metadata.encoded import EncodedDelta
from drawstring.metadata.maintained.added_columns import add_to_definition, added_columns, listed_columns
from drawstring.metadata.maintained.column_stats import ColumnStatsMaintainer
from drawstring.metadata.maintained.files import command_files, forgotten_files
from drawstring.metadata.maintained.indexing_plans import BuildingPartitions
from drawstring.metadata.maintained.kinds import can_keep, maintainers_of, with_columns
from drawstring.metadata.maintained.protocol import PartitionMaintainer, TableChange, TableFacts
from drawstring.metadata.metadata_table import (
    MetadataTable,
    about_metadata,
    building_of,
    lacking,
    missing_instants,
    open_metadata_table,
)
from drawstring.metadata.partitions import BUILDING_KEY, FILES, METADATA_FOLDER, PARTITIONS_KEY
from drawstring.metadata.writer import MetadataWriter
from drawstring.model.commit import Held
from drawstring.model.files import join_path
from drawstring.model.instant import WRITE_ACTIONS, Action, Instant
from drawstring.storage.protocol import Storage
from drawstring.storage.subfolder import Subfolder
from drawstring.timeline.properties_store import load_config, save_properties
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline

_RESIZING: Final = (Action.CLUSTERING, Action.REPLACE_COMMIT)
"""Actions of an instant that resizes buckets."""

_log = logging.getLogger("drawstring")


@dataclass(frozen=True)
class MetadataKeeper:
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
        held: Mapping[str, Held],
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
            added = added_columns(change)
            maintainers = with_columns(maintainers_of(kept), added).values()
            changes = (each for maintainer in maintainers for each in maintainer.changes(change))
            done = self._writer.commit(instant, content, changes, encoded if kept == [FILES] else None)
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
            raise lacking(self._own, missing)

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
                is_kept = can_keep(partition, facts, None)
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
        self._register(config.metadata_partitions, {*building_of(config), *wanted}, defined)
        return begun

    def finish(self, partitions: Collection[str]) -> None:
        """Register partitions that were being built as complete.

        Args:
            partitions: of the metadata table.
        """
        config = load_config(self.storage)
        ready = {*config.metadata_partitions, *partitions}
        self._register(ready, {*building_of(config)} - ready)
        _log.info("Added %s to the metadata table of %s.", ", ".join(sorted(partitions)), config.name)

    def settle(self) -> frozenset[str]:
        """Register the partitions of completed indexing actions whose processes died before they did it.

        Raises:
            CorruptTableError: the timeline is damaged.
        """
        config = load_config(self.storage)
        facts = TableFacts(self.storage, config, self.clock)
        built = BuildingPartitions.of(self.storage, facts.store, facts.timeline, building_of(config)).built
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
        building = [each for each in building_of(config) if each not in partitions]
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
            with about_metadata(self._own):
                if run(writer, table, timeline) is None:
                    tell_waiting(table, timeline, self.compaction.waiting)
        except MetadataTableError:
            raise
        except (DrawstringError, OSError) as error:
            _log.warning("The metadata table of %s could not be compacted now: %s", config.name, error)

    def _may_be_due(self, own: Timeline) -> bool:
        """Return whether a service is due when one delta commit more is on the timeline."""
        first = self.compaction.log_blocks if self.compaction.logs else self.compaction.delta_commits
        return len(later_delta_commits(own)) + 1 >= min(first, self.compaction.delta_commits)

    def _due(self, own: Timeline) -> Callable[[MetadataWriter, MetadataTable, Timeline], object] | None:
        """Return the service that is due."""
        if len(later_delta_commits(own)) >= self.compaction.delta_commits:
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
            self._writer.commit(instant, content, [changes.in_group()])

    def _change_of(
        self, config: TableConfig, instant: Instant, content: bytes, held: Mapping[str, Held]
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
        building = building_of(config)
        if not building and config.metadata_partitions == (FILES,):
            return [FILES]
        facts = change or TableFacts(self.storage, config, self.clock)
        commit = None if change is None else change.commit
        states = BuildingPartitions.of(self.storage, facts.store, facts.timeline, building)
        with about_metadata(self._own):
            ready = sorted({*config.metadata_partitions, *states.built})
            kept = [each for each in ready if can_keep(each, facts, commit)]
            running = [each for each in sorted(states.running) if can_keep(each, facts, commit)]
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
