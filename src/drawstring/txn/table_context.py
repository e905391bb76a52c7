"""The context of an open table: storage, engine, clock and id generator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from drawstring.base.clock import Clock, Ids, SystemClock, SystemIds
from drawstring.base.errors import InvalidError
from drawstring.base.lazy import lazy_import
from drawstring.config.keys.index import DEFAULT_COMPACTION, MetadataCompaction
from drawstring.config.keys.rolling_metadata import NO_ROLLING, RollingMetadata
from drawstring.config.table_config import TableConfig
from drawstring.engine.local import LocalEngine
from drawstring.engine.protocol import Engine
from drawstring.model.partition_scope import PartitionScope
from drawstring.storage.protocol import Storage

if TYPE_CHECKING:
    from drawstring.filegroups.file_system_view import FileGroupView, Listing, SliceLookup, table_view
    from drawstring.metadata.file_listing import listing_by_metadata
    from drawstring.timeline.store import TimelineStore
    from drawstring.timeline.timeline import Timeline
else:
    lazy_import(
        globals(),
        table_view="drawstring.filegroups.file_system_view:table_view",
        SliceLookup="drawstring.filegroups.file_system_view:SliceLookup",
        listing_by_metadata="drawstring.metadata.file_listing:listing_by_metadata",
    )


@dataclass(frozen=True, slots=True)
class TableContext:
    """An open table.

    Attributes:
        storage: the table's files.
        engine: runs tasks.
        clock: the source of instant times.
        ids: the source of unique ids, as for file groups.
        uses_metadata: whether the metadata table names the files for queries, writes and services,
            and writes build one.
        skips_data: whether the metadata table, if queries use it, rules out files for them.
        merges_by_position: whether queries merge log records by their positions in base files.
        defaults: keys and values of the options that the table was opened with, which hold for all calls.
        metadata_compaction: when writes and services compact the metadata table.
        rolling: entries that commits take over from earlier ones.
        scope: the partitions that queries read, None for all; a table that was opened so cannot be changed.
    """

    storage: Storage
    engine: Engine = field(default_factory=LocalEngine)
    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=SystemIds)
    uses_metadata: bool = True
    skips_data: bool = True
    merges_by_position: bool = True
    defaults: tuple[tuple[str, str], ...] = ()
    metadata_compaction: MetadataCompaction = DEFAULT_COMPACTION
    rolling: RollingMetadata = NO_ROLLING
    scope: PartitionScope | None = None

    def listing(self, config: TableConfig, timeline: Timeline) -> Listing | None:
        """Return the files of the table by its metadata table; None to list the storage.

        Args:
            config: the table's settings.
            timeline: the table's timeline.
        """
        return listing_by_metadata(self.storage, config, timeline, self.clock) if self.uses_metadata else None

    def view(self, config: TableConfig, timeline: Timeline, store: TimelineStore) -> FileGroupView:
        """Return the file groups of the table.

        Args:
            config: the table's settings.
            timeline: the table's timeline.
            store: reads the metadata of commits.
        """
        return table_view(self.storage, config, timeline, store, self.listing(config, timeline))

    def lookup(self, config: TableConfig, timeline: Timeline, *, rivals: tuple[str, ...] = ()) -> SliceLookup:
        """Return the latest slices of the table, of which no pending clustering may be written to.

        Args:
            config: the table's settings.
            timeline: the table's timeline.
            rivals: requested times of pending writes to whose file groups a write gives way.
        """
        listing = self.listing(config, timeline)
        return SliceLookup(self.storage.spec, config, timeline, rivals=rivals, listing=listing)

    def check_changeable(self) -> None:
        """Check that the table was opened as a whole.

        Raises:
            InvalidError: it was opened by the address of some partitions.
        """
        if self.scope is not None:
            raise InvalidError(
                f"The address names the partitions {self.scope.pattern} of the table: these can only be read."
                f" Open {self.storage.spec.uri} to change the table."
            )
