"""Parquet files through Spark's own reader, with the values that their folders stand for.

A folder's values are partition columns to Spark: constants, which cost nothing per row and which
filters leave whole folders out by. Spark's public reader takes them from `column=value` folder names
alone; tables name folders in other ways too, so the relation is put together here as that reader
does it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

_PREFIX = "_drawstring_folder_"


@dataclass(frozen=True)
class NativeFiles:
    """Files to read at once.

    Attributes:
        schema: columns of the rows; those that a file lacks are null.
        uris: addresses of the files.
        told: columns that folders have values for; none for a plain read.
        values: by file, the values of these columns as text, None where a folder tells none and the
            file's own value stands.
    """

    schema: T.StructType
    uris: Sequence[str]
    told: tuple[str, ...]
    values: Sequence[tuple[str | None, ...]]

    @cached_property
    def folders(self) -> dict[str, tuple[str | None, ...]]:
        """The values by folder."""
        folders = (uri.rpartition("/")[0] for uri in self.uris)
        return dict(zip(folders, self.values, strict=True))

    def always(self, column: str) -> bool:
        """Tell whether every folder has a value for a column."""
        place = self.told.index(column)
        return all(values[place] is not None for values in self.folders.values())


def read_natively(spark: SparkSession, files: NativeFiles) -> DataFrame | None:
    """Return the rows of files, None when Spark does not find all of them."""
    if not files.told:
        return spark.read.schema(files.schema).parquet(*files.uris)
    df = _Relation(spark, files).dataframe()
    if df is None:
        return None
    df = df.withColumns({name: _value(df, files, name) for name in files.told})
    return df.select([df[f"`{name}`"] for name in files.schema.names])


def _value(df: DataFrame, files: NativeFiles, name: str) -> Column:
    text = df[_PREFIX + name]
    value = text.cast(files.schema[name].dataType)
    return value if files.always(name) else F.coalesce(value, df[f"`{name}`"])


class _Relation:
    """The JVM's objects behind a DataFrame of files, the same in Spark 4.0 to 4.3."""

    def __init__(self, spark: SparkSession, files: NativeFiles) -> None:
        self._files = files
        self._session: Any = spark._jsparkSession
        self._jvm: Any = spark.sparkContext._jvm
        self._sources = self._jvm.org.apache.spark.sql.execution.datasources
        self._wrap = spark
        self._nothing = self._jvm.scala.Option.empty()

    def dataframe(self) -> DataFrame | None:
        columns = self._struct(
            T.StructType([T.StructField(_PREFIX + name, T.StringType()) for name in self._files.told])
        )
        options = self._jvm.PythonUtils.toScalaMap({})
        index = self._index(columns, options)
        if _count(index.listFiles(self._seq([]), self._seq([]))) != len(set(self._files.uris)):
            return None
        parquet = self._sources.parquet.ParquetFileFormat()
        relation = self._sources.HadoopFsRelation(
            index, columns, self._struct(self._files.schema), self._nothing, parquet, options, self._session
        )
        return DataFrame(self._session.baseRelationToDataFrame(relation), self._wrap)
