"""What reads and changes the rows of a batch between source and table: an engine.

    source ── read ── query, call, mapped ── sifted ── table
              rows stay where the engine has them: in this process, or in Spark's executors

`EmbeddedBatches` has them as one stream of Arrow batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import pyarrow as pa

from drawstring.base.errors import InvalidError
from drawstring.engine.local import LocalEngine
from drawstring.engine.protocol import BatchFunction, Engine, Rows
from drawstring.ingestion.keyless import contents_of, divided_by_key
from drawstring.ingestion.source_protocol import Reading, SourceBatch
from drawstring.ingestion.transformers.sql import run_sql
from drawstring.table import Table
from drawstring.txn.table_context import TableContext
from drawstring.write.source import batches_of

BatchRows: TypeAlias = Any
"""Rows of a batch as their engine has them, with a `schema`: a `pa.RecordBatchReader`, or rows of Spark's."""

RowsOf: TypeAlias = Callable[[Any], tuple[TableContext, Rows]]
"""Returns a table, and rows of a batch as its writes take them."""


class BatchEngine(Protocol):
    """Reads and changes the rows of batches."""

    @property
    def engine(self) -> Engine | None:
        """What runs the writes; None for the embedded engine."""
        ...

    def storage_options(self, uri: str, given: Mapping[str, str]) -> Mapping[str, str]:
        """Return the options of a table's object store, given those of the user."""
        ...

    def read(self, batch: SourceBatch, reading: Reading, count: Callable[[int], None]) -> BatchRows:
        """Return the rows of a batch.

        Args:
            batch: what the source has.
            reading: known columns, and what takes records that cannot be read: before the rows are written.
            count: told about numbers of rows, which add up to that of the batch when it is written.
        """
        ...

    def empty(self, schema: pa.Schema) -> BatchRows:
        """Return no rows, with these columns."""
        ...

    def mapped(self, rows: BatchRows, function: BatchFunction, schema: pa.Schema) -> BatchRows:
        """Return what a function makes of the batches of rows, with the columns of a schema."""
        ...

    def query(self, query: str, rows: BatchRows) -> BatchRows:
        """Return the result of a query in Spark's dialect, in which `<SRC>` stands for the rows.

        Raises:
            InvalidError: the query is wrong, or what runs it is not installed.
        """
        ...

    def call(self, function: Callable[..., Any], rows: BatchRows) -> BatchRows:
        """Return what a function of the user makes of the rows."""
        ...

    def sifted(
        self,
        rows: BatchRows,
        fields: Sequence[str],
        take: Callable[[Sequence[bytes]], None],
        done: Callable[[], None],
    ) -> BatchRows:
        """Return the rows that have a record key.

        Args:
            rows: the rows.
            fields: columns of the record key; none if all rows are kept.
            take: takes the others, as JSON.
            done: called when all were taken, before the rows are committed.
        """
        ...

    def rows_of(self, table: Table) -> RowsOf:
        """Return what takes rows of a batch to a table."""
        ...

    def release(self) -> None:
        """Free what was kept of the last batch."""
        ...


@runtime_checkable
class HasBatches(Protocol):
    """An engine that reads and changes batches itself."""

    def batches(self) -> BatchEngine:
        """Return what does it."""
        ...


def batch_engine(engine: Any) -> BatchEngine:
    """Return what reads and changes batches.

    Args:
        engine: of the user; None for the embedded one.

    Raises:
        InvalidError: it is no engine.
    """
    if isinstance(engine, HasBatches):
        return engine.batches()
    if not isinstance(engine, LocalEngine | None):
        raise InvalidError(
            f"engine is a {type(engine).__name__}, which is no engine. Leave it out, or give"
            " drawstring.spark.SparkEngine(spark)."
        )
    return EmbeddedBatches(engine)


@dataclass(frozen=True, slots=True)
class EmbeddedBatches:
    """Batches as streams of Arrow batches in this process; see `BatchEngine`.

    Attributes:
        engine: runs the writes; None for the embedded engine.
    """

    engine: Engine | None

    def storage_options(self, uri: str, given: Mapping[str, str]) -> Mapping[str, str]:
        return given

    def read(
        self, batch: SourceBatch, reading: Reading, count: Callable[[int], None]
    ) -> pa.RecordBatchReader:
        def counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for each in batches:
                count(each.num_rows)
                yield each

        rows = batch.read(reading)
        return self.mapped(rows, counted, rows.schema)

    def empty(self, schema: pa.Schema) -> pa.RecordBatchReader:
        return schema.empty_table().to_reader()

    def mapped(
        self, rows: pa.RecordBatchReader, function: BatchFunction, schema: pa.Schema
    ) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(schema, function(iter(rows)))

    def query(self, query: str, rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
        return run_sql(query, rows)

    def call(self, function: Callable[..., Any], rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
        schema, batches = batches_of(function(rows))
        return pa.RecordBatchReader.from_batches(schema, batches)

    def sifted(
        self,
        rows: pa.RecordBatchReader,
        fields: Sequence[str],
        take: Callable[[Sequence[bytes]], None],
        done: Callable[[], None],
    ) -> pa.RecordBatchReader:
        def kept(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                good, bad = divided_by_key(batch, fields)
                if bad is not None:
                    take(contents_of(bad))
                yield good
            done()

        return self.mapped(rows, kept, rows.schema)

    def rows_of(self, table: Table) -> RowsOf:
        return table._rows_of

    def release(self) -> None:
        """Do nothing: streams are used up."""
