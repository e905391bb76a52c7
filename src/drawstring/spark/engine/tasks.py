"""What the engine has Python workers do; a worker imports this and not the engine.

A worker's first task waits for its imports, so nothing of Spark's DataFrames is needed in here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark import TaskContext as SparkTask
from pyspark import cloudpickle

from drawstring.engine.coalesce import coalesced
from drawstring.engine.counting import Tally
from drawstring.engine.key_sets import KeySets, gather, matching
from drawstring.engine.protocol import TaskContext, TaskFunction
from drawstring.filegroups.read.cdc import read_task
from drawstring.formats.parquet.read import read_parquet_groups
from drawstring.spark.engine.batches import with_types
from drawstring.spark.engine.packing import LOOKED_UP, MAIN, Chain, JoinBuckets, Splitter, binary, packed
from drawstring.spark.engine.worker import work
from drawstring.spark.read.key_filter import Wanted
from drawstring.storage import open_spec
from drawstring.storage.protocol import StorageSpec

_PARTS_OF_FULL_SIZE: Final = 4


def _part() -> int:
    task = SparkTask.get()
    return task.partitionId() if task else 0


def _context() -> TaskContext:
    """Return the running attempt.

    Its number is unique in the application, so that a retried stage does not write under the names
    of an attempt that still runs.
    """
    task = SparkTask.get()
    return (
        TaskContext(task.partitionId(), task.stageId(), task.taskAttemptId())
        if task
        else TaskContext(0, 0, 0)
    )


@dataclass(frozen=True, slots=True)
class Ingest:
    """The batch function that takes in Spark's batches: core types, and batches of a fair size."""

    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return coalesced(with_types(batch, self.schema) for batch in batches)


@dataclass(frozen=True, slots=True)
class AsTypes:
    """The batch function that gives rows the types of Spark's columns."""

    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with work():
            for batch in batches:
                yield with_types(batch, self.schema)


@dataclass(frozen=True, slots=True)
class Pack:
    """Packs rows for a shuffle, after the steps."""

    chain: Chain
    schema: pa.Schema
    split: Splitter

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with work():
            yield from packed(self.chain(batches), self.schema, self.split, MAIN, _part())


@dataclass(frozen=True, slots=True)
class ReadSources:
    """The batch function that reads the sources whose numbers it is given."""

    sources: list[bytes]
    read: Callable[[Any], Iterator[pa.RecordBatch]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                yield from self.read(cloudpickle.loads(self.sources[number]))


class ReadSlices:
    """The function that reads file slices in a Python worker.

    Args:
        schema: columns to yield.
        parts: pickled tasks by partition; None where rows bring them along.
        name: what Spark's plans call it.
    """

    def __init__(self, schema: pa.Schema, parts: Sequence[bytes] | None = None, name: str = "read") -> None:
        self._schema = schema
        self._parts = parts
        self.__name__ = name

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the tasks of partitions, whose numbers or tasks are the only column."""
        with work():
            for part in (part for batch in batches for part in batch.column(0).to_pylist()):
                for task in cloudpickle.loads(part if self._parts is None else self._parts[part]):
                    for rows in read_task(task):
                        yield with_types(rows.select(self._schema.names), self._schema)


@dataclass(frozen=True, slots=True)
class RowGroups:
    """Some row groups of a Parquet file.

    Attributes:
        folder: where the file is.
        name: its name there.
        groups: their numbers.
        schema: the columns to yield.
    """

    folder: StorageSpec
    name: str
    groups: tuple[int, ...]
    schema: pa.Schema


def read_row_groups(task: Sequence[RowGroups]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the row groups that a task has."""
    for part in task:
        storage = open_spec(part.folder)
        for batch in read_parquet_groups(storage, part.name, part.schema.names, part.groups):
            yield with_types(batch, part.schema)


@dataclass(frozen=True, slots=True)
class PackSources:
    """Reads the other side of a join and packs it."""

    sources: list[bytes]
    read: Callable[[Any], Iterator[pa.RecordBatch]]
    schema: pa.Schema
    split: Splitter
    wanted: Wanted | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with work():
            found = ReadSources(self.sources, self.read)(batches)
            rows = found if self.wanted is None else self.wanted(found)
            yield from packed(rows, self.schema, self.split, LOOKED_UP, _part())


@dataclass(frozen=True, slots=True)
class RunTask:
    """Runs the steps and then a task; yields its pickled results."""

    chain: Chain
    task: TaskFunction[Any]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with work():
            rows = (batch for batch in self.chain(batches) if batch.num_rows)
            first = next(rows, None)
            if first is not None:
                results = self.task(_preceded(first, rows), _context())
                pickled = [cloudpickle.dumps(result) for result in results]
                yield pa.RecordBatch.from_arrays([pa.array(pickled, pa.binary())], names=["result"])


def _preceded(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest


@dataclass(frozen=True, slots=True)
class OnItems:
    """Runs a task on pickled items by their numbers."""

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
    """Counts the rows of a part by text columns."""

    by: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch], context: TaskContext) -> Iterable[Tally]:
        return [Tally.of(batches, self.by)]


@dataclass(frozen=True, slots=True)
class GatherKeys:
    """Tells the keys of a part, and how many rows go with each value of the other key columns.

    Attributes:
        on: the key column, and the others.
        bytes_max: text of keys up to which one part may tell them one by one, where there are few parts.
    """

    on: tuple[str, ...]
    bytes_max: int

    def __call__(
        self, batches: Iterator[pa.RecordBatch], context: TaskContext
    ) -> Iterable[tuple[Tally, KeySets]]:
        # A part with a high number knows that there are many, which all come to the driver.
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
    """Reads the other side of a join, and yields what matches a few keys, one Arrow message a part.

    Attributes:
        sources: pickled.
        read: reads one.
        schema: of what it yields.
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
            found = list(matching(rows, self.on, self.sets))
            if found:
                message = pa.concat_batches(found).serialize()
                yield pa.RecordBatch.from_arrays([binary([message])], names=["result"])


@dataclass(frozen=True, slots=True)
class JoinPlaces:
    """The batch function that left-joins rows with the few that were found for their keys.

    Attributes:
        join: the columns of both sides.
        found: rows of the right side.
    """

    join: JoinBuckets
    found: pa.RecordBatch

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plain = (with_types(batch, self.join.left) for batch in batches)
        return self.join.matched(coalesced(plain), self.found)
