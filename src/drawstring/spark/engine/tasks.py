"""Functions that the Spark engine runs in Python workers.

The first task of a worker waits for its imports, so this module does not import Spark's DataFrames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark import TaskContext as SparkTask
from pyspark import cloudpickle

from drawstring.engine.counting import Tally
from drawstring.engine.grouping import coalesced
from drawstring.engine.key_sets import KeySets, gather, matching
from drawstring.engine.protocol import TaskFunction
from drawstring.filegroups.read.slice_reader import read_task
from drawstring.formats.parquet.parts import read_parquet_groups
from drawstring.model.files import TaskContext
from drawstring.spark.engine.batches import with_types
from drawstring.spark.engine.packing import LOOKED_UP, MAIN, Chain, JoinBuckets, Splitter, binary, packed
from drawstring.spark.engine.worker import work
from drawstring.spark.reading.key_filter import Wanted
from drawstring.storage import open_spec
from drawstring.storage.protocol import StorageSpec

_PARTS_OF_FULL_SIZE: Final = 4


def _part() -> int:
    task = SparkTask.get()
    return task.partitionId() if task else 0


def _context() -> TaskContext:
    """Return the context of the running task attempt.

    The attempt number is unique in the application, so that the files of a retried stage have other names
    than those of an attempt that is still running.
    """
    task = SparkTask.get()
    return (
        TaskContext(task.partitionId(), task.stageId(), task.taskAttemptId())
        if task
        else TaskContext(0, 0, 0)
    )


@dataclass(frozen=True, slots=True)
class Ingest:
    """A batch function that casts Spark's batches to the core's types and coalesces small batches."""

    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return coalesced(with_types(batch, self.schema) for batch in batches)


@dataclass(frozen=True, slots=True)
class AsTypes:
    """A batch function that casts rows to the types of Spark's columns."""

    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with work():
            for batch in batches:
                yield with_types(batch, self.schema)


@dataclass(frozen=True, slots=True)
class Pack:
    """A batch function that runs the steps and packs the rows for a shuffle."""

    chain: Chain
    schema: pa.Schema
    split: Splitter

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with work():
            yield from packed(self.chain(batches), self.schema, self.split, MAIN, _part())


@dataclass(frozen=True, slots=True)
class ReadSources:
    """A batch function that reads the sources with the given numbers."""

    sources: list[bytes]
    read: Callable[[Any], Iterator[pa.RecordBatch]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                yield from self.read(cloudpickle.loads(self.sources[number]))


class ReadSlices:
    """A batch function that reads file slices in a Python worker.

    Args:
        schema: columns to yield.
        parts: pickled tasks by partition; None if the input rows contain the tasks.
        name: name of the function in Spark's plans.
        read: reads a task.
    """

    def __init__(
        self,
        schema: pa.Schema,
        parts: Sequence[bytes] | None = None,
        name: str = "read",
        read: Callable[[Any], Iterator[pa.RecordBatch]] = read_task,
    ) -> None:
        self._schema = schema
        self._parts = parts
        self._read = read
        self.__name__ = name

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of partitions, given their numbers or their tasks in the only column."""
        with work():
            for part in (part for batch in batches for part in batch.column(0).to_pylist()):
                for task in cloudpickle.loads(part if self._parts is None else self._parts[part]):
                    for rows in self._read(task):
                        yield with_types(rows.select(self._schema.names), self._schema)


@dataclass(frozen=True, slots=True)
class RowGroups:
    """Some row groups of a Parquet file.

    Attributes:
        folder: folder of the file.
        name: name of the file in the folder.
        groups: numbers of the row groups.
        schema: the columns to yield.
    """

    folder: StorageSpec
    name: str
    groups: tuple[int, ...]
    schema: pa.Schema


def read_row_groups(task: Sequence[RowGroups]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the row groups of a task."""
    for part in task:
        storage = open_spec(part.folder)
        for batch in read_parquet_groups(storage, part.name, part.schema, part.groups):
            yield with_types(batch, part.schema)


@dataclass(frozen=True, slots=True)
class PackSources:
    """A batch function that reads the build side of a join and packs it."""

    sources: list[bytes]
    read: Callable[[Any], Iterator[pa.RecordBatch]]
    schema: pa.Schema
    split: Splitter
    wanted: Wanted | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with work():
            rows = ReadSources(self.sources, self.read)(batches)
            rows = rows if self.wanted is None else self.wanted(rows)
            yield from packed(rows, self.schema, self.split, LOOKED_UP, _part())


@dataclass(frozen=True, slots=True)
class RunTask:
    """A batch function that runs the steps and a task, and yields the pickled results of the task."""

    chain: Chain
    task: TaskFunction[Any]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with work():
            rows = (batch for batch in self.chain(batches) if batch.num_rows)
            first = next(rows, None)
            if first is not None:
                results = self.task(_chained(first, rows), _context())
                pickled = [cloudpickle.dumps(result) for result in results]
                yield pa.RecordBatch.from_arrays([pa.array(pickled, pa.binary())], names=["result"])


def _chained(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest


@dataclass(frozen=True, slots=True)
class OnItems:
    """A batch function that runs a task on the pickled items with the given numbers."""

    items: list[bytes]
    task: Callable[[Any], Any]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with work():
            for batch in batches:
                for number in batch.column("id").to_pylist():
                    pickled = cloudpickle.dumps(self.task(cloudpickle.loads(self.items[number])))
                    yield pa.RecordBatch.from_arrays([pa.array([pickled], pa.binary())], names=["result"])


@dataclass(frozen=True, slots=True)
class Count:
    """A task that counts the rows of a part by string columns."""

    by: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch], context: TaskContext) -> Iterable[Tally]:
        return [Tally.of(batches, self.by)]


@dataclass(frozen=True, slots=True)
class GatherKeys:
    """A task that returns the distinct keys of a part, and its row counts by the other key columns.

    Attributes:
        on: the key column, followed by the other key columns.
        bytes_max: maximum size of the keys that a part returns one by one, in bytes, if there are few parts.
    """

    on: tuple[str, ...]
    bytes_max: int

    def __call__(
        self, batches: Iterator[pa.RecordBatch], context: TaskContext
    ) -> Iterable[tuple[Tally, KeySets]]:
        # A high part number means that many parts send keys to the driver, so each may send less.
        share = self.bytes_max // (1 + context.task // _PARTS_OF_FULL_SIZE)
        tallies: list[Tally] = []
        sets = gather(_counted(batches, self.on[1:], tallies), self.on, share)
        return [(Tally.sum(tallies), sets)]


def _counted(
    batches: Iterator[pa.RecordBatch], by: Sequence[str], tallies: list[Tally]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        tallies.append(Tally.of((batch,), by))
        yield batch


@dataclass(frozen=True, slots=True)
class FindPlaces:
    """A batch function that reads the build side of a join and yields the matches of few keys.

    It yields one Arrow message per part.

    Attributes:
        sources: pickled sources.
        read: reads one source.
        schema: columns that `read` yields.
        on: key columns.
        sets: the keys.
    """

    sources: list[bytes]
    read: Callable[[Any], Iterator[pa.RecordBatch]]
    schema: pa.Schema
    on: tuple[str, ...]
    sets: KeySets

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with work():
            rows = ReadSources(self.sources, self.read)(batches)
            matches = list(matching(rows, self.on, self.sets))
            if matches:
                message = pa.concat_batches(matches).serialize()
                yield pa.RecordBatch.from_arrays([binary([message])], names=["result"])


@dataclass(frozen=True, slots=True)
class JoinPlaces:
    """A batch function that left-joins rows with the matches that all tasks received.

    Attributes:
        join: the join, with the columns of both sides.
        matches: rows of the build side.
    """

    join: JoinBuckets
    matches: pa.RecordBatch

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plain = (with_types(batch, self.join.left) for batch in batches)
        return self.join.matched(coalesced(plain), self.matches)
