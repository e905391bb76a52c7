"""Batches of an ingestion in Spark: tasks read files and ranges of topics, Spark runs queries.

    files, ranges ── tasks look: columns, bad records ── tasks read and write
    a Hudi table, a query ── a DataFrame
    what only this process can read ── Arrow batches to Spark

Tasks read by the same functions as the embedded engine, so that both find the same columns and bad records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from drawstring.base.clock import SystemIds
from drawstring.engine.protocol import BatchFunction
from drawstring.ingestion.batch_engine import RowsOf
from drawstring.ingestion.keyless import FindKeyless, WithKey
from drawstring.ingestion.source_protocol import (
    InspectedPiece,
    Pieces,
    Reading,
    Rejected,
    SourceBatch,
    SparkQuery,
    TableRows,
    merged_schema,
)
from drawstring.ingestion.transformers.sql import SOURCE, wrong_query
from drawstring.schema.evolution import conform
from drawstring.spark.engine import ExecutorEngine, SparkRows
from drawstring.spark.errors import on_spark
from drawstring.spark.reading.dataframe import SliceReading, dataframe
from drawstring.spark.storage_options import storage_options
from drawstring.spark.workers.rows import arrow_schema, plain, spark_schema, with_types
from drawstring.spark.workers.tasks import Ingest
from drawstring.table import Table
from drawstring.write.source import batches_of

_VIEW: Final = "drawstring_source_{}"


class SparkBatches:
    """Batches in Spark's executors; see `BatchEngine`.

    Args:
        engine: of the session.
    """

    def __init__(self, engine: ExecutorEngine) -> None:
        self.engine = engine
        self._kept: list[SparkRows] = []

    def storage_options(self, uri: str, given: Mapping[str, str]) -> Mapping[str, str]:
        return storage_options(self.engine.spark, uri, {}, given)

    def read(self, batch: SourceBatch, reading: Reading, count: Callable[[int], None]) -> SparkRows:
        if isinstance(batch.parts, Pieces):
            return self._pieces(batch.parts, reading, count)
        if isinstance(batch.parts, TableRows):
            return self._table_rows(batch.parts, count)
        if isinstance(batch.parts, SparkQuery):
            return self._result(batch.parts, count)
        rows = batch.read(reading).read_all()
        count(rows.num_rows)
        return self._given(rows)

    def empty(self, schema: pa.Schema) -> SparkRows:
        return self.engine.read((), _nothing, schema)

    def mapped(self, rows: SparkRows, function: BatchFunction, schema: pa.Schema) -> SparkRows:
        return rows.map_batches(function, schema)

    def query(self, query: str, rows: SparkRows) -> SparkRows:
        view = _VIEW.format(SystemIds().uuid().replace("-", ""))  # other jobs may share the session
        rows.dataframe().createOrReplaceTempView(view)
        try:
            return SparkRows.of(_selected(self.engine.spark, query, SOURCE.sub(view, query)))
        finally:
            self.engine.spark.catalog.dropTempView(view)

    def call(self, function: Callable[..., Any], rows: SparkRows) -> SparkRows:
        result = function(rows.dataframe())
        if isinstance(result, DataFrame):
            return SparkRows.of(result)
        schema, batches = batches_of(result)
        return self._given(pa.Table.from_batches(batches, schema))

    def sifted(
        self,
        rows: SparkRows,
        fields: Sequence[str],
        take: Callable[[Sequence[bytes]], None],
        done: Callable[[], None],
    ) -> SparkRows:
        keys = tuple(fields)
        for contents in rows.run(FindKeyless(keys)) if keys else ():
            take(contents)
        done()
        return rows.map_batches(WithKey(keys), rows.schema)

    def rows_of(self, table: Table) -> RowsOf:
        return lambda rows: (table._context, rows)

    def release(self) -> None:
        while self._kept:
            self._kept.pop().release()

    def _pieces(self, pieces: Pieces, reading: Reading, count: Callable[[int], None]) -> SparkRows:
        task = _Look(pieces.look, reading.known, reading.is_strict)
        looks = self.engine.map(task, pieces.items)
        for _, rejected in looks:
            for record in rejected:
                reading.reject(record)
        count(sum(found.rows for found, _ in looks))
        schema = merged_schema((found.name, found.schema) for found, _ in looks)
        if not schema.names:
            return self.empty(reading.known)
        read = _Read(pieces.read, reading.known, reading.is_strict, schema)
        return self.engine.read(pieces.items, read, schema)

    def _table_rows(self, rows: TableRows, count: Callable[[int], None]) -> SparkRows:
        scan = rows.scan()
        df = dataframe(self.engine.spark, scan.tasks(), SliceReading(scan.schema, None))
        count(df.count())
        return SparkRows.of(df)

    def _result(self, query: SparkQuery, count: Callable[[int], None]) -> SparkRows:
        """Return the result of a query, computed once."""
        rows = SparkRows.of(_selected(self.engine.spark, query.text, query.text)).persist()
        self._kept.append(rows)
        count(sum(rows.count_by(()).rows.values()))
        return rows

    def _given(self, rows: pa.Table) -> SparkRows:
        """Return rows of this process."""
        schema = plain(rows.schema)
        columns = spark_schema(schema)
        known = arrow_schema(columns)
        table = pa.Table.from_batches([with_types(each, known) for each in rows.to_batches()], known)
        return SparkRows(self.engine.spark.createDataFrame(table, columns), schema, (Ingest(schema),))


@dataclass(frozen=True, slots=True)
class _Look:
    """A task that finds out what a piece has, and which of its records are bad."""

    look: Callable[[Any, Reading], InspectedPiece]
    known: pa.Schema
    is_strict: bool

    def __call__(self, item: Any) -> tuple[InspectedPiece, list[Rejected]]:
        rejected: list[Rejected] = []
        return self.look(item, Reading(self.known, rejected.append, self.is_strict)), rejected


@dataclass(frozen=True, slots=True)
class _Read:
    """Reads a piece again, without its bad records."""

    read: Callable[[Any, Reading], pa.RecordBatchReader]
    known: pa.Schema
    is_strict: bool
    schema: pa.Schema

    def __call__(self, item: Any) -> Iterator[pa.RecordBatch]:
        for batch in self.read(item, Reading(self.known, _passed_over, self.is_strict)):
            yield conform(batch, self.schema)


def _passed_over(record: Rejected) -> None:
    """Do nothing: the record was rejected when the piece was looked at."""


def _nothing(item: Any) -> Iterator[pa.RecordBatch]:
    yield from ()


def _selected(spark: SparkSession, query: str, text: str) -> DataFrame:
    """Return the result of a query, and run no other statement: as a subquery it is not one.

    Args:
        spark: the session.
        query: as the user gave it, for errors.
        text: what is run.

    Raises:
        InvalidError: it is wrong, or no query.
    """
    with _told(query):
        return spark.sql(f"SELECT * FROM (\n{text.strip().rstrip(';')}\n)")


@contextmanager
def _told(query: str) -> Iterator[None]:
    try:
        yield
    except PySparkException as error:
        # The first line says what is wrong; that of a parser comes after an empty one.
        first = next(filter(str.strip, str(error).splitlines()), type(error).__name__)
        wrong = wrong_query(query, Exception(first))
        raise on_spark(wrong) from error
