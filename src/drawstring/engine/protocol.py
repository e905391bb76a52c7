"""The engine protocol, which the local and the Spark engine implement.

A plan fans out with `Engine.map`. Rows stay inside the engine behind a `Rows` handle; the core passes
functions that transform record batches. These functions are picklable; they receive and yield record
batches of bounded size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import pyarrow as pa

from drawstring.model.files import TaskContext

if TYPE_CHECKING:
    from drawstring.engine.grouping import GroupCounts, KeySets

T = TypeVar("T")
R = TypeVar("R")


BatchFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
TaskFunction = Callable[[Iterator[pa.RecordBatch], TaskContext], Iterable[R]]


class Rows(Protocol):
    """A handle on record batches that an engine holds."""

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows."""
        ...

    @property
    def engine(self) -> Engine:
        """The engine that holds the rows."""
        ...

    def map_batches(self, function: BatchFunction, schema: pa.Schema) -> Rows:
        """Apply a function lazily to the stream of batches of every part.

        After an exchange a part has one group or several, each of them complete and contiguous.
        """
        ...

    @property
    def reads_once(self) -> bool:
        """Whether the rows are a stream that can be read only once."""
        ...

    def repeatable(self) -> Rows:
        """Return rows that can be read several times: these, or stored ones if they can be read only once."""
        ...

    def persist(self) -> Rows:
        """Compute the rows once and store them, so that several uses see the same rows."""
        ...

    def consume(self) -> Rows:
        """Return the rows for a single, final reading: stored batches may be freed as they are read."""
        ...

    def distinct(self, column: str) -> list[str]:
        """Return the distinct values of a text column, which has to have few."""
        ...

    def count_by(self, by: Sequence[str]) -> GroupCounts:
        """Count the rows by the values of text columns, which have to have few; cached per handle."""
        ...

    def keys(self, on: Sequence[str]) -> KeySets:
        """Return the distinct values of the first key column by those of the others; cached per handle.

        The rows must be persisted. When the keys are too many, only their ranges are returned.
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
        """Left-join with the rows that `read(source)` yields for every source.

        The result has the columns of the left side and then those of `schema` that are not in `on`, null
        where nothing matched. A row on the left appears once for each match on the right, all in one batch.

        Args:
            on: key columns of both sides.
            sources: the sources of the right side.
            read: reads one source.
            schema: columns of the right side.
            keep_right: whether unmatched rows of the right side are returned, too, with null in all columns
                of the left side.
            narrow: whether the right side has only few short values beside the keys, so that the values
                for a small batch may go through the driver.
        """
        ...

    def exchange(self, by: Sequence[str]) -> Rows:
        """Shuffle the rows by `by`: all rows with equal values are contiguous in one part."""
        ...

    def sort(self, by: Sequence[str], *, global_sort: bool) -> Rows:
        """Sort the rows of every part, null first; with `global_sort` the parts follow each other, too."""
        ...

    def run(self, task: TaskFunction[R]) -> list[R]:
        """Run a task on the stream of every part and collect its results, which have to be small."""
        ...

    def release(self) -> None:
        """Free the rows that `persist` stored."""
        ...


class Relation(Protocol):
    """A table that SQL queries; it may be read several times."""

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        ...

    def tasks(self) -> Sequence[Any]:
        """Return the tasks that read its file slices."""
        ...

    def dataset(self) -> Any:
        """Return it as a dataset of Arrow, which columns and conditions are pushed into."""
        ...


class Engine(Protocol):
    """Runs tasks."""

    @property
    def parallelism(self) -> int:
        """The number of tasks that run at the same time."""
        ...

    @property
    def tasks_may_outlive(self) -> bool:
        """Whether a task may go on after the call that started it failed, or had enough of other attempts."""
        ...

    def map(self, task: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Run a task for each item and return the results in the items' order."""
        ...

    def read(
        self, sources: Sequence[T], read: Callable[[T], Iterator[pa.RecordBatch]], schema: pa.Schema
    ) -> Rows:
        """Return, lazily, the rows that `read(source)` yields for every source, with columns `schema`."""
        ...

    def sql(self, query: str, relations: Mapping[str, Relation]) -> pa.Table:
        """Return the result of a SQL query, which has to be small.

        Args:
            query: in the dialect of the engine: Spark's, or DuckDB's.
            relations: the tables that it may name.

        Raises:
            InvalidError: the query is wrong, or what runs it is not installed.
        """
        ...
