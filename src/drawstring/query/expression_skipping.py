"""Skipping of file slices by expression indexes: conditions on an expression that is indexed.

    upper(name) = 'A'     expr_index_<name> of bounds     a file slice whose files all rule it out
                          expr_index_<name> of filters    a file slice none of whose files may have the value

The condition is translated once more, with the expression as a column, whose values the index describes. So
only conditions in SQL use these indexes. Functions whose values depend on the time zone of a session are left
out: an index does not say in which one it was made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.config.table.config import TableConfig
from drawstring.expressions.derived_columns import DerivedColumn, with_derived_column
from drawstring.formats.condition_regions import ConditionRegions
from drawstring.metadata.column_ranges import COLUMN_STATS, ColumnRanges, column_ranges, has_ranges
from drawstring.metadata.expressions.index import ExpressionIndex
from drawstring.metadata.maintained.expression_index import defined_indexes, is_indexable
from drawstring.metadata.metadata_table import MetadataTable
from drawstring.query.pruning import key_values
from drawstring.storage.protocol import Storage

VALUE: Final = "_drawstring_expression"
"""The column that stands for the expression."""


@dataclass(frozen=True, slots=True)
class ExpressionCondition:
    """A condition on an expression that has an index.

    Attributes:
        index: the index.
        where: the condition, with the expression as a column.
        schema: the columns with that one.
    """

    index: ExpressionIndex
    where: pc.Expression
    schema: pa.Schema

    def regions(self) -> ConditionRegions | None:
        """Return the values of the expression that the condition can be true for; None for any."""
        return ConditionRegions.of(self.where, self.schema, [VALUE])

    def texts(self) -> Sequence[str] | None:
        """Return the texts of the only values that the condition can be true for; None for any."""
        values = key_values(self.where, self.schema, VALUE, with_dates=True)
        return None if values is None else [str(each) for each in values.cast(pa.string()).to_pylist()]

    def ranges(self, metadata: MetadataTable, paths: Sequence[str] | None) -> ColumnRanges:
        """Return the bounds of the values in files; see `column_ranges`."""
        kind = self.schema.field(VALUE).type
        found = column_ranges(metadata, self.index.name, [pa.field(self.index.column, kind)], paths)
        return found[self.index.column]


def expression_conditions(
    table: tuple[Storage, TableConfig], metadata: MetadataTable, sql: str | None, schema: pa.Schema
) -> Iterator[ExpressionCondition]:
    """Yield the conditions of a query on expressions that have an index, of which there are values to skip.

    Args:
        table: the table's files and settings.
        metadata: its metadata table.
        sql: the condition; None if it was not given in SQL.
        schema: the columns of the query.

    Raises:
        CorruptTableError: the definitions of the indexes are damaged.
    """
    storage, config = table
    for index in [] if sql is None else defined_indexes(storage, metadata):
        # A path may have another value of a partition column than the files.
        if index.column in config.partition_fields or not is_indexable(index, schema, config):
            continue
        kind = index.result_type(schema.field(index.column).type)
        if index.sql is None or kind is None or index.depends_on_zone(schema.field(index.column).type):
            continue
        found = with_derived_column(str(sql), schema, DerivedColumn(index.sql, pa.field(VALUE, kind)))
        if found is not None and (index.kind != COLUMN_STATS or has_ranges(pa.field(VALUE, kind))):
            yield ExpressionCondition(index, *found)
