"""Base files as a relation of Spark's own Parquet reader, partitioned by the partition paths.

    files, sizes ──> DrawstringFileIndex ─┐
    folder ──> partition values ──────────┴─> HadoopFsRelation ──> DataFrame

Spark prunes files by conditions on partition columns, including joins, and takes the values of these columns
from the index. Other conditions leave out files by `file_skipping`. `spark.read.parquet` would infer
partitions from folder names and list the files again. The work per file and folder is Java source
(`compiled`), so that one call handles any number of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from drawstring.model.files import FileStatus
from drawstring.spark.compiled import compiled
from drawstring.spark.reading.file_skipping import NeededFiles, skipping
from drawstring.spark.reading.relation import Slices

_SOURCES: Final = "org.apache.spark.sql.execution.datasources."
_SEPARATOR: Final = "\0"
"""Separates strings that are passed to Java as one; no path contains it."""

_NAME: Final = "DrawstringFiles"
_SOURCE: Final = f"""
import java.util.ArrayList;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.execution.datasources.FileStatusCache;
import org.apache.spark.sql.execution.datasources.PartitionPath;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Seq;

public class {_NAME} {{
    /** Adds files to a cache; `fields` has the path, size and modification time of each. */
    public Seq paths(String fields, FileStatusCache cache) {{
        ArrayList paths = new ArrayList();
        String[] texts = fields.split("\\000", -1);
        for (int at = 0; at < texts.length; at += 3) {{
            Path path = new Path(texts[at]);
            long size = Long.parseLong(texts[at + 1]), changed = Long.parseLong(texts[at + 2]);
            if (size > 0) {{
                FileStatus status = new FileStatus(size, false, 1, 128L << 20, changed, path);
                cache.putLeafFiles(path, new FileStatus[] {{status}});
            }}
            paths.add(path);
        }}
        return PythonUtils.toSeq(paths);
    }}

    /** Returns folders with partition values; `rows` has the index of a file in each, and the values. */
    public Seq folders(Seq paths, String rows, StructType columns, Option zone, boolean ansi) {{
        ArrayList folders = new ArrayList();
        StructField[] fields = columns.fields();
        String[] texts = rows.split("\\000", -1);
        for (int at = 0; at < texts.length; at += fields.length + 1) {{
            Object[] values = new Object[fields.length];
            for (int n = 0; n < fields.length; n++) {{
                Expression text = Literal$.MODULE$.apply(texts[at + 1 + n]);
                values[n] = Cast$.MODULE$.apply(text, fields[n].dataType(), zone, ansi).eval(null);
            }}
            Path file = (Path) paths.apply(Integer.parseInt(texts[at]));
            folders.add(new PartitionPath(new GenericInternalRow(values), file.getParent()));
        }}
        return PythonUtils.toSeq(folders);
    }}
}}
"""


@dataclass(frozen=True, slots=True)
class SparkFile:
    """A Parquet file.

    Attributes:
        path: path by which Spark opens the file.
        status: status from the listing.
        values: partition values as strings; the same columns in all files, and the same values in a folder.
    """

    path: str
    status: FileStatus
    values: Mapping[str, str]


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
    return compiled(spark, _NAME, _SOURCE)


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
        texts = (text for index in indices for text in (str(index), *files[index].values.values()))
        zone = self._some(conf.sessionLocalTimeZone())
        return self._helper.folders(
            paths, _SEPARATOR.join(texts), partition_columns, zone, conf.ansiEnabled()
        )

    def _some(self, value: Any) -> Any:
        return getattr(self._jvm, "scala.Some")(value)
