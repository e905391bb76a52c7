"""File slices as a table of Spark's optimizer, which pushes columns and predicates down to them.

    DataFrame ── plan ──> SliceTable ── newScanBuilder ──> ScanBuilder ── pruneColumns, pushPredicates
                                                               │ build
    Python workers <── partitions, read function ──────────── Scan ── apply ──> MapInArrow

Spark calls the interfaces of its data source API, which are usually implemented in Java. Here Python objects
on the driver implement them through Py4J proxies. They only plan. In the executors Spark's own classes feed
`ReadSlices` in Python workers: those of `mapInArrow`, or those of Python data sources in sessions whose
planner lacks the strategy (`planning`).

A proxy does not inherit the default methods of an interface, so this module defines every method that Spark
calls.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JError
from pyspark import cloudpickle
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.udf import UserDefinedFunction, _wrap_function
from pyspark.util import PythonEvalType

from drawstring.expressions.predicate import condition_text
from drawstring.filegroups.file_slice_reader import read_task
from drawstring.filegroups.read_task import ReadTask
from drawstring.model.result import SLICES, Step
from drawstring.query.replanning import Skips, Task
from drawstring.query.scan import narrowed, without_skipped
from drawstring.schema.fields import RECORD_KEY
from drawstring.spark.reading import planner
from drawstring.spark.reading.filters import conditions, sql_conditions
from drawstring.spark.workers.rows import arrow_schema
from drawstring.spark.workers.tasks import ReadSlices, shares

_SQL: Final = "org.apache.spark.sql."
_CATALOG: Final = f"{_SQL}connector.catalog."
_READ: Final = f"{_SQL}connector.read."
_V2: Final = f"{_SQL}execution.datasources.v2."
_KEEP_IDS: Final = False


@dataclass(frozen=True, slots=True)
class Slices:
    """The file slices of a query.

    Attributes:
        tasks: tasks, one per file slice.
        columns: columns of the result.
        name: name in Spark's plans.
        where: text of the predicates that the workers apply, shown in Spark's plans.
        read: reads a task.
        added: names of columns that `read` adds to those of the tasks.
        skips: rules out tasks by the metadata table; None if nothing can.
        steps: what pushed conditions left out.
    """

    tasks: tuple[Task, ...]
    columns: T.StructType
    name: str
    where: str = ""
    read: Callable[[Any], Iterator[pa.RecordBatch]] = read_task
    added: tuple[str, ...] = ()
    skips: Skips | None = None
    steps: tuple[Step, ...] = ()

    @property
    def size_bytes(self) -> int:
        """Size of the files, in bytes."""
        return sum(task.size_bytes for task in self.tasks)

    @property
    def description(self) -> str:
        """What is read, what was left out and why."""
        count = len(self.tasks)
        listed = count + sum(step.skipped for step in self.steps)
        reasons = ", ".join(f"{step.skipped} by {step.by}" for step in self.steps if step.skipped)
        text = f" of {listed} file slices (skipped {reasons})" if reasons else " file slices"
        notes = "".join(f"; {step.by} is not used: {step.note}" for step in self.steps if step.note)
        return f"{self.name}: {count}{text}{f', where {self.where}' if self.where else ''}{notes}"

    def narrowed(self, names: Sequence[str], where: pc.Expression | None, sql: str | None) -> Slices:
        """Return these slices with fewer columns and conditions on their rows.

        Args:
            names: the columns.
            where: condition that the workers apply; None for all rows.
            sql: conditions that are true for all wanted rows, for expression indexes; None for none.
        """
        columns = T.StructType([self.columns[name] for name in names])
        text = "" if where is None else condition_text(where)
        stored = [name for name in names if name not in self.added]
        matching = narrowed(self.tasks, stored, where)
        by_place = Step(SLICES, "partition or bucket", len(self.tasks) - len(matching), len(matching))
        left, steps = without_skipped(matching, self.skips, where, sql)
        steps = [by_place, *steps] if by_place.skipped else steps
        return replace(self, tasks=tuple(left), columns=columns, where=text, steps=tuple(steps))

    def skipping(self, sql: str | None) -> Slices:
        """Return these slices without those that have no row of further conditions.

        Args:
            sql: conditions that are true for all wanted rows; None for none.
        """
        left, steps = without_skipped(self.tasks, self.skips, None, sql)
        return replace(self, tasks=tuple(left), steps=(*self.steps, *steps))


def relation(spark: SparkSession, slices: Slices) -> DataFrame:
    """Return the rows of slices as a DataFrame into which Spark pushes columns and predicates."""
    jvm = _Jvm(spark)
    planner.install(spark)
    dataset = jvm.of(f"{_SQL}classic.Dataset$").__getattr__("MODULE$")
    plan = jvm.of(f"{_V2}DataSourceV2Relation").create(SliceTable(jvm, slices), jvm.none, jvm.none)
    return ClassicDataFrame(dataset.ofRows(spark._jsparkSession, plan), spark)


class _Jvm:
    """Access to the JVM for the proxies.

    Args:
        spark: a classic session.
    """

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self._gateway: Any = spark.sparkContext._gateway
        ensure_callback_server_started(self._gateway)
        self.none = self.of("scala.None$").__getattr__("MODULE$")

    def of(self, name: str) -> Any:
        """Return a Java class."""
        return getattr(self._gateway.jvm, name)

    def array(self, kind: str, values: Sequence[Any] = ()) -> Any:
        """Return a Java array."""
        array = self._gateway.new_array(self.of(kind), len(values))
        for index, value in enumerate(values):
            array[index] = value
        return array

    def columns(self, columns: T.StructType) -> Any:
        """Return columns as Spark's StructType."""
        return self.spark._jsparkSession.parseDataType(columns.json())

    def reader_factory(self, function: ReadSlices, columns: T.StructType) -> Any:
        """Return Spark's own reader factory, which runs a function in Python workers."""
        source = self.of(f"{_V2}python.UserDefinedPythonDataSource")(
            _wrap_function(self.spark.sparkContext, ReadSlices)
        )
        command = bytearray(cloudpickle.dumps((function, columns)))
        factory = self.of(f"{_V2}python.PythonPartitionReaderFactory")
        return _call(factory, source, command, self.columns(columns), self.none, newer=self.none)


def _call(function: Any, *arguments: Any, newer: Any) -> Any:
    """Call a Java method with its newest argument; without it on the first Spark 4 releases."""
    try:
        return function(*arguments, newer)
    except Py4JError:
        return function(*arguments)


class _Proxy:
    """The methods of every Java object; Spark puts some of these objects into sets and logs them."""

    def equals(self, other: Any) -> bool:
        return other is not None and str(other) == self.toString()

    def hashCode(self) -> int:
        return hash(self.toString()) & 0x7FFFFFFF

    def toString(self) -> str:
        return f"{type(self).__name__} {id(self)}"


class SliceTable(_Proxy):
    """Spark's `Table`.

    Args:
        jvm: the virtual machine.
        slices: the file slices of the table.
    """

    def __init__(self, jvm: _Jvm, slices: Slices) -> None:
        self._jvm = jvm
        self._slices = slices
        self._columns = jvm.columns(slices.columns)

    def name(self) -> str:
        return self._slices.name

    def id(self) -> None:
        return None

    def version(self) -> None:
        return None

    def schema(self) -> Any:
        return self._columns

    def columns(self) -> Any:
        convert = self._jvm.of(f"{_CATALOG}CatalogV2Util").structTypeToV2Columns
        return _call(convert, self._columns, newer=_KEEP_IDS)

    def partitioning(self) -> Any:
        return self._jvm.array(f"{_SQL}connector.expressions.Transform")

    def constraints(self) -> Any:
        return self._jvm.array(f"{_CATALOG}constraints.Constraint")

    def properties(self) -> Any:
        return self._jvm.of("java.util.HashMap")()

    def capabilities(self) -> Any:
        return self._jvm.of("java.util.Set").of(self._jvm.of(f"{_CATALOG}TableCapability").BATCH_READ)

    def newScanBuilder(self, options: Any) -> SliceScanBuilder:
        return SliceScanBuilder(self._jvm, self._slices)

    def toString(self) -> str:
        return f"{self._slices.name} {id(self._slices)}"

    class Java:
        """The Java interfaces, for Py4J."""

        implements = (f"{_CATALOG}SupportsRead",)


class SliceScanBuilder(_Proxy):
    """Spark's `ScanBuilder`: receives the columns and predicates of a query.

    Args:
        jvm: the virtual machine.
        slices: all slices of the table.
    """

    def __init__(self, jvm: _Jvm, slices: Slices) -> None:
        self._jvm = jvm
        self._slices = slices
        self._names = slices.columns.names
        self._where: pc.Expression | None = None
        self._sql: str | None = None

    def pruneColumns(self, columns: Any) -> None:
        needed = {field["name"] for field in json.loads(columns.json())["fields"]}
        # A batch without columns has no row count; record keys are read anyway.
        cheapest = RECORD_KEY if RECORD_KEY in self._names else self._names[0]
        self._names = [name for name in self._names if name in (needed or {cheapest})]

    def pushPredicates(self, predicates: Any) -> Any:
        first = next(iter(self._slices.tasks), None)
        if isinstance(first, ReadTask):
            trees = planner.described(self._jvm.spark, predicates)
            self._where = conditions(trees, first.schema)
            self._sql = sql_conditions(trees, first.schema)
        return predicates  # Spark applies all of them too

    def pushedPredicates(self) -> Any:
        return self._jvm.array(f"{_SQL}connector.expressions.filter.Predicate")

    def supportsIterativePushdown(self) -> bool:
        return False

    def build(self) -> SliceScan:
        return SliceScan(self._jvm, self._slices, self._slices.narrowed(self._names, self._where, self._sql))

    class Java:
        """The Java interfaces, for Py4J."""

        implements = (f"{_READ}SupportsPushDownRequiredColumns", f"{_READ}SupportsPushDownV2Filters")


class SliceScan(_Proxy):
    """Spark's `Scan`, and its only `Batch`.

    Args:
        jvm: the virtual machine.
        whole: all slices of the table.
        slices: the slices that the query needs.
    """

    def __init__(self, jvm: _Jvm, whole: Slices, slices: Slices) -> None:
        self._jvm = jvm
        self._whole = whole
        self._slices = slices

    def readSchema(self) -> Any:
        return self._jvm.columns(self._slices.columns)

    def description(self) -> str:
        return self._slices.description

    def toBatch(self) -> SliceScan:
        return self

    def apply(self, relation: Any, condition: Any = None) -> Any:
        """Return the plan that reads these slices, with the attributes of Spark's relation.

        Args:
            relation: the relation.
            condition: that of a filter on it, if there is one.
        """
        slices = self._slices
        first = next(iter(slices.tasks), None)
        if condition is not None and isinstance(first, ReadTask):
            trees = planner.parsed_dates(self._jvm.spark, condition)
            slices = slices.skipping(sql_conditions(trees, first.schema))
        if first is None:
            return None
        parts = self._parts(slices.tasks)
        read = ReadSlices(arrow_schema(slices.columns), parts, slices.description, slices.read)
        function = UserDefinedFunction(read, slices.columns, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
        return planner.reading(self._jvm.spark, function._judf, len(parts), relation.output())

    def planInputPartitions(self) -> Any:
        partition = self._jvm.of(f"{_V2}python.PythonInputPartition")
        parts = self._parts(self._slices.tasks)
        partitions = [partition(number, bytearray(part)) for number, part in enumerate(parts)]
        return self._jvm.array(f"{_READ}InputPartition", partitions)

    def _parts(self, tasks: Sequence[Task]) -> list[bytes]:
        """Return the pickled tasks, by partition."""
        cores = self._jvm.spark.sparkContext.defaultParallelism
        parts = shares([task.size_bytes for task in tasks], cores)
        return [cloudpickle.dumps([tasks[number] for number in part]) for part in parts]

    def createReaderFactory(self) -> Any:
        columns = self._slices.columns
        read = ReadSlices(arrow_schema(columns), read=self._slices.read)
        return self._jvm.reader_factory(read, columns)

    def columnarSupportMode(self) -> Any:
        return self._jvm.of(f"{_READ}Scan$ColumnarSupportMode").UNSUPPORTED

    def supportedCustomMetrics(self) -> Any:
        return self._jvm.array(f"{_SQL}connector.metric.CustomMetric")

    def reportDriverMetrics(self) -> Any:
        return self._jvm.array(f"{_SQL}connector.metric.CustomTaskMetric")

    def estimateStatistics(self) -> SliceStatistics:
        share = len(self._slices.columns) / len(self._whole.columns)
        return SliceStatistics(self._jvm, int(self._slices.size_bytes * share))

    def estimateSizeInBytes(self) -> Any:
        return self.estimateStatistics().sizeInBytes()

    def reflectsFullyPushedDownFilters(self) -> bool:
        return False

    def toString(self) -> str:
        """Return what the scan reads: scans with the same text are equal, so that Spark reads them once."""
        return f"{id(self._whole)} {self._slices.columns.names} {self.description()}"

    class Java:
        """The Java interfaces, for Py4J."""

        implements = (f"{_READ}SupportsReportStatistics", f"{_READ}Batch", planner.PLANS, planner.FILTERED)


class SliceStatistics(_Proxy):
    """Spark's `Statistics`.

    Args:
        jvm: the virtual machine.
        size_bytes: size of the files, in bytes.
    """

    def __init__(self, jvm: _Jvm, size_bytes: int) -> None:
        self._jvm = jvm
        self._size_bytes = size_bytes

    def sizeInBytes(self) -> Any:
        return self._jvm.of("java.util.OptionalLong").of(self._size_bytes)

    def numRows(self) -> Any:
        return self._jvm.of("java.util.OptionalLong").empty()

    def columnStats(self) -> Any:
        return self._jvm.of("java.util.HashMap")()

    class Java:
        """The Java interfaces, for Py4J."""

        implements = (f"{_READ}Statistics",)
