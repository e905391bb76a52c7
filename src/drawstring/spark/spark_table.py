"""Tables in a Spark session: writes accept DataFrames, and Spark's executors do the work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from drawstring.base.errors import DrawstringError
from drawstring.engine.protocol import Rows
from drawstring.entry import opened_with
from drawstring.spark.engine.failures import naming
from drawstring.spark.engine.spark_engine import SparkEngine, SparkRows
from drawstring.spark.errors import analysed
from drawstring.spark.locations import storage_options as options_of_storage
from drawstring.storage import open_storage
from drawstring.table import Table
from drawstring.txn.table_context import TableContext


class SparkTable(Table):
    """A `drawstring.Table` whose methods accept DataFrames and run in Spark's executors."""

    @contextmanager
    def _errors(self) -> Iterator[None]:
        with analysed(), super()._errors():
            yield

    def _rows_of(self, data: Any) -> tuple[TableContext, Rows]:
        is_frame = isinstance(data, DataFrame)
        return (self._context, SparkRows.of(data)) if is_frame else super()._rows_of(data)


@naming
def table(
    spark: SparkSession,
    path: str,
    *,
    storage_options: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
) -> SparkTable:
    """Open a table for operations that DataFrames lack, such as `update`, `delete(where=)` and `merge`.

    Args:
        spark: a classic session.
        path: the table's root.
        storage_options: options of the object store, as in `{"region": "eu-central-1"}`; they win over the
            session's settings for Hadoop, such as `spark.hadoop.fs.s3a.*`.
        options: defaults of all later calls on the table, as those of `drawstring.open`.

    Returns:
        The table. Its methods accept DataFrames and everything that `drawstring.Table` accepts.

    Raises:
        InvalidError: there is no table.
        UnsupportedError: a Spark Connect session, or a table of a version that this release does not know.
        CorruptTableError: the table's properties are damaged beyond their backup.

    Example:
        >>> table = drawstring.spark.table(spark, "/lake/rides")
        >>> table.update("city = 'lima'", {"fare": "fare * 2"}).updates
        2
    """
    engine = SparkEngine(spark)
    given = options_of_storage(engine.spark, path, {}, storage_options)
    try:
        context = TableContext(open_storage(path, given), engine)
        return SparkTable(context if options is None else opened_with(context, options))
    except DrawstringError as error:
        raise error.at(table=path) from error.__cause__
