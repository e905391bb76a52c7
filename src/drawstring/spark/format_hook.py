"""`format("hudi")` in scripts: DataFrame reads and writes of registered sessions come to drawstring.

A Python data source has no say in how Spark distributes the rows that it writes, and is not told
which columns a query needs. So `spark.read` and `df.write` of a session that was registered give a
reader and a writer that know two more formats, `hudi` and `drawstring`; everything else they leave
to PySpark's own. Other sessions get PySpark's own objects.

A session is marked by a setting, not by the Python object: sessions that Spark clones from it, as
for each batch of a stream, keep it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.options.option import text_of
from drawstring.config.options.registry import OPTION_OF_KEY
from drawstring.config.table.kinds import split_list, typed_columns
from drawstring.spark import functions
from drawstring.spark.engine.failures import surface_in_actions
from drawstring.spark.engine.spark_engine import classic
from drawstring.spark.read.data_source import DrawstringSource, HudiSource
from drawstring.spark.read.views import follow_refreshes

FORMATS: Final = frozenset({"hudi", "org.apache.hudi", "drawstring"})
_MARK: Final = "spark.drawstring.registered"
_PARTITION_BY: Final = "hoodie.datasource.write.partitionpath.field"


def register(spark: SparkSession) -> None:
    """Make the formats `hudi` and `drawstring` work in a session, for DataFrames and in SQL.

    Each session of an application has to be registered; registering one twice does nothing more.

    Args:
        spark: a classic session.

    Raises:
        UnsupportedError: it is a Spark Connect session.

    Example:
        >>> drawstring.spark.register(spark)
        >>> spark.read.format("hudi").load("/lake/rides").show()
    """
    session = classic(spark)
    _take_over()
    if session.conf.get(_MARK, None) == "true":
        return
    surface_in_actions()
    with _active(session):
        session.dataSource.register(HudiSource)
        session.dataSource.register(DrawstringSource)
    session.conf.set(_MARK, "true")


@contextmanager
def _active(session: SparkSession) -> Iterator[None]:
    """Make a session the active one of this thread, where Spark looks for sources of the same name."""
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
    """Tell whether a session, or the one it was cloned from, was registered."""
    return spark.conf.get(_MARK, None) == "true"


class TableReader(DataFrameReader):
    """PySpark's reader, and drawstring for its formats."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(spark)
        self._source: str | None = None
        self._has_schema = False
        self._given: dict[str, str] = {}

    def format(self, source: str) -> TableReader:
        """Set the format."""
        self._source = source
        super().format(source)
        return self

    def schema(self, schema: Any) -> TableReader:
        """Set the columns; of formats that do not know them."""
        self._has_schema = True
        super().schema(schema)
        return self

    def option(self, key: str, value: Any) -> TableReader:
        """Set an option."""
        _note(self._given, key, value)
        super().option(key, value)
        return self

    def options(self, **options: Any) -> TableReader:
        """Set options."""
        for key, value in options.items():
            self.option(key, value)
        return self

    def load(
        self, path: Any = None, format: str | None = None, schema: Any = None, **options: Any
    ) -> DataFrame:
        """Load a table, or whatever PySpark loads."""
        if format is not None:
            self.format(format)
        if schema is not None:
            self.schema(schema)
        self.options(**options)
        if not _is_ours(self._source, self._spark):
            return super().load(path)
        if self._has_schema:
            raise InvalidError(
                "a table knows its columns: leave out schema, or choose some by drawstring.columns",
                table=_path(path, self._given),
            )
        return functions.load(self._spark, _path(path, self._given), _without_path(self._given))


class TableWriter(DataFrameWriter):
    """PySpark's writer, and drawstring for its formats."""

    def __init__(self, df: DataFrame) -> None:
        super().__init__(df)
        self._source: str | None = None
        self._mode = "errorifexists"
        self._partition_by: tuple[str, ...] = ()
        self._laid_out = ""
        self._given: dict[str, str] = {}

    def format(self, source: str) -> TableWriter:
        """Set the format."""
        self._source = source
        super().format(source)
        return self

    def mode(self, saveMode: str | None) -> TableWriter:
        """Set what to do about what is there."""
        if saveMode:
            self._mode = saveMode
        super().mode(saveMode)
        return self

    def option(self, key: str, value: Any) -> TableWriter:
        """Set an option."""
        _note(self._given, key, value)
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
        """Set buckets; of formats that have Spark's."""
        self._laid_out = "bucketBy"
        super().bucketBy(numBuckets, col, *cols)
        return self

    def sortBy(self, col: Any, *cols: Any) -> TableWriter:
        """Set the order in buckets; of formats that have Spark's."""
        self._laid_out = "sortBy"
        super().sortBy(col, *cols)
        return self

    def save(
        self,
        path: str | None = None,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: Any = None,
        **options: Any,
    ) -> None:
        """Save to a table, or wherever PySpark saves."""
        self._set(format, mode, partitionBy, options)
        if not _is_ours(self._source, self._spark):
            super().save(path)
            return
        if self._laid_out:
            raise InvalidError(
                f"{self._laid_out} has no meaning for a table: leave it out", table=_path(path, self._given)
            )
        root = _path(path, self._given)
        functions.write(self._df, root, options=self._table_options(root), mode=self._mode)

    def saveAsTable(
        self,
        name: str,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: Any = None,
        **options: Any,
    ) -> None:
        """Save to a table of the catalogue; of formats other than drawstring's."""
        self._set(format, mode, partitionBy, options)
        if _is_ours(self._source, self._spark):
            raise UnsupportedError(
                f"saveAsTable({name!r}) does not work for format {self._source}: save(path), and then"
                " CREATE TEMPORARY VIEW ... USING hudi OPTIONS (path '...') gives it a name"
            )
        super().saveAsTable(name)

    def _set(self, source: str | None, mode: str | None, partition_by: Any, options: dict[str, Any]) -> None:
        self.mode(mode).options(**options)
        if partition_by is not None:
            self.partitionBy(partition_by)
        if source is not None:
            self.format(source)

    def _table_options(self, path: str) -> dict[str, str]:
        """Return the options, with the columns of `partitionBy` where no option names any.

        Raises:
            InvalidError: both name columns, and not the same ones.
        """
        options = _without_path(self._given)
        if not self._partition_by:
            return options
        said = _partition_columns(options)
        if said is None:
            return {**options, _PARTITION_BY: ",".join(self._partition_by)}
        if said != self._partition_by:
            raise InvalidError(
                f"partitionBy names {', '.join(self._partition_by)} and {_PARTITION_BY}"
                f" {', '.join(said) or 'no column'}. Nothing was written: leave one of them out.",
                table=path,
            )
        return options


def _take_over() -> None:
    """Put the reader, the writer and what follows refreshes in place, once a process."""
    if getattr(SparkSession.read.fget, "_drawstring", False):  # type: ignore[attr-defined]
        return
    own_read, own_write = SparkSession.read.fget, ClassicDataFrame.write.fget  # type: ignore[attr-defined]

    def read(spark: SparkSession) -> DataFrameReader:
        reader: DataFrameReader = TableReader(spark) if is_registered(spark) else own_read(spark)
        return reader

    def write(df: DataFrame) -> DataFrameWriter:
        writer: DataFrameWriter = TableWriter(df) if is_registered(df.sparkSession) else own_write(df)
        return writer

    read.__doc__, write.__doc__ = own_read.__doc__, own_write.__doc__
    read._drawstring = True  # type: ignore[attr-defined]
    follow_refreshes(is_registered)
    SparkSession.read = property(read)  # type: ignore[assignment]
    ClassicDataFrame.write = property(write)  # type: ignore[assignment]


def _is_ours(source: str | None, spark: SparkSession) -> bool:
    name = source or spark.conf.get("spark.sql.sources.default", "parquet") or ""
    return name.lower() in FORMATS


def _partition_columns(options: dict[str, str]) -> tuple[str, ...] | None:
    """Return the partition columns that options name, None where there is no such option."""
    known = OPTION_OF_KEY[_PARTITION_BY]
    texts = [text for key, text in options.items() if key.lower() in known.keys]
    return typed_columns(split_list(texts[0]))[0] if texts else None


def _note(given: dict[str, str], key: str, value: Any) -> None:
    text = text_of(value)
    if text is not None:
        given[key] = text


def _path(path: Any, options: dict[str, str]) -> str:
    paths = path if isinstance(path, list | tuple) else [path or _option_path(options)]
    if len(paths) != 1 or not isinstance(paths[0], str):
        raise InvalidError("a table has one path: hand it to load or save, or set option path")
    return str(paths[0])


def _option_path(options: dict[str, str]) -> str | None:
    return next((value for key, value in options.items() if key.lower() == "path"), None)


def _without_path(options: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in options.items() if key.lower() != "path"}
