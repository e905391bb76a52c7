"""Base files as a table of Spark's own Parquet reader, partitioned by what their folders tell.

    files, sizes ──> InMemoryFileIndex ─┐
    folder ──> partition values ────────┴─> HadoopFsRelation ──> DataFrame

Spark leaves files out by conditions on partition columns, joins among them, and reads the values of these
columns from no file. `spark.read.parquet` would guess partitions from the names of folders, and list the
files again. What is done for each file and folder is Java text (`compiled`): one call, whatever their number.
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

_SOURCES: Final = "org.apache.spark.sql.execution.datasources."
_SEPARATOR: Final = "\0"
"""Between texts that are handed over as one: no path has it."""

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
    /** Tells a cache of files: of each the path, the size and when it was changed. */
    public Seq paths(String told, FileStatusCache cache) {{
        ArrayList found = new ArrayList();
        String[] texts = told.split("\\000", -1);
        for (int at = 0; at < texts.length; at += 3) {{
            Path path = new Path(texts[at]);
            long size = Long.parseLong(texts[at + 1]), changed = Long.parseLong(texts[at + 2]);
            if (size > 0) {{
                FileStatus status = new FileStatus(size, false, 1, 128L << 20, changed, path);
                cache.putLeafFiles(path, new FileStatus[] {{status}});
            }}
            found.add(path);
        }}
        return PythonUtils.toSeq(found);
    }}

    /** Gives folders the values of their columns: of each the number of a file in it, and texts. */
    public Seq folders(Seq paths, String told, StructType columns, Option zone, boolean ansi) {{
        ArrayList found = new ArrayList();
        StructField[] fields = columns.fields();
        String[] texts = told.split("\\000", -1);
        for (int at = 0; at < texts.length; at += fields.length + 1) {{
            Object[] values = new Object[fields.length];
            for (int n = 0; n < fields.length; n++) {{
                Expression text = Literal$.MODULE$.apply(texts[at + 1 + n]);
                values[n] = Cast$.MODULE$.apply(text, fields[n].dataType(), zone, ansi).eval(null);
            }}
            Path file = (Path) paths.apply(Integer.parseInt(texts[at]));
            found.add(new PartitionPath(new GenericInternalRow(values), file.getParent()));
        }}
        return PythonUtils.toSeq(found);
    }}
}}
"""


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


def can_list(spark: SparkSession) -> bool:
    """Tell whether `parquet_files` works in a session.

    Args:
        spark: a classic session.
    """
    return _helper(spark) is not None


def parquet_files(spark: SparkSession, files: Sequence[SparkFile], columns: T.StructType) -> DataFrame:
    """Return the rows of files, with the values of partition columns that their folders tell.

    Args:
        spark: the session; see `can_list`.
        files: one or more.
        columns: columns of the result; those that a file lacks are null.
    """
    index = _Index(spark)
    told = index.columns(T.StructType([columns[name] for name in files[0].values]))
    relation = index.of("HadoopFsRelation")(
        index.files(files, told),
        told,
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
    """Makes Spark's list of files.

    Args:
        spark: the session.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        jvm: Any = spark.sparkContext._jvm
        self._jvm = jvm
        self._helper: Any = _helper(spark)
        self.none = getattr(jvm, "scala.None$").__getattr__("MODULE$")
        # By its full name: for a name alone Py4J asks for a class in one package after the other.
        self.no_options = getattr(jvm, "org.apache.spark.api.python.PythonUtils").toScalaMap({})

    def of(self, name: str) -> Any:
        """Return a class of Spark's data sources."""
        return getattr(self._jvm, _SOURCES + name)

    def columns(self, columns: T.StructType) -> Any:
        """Return columns as Spark's StructType, all of which may be null."""
        return self._spark._jsparkSession.parseDataType(columns.json()).asNullable()

    def files(self, files: Sequence[SparkFile], told: Any) -> Any:
        """Return an index of files by folder, which tells some columns.

        The index lists a path that is not in the cache, and finds that file and no other.
        """
        cache = self.of("FileStatusCache").getOrCreate(self._spark._jsparkSession)
        stated = ((file.path, file.status.size_bytes, file.status.modified_ms) for file in files)
        paths = self._helper.paths(_SEPARATOR.join(str(each) for one in stated for each in one), cache)
        return self.of("InMemoryFileIndex")(
            self._spark._jsparkSession,
            paths,
            self.no_options,
            self.none,
            cache,
            self._some(self.of("PartitionSpec")(told, self._folders(files, paths, told))),
            self.none,
        )

    def _folders(self, files: Sequence[SparkFile], paths: Any, told: Any) -> Any:
        """Return which folder has which values, as Spark's `PartitionPath`s."""
        places = {file.path.rpartition("/")[0]: place for place, file in enumerate(files)}.values()
        if not files[0].values:
            return getattr(self._jvm, "scala.collection.immutable.Nil$").__getattr__("MODULE$")
        conf = self._spark._jsparkSession.sessionState().conf()
        texts = (text for place in places for text in (str(place), *files[place].values.values()))
        zone = self._some(conf.sessionLocalTimeZone())
        return self._helper.folders(paths, _SEPARATOR.join(texts), told, zone, conf.ansiEnabled())

    def _some(self, value: Any) -> Any:
        return getattr(self._jvm, "scala.Some")(value)
