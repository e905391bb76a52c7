"""Read base files by Spark's own Parquet reader, partitioned by the partition paths, and skip files.

    files, sizes ──> DrawstringFileIndex ─┐
    folder ──> partition values ──────────┴─> HadoopFsRelation ──> DataFrame

Spark prunes files by conditions on partition columns, including joins, and takes the values of these
columns from the index. `spark.read.parquet` would infer partitions from folder names and list the files
again.

File skipping: Spark prunes such a relation by partition only, and ignores the buckets, keys and statistics
that the core knows. A rule at the end of Spark's optimizer asks for the files that the other conditions
need, by the metadata table. Spark applies all conditions to the rows of these files.

    optimized plan                               plan with fewer files
    Filter ── relation of DrawstringFileIndex ──> Filter ── relation of the files that may match
                        │ conditions    ^ positions, description
                        └──> NeededFiles┘

The name of the narrowed relation says in plans what was left out.

The rule and the index are Java source (`spark.jvm`), so that one call handles any number of files and
folders. If Spark cannot compile it, it reads the files of all partitions that match.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from drawstring.filegroups.read_task import ReadTask
from drawstring.model.files import FileStatus
from drawstring.spark.jvm import instance
from drawstring.spark.reading import planner
from drawstring.spark.reading.filters import conditions, sql_conditions
from drawstring.spark.reading.relation import Slices


def skipping(spark: SparkSession) -> Any | None:
    """Return the rule, which a session's optimizer has from now on; None if this Spark cannot compile it.

    Args:
        spark: a classic session.
    """
    rule = instance(spark, "FileSkipping") if planner.install(spark) else None
    if rule is None:
        return None
    methods = spark._jsparkSession.experimental()
    present = methods.extraOptimizations()
    if not any(present.apply(n).equals(rule) for n in range(present.length())):
        getattr(methods, "extraOptimizations_$eq")(present.appended(rule))
    return rule


class NeededFiles:
    """Tells the rule which files a query needs.

    Args:
        spark: a classic session.
        slices: file slices that are one base file each, in the order of the index.
    """

    def __init__(self, spark: SparkSession, slices: Slices) -> None:
        ensure_callback_server_started(spark.sparkContext._gateway)
        self._spark = spark
        self._slices = slices
        tasks = _reads(slices)
        self._schema = tasks[0].schema
        self._paths = [_path(task) for task in tasks]

    def apply(self, predicates: Any) -> str:
        """Return the positions of the files, and after a line feed what is read and what was left out."""
        trees = planner.described(self._spark, predicates)
        where, sql = conditions(trees, self._schema), sql_conditions(trees, self._schema)
        needed = self._slices.narrowed(self._slices.columns.names, where, sql)
        paths = {_path(task) for task in _reads(needed)}
        positions = [str(number) for number, path in enumerate(self._paths) if path in paths]
        return f"{','.join(positions)}\n{needed.description}"

    class Java:
        """The Java interfaces, for Py4J."""

        implements = ("java.util.function.Function",)


def _reads(slices: Slices) -> Sequence[ReadTask]:
    return [task for task in slices.tasks if isinstance(task, ReadTask)]


def _path(task: ReadTask) -> str:
    assert task.file_slice.base is not None
    return task.file_slice.base.status.path


_SOURCES: Final = "org.apache.spark.sql.execution.datasources."
_SEPARATOR: Final = "\0"
"""Separates strings that are passed to Java as one; no path contains it."""


def _marked(text: str | None) -> str:
    """Return a partition value as Java expects it, which tells null from an empty text."""
    return "" if text is None else f"={text}"


@dataclass(frozen=True, slots=True)
class SparkFile:
    """A Parquet file.

    Attributes:
        path: path by which Spark opens the file.
        status: status from the listing.
        values: partition values as strings, None for null; the same columns in all files, and the same values
            in a folder.
    """

    path: str
    status: FileStatus
    values: Mapping[str, str | None]


def can_list(spark: SparkSession) -> bool:
    """Return whether `parquet_files` works in a session.

    Args:
        spark: a classic session.
    """
    return _helper(spark) is not None


def parquet_files(spark: SparkSession, files: Sequence[SparkFile], slices: Slices) -> DataFrame:
    """Return the rows of files, with the partition values of their folders.

    Args:
        spark: the session; see `can_list`.
        files: the files, at least one.
        slices: the file slice of each file, and columns of the result; columns that a file lacks are null.
    """
    index, columns = _Index(spark, slices), slices.columns
    partition_columns = index.columns(T.StructType([columns[name] for name in files[0].values]))
    relation = index.of("HadoopFsRelation")(
        index.files(files, partition_columns),
        partition_columns,
        index.columns(columns),
        index.none,
        index.of("parquet.ParquetFileFormat")(),
        index.no_options,
        spark._jsparkSession,
    )
    return ClassicDataFrame(spark._jsparkSession.baseRelationToDataFrame(relation), spark)


def _helper(spark: SparkSession) -> Any | None:
    return instance(spark, "BaseFiles")


class _Index:
    """Builds Spark's file index.

    Args:
        spark: the session.
        slices: the file slices of the files.
    """

    def __init__(self, spark: SparkSession, slices: Slices) -> None:
        self._spark = spark
        self._slices = slices
        jvm: Any = spark.sparkContext._jvm
        self._jvm = jvm
        self._helper: Any = _helper(spark)
        self.none = getattr(jvm, "scala.None$").__getattr__("MODULE$")
        # By its full name: for a simple name Py4J searches one package after the other.
        self.no_options = getattr(jvm, "org.apache.spark.api.python.PythonUtils").toScalaMap({})

    def of(self, name: str) -> Any:
        """Return a class of Spark's data sources."""
        return getattr(self._jvm, _SOURCES + name)

    def columns(self, columns: T.StructType) -> Any:
        """Return columns as Spark's StructType, all nullable."""
        return self._spark._jsparkSession.parseDataType(columns.json()).asNullable()

    def files(self, files: Sequence[SparkFile], partition_columns: Any) -> Any:
        """Return an index of files by folder, with the partition columns.

        Spark lists a path that is not in the cache, and finds exactly that file.
        """
        cache = self.of("FileStatusCache").getOrCreate(self._spark._jsparkSession)
        records = ((file.path, file.status.size_bytes, file.status.modified_ms) for file in files)
        fields = _SEPARATOR.join(str(field) for record in records for field in record)
        paths = self._helper.paths(fields, cache)
        folders = self.of("PartitionSpec")(partition_columns, self._folders(files, paths, partition_columns))
        spark, rule = self._spark._jsparkSession, skipping(self._spark)
        if rule is not None:
            return rule.index(spark, paths, cache, folders, NeededFiles(self._spark, self._slices))
        return self.of("InMemoryFileIndex")(
            spark, paths, self.no_options, self.none, cache, self._some(folders), self.none
        )

    def _folders(self, files: Sequence[SparkFile], paths: Any, partition_columns: Any) -> Any:
        """Return the folders with their partition values, as Spark's `PartitionPath`s."""
        indices = {file.path.rpartition("/")[0]: index for index, file in enumerate(files)}.values()
        if not files[0].values:
            return getattr(self._jvm, "scala.collection.immutable.Nil$").__getattr__("MODULE$")
        conf = self._spark._jsparkSession.sessionState().conf()
        texts = (
            text for index in indices for text in (str(index), *map(_marked, files[index].values.values()))
        )
        zone = self._some(conf.sessionLocalTimeZone())
        return self._helper.folders(
            paths, _SEPARATOR.join(texts), partition_columns, zone, conf.ansiEnabled()
        )

    def _some(self, value: Any) -> Any:
        return getattr(self._jvm, "scala.Some")(value)
