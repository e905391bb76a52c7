"""Lifecycle hooks of an index around commits and rollbacks.

    for_overwrite         returns the index of a write that gives its partitions new file groups
    check_table           before a write: checks that earlier writes had the same index
    dual_write            before a write: returns which records to write to two file groups
    after_files_written   after the data files were written; the instant is still inflight
    before_commit         just before the completed file is written
    committed             after the instant completed
    rolled_back           after the data files of the instant were deleted

Hooks are called in the order of their effects on storage. A hook may be called again after a crash, so every
hook is idempotent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, Self

import pyarrow as pa

from drawstring.config.keys.clustering import Clustering
from drawstring.filegroups.view.lookup import SliceLookup
from drawstring.index.location import Location
from drawstring.model.commit import WriteStat
from drawstring.model.files import FileSlice
from drawstring.model.instant import Instant
from drawstring.storage.protocol import Storage
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class IndexCommit:
    """An instant that is about to be completed.

    Attributes:
        storage: storage of the table.
        timeline: timeline at the start of the write.
        time: requested time of the instant.
        replaced: paths of the partitions in which the instant replaces or deletes all file groups.
    """

    storage: Storage
    timeline: Timeline
    time: str
    replaced: Sequence[str] = ()


class IndexLifecycle(Protocol):
    """Hooks with which an index maintains its own files."""

    def before_commit(self, commit: IndexCommit) -> Sequence[str]:
        """Write the index files that become valid when the instant completes.

        Returns:
            The partitions that have such files, for `committed`.
        """
        ...

    def committed(self, commit: IndexCommit, partitions: Sequence[str]) -> None:
        """Confirm the index files of a completed instant.

        Args:
            commit: the instant.
            partitions: the result of `before_commit`.
        """
        ...

    def rolled_back(self, storage: Storage, instant: Instant) -> None:
        """Delete the index files of an instant that is rolled back.

        Args:
            storage: storage of the table.
            instant: pending instant, or a completed one that a restore removes.
        """
        ...


class DualWrite(Protocol):
    """Batch function that repeats rows, to write them to a second file group too. Picklable."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield every batch, followed by copies of its rows with their second location."""
        ...

    def target(self, partition: str, location: Location, lookup: SliceLookup) -> FileSlice | None:
        """Return the slice at a second location with its log files; None for all other locations.

        New log files of the slice carry its base instant in their names.
        """
        ...

    def once(self, stats: Sequence[WriteStat]) -> list[WriteStat]:
        """Return the statistics for the result of a write, without the copies."""
        ...


class NoIndexFiles:
    """Lifecycle of an index without own files and without dual writes: its hooks do nothing."""

    __slots__ = ()

    def for_overwrite(self, instant: str) -> Self:
        """Return the index unchanged."""
        return self

    def dual_write(
        self, store: TimelineStore, timeline: Timeline, clustering: Clustering
    ) -> DualWrite | None:
        """Return None."""
        return None

    def after_files_written(self, storage: Storage, partitions: Iterable[str]) -> None:
        """Do nothing."""

    def before_commit(self, commit: IndexCommit) -> Sequence[str]:
        """Do nothing; return no partitions."""
        return ()

    def committed(self, commit: IndexCommit, partitions: Sequence[str]) -> None:
        """Do nothing."""

    def rolled_back(self, storage: Storage, instant: Instant) -> None:
        """Do nothing."""


@contextmanager
def completing(index: IndexLifecycle, commit: IndexCommit) -> Iterator[None]:
    """Call the hooks of an index before and after the block, which completes an instant.

    Args:
        index: index of the write, or that of the stored index files (`index.stored`).
        commit: the instant.
    """
    partitions = index.before_commit(commit)
    yield
    index.committed(commit, partitions)
