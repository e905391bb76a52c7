"""Registered sessions: `register` makes the readers, writers, SQL and streams of a session drawstring's.

This is the composition root of the package: only this module knows formats, SQL, streams and ingestion
together. The readers and writers of PySpark's classes are replaced once per process, by properties that ask
whether the session is registered.

A setting marks a registered session, not an attribute of the Python object, so that sessions that Spark
clones from it, for example for each batch of a stream, are marked as well. A new session of a registered one
has settings, data sources and planner strategies of its own; `newSession` registers it. Other sessions get
PySpark's own objects.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Final

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from drawstring.spark.data_source import DrawstringSource, HudiSource
from drawstring.spark.engine import ExecutorEngine, classic
from drawstring.spark.format import TableReader, TableWriter
from drawstring.spark.reading.views import follow_refreshes
from drawstring.spark.sql.catalog import install
from drawstring.spark.sql.texts import follow_statements
from drawstring.spark.streaming.sink import TableStreamWriter
from drawstring.spark.streaming.source import NamedStreamReader
from drawstring.spark.workers.tasks import surface_in_actions

if TYPE_CHECKING:
    from drawstring.ingestion.batch_engine import BatchEngine

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


class SparkEngine(ExecutorEngine):
    """Spark's executors as the engine of tables, and of ingestion.

    Args:
        spark: a classic session.

    Raises:
        UnsupportedError: it is a Spark Connect session.
    """

    def batches(self) -> BatchEngine:
        """Return what reads and changes the batches of an ingestion in executors."""
        from drawstring.spark.ingesting import SparkBatches  # imports sqlglot, which `register` does not need

        return SparkBatches(self)


@dataclass(frozen=True, slots=True)
class StartedLate:
    """The engine of a session of this process, which is started once a call has been checked.

    Attributes:
        settings: of Spark, which win over those of `spark-submit` and of Spark's own files.
    """

    settings: Mapping[str, str]

    def batches(self) -> BatchEngine:
        """Return what reads and changes batches, in a session that is started unless there is one."""
        builder = SparkSession.builder.appName("drawstring ingest")
        for key, value in self.settings.items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
        register(spark)
        return SparkEngine(spark).batches()
