"""The hook for `format("hudi")`: DataFrame reads and writes of registered sessions call drawstring.

A Python data source cannot control how Spark distributes the rows that it writes, and Spark does not pass it
the columns that a query needs. Therefore `spark.read`, `df.write` and `df.writeStream` of a registered
session return a reader and writers that handle two more formats, `hudi` and `drawstring`, and delegate all
other formats to PySpark. Other sessions get PySpark's own objects.

A setting marks a registered session, not an attribute of the Python object, so that sessions that Spark
clones from it, for example for each batch of a stream, are marked as well. A new session of a registered one
has settings, data sources and planner strategies of its own; `newSession` registers it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Final, cast

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter
from pyspark.sql.types import StructType

from drawstring.base.errors import InvalidError
from drawstring.spark import functions
from drawstring.spark.engine.spark_engine import classic
from drawstring.spark.engine.tasks import surface_in_actions
from drawstring.spark.errors import analysed
from drawstring.spark.format_options import (
    as_text,
    is_drawstring_format,
    one_path,
    with_partitions,
    without_path,
)
from drawstring.spark.reading.data_source import DrawstringSource, HudiSource
from drawstring.spark.reading.dataframe import with_columns
from drawstring.spark.reading.views import follow_refreshes
from drawstring.spark.sql.catalog import install
from drawstring.spark.sql.rewrites import by_name
from drawstring.spark.sql.saving import save_as_table
from drawstring.spark.sql.texts import follow_statements
from drawstring.spark.streaming.sink import TableStreamWriter
from drawstring.spark.streaming.source import NamedStreamReader

_MARK: Final = "spark.drawstring.registered"


def register(spark: SparkSession) -> None:
    """Register the formats `hudi` and `drawstring` in a session, for DataFrames and SQL.

    Sessions that `spark.newSession()` makes of a registered session are registered. To register a session
    again has no effect. On a local master Python workers run the Python of this process, unless
    PYSPARK_PYTHON or `spark.pyspark.python` is set.

    Args:
        spark: a classic session.

    Raises:
        UnsupportedError: it is a Spark Connect session.

    Example:
        >>> drawstring.spark.register(spark)
        >>> spark.read.format("hudi").load("/lake/rides").show()
    """
    session = classic(spark)
    _install()
    if session.conf.get(_MARK, None) == "true":
        return
    surface_in_actions()
    _share_python(session.sparkContext)
    with _active(session):
        session.dataSource.register(HudiSource)
        session.dataSource.register(DrawstringSource)
    install(session)
    session.conf.set(_MARK, "true")


def _share_python(context: SparkContext) -> None:
    """Let the workers on this machine run this Python, unless it is configured which one they run.

    PySpark takes the first `python3` of PATH, which has no drawstring in a virtual environment that is not
    activated. A data source keeps the Python that was set when it was registered.
    """
    is_chosen = "PYSPARK_PYTHON" in os.environ or context.getConf().contains("spark.pyspark.python")
    if sys.executable and not is_chosen and str(context.master).startswith("local"):
        context.pythonExec = sys.executable


@contextmanager
def _active(session: SparkSession) -> Iterator[None]:
    """Make a session the active session of this thread, in which Spark looks up data sources."""
    sessions = getattr(session.sparkContext._jvm, "org.apache.spark.sql.classic.SparkSession")
    before = SparkSession.getActiveSession()
    sessions.setActiveSession(session._jsparkSession)
    try:
        yield
    finally:
        if before is None:
            sessions.clearActiveSession()
        else:
            sessions.setActiveSession(before._jsparkSession)


def is_registered(spark: SparkSession) -> bool:
    """Return whether a session, or the session that it was cloned from, is registered."""
    return spark.conf.get(_MARK, None) == "true"


class TableReader(DataFrameReader):
    """PySpark's reader, extended by drawstring's formats."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(spark)
        self._source: str | None = None
        self._columns: StructType | None = None
        self._options: dict[str, str] = {}

    def format(self, source: str) -> TableReader:
        """Set the format."""
        self._source = source
        super().format(source)
        return self

    def schema(self, schema: Any) -> TableReader:
        """Set the columns; of drawstring's formats the table's columns of these names, in these types."""
        super().schema(schema)
        self._columns = cast(StructType, StructType.fromDDL(schema) if isinstance(schema, str) else schema)
        return self

    def option(self, key: str, value: Any) -> TableReader:
        """Set an option."""
        self._options |= as_text(key, value)
        super().option(key, value)
        return self

    def options(self, **options: Any) -> TableReader:
        """Set options."""
        for key, value in options.items():
            self.option(key, value)
        return self

    @analysed()
    def load(
        self, path: Any = None, format: str | None = None, schema: Any = None, **options: Any
    ) -> DataFrame:
        """Load a table with drawstring, or another format with PySpark."""
        if format is not None:
            self.format(format)
        if schema is not None:
            self.schema(schema)
        self.options(**options)
        if not is_drawstring_format(self._source, self._spark):
            return super().load(path)
        df = functions.load(self._spark, one_path(path, self._options), without_path(self._options))
        return df if self._columns is None else with_columns(df, self._columns)


class TableWriter(DataFrameWriter):
    """PySpark's writer, extended by drawstring's formats."""

    def __init__(self, df: DataFrame) -> None:
        super().__init__(df)
        self._source: str | None = None
        self._mode = "errorifexists"
        self._partition_by: tuple[str, ...] = ()
        self._bucketing = ""
        self._options: dict[str, str] = {}

    def format(self, source: str) -> TableWriter:
        """Set the format."""
        self._source = source
        super().format(source)
        return self

    def mode(self, saveMode: str | None) -> TableWriter:
        """Set the save mode."""
        if saveMode:
            self._mode = saveMode
        super().mode(saveMode)
        return self

    def option(self, key: str, value: Any) -> TableWriter:
        """Set an option."""
        self._options |= as_text(key, value)
        super().option(key, value)
        return self

    def options(self, **options: Any) -> TableWriter:
        """Set options."""
        for key, value in options.items():
            self.option(key, value)
        return self

    def partitionBy(self, *cols: Any) -> TableWriter:
        """Set the partition columns."""
        names = cols[0] if len(cols) == 1 and isinstance(cols[0], list | tuple) else cols
        self._partition_by = tuple(names)
        super().partitionBy(*cols)
        return self

    def bucketBy(self, numBuckets: Any, col: Any, *cols: Any) -> TableWriter:
        """Set buckets; not valid for drawstring's formats."""
        self._bucketing = "bucketBy"
        super().bucketBy(numBuckets, col, *cols)
        return self

    def sortBy(self, col: Any, *cols: Any) -> TableWriter:
        """Set the order in buckets; not valid for drawstring's formats."""
        self._bucketing = "sortBy"
        super().sortBy(col, *cols)
        return self

    @analysed()
    def save(
        self,
        path: str | None = None,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: Any = None,
        **options: Any,
    ) -> None:
        """Save to a table with drawstring, or to another format with PySpark."""
        self._set(format, mode, partitionBy, options)
        if not is_drawstring_format(self._source, self._spark):
            super().save(path)
            return
        root = one_path(path, self._options)
        self._refuse_buckets(root)
        functions.write(
            self._df,
            root,
            options=with_partitions(without_path(self._options), self._partition_by, root),
            mode=self._mode,
        )

    @analysed()
    def saveAsTable(
        self,
        name: str,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: Any = None,
        **options: Any,
    ) -> None:
        """Save to a table of the catalog, which is created with the options if it does not exist."""
        self._set(format, mode, partitionBy, options)
        if not is_drawstring_format(self._source, self._spark):
            super().saveAsTable(name)
            return
        self._refuse_buckets(name)
        save_as_table(self._df, name, self._options, self._partition_by, self._mode)

    @analysed()
    def insertInto(self, tableName: str, overwrite: bool | None = None) -> None:
        """Insert into a table of the catalog: by name if the columns have its names, else by position."""
        rows = by_name(self._df, tableName)
        if rows is self._df:
            super().insertInto(tableName, overwrite)
            return
        self._refuse_buckets(tableName)
        writer = TableWriter(rows).mode(self._mode).options(**self._options)
        if self._partition_by:
            writer.partitionBy(*self._partition_by)
        writer._insert(tableName, overwrite)

    def _insert(self, table: str, overwrite: bool | None) -> None:
        super().insertInto(table, overwrite)

    def _refuse_buckets(self, table: str) -> None:
        if self._bucketing:
            raise InvalidError(f"{self._bucketing} does not apply to a table. Leave it out.", table=table)

    def _set(self, source: str | None, mode: str | None, partition_by: Any, options: dict[str, Any]) -> None:
        self.mode(mode).options(**options)
        if partition_by is not None:
            self.partitionBy(partition_by)
        if source is not None:
            self.format(source)


def _install() -> None:
    """Replace PySpark's reader, writers, `newSession` and refresh functions; once per process."""
    if getattr(SparkSession.read.fget, "_drawstring", False):  # type: ignore[attr-defined]
        return
    own_read, own_write = SparkSession.read.fget, ClassicDataFrame.write.fget  # type: ignore[attr-defined]
    own_stream = ClassicDataFrame.writeStream.fget  # type: ignore[attr-defined]
    own_read_stream = SparkSession.readStream.fget  # type: ignore[attr-defined]
    own_new_session = SparkSession.newSession

    def read(spark: SparkSession) -> DataFrameReader:
        reader: DataFrameReader = TableReader(spark) if is_registered(spark) else own_read(spark)
        return reader

    def write(df: DataFrame) -> DataFrameWriter:
        writer: DataFrameWriter = TableWriter(df) if is_registered(df.sparkSession) else own_write(df)
        return writer

    def write_stream(df: DataFrame) -> DataStreamWriter:
        is_ours = is_registered(df.sparkSession)
        writer: DataStreamWriter = TableStreamWriter(df) if is_ours else own_stream(df)
        return writer

    def read_stream(spark: SparkSession) -> DataStreamReader:
        is_ours = is_registered(spark)
        reader: DataStreamReader = NamedStreamReader(spark) if is_ours else own_read_stream(spark)
        return reader

    @wraps(own_new_session)
    def new_session(spark: SparkSession) -> SparkSession:
        made = own_new_session(spark)
        if is_registered(spark):
            register(made)
        return made

    read_stream.__doc__ = own_read_stream.__doc__
    read.__doc__, write.__doc__ = own_read.__doc__, own_write.__doc__
    write_stream.__doc__ = own_stream.__doc__
    read._drawstring = True  # type: ignore[attr-defined]
    follow_refreshes(is_registered)
    follow_statements(is_registered)
    SparkSession.read = property(read)  # type: ignore[assignment]
    SparkSession.readStream = property(read_stream)  # type: ignore[assignment]
    SparkSession.newSession = new_session  # type: ignore[method-assign, assignment]
    ClassicDataFrame.write = property(write)  # type: ignore[assignment]
    ClassicDataFrame.writeStream = property(write_stream)  # type: ignore[assignment]
