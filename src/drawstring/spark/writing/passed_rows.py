"""The sink of streams in Spark Connect, and so of declarative pipelines.

    micro-batch ── tasks: rows as Arrow messages ── driver: one commit with the rows and the batch's id

Where drawstring cannot take over `writeStream`, because the session is in another process, the Python data
source is the sink. It cannot shuffle rows, and so hands those of a micro-batch to the embedded engine in a
process of the driver. The rest is as in `streaming`: a commit has the id of its batch, which counts for the
folder of the query's checkpoint.

A micro-batch has to fit in the driver, and in `spark.driver.maxResultSize`. Tasks could stage files without
this bound, but files of failed tasks would stay, and the same one process would write.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import datasource as D
from pyspark.sql.types import StructType

from drawstring.base.errors import DrawstringError, InvalidError, UnsupportedError
from drawstring.engine.local import LocalEngine
from drawstring.services.streams import StreamBatch, stream_options, write_batch
from drawstring.spark.engine.batches import with_types
from drawstring.spark.engine.failures import carried
from drawstring.spark.engine.types import arrow_schema
from drawstring.spark.engine.worker import work
from drawstring.spark.writing.streaming import CHECKPOINT, batch_step
from drawstring.spark.writing.target import Target
from drawstring.storage import open_storage
from drawstring.write.stream_positions import CommittedPositions, Stream

_ArrowWriter: Any = getattr(D, "DataSourceStreamArrowWriter", None)
_LOCAL: Final = re.compile(r"^file:/+")
"""Spark spells the address of a folder on this machine in two ways."""

_CODEC: Final = pa.ipc.IpcWriteOptions(compression="lz4")


@dataclass
class PassedRows(D.WriterCommitMessage):
    """The rows of a task, as an Arrow stream."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Sink:
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
        table.wait_for_services()


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
    return _writer(Sink(path, storage_options, given, query, arrow_schema(schema)))


def _writer(sink: Sink) -> D.DataSourceStreamWriter:
    class Writer(_ArrowWriter):  # type: ignore[misc]  # a class that PySpark 4.0 does not have
        """Passes the rows of tasks to the driver, which writes them."""

        def write(self, iterator: Iterator[pa.RecordBatch]) -> PassedRows:
            """Return the rows of a task."""
            with work():
                return PassedRows(_message(iterator, sink.schema))

        def commit(self, messages: Sequence[PassedRows | None], batchId: int) -> None:
            """Write the rows of all tasks."""
            with carried():
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
