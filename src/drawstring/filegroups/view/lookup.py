"""Lookup of the file slices that a write builds on, one partition at a time.

The driver makes one lookup from the timeline as loaded when the write began and sends it to the workers;
each worker lists only the partitions of its own rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from drawstring.base.clock import SystemClock
from drawstring.base.errors import PendingClusteringError, RivalError
from drawstring.config.table.config import TableConfig
from drawstring.filegroups.view.file_groups import FileGroupView, table_view
from drawstring.filegroups.view.listing import Listing
from drawstring.filegroups.write.markers import Markers
from drawstring.model.files import FileSlice, join_path
from drawstring.storage import open_spec
from drawstring.storage.protocol import StorageSpec
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline


class SliceLookup:
    """Latest slices by partition; picklable. Listings are cached per process and not pickled.

    Args:
        storage: opens the table.
        config: the table.
        timeline: the committed instants.
        allows_updates: whether a write may update file groups in a pending clustering.
        cancellable: requested times of clusterings whose file groups a write may always update.
        rivals: requested times of pending writes to whose file groups a write gives way.
        listing: the files of the table, picklable; None to list the storage.

    Attributes:
        timeline: the committed instants.
    """

    def __init__(
        self,
        storage: StorageSpec,
        config: TableConfig,
        timeline: Timeline,
        *,
        allows_updates: bool = False,
        cancellable: frozenset[str] = frozenset(),
        rivals: tuple[str, ...] = (),
        listing: Listing | None = None,
    ) -> None:
        self._rivals = rivals
        self._listing = listing
        self._storage = storage
        self._cancellable = cancellable
        self._allows_updates = allows_updates
        self._config = config
        self.timeline = timeline
        self._view: FileGroupView | None = None
        self._begun: Mapping[str, frozenset[tuple[str, str]]] | None = None
        self._known: dict[str, Sequence[FileSlice]] = {}

    def __getstate__(self) -> tuple[Any, ...]:
        plain = (self._storage, self._config, self.timeline)
        return *plain, self._allows_updates, self._cancellable, self._rivals, self._listing

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        storage, config, timeline, allows_updates, cancellable, rivals, listing = state
        self.__init__(  # type: ignore[misc]
            storage,
            config,
            timeline,
            allows_updates=allows_updates,
            cancellable=cancellable,
            rivals=rivals,
            listing=listing,
        )

    def partitions(self) -> list[str]:
        """Return all partition paths, sorted."""
        return self.view().partitions()

    def slices(self, partition: str) -> Sequence[FileSlice]:
        """Return the latest slice of each file group that a write appends to.

        In layout 1, writes to a group in a pending compaction go to the slice that the compaction will
        create: their log files carry the instant of the compaction.
        """
        if partition not in self._known:
            slices = self.view().slices(partition)
            if self._config.rules.names_logs_by_slice:
                pending = self.view().pending_compactions()
                slices = [_continued(s, pending.get((partition, s.file_id))) for s in slices]
            self._known[partition] = slices
        return self._known[partition]

    def partitions_including_lost(self) -> list[str]:
        """Return all partition paths, sorted, including partitions whose files are all missing."""
        return self.view().partitions_including_lost()

    def file_ids_including_lost(self, partition: str) -> list[str]:
        """Return the ids of the visible file groups, including groups whose files are missing."""
        return self.view().file_ids_including_lost(partition)

    def was_replaced(self, partition: str, file_id: str) -> bool:
        """Return whether a file group was replaced, so that its id cannot be used again."""
        return (partition, file_id) in self.view().replaced_groups()

    def refuse_pending_clustering(self, partition: str, file_id: str) -> None:
        """Check that no pending clustering forbids writes to a file group.

        Args:
            partition: partition path.
            file_id: the file group.

        Raises:
            PendingClusteringError: a pending clustering will replace the file group.
        """
        if self._allows_updates:
            return
        clustering = self.view().pending_clusterings().get((partition, file_id))
        if clustering is not None and clustering not in self._cancellable:
            place = f" of partition {partition}" if partition else ""
            raise PendingClusteringError(
                f"File group {file_id}{place} is part of a pending clustering. Run that clustering"
                f" (cluster), roll it back (rollback of {clustering}), or allow such writes with"
                " hoodie.clustering.updates.strategy=SparkAllowUpdateStrategy. Then write again.",
                instant=clustering,
            )

    def refuse_rivals(self, partition: str, file_id: str) -> None:
        """Check that no rival has begun a file of a file group, by its markers as they were looked at last.

        Args:
            partition: partition path.
            file_id: the file group.

        Raises:
            RivalError: one has.
        """
        for rival, begun in self._begun_by_rivals().items():
            if (partition, file_id) in begun:
                raise RivalError(
                    f"Another writer is at work on file group {join_path(partition, file_id)} and was first."
                    " Nothing of this write was committed. Write again when the other one is done.",
                    instant=rival,
                    path=partition,
                )

    def look_at_rivals(self) -> None:
        """Have the markers of rivals read again for the file groups that are checked from now on."""
        self._begun = None

    def _begun_by_rivals(self) -> Mapping[str, frozenset[tuple[str, str]]]:
        """Return the file groups of which rivals have begun files."""
        begun = self._begun
        if begun is None:  # another thread may have them read again at any time
            storage = open_spec(self._storage)
            begun = self._begun = {rival: Markers(storage, rival).groups() for rival in self._rivals}
        return begun

    def view(self) -> FileGroupView:
        """Return the view of file groups that the lookup reads."""
        if self._view is None:
            storage = open_spec(self._storage)
            store = TimelineStore(storage, self._config, SystemClock())
            self._view = table_view(storage, self._config, self.timeline, store, self._listing)
        return self._view


def _continued(file_slice: FileSlice, compaction: str | None) -> FileSlice:
    return file_slice if compaction is None else replace(file_slice, base_instant=compaction)
