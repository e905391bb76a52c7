"""Functions that read and write tables as DataFrames, and open them; `format("hudi")` calls them.

`SparkTable` is a table whose methods accept DataFrames and run in Spark's executors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from drawstring.base.errors import DrawstringError, InvalidError
from drawstring.config.keys.read import READ_OPTIONS
from drawstring.config.options.read_options import options_in_session
from drawstring.config.options.write_options import WriteOptions, check_place, with_delete_operation
from drawstring.engine.protocol import Rows
from drawstring.entry import open as open_table
from drawstring.entry import opened_with
from drawstring.model.result import CommitResult
from drawstring.query.policies import NEWEST
from drawstring.query.scan import Scan
from drawstring.spark.engine import ExecutorEngine, SparkRows, classic
from drawstring.spark.errors import analysed
from drawstring.spark.reading.dataframe import scan_at
from drawstring.spark.reading.plan_marks import Reread
from drawstring.spark.storage_options import storage_options as options_of_storage
from drawstring.spark.workers.tasks import naming
from drawstring.spark.writing.save import Target
from drawstring.storage import open_storage
from drawstring.table import Table
from drawstring.txn.table_context import TableContext

_OPERATION: Final = "hoodie.datasource.write.operation"


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
def read(  # noqa: PLR0913 - all arguments of a query
    spark: SparkSession,
    path: str,
    *,
    columns: Sequence[str] | None = None,
    where: str | pc.Expression | None = None,
    as_of: Any = None,
    read_optimized: bool = False,
    incremental: tuple[Any, Any] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Return the rows of a table as a DataFrame with the snapshot of the time of the call.

    Spark's own Parquet reader reads file slices without log files; Python workers merge the others. Spark
    pushes the columns and predicates of later steps down to both.

    Args:
        spark: a classic session.
        path: the table's root.
        columns: columns to read, all by default, meta columns included.
        where: a SQL predicate, as in `"month = 7 and delay > 60"`, or a pyarrow expression.
        as_of: an instant or a date-time: the table as it was then.
        read_optimized: base files only; changes that are not compacted yet do not show.
        incremental: begin, exclusive, and end, inclusive or None for now: what changed in between. Both are
            completion times (requested times in table version 6) or date-times; the begin may be
            `"earliest"`.
        storage_options: options of the object store, as in `{"region": "eu-central-1"}`; they win over the
            session's settings for Hadoop, such as `spark.hadoop.fs.s3a.*`.

    Returns:
        The rows, with the columns of the table.

    Raises:
        InvalidError: there is no table, or a column, condition or time that is none.
        UnsupportedError: a Spark Connect session, a column that Spark has no type for, or a table with a
            feature that this release cannot read.
        CorruptTableError: a file of the table is damaged or missing; of data files, actions say so.
        UnavailableError: a pending write would be missed by `incremental`.

    Example:
        >>> drawstring.spark.read(spark, "/lake/rides", columns=["id", "fare"], where="fare > 15").count()
        2
    """
    storage = options_of_storage(classic(spark), path, {}, storage_options)
    if incremental is not None and (as_of is not None or read_optimized):
        raise InvalidError("The argument incremental excludes as_of and read_optimized. Leave them out.")

    def scan() -> Scan:
        table = open_table(path, storage_options=storage)
        if incremental is not None:
            return table.incremental(incremental[0], incremental[1], columns=columns, where=where)
        return table.scan(columns=columns, where=where, as_of=as_of, read_optimized=read_optimized)

    return Reread(path, storage, scan, where if isinstance(where, str) else None).dataframe(spark)


@naming
def changes(
    spark: SparkSession,
    path: str,
    start: Any = NEWEST,
    end: Any = None,
    *,
    storage_options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Return every change of a range of commits as a DataFrame, as of the time of the call.

    The columns are `op` (`i`, `u` or `d`), `ts_ms` (the requested time of the commit), and the record
    `before` and `after` the change as JSON.

    Args:
        spark: a classic session.
        path: the table's root.
        start: exclusive; a time or `earliest`; `newest`, the default, for the newest commit up to `end`.
        end: inclusive; None for now. A bound may also be the `_hoodie_commit_time` of a row: as start it
            leaves that commit out, as end it takes it in.
        storage_options: options of the object store, as in `{"region": "eu-central-1"}`; they win over the
            session's settings for Hadoop, such as `spark.hadoop.fs.s3a.*`.

    Returns:
        The changes, commit by commit, without an order between their rows.

    Raises:
        InvalidError: there is no table, a time that makes no sense, or commits whose files are gone.
        UnsupportedError: a Spark Connect session, or a table with a feature that this release cannot read.
        CorruptTableError: a file of the table is damaged or missing; of data files, actions say so.
        UnavailableError: a pending write would be missed.

    Example:
        >>> drawstring.spark.changes(spark, "/lake/rides", "earliest").groupBy("op").count().show()
    """
    storage = options_of_storage(classic(spark), path, {}, storage_options)
    return Reread(
        path, storage, lambda: open_table(path, storage_options=storage).changes(start, end)
    ).dataframe(spark)


def _set_in_session(spark: SparkSession) -> dict[str, str]:
    """Return the options of reads that were SET in a session."""
    keys = [key for option in READ_OPTIONS for key in option.keys if key.startswith("hoodie.")]
    texts = {key: spark.conf.get(key, None) for key in keys}
    return {key: text for key, text in texts.items() if text is not None}


@naming
def load(spark: SparkSession, path: str, options: Mapping[str, Any]) -> DataFrame:
    """Return the rows of a read with Hudi's option keys, which may also be SET in the session; see `read`."""
    parsed = options_in_session(_set_in_session(spark), options)
    storage = options_of_storage(spark, path, options)
    return Reread(path, storage, partial(scan_at, path, storage, parsed), parsed.where).dataframe(spark)


@naming
def write(
    df: DataFrame,
    path: str,
    *,
    operation: str | None = None,
    options: Mapping[str, Any] | None = None,
    mode: str = "append",
    storage_options: Mapping[str, str] | None = None,
) -> CommitResult:
    """Write a DataFrame to a table, and create the table if it does not exist.

    Args:
        df: the rows; of a classic session.
        path: the table's root.
        operation: `upsert`, `insert`, `bulk_insert`, `append`, `delete`, `insert_overwrite`,
            `insert_overwrite_table`, `delete_partition` or `bootstrap`, for which the rows are those of the
            folder that the options name; by default what the options say, else `upsert`.
        options: Hudi's write options by their keys; of a new table they say what it is like.
        mode: what to do about a table that is there: `append` to it, `overwrite` it (put a new one in its
            place; with operation `insert_overwrite_table` replace its rows; with `insert_overwrite`, where
            Hudi drops the table, refuse), `errorifexists`, `ignore`.
        storage_options: options of the object store, as in `{"region": "eu-central-1"}`; they win over the
            session's settings for Hadoop, such as `spark.hadoop.fs.s3a.*`.

    Returns:
        What was committed; false when mode `ignore` found a table.

    Raises:
        ConflictError: another writer was there first; nothing was written.
        InvalidError: rows, options or mode do not fit; nothing was written.
        UnsupportedError: a Spark Connect session, or what this release cannot write.
        CorruptTableError: a file of the table that the write needs is damaged or missing.

    Example:
        >>> keys = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.table.ordering.fields": "ts"}
        >>> drawstring.spark.write(rides, "/lake/rides", operation="upsert", options=keys).inserts
        3
    """
    options = with_delete_operation({**(options or {}), **({_OPERATION: operation} if operation else {})})
    parsed = WriteOptions.parse(options)
    given = options_of_storage(classic(df.sparkSession), path, options, storage_options)
    target = Target(path, open_storage(path, given), given, ExecutorEngine(df.sparkSession))
    check_place(options, target.storage.spec.uri)
    exists = target.exists()
    save_mode = mode_of(mode)
    if exists and save_mode == "ignore":
        return CommitResult.nothing(parsed.operation)
    if exists:
        _check_mode(save_mode, parsed.operation)
    if parsed.operation == "bootstrap":
        return target.bootstrap(parsed, options)
    rows = SparkRows.of(df)
    if exists and save_mode == "overwrite" and parsed.operation != "insert_overwrite_table":
        return target.replace(df, rows, parsed, options)
    table = target.open() if exists else target.create(rows.schema, parsed, options)
    return table._write_rows(parsed.operation, rows, options)


def _check_mode(mode: str, operation: str) -> None:
    """Check that the save mode is defined for an existing table.

    Raises:
        InvalidError: mode `error`, or `overwrite` with an operation that makes its meaning ambiguous.
    """
    if mode == "error":
        raise InvalidError("The table already exists. Use mode append or overwrite.")
    if mode == "overwrite" and operation == "insert_overwrite":
        raise InvalidError(
            "Mode overwrite with operation insert_overwrite can mean all rows of the table (Hudi drops it) or"
            " those in the partitions of the new rows. Nothing was written. Use mode append to replace the"
            " partitions, or operation insert_overwrite_table to replace all rows."
        )


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
    engine = ExecutorEngine(spark)
    given = options_of_storage(engine.spark, path, {}, storage_options)
    try:
        context = TableContext(open_storage(path, given), engine)
        return SparkTable(context if options is None else opened_with(context, options))
    except DrawstringError as error:
        raise error.at(table=path) from error.__cause__


@naming
def compact(
    spark: SparkSession,
    path: str,
    instant: str | None = None,
    *,
    options: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> CommitResult:
    """Fold log files into new base files, by Spark's executors.

    Other services are methods of `drawstring.spark.table(spark, path).services`: `schedule_compaction`,
    `log_compact`, `cluster`, `clean`, ...

    Args:
        spark: a classic session.
        path: the table's root.
        instant: run the compaction that was scheduled under this requested time, and nothing else; by default
            all that are pending and free, and then what is left to compact.
        options: further options by Hudi's keys, as in `{"hoodie.compaction.strategy": "LogFileNumBased"}`.
        storage_options: options of the object store, as in `{"region": "eu-central-1"}`; they win over the
            session's settings for Hadoop, such as `spark.hadoop.fs.s3a.*`.

    Returns:
        What was committed; false when there was nothing to compact.

    Raises:
        ConflictError: another process runs the compaction, or another writer holds the table.
        InvalidError: there is no table, or no such compaction, or the table is COPY_ON_WRITE.
        UnsupportedError: a Spark Connect session.

    Example:
        >>> drawstring.spark.compact(spark, "/lake/rides").files
        2
    """
    return table(spark, path, storage_options=storage_options).services.compact(instant, options=options)


def mode_of(mode: str) -> str:
    """Return the canonical name of a save mode.

    Raises:
        InvalidError: there is no such mode.
    """
    name = mode.lower()
    if name in ("error", "errorifexists", "default"):
        return "error"
    if name not in ("append", "overwrite", "ignore"):
        raise InvalidError(f"There is no save mode {mode!r}. Use append, overwrite, errorifexists or ignore.")
    return name
