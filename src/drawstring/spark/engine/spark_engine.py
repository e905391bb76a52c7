"""The Spark engine: rows stay in Spark's executors, the driver sees results only.

    DataFrame --mapInArrow--> steps --> packed rows --Spark's shuffle--> steps --> results

Batch functions run one after the other in one Python worker. Rows are packed (see `packing`)
before a shuffle or a persist, so that Spark moves few large rows instead of many wide ones. A
shuffle is a repartition by column: adaptive execution may put small partitions together, and never
takes one apart. What workers do is in `tasks`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

import pyarrow as pa
from pyspark import StorageLevel, cloudpickle
from pyspark.sql import DataFrame, SparkSession

from drawstring.base.errors import UnsupportedError
from drawstring.engine.counting import Tally
from drawstring.engine.key_sets import KeySets, together, told_bytes
from drawstring.engine.protocol import BatchFunction, TaskFunction
from drawstring.spark.engine.failures import surfaced
from drawstring.spark.engine.packing import (
    PACKED_SCHEMA,
    ByGroup,
    ByHash,
    Chain,
    JoinBuckets,
    Splitter,
    Together,
    Unpack,
    empty,
    plain,
)
from drawstring.spark.engine.tasks import (
    AsTypes,
    Count,
    FindPlaces,
    GatherKeys,
    Ingest,
    JoinPlaces,
    OnItems,
    Pack,
    PackSources,
    ReadSources,
    RunTask,
    read_row_groups,
)
from drawstring.spark.engine.types import arrow_schema, spark_schema
from drawstring.spark.read.key_filter import wanted
from drawstring.spark.write.parquet_input import parquet_input

T = TypeVar("T")
R = TypeVar("R")

KEY_BYTES_MAX: Final = 32 << 20
"""Text of keys up to which the driver, and every task that reads the table's keys, has them."""

FEW_KEYS_BYTES_MAX: Final = 16 << 20
"""Text of keys up to which every task with rows has what was found for them, and nothing is shuffled."""

_PACKED: Final = spark_schema(PACKED_SCHEMA)
_RESULTS: Final = spark_schema(pa.schema([("result", pa.binary())]))
"""Types of what tasks yield; a text that says so is parsed by the JVM, a tenth of a second the first time."""

_TASKS_PER_CORE: Final = 16

_READS_PER_CORE: Final = 4
_PARTS_PER_CORE: Final = 2
"""Tasks for every core that read keys, and that write file groups: few, for each takes time to begin."""


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
            found = numbers.mapInArrow(OnItems(pickled, task), _RESULTS).collect()
        return [cloudpickle.loads(bytes(row.result)) for row in found]

    def read(
        self, sources: Sequence[T], read: Callable[[T], Iterator[pa.RecordBatch]], schema: pa.Schema
    ) -> SparkRows:
        """Return the rows that `read(source)` yields for every source, columns `schema`; lazy."""
        pickled = [cloudpickle.dumps(source) for source in sources]
        slices = max(1, min(len(pickled), _TASKS_PER_CORE * self.parallelism))
        numbers = self.spark.range(0, len(pickled), 1, slices)
        return SparkRows(numbers, schema, (ReadSources(pickled, read),))

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
        self._tallies: dict[tuple[str, ...], Tally] = {}
        self._keys: dict[tuple[str, ...], KeySets] = {}

    @staticmethod
    def of(df: DataFrame) -> SparkRows:
        """Take in a DataFrame of the user."""
        classic(df.sparkSession)
        schema = arrow_schema(df.schema)
        groups = parquet_input(df, schema)
        if groups is not None:
            return SparkEngine(df.sparkSession).read(groups, read_row_groups, schema)
        return SparkRows(df, schema, (Ingest(schema),))

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._schema

    @property
    def engine(self) -> SparkEngine:
        """The engine that they live in."""
        return SparkEngine(self._df.sparkSession)

    def map_batches(self, function: BatchFunction, schema: pa.Schema) -> SparkRows:
        """Apply a function to the stream of batches of every part; lazy."""
        return SparkRows(self._df, schema, (*self._steps, function))

    def persist(self) -> SparkRows:
        """Keep what is computed first, on disk: it is as large as the batch, and the heap is Spark's."""
        kept = self._packed(Together()).persist(StorageLevel.DISK_ONLY)
        return self._unpacked(kept)

    def consume(self) -> SparkRows:
        """Return the rows: Spark lets go of what it keeps by itself."""
        return self

    def distinct(self, column: str) -> list[str]:
        """Return the distinct values of a text column, sorted."""
        return sorted(value for (value,) in self.count_by((column,)).rows if value is not None)

    def count_by(self, by: Sequence[str]) -> Tally:
        """Count the rows by the values of text columns."""
        columns = tuple(by)
        if columns not in self._tallies:
            self._tallies[columns] = Tally.sum(self.run(Count(columns)))
        return self._tallies[columns]

    def join_keys(
        self,
        on: Sequence[str],
        sources: Sequence[T],
        read: Callable[[T], Iterator[pa.RecordBatch]],
        schema: pa.Schema,
        *,
        keep_right: bool = False,
        narrow: bool = False,
    ) -> SparkRows:
        """Left-join with the rows of all sources.

        What is found for a few keys, and narrow, goes to every task that has rows. Else both sides are
        shuffled by the hash of the key; rows of the sources stay where they were read when no key can match
        them (see `wanted`), unless they are to be kept.
        """
        spark = self._df.sparkSession
        sets = None if keep_right else self.keys(on)
        if narrow and sets is not None and _are_few(sets):
            return self._with_places(on, sources, read, schema, sets)
        split = ByHash(tuple(on), int(str(spark.conf.get("spark.sql.shuffle.partitions"))))
        join = JoinBuckets(plain(self._schema), schema, tuple(on), keep_right)
        both = self._packed(split)
        if sources:
            pickled = [cloudpickle.dumps(source) for source in sources]
            wanted_keys = None if sets is None else wanted(on[0], sets)
            function = PackSources(pickled, read, schema, split, wanted_keys)
            both = _numbers(spark, len(sources)).mapInArrow(function, _PACKED).union(both)
        return SparkRows(_shuffled(both, None), join.schema, (join,))

    def keys(self, on: Sequence[str]) -> KeySets:
        """Return the distinct keys by the other key columns, whose rows are counted on the way."""
        columns = tuple(on)
        if columns not in self._keys:
            found = self.run(GatherKeys(columns, KEY_BYTES_MAX))
            self._keys[columns] = together([sets for _, sets in found], KEY_BYTES_MAX)
            self._tallies.setdefault(columns[1:], Tally.sum(tally for tally, _ in found))
        return self._keys[columns]

    def exchange(self, by: Sequence[str]) -> SparkRows:
        """Bring rows with equal values in `by` together; rows of a group keep their order."""
        packed = self._packed(ByGroup(tuple(by)))
        return self._unpacked(_shuffled(packed, _parts(self._df.sparkSession)))

    def sort(self, by: Sequence[str], *, global_sort: bool) -> SparkRows:
        """Put the rows in order, by Spark's own sort: by ranges if `global_sort`."""
        columns = spark_schema(self._schema)
        steps = Chain((*self._steps, AsTypes(arrow_schema(columns))))
        unsorted = self._df.mapInArrow(steps, columns)
        names = [f"`{name.replace('`', '``')}`" for name in by]
        moved = unsorted.orderBy(*names) if global_sort else unsorted.sortWithinPartitions(*names)
        return SparkRows(moved, self._schema, (Ingest(self._schema),))

    def run(self, task: TaskFunction[R]) -> list[R]:
        """Run a task on every part that has rows and gather its results."""
        function = RunTask(Chain(self._steps), task)
        with surfaced():
            found = self._df.mapInArrow(function, _RESULTS).collect()
        return [cloudpickle.loads(bytes(row.result)) for row in found]

    def release(self) -> None:
        """Let go of what was kept."""
        self._df.unpersist()

    def _with_places(
        self,
        on: Sequence[str],
        sources: Sequence[T],
        read: Callable[[T], Iterator[pa.RecordBatch]],
        schema: pa.Schema,
        sets: KeySets,
    ) -> SparkRows:
        join = JoinBuckets(plain(self._schema), schema, tuple(on))
        found: list[pa.RecordBatch] = []
        if sources:
            pickled = [cloudpickle.dumps(source) for source in sources]
            function = FindPlaces(pickled, read, schema, tuple(on), sets)
            numbers = _numbers(self._df.sparkSession, len(sources))
            with surfaced():
                parts = numbers.mapInArrow(function, _RESULTS).collect()
            found = [pa.ipc.read_record_batch(pa.py_buffer(part.result), schema) for part in parts]
        step = JoinPlaces(join, pa.concat_batches([empty(schema), *found]))
        return SparkRows(self._df, join.schema, (*self._steps, step))

    def _packed(self, split: Splitter) -> DataFrame:
        function = Pack(Chain(self._steps), plain(self._schema), split)
        return self._df.mapInArrow(function, _PACKED)

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


def _are_few(sets: KeySets) -> bool:
    """Tell whether all tasks can have the keys, and what is found for them."""
    size_bytes = told_bytes(sets)
    return size_bytes is not None and size_bytes <= FEW_KEYS_BYTES_MAX


def _numbers(spark: SparkSession, sources: int) -> DataFrame:
    """Return the numbers of sources whose keys are read, which takes less time than a task to begin."""
    tasks = min(sources, _READS_PER_CORE * spark.sparkContext.defaultParallelism)
    return spark.range(0, sources, 1, tasks)


def _shuffled(df: DataFrame, parts: int | None) -> DataFrame:
    moved = df.repartition(parts, "bucket") if parts else df.repartition("bucket")
    return moved.sortWithinPartitions("bucket", "side", "part", "number")


def _parts(spark: SparkSession) -> int | None:
    """Return how many parts of file groups there are to be, None to leave it to Spark.

    Adaptive execution puts parts together until their rows are worth a task, and knows nothing of
    the files that a task is going to read and rewrite for them. On one machine, where nobody adds
    cores later, two parts a core keep all of them at work.
    """
    context = spark.sparkContext
    is_local = str(context.master).startswith("local")
    return _PARTS_PER_CORE * context.defaultParallelism if is_local else None
