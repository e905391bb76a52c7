"""The protocol that both engines keep.

A plan fans out with `Engine.map`. Rows stay inside the engine behind a `Rows` handle; the core only
says what happens to record batches. Functions handed over are picklable and receive and yield
bounded record batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import pyarrow as pa

from drawstring.engine.counting import Tally
from drawstring.engine.key_sets import KeySets

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class TaskContext:
    """Which attempt of which task runs: the write token `<task>-<stage>-<attempt>`."""

    task: int
    stage: int
    attempt: int

    @property
    def write_token(self) -> str:
        """The token in the names of files that this attempt writes."""
        return f"{self.task}-{self.stage}-{self.attempt}"


BatchFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
TaskFunction = Callable[[Iterator[pa.RecordBatch], TaskContext], Iterable[R]]


class Rows(Protocol):
    """A handle on record batches that live in an engine."""

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        ...

    @property
    def engine(self) -> Engine:
        """The engine that they live in."""
        ...

    def map_batches(self, function: BatchFunction, schema: pa.Schema) -> Rows:
        """Apply a function to the stream of batches of every part; lazy.

        After an exchange a part is one group or several, each of them whole and contiguous.
        """
        ...

    def persist(self) -> Rows:
        """Keep what was computed, so that two uses see the same rows."""
        ...

    def consume(self) -> Rows:
        """Return the rows for their last reading: what was kept of them may go as it is read."""
        ...

    def distinct(self, column: str) -> list[str]:
        """Return the distinct values of a text column; for a few values only."""
        ...

    def count_by(self, by: Sequence[str]) -> Tally:
        """Count the rows by the values of text columns, once for a handle; for a few values only."""
        ...

    def keys(self, on: Sequence[str]) -> KeySets:
        """Return the distinct values of the first key column by those of the others, once for a handle.

        The rows have been kept. Too many keys are told by their ends.
        """
        ...

    def join_keys(
        self,
        on: Sequence[str],
        sources: Sequence[T],
        read: Callable[[T], Iterator[pa.RecordBatch]],
        schema: pa.Schema,
        *,
        keep_right: bool = False,
        narrow: bool = False,
    ) -> Rows:
        """Left-join with the rows that `read(source)` yields for every source, columns `schema`.

        `on` are the key columns of both sides. The result has the columns of the left side and
        then those of `schema` that are not in `on`, null where nothing matched. A row on the left
        comes once for each match on the right, all of them in one batch. With `keep_right` rows of the
        right side that match nothing come too, with null in all columns of the left side. `narrow` says that
        the right side has few short values beside the keys, so that those of a small change may go through
        the driver.
        """
        ...

    def exchange(self, by: Sequence[str]) -> Rows:
        """Bring rows with equal values in `by` together: one part has a group whole, contiguous."""
        ...

    def sort(self, by: Sequence[str], *, global_sort: bool) -> Rows:
        """Put the rows of every part in order, null first; `global_sort`: parts follow each other too."""
        ...

    def run(self, task: TaskFunction[R]) -> list[R]:
        """Run a task on the stream of every part and gather its (small) results."""
        ...

    def release(self) -> None:
        """Let go of what was kept."""
        ...


class Engine(Protocol):
    """Where tasks run."""

    @property
    def parallelism(self) -> int:
        """How many tasks run at once."""
        ...

    def map(self, task: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Run a task for each item, results in the items' order."""
        ...

    def read(
        self, sources: Sequence[T], read: Callable[[T], Iterator[pa.RecordBatch]], schema: pa.Schema
    ) -> Rows:
        """Return the rows that `read(source)` yields for every source, columns `schema`; lazy."""
        ...
