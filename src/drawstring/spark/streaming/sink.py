"""Write streams: `df.writeStream.format("hudi")` writes each micro-batch once.

    micro-batch ── foreachBatch ── position (batch id) in the table? ──> one commit with rows and batch id

Spark repeats a micro-batch that may not have been finished, with the same id and the same rows. The commit
of a batch has its id (`write.stream_positions`), so a repeated batch is left out. A batch id counts for the
checkpoint folder it comes from: Spark gives a query that starts with a new folder a new id.

In Spark Connect, and so in declarative pipelines, drawstring cannot replace `writeStream`, because the
session is in another process. There the Python data source is the sink (`stream_writer`):

    micro-batch ── tasks: rows as Arrow messages ── driver: one commit with the rows and the batch's id

It cannot shuffle rows, so it passes the rows of a micro-batch to the embedded engine in a process of the
driver. The commit has the id of its batch, which counts for the folder of the query's checkpoint.

A micro-batch has to fit in the driver, and in `spark.driver.maxResultSize`. Tasks could stage files without
this bound, but files of failed tasks would stay, and the same one process would write.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import datasource as D
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructType

from drawstring.base.errors import DrawstringError, InvalidError, UnsupportedError
from drawstring.config.options.write_options import OPERATION_KEY, WriteOptions
from drawstring.engine.local import LocalEngine
from drawstring.services.streams import StreamBatch, stream_options, write_batch
from drawstring.spark.engine import ExecutorEngine, SparkRows
from drawstring.spark.errors import analysed, on_spark
from drawstring.spark.format_options import (
    as_text,
    is_drawstring_format,
    one_path,
    with_partitions,
    without_path,
)
from drawstring.spark.sql.saving import create_empty
from drawstring.spark.sql.tables import location_of
from drawstring.spark.storage_options import storage_options
from drawstring.spark.workers.rows import arrow_schema, with_types
from drawstring.spark.workers.tasks import serialize_errors, work
from drawstring.spark.writing.save import Target
from drawstring.storage import open_storage
from drawstring.write.stream_positions import CommittedPositions, PassedError, Stream, StreamStep

_QUERY_ID: Final = "sql.streaming.queryId"
CHECKPOINT: Final = "checkpointlocation"
_CHECKPOINT_SETTING: Final = "spark.sql.streaming.checkpointLocation"


class TableStreamWriter(DataStreamWriter):
    """PySpark's writer of streams, extended by drawstring's formats."""

    def __init__(self, df: DataFrame) -> None:
        super().__init__(df)
        self._df = df
        self._source: str | None = None
        self._output_mode = "append"
        self._partition_by: tuple[str, ...] = ()
        self._options: dict[str, str] = {}

    def format(self, source: str) -> TableStreamWriter:
        """Set the format."""
        self._source = source
        super().format(source)
        return self

    def outputMode(self, outputMode: str) -> TableStreamWriter:
        """Set which rows of a query's result a batch has."""
        self._output_mode = outputMode.lower()
        super().outputMode(outputMode)
        return self

    def option(self, key: str, value: Any) -> TableStreamWriter:
        """Set an option."""
        self._options |= as_text(key, value)
        super().option(key, value)
        return self

    def options(self, **options: Any) -> TableStreamWriter:
        """Set options."""
        for key, value in options.items():
            self.option(key, value)
        return self

    def partitionBy(self, *cols: Any) -> TableStreamWriter:
        """Set the partition columns."""
        names = cols[0] if len(cols) == 1 and isinstance(cols[0], list | tuple) else cols
        self._partition_by = tuple(names)
        return self

    @analysed()
    def start(
        self,
        path: str | None = None,
        format: str | None = None,
        outputMode: str | None = None,
        partitionBy: Any = None,
        queryName: str | None = None,
        **options: Any,
    ) -> StreamingQuery:
        """Start a query that writes to a table with drawstring, or to another sink with PySpark."""
        self._set(format, outputMode, partitionBy, queryName, options)
        if not self._is_of_drawstring:
            return self._with_partitions().start(path)
        return self._start(one_path(path, self._options))

    @analysed()
    def toTable(
        self,
        tableName: str,
        format: str | None = None,
        outputMode: str | None = None,
        partitionBy: Any = None,
        queryName: str | None = None,
        **options: Any,
    ) -> StreamingQuery:
        """Start a query that writes to a table of the catalog, which is created if it does not exist."""
        self._set(format, outputMode, partitionBy, queryName, options)
        location = location_of(self._df.sparkSession, tableName)
        if location is None and not self._is_of_drawstring:
            return self._with_partitions().toTable(tableName)
        if location is None:
            self._check_checkpoint(tableName)
            create_empty(self._df, tableName, self._options, self._partition_by)
            location = location_of(self._df.sparkSession, tableName)
        if location is None:
            raise InvalidError(f"{tableName} is no table of Hudi. Give the stream a name that is free.")
        return self._start(location)

    @property
    def _is_of_drawstring(self) -> bool:
        return is_drawstring_format(self._source, self._spark)

    def _set(
        self,
        source: str | None,
        output_mode: str | None,
        partition_by: Any,
        name: str | None,
        options: Mapping[str, Any],
    ) -> None:
        self.options(**options)
        if output_mode is not None:
            self.outputMode(output_mode)
        if partition_by is not None:
            self.partitionBy(partition_by)
        if source is not None:
            self.format(source)
        if name is not None:
            self.queryName(name)

    def _with_partitions(self) -> DataStreamWriter:
        """Return PySpark's own writer with everything that was set."""
        own = DataStreamWriter(self._df)
        own._jwrite = self._jwrite
        return own.partitionBy(*self._partition_by) if self._partition_by else own

    def _start(self, root: str) -> StreamingQuery:
        self._check_checkpoint(root)
        given = {key: value for key, value in self._options.items() if key.lower() != CHECKPOINT}
        options = with_partitions(without_path(given), self._partition_by, root)
        if self._output_mode == "complete":
            options[OPERATION_KEY] = "insert_overwrite_table"
        sink = _ForeachBatchSink(root, options, stream_options(options), {})
        super().foreachBatch(sink.add)
        return super().start()

    def _check_checkpoint(self, table: str) -> None:
        """Check that the query has a checkpoint: Spark would make a new one with each start otherwise."""
        named = any(key.lower() == CHECKPOINT for key in self._options)
        if not named and not self._spark.conf.get(_CHECKPOINT_SETTING, None):
            raise InvalidError(
                "A stream needs a folder for its progress. Set option checkpointLocation, or"
                f" {_CHECKPOINT_SETTING} in the session.",
                table=table,
            )


@dataclass(frozen=True, slots=True)
class _ForeachBatchSink:
    """Writes the micro-batches of a query to a table.

    Attributes:
        path: the table's root.
        given: options of the stream.
        options: the same, parsed.
        positions: committed positions by query; one entry.
    """

    path: str
    given: Mapping[str, str]
    options: WriteOptions
    positions: dict[str, CommittedPositions]

    def add(self, df: DataFrame, number: int) -> None:
        """Write a micro-batch unless the table has it."""
        query = str(df.sparkSession.sparkContext.getLocalProperty(_QUERY_ID) or "")
        stream = Stream(self.options.streaming.name, query)
        positions = self.positions.setdefault(query, CommittedPositions(stream))

        try:
            self._write(df, batch_step(positions, stream, number))
        except DrawstringError as error:
            raise on_spark(error.at(table=self.path)) from error.__cause__

    def _write(self, df: DataFrame, step: StreamStep) -> None:
        storage = storage_options(df.sparkSession, self.path, self.given)
        target = Target(self.path, open_storage(self.path, storage), storage, ExecutorEngine(df.sparkSession))
        rows = SparkRows.of(df)
        exists = target.exists()
        table = target.open() if exists else target.create(rows.schema, self.options, self.given)
        write_batch(table._context, StreamBatch(rows, step), self.options)


def batch_step(positions: CommittedPositions, stream: Stream, number: int) -> StreamStep:
    """Return the step of a micro-batch, which is passed over if the table has it.

    Args:
        positions: committed positions of the stream.
        stream: the stream.
        number: id of the batch.
    """

    def check(last: str | None) -> None:
        if last is not None and _batch_id(last, stream) >= number:
            raise PassedError

    return StreamStep(positions, str(number), check)


def _batch_id(position: str, stream: Stream) -> int:
    """Return the id of the batch that a position of a stream names.

    Raises:
        InvalidError: it names none.
    """
    try:
        return int(position)
    except ValueError:
        raise InvalidError(
            f"Stream {stream.name} of this table is at {position!r}, which is no batch of a Spark query. Give"
            " this query another name (hoodie.datasource.write.streaming.checkpoint.identifier)."
        ) from None


_ArrowWriter: Any = getattr(D, "DataSourceStreamArrowWriter", None)
_LOCAL: Final = re.compile(r"^file:/+")
"""Spark spells the address of a folder on this machine in two ways."""

_CODEC: Final = pa.ipc.IpcWriteOptions(compression="lz4")


@dataclass
class PassedRows(D.WriterCommitMessage):
    """The rows of a task, as an Arrow stream."""

    data: bytes


@dataclass(frozen=True, slots=True)
class ConnectSink:
    """Writes the micro-batches of a query.

    Attributes:
        path: the table's root.
        storage_options: options of its storage.
        given: options of the writes, by Hudi's keys.
        query: the folder of the query's checkpoint.
        schema: columns of the rows.
    """

    path: str
    storage_options: Mapping[str, str]
    given: Mapping[str, str]
    query: str
    schema: pa.Schema

    def add(self, rows: pa.Table, number: int) -> None:
        """Write a micro-batch unless the table has it.

        Raises:
            DrawstringError: it was not written; it can be written again.
        """
        options = stream_options(self.given)
        stream = Stream(options.streaming.name, self.query)
        storage = open_storage(self.path, self.storage_options)
        target = Target(self.path, storage, self.storage_options, LocalEngine())
        try:
            table = target.open() if target.exists() else target.create(rows.schema, options, self.given)
            context, found = table._rows_of(rows)
            step = batch_step(CommittedPositions(stream), stream, number)
            write_batch(context, StreamBatch(found, step), options)
        except DrawstringError as error:
            raise error.at(table=self.path) from error.__cause__
        table.services.wait()


def stream_writer(
    path: str, storage_options: Mapping[str, str], options: Mapping[str, str], schema: StructType
) -> D.DataSourceStreamWriter:
    """Return the writer of a stream.

    Args:
        path: the table's root.
        storage_options: options of its storage.
        options: the others of the stream.
        schema: columns of the stream.

    Raises:
        UnsupportedError: PySpark is older than 4.1.
        InvalidError: the stream has no folder for its progress.
    """
    if _ArrowWriter is None:
        raise UnsupportedError(
            "A stream cannot write to this table directly in PySpark 4.0. Use PySpark 4.1 or later, or"
            " df.writeStream.foreachBatch(lambda batch, number: batch.write.format('hudi')...)."
        )
    query = _LOCAL.sub("/", options.get(CHECKPOINT, "")).rstrip("/")
    if not query:
        raise InvalidError(
            "A stream needs a folder for its progress. Set option checkpointLocation.", table=path
        )
    given = {key: value for key, value in options.items() if key != CHECKPOINT}
    return _writer(ConnectSink(path, storage_options, given, query, arrow_schema(schema)))


def _writer(sink: ConnectSink) -> D.DataSourceStreamWriter:
    class Writer(_ArrowWriter):  # type: ignore[misc]  # a class that PySpark 4.0 does not have
        """Passes the rows of tasks to the driver, which writes them."""

        def write(self, iterator: Iterator[pa.RecordBatch]) -> PassedRows:
            """Return the rows of a task."""
            with work():
                return PassedRows(_message(iterator, sink.schema))

        def commit(self, messages: Sequence[PassedRows | None], batchId: int) -> None:
            """Write the rows of all tasks."""
            with serialize_errors():
                parts = [pa.ipc.open_stream(each.data).read_all() for each in messages if each is not None]
                sink.add(pa.concat_tables([sink.schema.empty_table(), *parts]), batchId)

        def abort(self, messages: Sequence[PassedRows | None], batchId: int) -> None:
            """Do nothing: nothing was written."""

    writer: D.DataSourceStreamWriter = Writer()
    return writer


def _message(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> bytes:
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, schema, options=_CODEC) as stream:
        for batch in batches:
            stream.write_batch(with_types(batch, schema))
    data: bytes = out.getvalue().to_pybytes()
    return data
