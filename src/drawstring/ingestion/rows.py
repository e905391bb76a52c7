"""The columns of ingested rows, where the user gave them as Avro schemas."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from drawstring.base.errors import CorruptTableError, InvalidError
from drawstring.config.keys.pipelines.ingest import IngestOptions
from drawstring.ingestion.batch_engine import BatchEngine, BatchRows
from drawstring.ingestion.sources.columns import as_known
from drawstring.ingestion.transformers.chain import read_text
from drawstring.schema.avro import avro_to_arrow
from drawstring.schema.evolve import conform


@dataclass(frozen=True, slots=True)
class Shape:
    """Columns that rows are to have.

    Attributes:
        source: before the transformers; None for those that are found.
        target: after them; None for those that come out.
    """

    source: pa.Schema | None = None
    target: pa.Schema | None = None

    @staticmethod
    def of(options: IngestOptions) -> Shape:
        """Return the columns that Avro schemas in files describe.

        Raises:
            InvalidError: there is no such file, or no schema in it.
        """
        return Shape(
            *(_schema_in(name) if name else None for name in (options.source_schema, options.target_schema))
        )

    def read(self, rows: BatchRows, engine: BatchEngine) -> BatchRows:
        """Return rows as they were read with the columns of the source."""
        return _with_columns(rows, self.source, engine)

    def written(self, rows: BatchRows, engine: BatchEngine) -> BatchRows:
        """Return rows with the columns of the target."""
        return _with_columns(rows, self.target, engine)


def _with_columns(rows: BatchRows, schema: pa.Schema | None, engine: BatchEngine) -> BatchRows:
    return rows if schema is None else engine.mapped(rows, _Conform(schema), schema)


@dataclass(frozen=True, slots=True)
class _Conform:
    """A batch function that gives rows the columns of a schema."""

    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for each in as_known(pa.Table.from_batches([batch]), self.schema).to_batches():
                yield conform(each, self.schema)


def _schema_in(file: str) -> pa.Schema:
    try:
        return avro_to_arrow(read_text(file))
    except CorruptTableError as error:
        raise InvalidError(
            f"{file} has no Avro record schema ({error.message}). Correct the file."
        ) from error
