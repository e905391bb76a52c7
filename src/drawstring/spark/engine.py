"""The Spark engine: rows stay in Spark's executors, the driver sees results only.

    DataFrame --mapInArrow--> steps --> packed rows --Spark's shuffle--> steps --> results

Batch functions run one after the other in one Python worker. Rows are packed (see `packing`)
before a shuffle or a persist, so that Spark moves few large rows instead of many wide ones. A
shuffle is a repartition by column: adaptive execution may put small partitions together, and never
takes one apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import StorageLevel, cloudpickle
from pyspark import TaskContext as SparkTask
from pyspark.sql import DataFrame, SparkSession

from drawstring.base.errors import UnsupportedError
from drawstring.engine.protocol import BatchFunction, TaskContext, TaskFunction
from drawstring.spark.batches import coalesced, with_types
from drawstring.spark.failures import surfaced
from drawstring.spark.packing import (
    LOOKED_UP,
    MAIN,
    PACKED_DDL,
    ByGroup,
    ByHash,
    Chain,
    JoinBuckets,
    Splitter,
    Together,
    Unpack,
    packed,
    plain,
)
from drawstring.spark.types import arrow_schema
from drawstring.spark.worker import work

T = TypeVar("T")
R = TypeVar("R")

_TASKS_PER_CORE = 16


class SparkEngine:
    """Runs tasks in Spark's executors.

    Args:
        spark: a classic session.

    Raises:
        UnsupportedError: the session is a Spark Connect one.
    """

    def __init__(self, spark: SparkSession) -> None:
        self.spark = classic(spark)

    @property
    def parallelism(self) -> int:
        """How many tasks run at once."""
        return int(self.spark.sparkContext.defaultParallelism)

    def map(self, task: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Run a task for each item, results in the items' order."""
        if not items:
            return []
        pickled = [cloudpickle.dumps(item) for item in items]
        slices = min(len(pickled), _TASKS_PER_CORE * self.parallelism)
        numbers = self.spark.range(0, len(pickled), 1, slices)
        with surfaced():
            # As a DataFrame and not an RDD: those have Python workers of their own, to be started first.
            found = numbers.mapInArrow(_OnItems(pickled, task), "result binary").collect()
        return [cloudpickle.loads(bytes(row.result)) for row in found]

    def rows(self, df: DataFrame) -> SparkRows:
        """Take in a DataFrame; nothing is computed yet.

        Raises:
            UnsupportedError: a column has a type that tables cannot hold.
        """
        return SparkRows.of(df)


class SparkRows:
    """Rows of a DataFrame, seen through batch functions.

    Args:
        df: rows, or packed rows.
        schema: the columns after all steps.
        steps: batch functions on the record batches that Spark hands to a Python worker.
    """

    def __init__(self, df: DataFrame, schema: pa.Schema, steps: tuple[BatchFunction, ...]) -> None:
        self._df = df
        self._schema = schema
        self._steps = steps

    @staticmethod
    def of(df: DataFrame) -> SparkRows:
        """Take in a DataFrame of the user."""
        classic(df.sparkSession)
        schema = arrow_schema(df.schema)
        return SparkRows(df, schema, (Ingest(schema),))

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._schema

    def map_batches(self, function: BatchFunction, schema: pa.Schema) -> SparkRows:
        """Apply a function to the stream of batches of every part; lazy."""
        return SparkRows(self._df, schema, (*self._steps, function))

    def persist(self) -> SparkRows:
        """Keep what is computed first, in memory and then on disk."""
        kept = self._packed(Together()).persist(StorageLevel.MEMORY_AND_DISK)
        return self._unpacked(kept)

    def distinct(self, column: str) -> list[str]:
        """Return the distinct values of a text column, sorted."""
        values = self.run(_Distinct(column))
        return sorted({value for found in values for value in found})

    def join_keys(
        self,
        on: Sequence[str],
        sources: Sequence[T],
        read: Callable[[T], Iterator[pa.RecordBatch]],
        schema: pa.Schema,
    ) -> SparkRows:
        """Left-join with the rows of all sources: both sides shuffled by the hash of the key."""
        spark = self._df.sparkSession
        split = ByHash(tuple(on), int(str(spark.conf.get("spark.sql.shuffle.partitions"))))
        join = JoinBuckets(plain(self._schema), schema, tuple(on))
        both = self._packed(split)
        if sources:
            function = _PackSources([cloudpickle.dumps(source) for source in sources], read, schema, split)
            tasks = min(len(sources), _TASKS_PER_CORE * spark.sparkContext.defaultParallelism)
            numbers = spark.range(0, len(sources), 1, tasks)
            both = numbers.mapInArrow(function, PACKED_DDL).union(both)
        return SparkRows(_shuffled(both), join.schema, (join,))

    def exchange(self, by: Sequence[str]) -> SparkRows:
        """Bring rows with equal values in `by` together; rows of a group keep their order."""
        return self._unpacked(_shuffled(self._packed(ByGroup(tuple(by)))))

    def run(self, task: TaskFunction[R]) -> list[R]:
        """Run a task on every part that has rows and gather its results."""
        function = _RunTask(Chain(self._steps), task)
        with surfaced():
            found = self._df.mapInArrow(function, "result binary").collect()
        return [cloudpickle.loads(bytes(row.result)) for row in found]

    def release(self) -> None:
        """Let go of what was kept."""
        self._df.unpersist()

    def _packed(self, split: Splitter) -> DataFrame:
        function = _Pack(Chain(self._steps), plain(self._schema), split)
        return self._df.mapInArrow(function, PACKED_DDL)

    def _unpacked(self, df: DataFrame) -> SparkRows:
        schema = plain(self._schema)
        return SparkRows(df, schema, (Unpack(schema),))


def classic(spark: Any) -> SparkSession:
    """Return the session if it drives Spark in this process.

    Raises:
        UnsupportedError: it is a Spark Connect session.
    """
    if not isinstance(spark, SparkSession) or not hasattr(spark, "_jsparkSession"):
        raise UnsupportedError(
            "this is a Spark Connect session: drawstring needs a classic one (no `remote` or"
            " SPARK_REMOTE setting) to run its tasks"
        )
    return spark


def _shuffled(df: DataFrame) -> DataFrame:
    return df.repartition("bucket").sortWithinPartitions("bucket", "side", "part", "number")


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
class _Pack:
    chain: Chain
    schema: pa.Schema
    split: Splitter

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with work():
            yield from packed(self.chain(batches), self.schema, self.split, MAIN, _part())


@dataclass(frozen=True, slots=True)
class _PackSources:
    sources: list[bytes]
    read: Callable[[Any], Iterator[pa.RecordBatch]]
    schema: pa.Schema
    split: Splitter

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with work():
            yield from packed(self._rows(batches), self.schema, self.split, LOOKED_UP, _part())

    def _rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                yield from self.read(cloudpickle.loads(self.sources[number]))


@dataclass(frozen=True, slots=True)
class _RunTask:
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
class _OnItems:
    items: list[bytes]
    task: Callable[[Any], Any]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with work():
            for batch in batches:
                for number in batch.column("id").to_pylist():
                    pickled = cloudpickle.dumps(self.task(cloudpickle.loads(self.items[number])))
                    yield pa.RecordBatch.from_arrays([pa.array([pickled], pa.binary())], names=["result"])


@dataclass(frozen=True, slots=True)
class _Distinct:
    column: str

    def __call__(self, batches: Iterator[pa.RecordBatch], context: TaskContext) -> Iterable[list[str]]:
        values: set[str] = set()
        for batch in batches:
            values.update(pc.unique(batch.column(self.column).drop_null()).to_pylist())
        return [sorted(values)]
