"""The lifecycle of an index: what it does when an instant is completed or taken back.

    overwriting      the index of a write that gives its partitions new file groups
    check_table      before a write: earlier writes had the same index
    dual_write       before a write: some records are written to two file groups
    files_written    the data files are there, the instant is still inflight
    before_commit    nothing but the completed file is missing
    committed        the instant is completed
    rolled_back      the instant is taken back: its data files are gone

The order of calls is the order of effects on storage. Hooks can be called again after a process died: each
leaves what it did before as it is.
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
    """An instant that is about to be completed, as an index sees it.

    Attributes:
        storage: the table's.
        timeline: as the write found it.
        time: requested time of the instant.
        replaced: paths of the partitions all of whose file groups the instant replaces, by new ones or by
            none.
    """

    storage: Storage
    timeline: Timeline
    time: str
    replaced: Sequence[str] = ()


class IndexLifecycle(Protocol):
    """What an index does with files of its own, beside the data files."""

    def before_commit(self, commit: IndexCommit) -> Sequence[str]:
        """Put the files that are to count once the instant is completed.

        Returns:
            The partitions that have such files, for `committed`.
        """
        ...

    def committed(self, commit: IndexCommit, partitions: Sequence[str]) -> None:
        """Make sure that the files of a completed instant count for good.

        Args:
            commit: the instant.
            partitions: what `before_commit` returned.
        """
        ...

    def rolled_back(self, storage: Storage, instant: Instant) -> None:
        """Delete the files of an instant that never completes, or is undone.

        Args:
            storage: the table's.
            instant: pending, or completed and about to be forgotten.
        """
        ...


class DualWrite(Protocol):
    """A batch function that repeats the rows of some file groups, to be written to others too. Picklable."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield every batch, and after it what of it is written twice, at its second location."""
        ...

    def target(self, partition: str, location: Location, lookup: SliceLookup) -> FileSlice | None:
        """Return the slice at a second location, with its log files; None for all other locations.

        The log files that are written to it are named by its base instant.
        """
        ...

    def once(self, stats: Sequence[WriteStat]) -> list[WriteStat]:
        """Return the statistics of a write for people: what is written twice is counted once."""
        ...


class NoIndexFiles:
    """The lifecycle of an index that keeps no files and writes no record twice: its hooks do nothing."""

    __slots__ = ()

    def overwriting(self, instant: str) -> Self:
        """Return the index as it is."""
        return self

    def dual_write(self, store: TimelineStore, timeline: Timeline, asked: Clustering) -> DualWrite | None:
        """Return None."""
        return None

    def files_written(self, storage: Storage, partitions: Iterable[str]) -> None:
        """Do nothing."""

    def before_commit(self, commit: IndexCommit) -> Sequence[str]:
        """Put nothing."""
        return ()

    def committed(self, commit: IndexCommit, partitions: Sequence[str]) -> None:
        """Do nothing."""

    def rolled_back(self, storage: Storage, instant: Instant) -> None:
        """Do nothing."""


@contextmanager
def completing(index: IndexLifecycle, commit: IndexCommit) -> Iterator[None]:
    """Complete an instant in the block, with what an index does before and after that.

    Args:
        index: of the write, or what the table has stored (`index.stored`).
        commit: the instant.
    """
    partitions = index.before_commit(commit)
    yield
    index.committed(commit, partitions)
