"""Base files as a table of Spark's own Parquet reader, partitioned by what their folders tell.

    files, sizes ──> InMemoryFileIndex ─┐
    folder ──> partition values ────────┴─> HadoopFsRelation ──> DataFrame

Spark leaves files out by conditions on partition columns, joins among them, and reads the values of these
columns from no file. `spark.read.parquet` would guess partitions from the names of folders, and list the
files again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from drawstring.model.files import FileStatus

TOLD_FILES_MAX: Final = 256
"""Files up to which Spark is told their sizes, a few calls each; of more it asks the store itself."""

CAST_FOLDERS_MAX: Final = 64
"""Folders up to which their values are cast one by one, some calls each; of more a query casts all, which
takes as long as a few dozen of them, and in a new session longer."""

_SOURCES: Final = "org.apache.spark.sql.execution.datasources."
_EXPRESSIONS: Final = "org.apache.spark.sql.catalyst.expressions."
_BLOCK_BYTES: Final = 128 << 20


@dataclass(frozen=True, slots=True)
class SparkFile:
    """A Parquet file.

    Attributes:
        path: as Spark opens it.
        status: as it was listed.
        values: texts of the partition columns; the same columns in all files, and the same texts in a folder.
    """

    path: str
    status: FileStatus
    values: Mapping[str, str]


def parquet_files(spark: SparkSession, files: Sequence[SparkFile], columns: T.StructType) -> DataFrame:
    """Return the rows of files, with the values of partition columns that their folders tell.

    Args:
        spark: the session.
        files: one or more.
        columns: columns of the result; those that a file lacks are null.
    """
    index = _Index(spark)
    schema = index.columns(columns)
    relation = index.of("HadoopFsRelation")(
        index.files(files, columns),
        index.columns(_partition_columns(files, columns)),
        schema,
        index.none,
        index.of("parquet.ParquetFileFormat")(),
        index.no_options,
        spark._jsparkSession,
    )
    return ClassicDataFrame(spark._jsparkSession.baseRelationToDataFrame(relation), spark)


def _partition_columns(files: Sequence[SparkFile], columns: T.StructType) -> T.StructType:
    return T.StructType([columns[name] for name in files[0].values])


class _Index:
    """Makes Spark's list of files.

    Args:
        spark: the session.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._gateway: Any = spark.sparkContext._gateway
        jvm: Any = spark.sparkContext._jvm
        self._jvm = jvm
        self.none = getattr(jvm, "scala.None$").__getattr__("MODULE$")
        # By their full names: for a name alone Py4J asks for a class in one package after the other.
        self._utils = getattr(jvm, "org.apache.spark.api.python.PythonUtils")
        self._hadoop_path = getattr(jvm, "org.apache.hadoop.fs.Path")
        self._hadoop_status = getattr(jvm, "org.apache.hadoop.fs.FileStatus")
        self.no_options = self._utils.toScalaMap({})

    def of(self, name: str) -> Any:
        """Return a class of Spark's data sources."""
        return getattr(self._jvm, _SOURCES + name)

    def columns(self, columns: T.StructType) -> Any:
        """Return columns as Spark's StructType, all of which may be null."""
        return self._spark._jsparkSession.parseDataType(columns.json()).asNullable()

    def files(self, files: Sequence[SparkFile], columns: T.StructType) -> Any:
        """Return an index of files by folder."""
        told = len(files) <= TOLD_FILES_MAX and all(file.status.size_bytes > 0 for file in files)
        cache = getattr(self._jvm, f"{_SOURCES}FileStatusCache").getOrCreate(self._spark._jsparkSession)
        paths = [self._path(file, cache if told else None) for file in files]
        return self.of("InMemoryFileIndex")(
            self._spark._jsparkSession,
            self._utils.toSeq(paths),
            self.no_options,
            self.none,
            cache,
            getattr(self._jvm, "scala.Some")(self._folders(files, paths, columns)),
            self.none,
        )

    def _path(self, file: SparkFile, cache: Any) -> Any:
        """Return a file's path, and tell a cache what is known of the file.

        The index lists a path that is not in the cache, and finds that file and no other.
        """
        path = self._hadoop_path(file.path)
        if cache is not None:
            found = self._gateway.new_array(self._hadoop_status, 1)
            status = file.status
            found[0] = self._hadoop_status(
                status.size_bytes, False, 1, _BLOCK_BYTES, status.modified_ms, path
            )
            cache.putLeafFiles(path, found)
        return path

    def _folders(self, files: Sequence[SparkFile], paths: Sequence[Any], columns: T.StructType) -> Any:
        """Return which folder has which values, as Spark's PartitionSpec."""
        names, found = _partition_columns(files, columns), []
        if names:
            places = {file.path.rpartition("/")[0]: place for place, file in enumerate(files)}.values()
            rows = self._rows([files[place].values for place in places], names)
            folders = [paths[place].getParent() for place in places]
            found = list(map(self.of("PartitionPath"), rows, folders))
        return self.of("PartitionSpec")(self.columns(names), self._utils.toSeq(found))

    def _rows(self, values: Sequence[Mapping[str, str]], columns: T.StructType) -> list[Any]:
        """Return texts as Spark's rows of columns' types."""
        texts = [[row[name] for name in columns.names] for row in values]
        return self._cast(texts, columns) if len(texts) <= CAST_FOLDERS_MAX else self._queried(texts, columns)

    def _cast(self, rows: Sequence[Sequence[str]], columns: T.StructType) -> list[Any]:
        literal, cast, struct = map(self._expression, ("Literal", "Cast", "CreateStruct"))
        conf = self._spark._jsparkSession.sessionState().conf()
        zone, ansi = getattr(self._jvm, "scala.Some")(conf.sessionLocalTimeZone()), conf.ansiEnabled()
        types = [field.dataType() for field in self.columns(columns).fields()]
        found = []
        for row in rows:
            pairs = zip(row, types, strict=True)
            typed = [cast.apply(literal.apply(text), kind, zone, ansi) for text, kind in pairs]
            found.append(struct.apply(self._utils.toSeq(typed)).eval(None))
        return found

    def _queried(self, rows: Sequence[Sequence[str]], columns: T.StructType) -> list[Any]:
        texts = (", ".join(map(_literal, row)) for row in rows)
        parsed = self._spark.sql("VALUES " + ", ".join(f"({text})" for text in texts))
        pairs = zip(parsed.columns, columns.fields, strict=True)
        typed = parsed.select([parsed[name].cast(field.dataType) for name, field in pairs])
        return list(typed._jdf.queryExecution().executedPlan().executeCollect())

    def _expression(self, name: str) -> Any:
        """Return what makes one kind of Spark's expressions."""
        return getattr(self._jvm, f"{_EXPRESSIONS}{name}$").__getattr__("MODULE$")


def _literal(text: str) -> str:
    """Return a text as SQL that needs no escapes."""
    return f"CAST(X'{text.encode().hex()}' AS STRING)"
