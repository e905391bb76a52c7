"""The slices that a write builds on, looked up partition by partition where they are needed.

The driver makes one lookup from the timeline as it stood when the write began; it travels to the
workers, and each lists only the partitions that its rows fall into.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from drawstring.base.clock import SystemClock
from drawstring.base.errors import ConflictError
from drawstring.config.table.config import TableConfig
from drawstring.filegroups.view.file_groups import FileGroupView, table_view
from drawstring.model.files import FileSlice
from drawstring.storage import open_spec
from drawstring.storage.protocol import StorageSpec
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline


class SliceLookup:
    """Latest slices by partition, picklable; what it has listed stays in its own process.

    Args:
        storage: opens the table.
        config: the table.
        timeline: what counts as committed.
        lets_through: whether file groups in a pending clustering may be written to.
        yielding: requested times of clusterings whose file groups may be written to in any case.

    Attributes:
        timeline: what counts as committed.
    """

    def __init__(
        self,
        storage: StorageSpec,
        config: TableConfig,
        timeline: Timeline,
        *,
        lets_through: bool = False,
        yielding: frozenset[str] = frozenset(),
    ) -> None:
        self._storage = storage
        self._yielding = yielding
        self._lets_through = lets_through
        self._config = config
        self.timeline = timeline
        self._view: FileGroupView | None = None
        self._known: dict[str, Sequence[FileSlice]] = {}

    def __getstate__(self) -> tuple[Any, ...]:
        return self._storage, self._config, self.timeline, self._lets_through, self._yielding

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        *plain, lets_through, yielding = state
        self.__init__(*plain, lets_through=lets_through, yielding=yielding)  # type: ignore[misc]

    def partitions(self) -> list[str]:
        """Return all partition paths, sorted."""
        return self.view().partitions()

    def slices(self, partition: str) -> Sequence[FileSlice]:
        """Return the latest slice of each file group as a write continues it.

        In layout 1 a group in a pending compaction goes on in the slice that the compaction is
        going to make: its log files bear the compaction's instant.
        """
        if partition not in self._known:
            found = self.view().slices(partition)
            if self._config.rules.names_logs_by_slice:
                pending = self.view().pending_compactions()
                found = [_continued(s, pending.get((partition, s.file_id))) for s in found]
            self._known[partition] = found
        return self._known[partition]

    def replaceable_partitions(self) -> list[str]:
        """Return all partition paths, sorted, those too of which nothing is left that ought to be there."""
        return self.view().replaceable_partitions()

    def replaceable(self, partition: str) -> list[str]:
        """Return the ids of the file groups that readers see, those too whose files are missing."""
        return self.view().replaceable(partition)

    def check_free(self, partition: str, file_id: str) -> None:
        """Refuse to write to a file group that a pending clustering is going to replace, unless it may be.

        Args:
            partition: partition path.
            file_id: the file group.

        Raises:
            ConflictError: naming the clustering.
        """
        if self._lets_through:
            return
        clustering = self.view().pending_clusterings().get((partition, file_id))
        if clustering is not None and clustering not in self._yielding:
            raise ConflictError(
                f"file group {file_id} is part of a pending clustering: run that clustering"
                f" (cluster), withdraw it (rollback, of {clustering}), or let writes through with"
                " hoodie.clustering.updates.strategy=SparkAllowUpdateStrategy, then write again",
                instant=clustering,
                path=partition,
            )

    def view(self) -> FileGroupView:
        """Return the view of file groups behind it."""
        if self._view is None:
            storage = open_spec(self._storage)
            store = TimelineStore(storage, self._config, SystemClock())
            self._view = table_view(storage, self._config, self.timeline, store)
        return self._view


def _continued(file_slice: FileSlice, compaction: str | None) -> FileSlice:
    return file_slice if compaction is None else replace(file_slice, base_instant=compaction)
