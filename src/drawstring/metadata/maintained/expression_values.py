"""Values of the expression of an index in a data file, which is read for them.

base file            its rows; the column is null if the file lacks it
log file             the records in it, deletes left out
partial log file     the same; as it may lack the column, it gets no record of its own
bootstrapped file    the rows of its source; no record either, as for statistics of columns
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from drawstring.base.errors import InvalidError
from drawstring.config.table.config import TableConfig
from drawstring.filegroups.read.bootstrap_reader import base_rows_of
from drawstring.filegroups.read.open_logs import open_logs
from drawstring.filegroups.read.tasks import InstantRange, LogReading
from drawstring.formats.base_files import Selection
from drawstring.merge.versions import flat
from drawstring.metadata.expressions.index import ExpressionIndex
from drawstring.metadata.maintained.file_summaries import (
    DataFile,
    FileSummaries,
    log_rows,
    renamed_rows,
)
from drawstring.metadata.maintained.protocol import TableChange, TableFacts
from drawstring.model.column_summary import ColumnSummary, merged
from drawstring.model.files import BaseFile, FileSlice, LogFile
from drawstring.schema.evolve import conform
from drawstring.storage import open_spec
from drawstring.storage.protocol import StorageSpec

_ANY_TEXT = ("", "\U0010ffff")
"""Bounds that contain every text."""

_ANY_NUMBER = {32: (-(2**31), 2**31 - 1), 64: (-(2**63), 2**63 - 1)}
"""Bounds that contain every whole number of some bits; dates and timestamps are stored as these."""


@dataclass(frozen=True, slots=True)
class ReadExpression:
    """Reads the values of an expression in files. Picklable.

    Attributes:
        storage: opens the table.
        config: the table.
        schema: its columns with meta columns.
        index: has the expression.
        instants: the instants whose log blocks count.
    """

    storage: StorageSpec
    config: TableConfig
    schema: pa.Schema
    index: ExpressionIndex
    instants: InstantRange

    @staticmethod
    def of(facts: TableFacts, index: ExpressionIndex) -> ReadExpression:
        """Return the reader for a table as it is, or as it is once an instant is complete."""
        timeline = facts.timeline_after if isinstance(facts, TableChange) else facts.timeline
        instants = InstantRange.of(timeline)
        return ReadExpression(facts.storage.spec, facts.read_config, facts.schema, index, instants)

    @property
    def columns(self) -> tuple[str, ...]:
        """The column whose values are computed."""
        return (self.index.column,)

    @property
    def is_v2(self) -> bool:
        """Whether the statistics have version V2."""
        return self.index.is_v2

    def type_of(self, column: str) -> pa.DataType:
        """Return the type of the values of the expression of a column."""
        kind = self.index.result_type(self.schema.field(column).type)
        if kind is None:
            raise ValueError(f"{self.index.name} cannot be of {column!r}")
        return kind

    def __call__(self, file: DataFile) -> FileSummaries:
        """Return the summary of the values in a file.

        Raises:
            CorruptTableError: the file is missing or damaged.
        """
        column, kind = self.index.column, self.type_of(self.index.column)
        summary = ColumnSummary(column, pa.nulls(2, kind), 0, 0)
        has_record = True
        try:
            for values, is_whole in self.batches(file):
                has_record &= is_whole
                summary = merged([summary, ColumnSummary.of(column, values)], kind)
        except InvalidError:  # a date that Spark knows, and this release does not
            summary = ColumnSummary(column, _any_value(kind), 1, 0)
            has_record = False
        size = file.file.status.size_bytes
        whole = ColumnSummary(column, summary.bounds, summary.values, summary.nulls, size, 2 * size)
        return FileSummaries({column: whole} if summary.values else {}, has_record)

    def batches(self, file: DataFile) -> Iterator[tuple[pa.Array, bool]]:
        """Yield values of a file, and whether records of the file may be made of them.

        Raises:
            CorruptTableError: the file is missing or damaged.
            InvalidError: a value cannot be computed.
        """
        field = self.schema.field(self.index.column).with_nullable(True)
        if isinstance(file.file, LogFile):
            rows = self._log_rows(file.partition, file.file, pa.schema([field]))
        else:
            rows = ((each, file.file.source is None) for each in self._base_rows(file.file, field))
        for batch, is_whole in rows:
            yield self.index.values(flat(batch.column(field.name))), is_whole

    def _base_rows(self, base: BaseFile, field: pa.Field) -> Iterator[pa.RecordBatch]:
        types = pa.schema([field])
        if self.config.renames(base.instant) is not None:
            return renamed_rows(self, base, types)
        selection = Selection([field.name], types=types)
        storage = open_spec(self.storage)
        return (
            conform(each, types) for each in base_rows_of(storage, base, selection, self.schema, self.config)
        )

    def _log_rows(
        self, partition: str, log: LogFile, schema: pa.Schema
    ) -> Iterator[tuple[pa.RecordBatch, bool]]:
        reading = LogReading(open_spec(self.storage), self.config, schema, self.instants)
        with open_logs(reading, FileSlice(partition, log.file_id, log.instant, None, (log,))) as logs:
            is_whole = not any(each.block.is_partial for each in logs.placed)
            for batch in log_rows(logs):
                yield batch, is_whole


def _any_value(kind: pa.DataType) -> pa.Array:
    """Return bounds that contain every value of the types that functions of dates have."""
    if pa.types.is_string(kind):
        return pa.array(_ANY_TEXT, kind)
    bits = kind.bit_width
    return pa.array(_ANY_NUMBER[bits], pa.int32() if bits == 32 else pa.int64()).cast(kind)
