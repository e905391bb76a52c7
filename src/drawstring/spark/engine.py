"""Run the core's tasks in Spark: rows stay in the executors, the driver receives results only.

    DataFrame --mapInArrow--> steps --> packed rows --Spark's shuffle--> steps --> results

Consecutive batch functions run in one Python worker. Rows are packed (`spark.workers.rows`) before a shuffle
or a persist, so that Spark moves few large rows instead of many wide ones. A shuffle is a repartition by
column: adaptive execution may coalesce small partitions and never splits one. The functions of the workers
are in `spark.workers.tasks`.

SQL over relations of the core (`run_in_spark`) uses temporary views of the session for as long as a query
runs.

Parquet input (`parquet_input`): Python workers read the files of a DataFrame that only scans them.

    DataFrame ── a plain scan of files with the types of the table? ──> row groups by task
                                  │ no
                                  └──> Spark reads the rows and passes them on

Otherwise Spark converts the files to rows, and the rows to Arrow batches for the workers. This conversion
is most of the cost of a first load, also because the JVM first has to compile that code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import StorageLevel, cloudpickle
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from drawstring.base import limits
from drawstring.base.errors import DrawstringError, InvalidError, UnsupportedError
from drawstring.engine.grouping import GroupCounts, KeySets, keys_size_bytes, union_of_parts
from drawstring.engine.protocol import BatchFunction, Relation, TaskFunction
from drawstring.formats.parquet.row_group_copy import ParquetParts, parquet_parts
from drawstring.spark.reading.dataframe import SliceReading, dataframe
from drawstring.spark.workers.rows import (
    PACKED_SCHEMA,
    ByGroup,
    ByHash,
    Chain,
    JoinBuckets,
    NoSplit,
    Splitter,
    Unpack,
    arrow_schema,
    commented_schema,
    empty,
    plain,
    spark_schema,
)
from drawstring.spark.workers.tasks import (
    AsTypes,
    Count,
    FindMatches,
    GatherKeys,
    Ingest,
    JoinMatches,
    OnItems,
    Pack,
    PackSources,
    ReadSources,
    RowGroups,
    RunTask,
    build_key_filter,
    raise_worker_errors,
    read_row_groups,
)
from drawstring.storage import open_storage


def run_in_spark(spark: SparkSession, query: str, relations: Mapping[str, Relation]) -> pa.Table:
    """Return the result of a query; see `Engine.sql`.

    Args:
        spark: the session.
        query: the query.
        relations: the tables that it may name, under names that are no views of the session.

    Raises:
        InvalidError: Spark refuses the query.
    """
    try:
        for name, relation in relations.items():
            reading = SliceReading(relation.schema, None)
            dataframe(spark, relation.tasks(), reading).createOrReplaceTempView(name)
        with raise_worker_errors():
            return spark.sql(query).toArrow()
    except AnalysisException as error:
        text = " ".join(str(error).split("\n")[0].split())
        raise InvalidError(f"The query {query!r} fails: {text} Correct it: it runs in Spark.") from error
    finally:
        for name in relations:
            spark.catalog.dropTempView(name)


FILES_MAX: Final = 64
"""Maximum number of files whose footers the driver reads; for longer loads the JVM warms up anyway."""

_FOOTER_THREADS: Final = 16
_TASKS_PER_CORE: Final = 2
_REQUIRED_SETTINGS: Final = {
    "spark.sql.files.ignoreCorruptFiles": ("false",),
    "spark.sql.files.ignoreMissingFiles": ("false",),
    "spark.sql.parquet.datetimeRebaseModeInRead": ("corrected", "exception"),
}
_OPTIONS_OF_NO_MEANING: Final = {"path", "paths", ""}
_OLD_CALENDAR: Final = {"org.apache.spark.legacyDateTime", "org.apache.spark.legacyINT96"}
_WRITER: Final = "org.apache.spark.version"
_NEW_CALENDAR: Final = "3"


def parquet_input(df: DataFrame, schema: pa.Schema) -> list[list[RowGroups]] | None:
    """Return the row groups that each task reads instead of Spark; None if Spark has to read the rows.

    Args:
        df: the rows.
        schema: their columns.
    """
    try:
        paths = _paths(df)
        if not 0 < len(paths) <= FILES_MAX:
            return None
        with ThreadPoolExecutor(_FOOTER_THREADS) as pool:
            files = list(pool.map(_parts, paths))
    except (Py4JError, DrawstringError):
        return None  # let Spark report what is wrong with the files
    if not all(_has(parts, schema) for parts in files):
        return None
    return _divided(paths, files, schema, df.sparkSession.sparkContext.defaultParallelism)


def _paths(df: DataFrame) -> list[str]:
    """Return the local Parquet files that a DataFrame scans; none if its plan is not a plain scan."""
    execution: Any = df._jdf.queryExecution()
    if _kind(execution.analyzed()) != "LogicalRelation":
        return []
    plan = execution.optimizedPlan()  # shows caches and row-level security rules
    if _kind(plan) != "LogicalRelation" or plan.catalogTable().isDefined():
        return []
    relation = plan.relation()
    is_plain = (
        _kind(relation) == "HadoopFsRelation"
        and _kind(relation.fileFormat()) == "ParquetFileFormat"
        and relation.partitionSchema().length() == 0
        and relation.schema().length() == plan.output().length()
        and set(relation.options().keys().mkString(",").lower().split(",")) <= _OPTIONS_OF_NO_MEANING
    )
    conf = df.sparkSession.conf
    if not is_plain or any(
        str(conf.get(key)).lower() not in values for key, values in _REQUIRED_SETTINGS.items()
    ):
        return []
    uris = [urlsplit(uri) for uri in relation.location().inputFiles()]
    return [unquote(uri.path) for uri in uris] if all(uri.scheme == "file" for uri in uris) else []


def _kind(value: Any) -> str:
    return str(value.getClass().getSimpleName())


def _parts(path: str) -> ParquetParts:
    folder, _, name = path.rpartition("/")
    return parquet_parts(open_storage(folder or "/"), name)


def _has(parts: ParquetParts, schema: pa.Schema) -> bool:
    """Return whether a file has these columns, with values that Spark would not rebase or cast."""
    is_old = parts.entries.keys() & _OLD_CALENDAR or parts.entries.get(_WRITER, _NEW_CALENDAR) < _NEW_CALENDAR
    return not is_old and parts.columns.names == schema.names and parts.columns.types == schema.types


def _divided(
    paths: Sequence[str], files: Sequence[ParquetParts], schema: pa.Schema, cores: int
) -> list[list[RowGroups]]:
    """Divide row groups among tasks by size, with adjacent row groups in one task."""
    tasks: list[list[RowGroups]] = [[] for _ in range(_TASKS_PER_CORE * cores)]
    share = sum(sum(parts.sizes_bytes) for parts in files) / len(tasks) or 1
    before = 0
    for path, parts in zip(paths, files, strict=True):
        folder, _, name = path.rpartition("/")
        groups: dict[int, list[int]] = {}
        for number, size in enumerate(parts.sizes_bytes):
            groups.setdefault(int((before + size / 2) / share), []).append(number)
            before += size
        for task, numbers in groups.items():
            tasks[task].append(RowGroups(open_storage(folder or "/").spec, name, tuple(numbers), schema))
    return [groups for groups in tasks if groups]


T = TypeVar("T")
R = TypeVar("R")

_PACKED: Final = spark_schema(PACKED_SCHEMA)
_RESULTS: Final = spark_schema(pa.schema([("result", pa.binary())]))
"""Result types of tasks. As a DDL string the JVM would parse them, which takes 0.1 s the first time."""

_SLICES_PER_CORE_MAX: Final = 16

_READS_PER_CORE: Final = 4
_PARTS_PER_CORE: Final = 2
"""Tasks per core that read keys, and that write file groups: few, because each takes time to start."""


class ExecutorEngine:
    """Runs tasks in Spark's executors.

    Args:
        spark: a classic session.

    Raises:
        InvalidError: it is no session.
        UnsupportedError: the session is a Spark Connect one.
    """

    def __init__(self, spark: SparkSession) -> None:
        self.spark = classic(spark)

    @property
    def parallelism(self) -> int:
        """Number of tasks that run at once."""
        return int(self.spark.sparkContext.defaultParallelism)

    @property
    def tasks_may_outlive(self) -> bool:
        """Whether a task may go on after a failed call: yes, executors stop them later."""
        return True

    def map(self, task: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Run a task for each item and return the results in the order of the items."""
        if not items:
            return []
        pickled = [cloudpickle.dumps(item) for item in items]
        slices = min(len(pickled), _SLICES_PER_CORE_MAX * self.parallelism)
        numbers = self.spark.range(0, len(pickled), 1, slices)
        with raise_worker_errors():
            # A DataFrame, not an RDD: RDDs have their own Python workers, which would have to start first.
            results = numbers.mapInArrow(OnItems(pickled, task), _RESULTS).collect()
        return [cloudpickle.loads(bytes(row.result)) for row in results]

    def read(
        self, sources: Sequence[T], read: Callable[[T], Iterator[pa.RecordBatch]], schema: pa.Schema
    ) -> SparkRows:
        """Return the rows that `read(source)` yields for every source, with the columns of `schema`; lazy."""
        pickled = [cloudpickle.dumps(source) for source in sources]
        slices = max(1, min(len(pickled), _SLICES_PER_CORE_MAX * self.parallelism))
        numbers = self.spark.range(0, len(pickled), 1, slices)
        return SparkRows(numbers, schema, (ReadSources(pickled, read),))

    def sql(self, query: str, relations: Mapping[str, Relation]) -> pa.Table:
        """Return the result of a query in Spark's SQL."""
        return run_in_spark(self.spark, query, relations)

    def rows(self, df: DataFrame) -> SparkRows:
        """Return the rows of a DataFrame; lazy.

        Raises:
            UnsupportedError: a column has a type that tables cannot store.
        """
        return SparkRows.of(df)


class SparkRows:
    """Rows of a DataFrame after a sequence of batch functions.

    Args:
        df: rows, or packed rows.
        schema: the columns after all steps.
        steps: batch functions on the record batches that Spark passes to a Python worker.
    """

    def __init__(self, df: DataFrame, schema: pa.Schema, steps: tuple[BatchFunction, ...]) -> None:
        self._df = df
        self._schema = schema
        self._steps = steps
        self._tallies: dict[tuple[str, ...], GroupCounts] = {}
        self._keys: dict[tuple[str, ...], KeySets] = {}

    @staticmethod
    def of(df: DataFrame) -> SparkRows:
        """Return the rows of a user's DataFrame; lazy."""
        classic(df.sparkSession)
        schema, told = arrow_schema(df.schema), commented_schema(df.schema)
        groups = parquet_input(df, schema)
        if groups is not None:
            return ExecutorEngine(df.sparkSession).read(groups, read_row_groups, told)
        return SparkRows(df, told, (Ingest(schema),))

    def dataframe(self) -> DataFrame:
        """Return the rows as a DataFrame; lazy.

        Raises:
            UnsupportedError: Spark has no type for a column.
        """
        columns = spark_schema(self._schema)
        steps = Chain((*self._steps, AsTypes(arrow_schema(columns))))
        return self._df.mapInArrow(steps, columns)

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._schema

    @property
    def engine(self) -> ExecutorEngine:
        """The engine that holds the rows."""
        return ExecutorEngine(self._df.sparkSession)

    def map_batches(self, function: BatchFunction, schema: pa.Schema) -> SparkRows:
        """Apply a function to the batches of every part; lazy."""
        return SparkRows(self._df, schema, (*self._steps, function))

    @property
    def reads_once(self) -> bool:
        """Return False: Spark computes the rows again from their source."""
        return False

    def repeatable(self) -> SparkRows:
        """Return these rows: Spark computes them again from their source."""
        return self

    def persist(self) -> SparkRows:
        """Persist the rows on disk when they are first computed; they may be too large for the heap."""
        persisted = self._packed(NoSplit()).persist(StorageLevel.DISK_ONLY)
        return self._unpacked(persisted)

    def consume(self) -> SparkRows:
        """Return the rows unchanged: `release` frees persisted rows."""
        return self

    def distinct(self, column: str) -> list[str]:
        """Return the distinct values of a string column, sorted."""
        return sorted(value for (value,) in self.count_by((column,)).rows if value is not None)

    def count_by(self, by: Sequence[str]) -> GroupCounts:
        """Count the rows by the values of string columns."""
        columns = tuple(by)
        if columns not in self._tallies:
            self._tallies[columns] = GroupCounts.sum(self.run(Count(columns)))
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

        If `narrow` is set and there are few keys, the matches are sent to every task (a broadcast join).
        Otherwise both sides are shuffled by the hash of the key. Unless `keep_right` is set, source rows
        whose key cannot match are dropped before the shuffle (see `wanted`).
        """
        spark = self._df.sparkSession
        sets = None if keep_right else self.keys(on)
        if narrow and sets is not None and _are_few(sets):
            return self._broadcast_join(on, sources, read, schema, sets)
        split = ByHash(tuple(on), int(str(spark.conf.get("spark.sql.shuffle.partitions"))))
        join = JoinBuckets(plain(self._schema), schema, tuple(on), keep_right)
        packed = self._packed(split)
        if sources:
            pickled = [cloudpickle.dumps(source) for source in sources]
            key_filter = None if sets is None else build_key_filter(on[0], sets)
            function = PackSources(pickled, read, schema, split, key_filter)
            packed = _numbers(spark, len(sources)).mapInArrow(function, _PACKED).union(packed)
        return SparkRows(_shuffled(packed, None), join.schema, (join,))

    def keys(self, on: Sequence[str]) -> KeySets:
        """Return the distinct keys by the other key columns; the same job counts the rows of these."""
        columns = tuple(on)
        if columns not in self._keys:
            results = self.run(GatherKeys(columns, limits.in_force.spark_keys_bytes_max))
            self._keys[columns] = union_of_parts(
                [sets for _, sets in results], limits.in_force.spark_keys_bytes_max
            )
            self._tallies.setdefault(columns[1:], GroupCounts.sum(tally for tally, _ in results))
        return self._keys[columns]

    def exchange(self, by: Sequence[str]) -> SparkRows:
        """Shuffle rows with equal values in `by` into one part; rows of a group keep their order."""
        packed = self._packed(ByGroup(tuple(by)))
        return self._unpacked(_shuffled(packed, _engine_parts(self._df.sparkSession)))

    def sort(self, by: Sequence[str], *, global_sort: bool) -> SparkRows:
        """Sort the rows with Spark: globally if `global_sort` is set, else within partitions."""
        unsorted = self.dataframe()
        names = [f"`{name.replace('`', '``')}`" for name in by]
        ordered = unsorted.orderBy(*names) if global_sort else unsorted.sortWithinPartitions(*names)
        return SparkRows(ordered, self._schema, (Ingest(self._schema),))

    def run(self, task: TaskFunction[R]) -> list[R]:
        """Run a task on every part with rows and return its results."""
        function = RunTask(Chain(self._steps), task)
        with raise_worker_errors():
            results = self._df.mapInArrow(function, _RESULTS).collect()
        return [cloudpickle.loads(bytes(row.result)) for row in results]

    def release(self) -> None:
        """Release persisted rows."""
        self._df.unpersist()

    def _broadcast_join(
        self,
        on: Sequence[str],
        sources: Sequence[T],
        read: Callable[[T], Iterator[pa.RecordBatch]],
        schema: pa.Schema,
        sets: KeySets,
    ) -> SparkRows:
        join = JoinBuckets(plain(self._schema), schema, tuple(on))
        matches: list[pa.RecordBatch] = []
        if sources:
            pickled = [cloudpickle.dumps(source) for source in sources]
            function = FindMatches(pickled, read, schema, tuple(on), sets)
            numbers = _numbers(self._df.sparkSession, len(sources))
            with raise_worker_errors():
                parts = numbers.mapInArrow(function, _RESULTS).collect()
            matches = [pa.ipc.read_record_batch(pa.py_buffer(part.result), schema) for part in parts]
        step = JoinMatches(join, pa.concat_batches([empty(schema), *matches]))
        return SparkRows(self._df, join.schema, (*self._steps, step))

    def _packed(self, split: Splitter) -> DataFrame:
        function = Pack(Chain(self._steps), plain(self._schema), split)
        return self._df.mapInArrow(function, _PACKED)

    def _unpacked(self, df: DataFrame) -> SparkRows:
        schema = plain(self._schema)
        return SparkRows(df, schema, (Unpack(schema),))


def classic(spark: Any) -> SparkSession:
    """Return the session if it is a classic session of this process.

    Raises:
        InvalidError: it is no session.
        UnsupportedError: it is a Spark Connect session.
    """
    kinds = {each.__name__ for each in type(spark).__mro__ if each.__module__.startswith("pyspark.sql.")}
    if "DataFrame" in kinds:
        raise InvalidError("This is a DataFrame. Give its session: df.sparkSession.")
    if "SparkSession" not in kinds:
        raise InvalidError(
            f"spark is {spark!r}, which is no session of Spark. Give one, as"
            " SparkSession.builder.getOrCreate() returns it."
        )
    if not isinstance(spark, SparkSession) or not hasattr(spark, "_jsparkSession"):
        raise UnsupportedError(
            "The session is a Spark Connect session. Use a classic session: create it without `remote` and"
            " without SPARK_REMOTE."
        )
    return spark


def _are_few(sets: KeySets) -> bool:
    """Return whether the keys and their matches are small enough to send to all tasks."""
    size_bytes = keys_size_bytes(sets)
    return size_bytes is not None and size_bytes <= limits.in_force.spark_few_keys_bytes_max


def _numbers(spark: SparkSession, sources: int) -> DataFrame:
    """Return source numbers in few partitions: reading keys takes less time than starting a task."""
    tasks = min(sources, _READS_PER_CORE * spark.sparkContext.defaultParallelism)
    return spark.range(0, sources, 1, tasks)


def _shuffled(df: DataFrame, parts: int | None) -> DataFrame:
    shuffled = df.repartition(parts, "bucket") if parts else df.repartition("bucket")
    return shuffled.sortWithinPartitions("bucket", "side", "part", "number")


def _engine_parts(spark: SparkSession) -> int | None:
    """Return the number of parts for file groups, None to let Spark choose.

    Adaptive execution coalesces parts by the size of their rows and ignores the files that a task reads and
    rewrites for them. In local mode the number of cores is fixed, and two parts per core keep all cores busy.
    """
    context = spark.sparkContext
    is_local = str(context.master).startswith("local")
    return _PARTS_PER_CORE * context.defaultParallelism if is_local else None
