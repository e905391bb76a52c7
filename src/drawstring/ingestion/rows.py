"""The columns of ingested rows, where the user gave them as Avro schemas."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from drawstring.base.errors import CorruptTableError, InvalidError
from drawstring.config.keys.pipelines.ingest import IngestOptions
from drawstring.ingestion.sources.columns import as_known
from drawstring.ingestion.sources.protocol import Reading, SourceBatch
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

    def read(self, batch: SourceBatch, reading: Reading) -> pa.RecordBatchReader:
        """Return the rows of a batch with the columns of the source."""
        return _with_columns(batch.read(reading), self.source)

    def written(self, rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """Return rows with the columns of the target."""
        return _with_columns(rows, self.target)


def _with_columns(rows: pa.RecordBatchReader, schema: pa.Schema | None) -> pa.RecordBatchReader:
    if schema is None:
        return rows
    return pa.RecordBatchReader.from_batches(
        schema,
        (
            conform(each, schema)
            for batch in rows
            for each in as_known(pa.Table.from_batches([batch]), schema).to_batches()
        ),
    )


def _schema_in(file: str) -> pa.Schema:
    try:
        return avro_to_arrow(read_text(file))
    except CorruptTableError as error:
        raise InvalidError(
            f"{file} has no Avro record schema ({error.message}). Correct the file."
        ) from error
