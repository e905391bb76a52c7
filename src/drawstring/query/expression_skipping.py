"""Skipping of file slices by expression indexes: conditions on an expression that is indexed.

    upper(name) = 'A'     expr_index_<name> of bounds     a file slice whose files all rule it out
                          expr_index_<name> of filters    a file slice none of whose files may have the value

The condition is translated once more, with the expression as a column, whose values the index describes. So
only conditions in SQL use these indexes. Functions whose values depend on the time zone of a session are left
out: an index does not say in which one it was made. `derived_column` decides which indexes are used, and says
why others are not.
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
from drawstring.schema.timestamp_units import has_millis
from drawstring.storage.protocol import Storage

VALUE: Final = "_drawstring_expression"
"""The column that stands for the expression."""

_UNKNOWN: Final = (
    "This release cannot compute the values, so the next write drops the index. Create one with another"
    " function."
)
_ZONED: Final = (
    "The values depend on the time zone of the session that computed them, which the table does not record."
    " Only Apache Hudi uses the index; drop it unless Hudi queries the table."
)
_MISLABELLED: Final = (
    "Apache Hudi before 1.1 may have taken the milliseconds of the column for microseconds when it computed"
    " the values. Drop the index."
)
_OF_PATHS: Final = (
    "Queries take the values of partition columns from the paths of files. Drop the index unless Hudi queries"
    " the table."
)
_NO_BOUNDS: Final = "Queries do not use bounds of this type. Drop the index unless Hudi queries the table."
_OTHER: Final = (
    "SQL conditions of drawstring cannot contain the expression. Only Apache Hudi uses the index; drop it"
    " unless Hudi queries the table."
)


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
        derived = derived_column(index, schema, config)
        found = None if isinstance(derived, str) else with_derived_column(str(sql), schema, derived)
        if found is not None:
            yield ExpressionCondition(index, *found)


def derived_column(
    index: ExpressionIndex | None, schema: pa.Schema, config: TableConfig
) -> DerivedColumn | str:
    """Return what stands for the expression of an index in conditions.

    Args:
        index: the index; None if this release cannot keep it.
        schema: the columns of the table.
        config: its settings.

    Returns:
        The column; or why queries do without the index and what to do, in sentences.
    """
    if index is None or not is_indexable(index, schema, config):
        return _UNKNOWN
    if index.column in config.partition_fields:  # a path may have another value than the files
        return _OF_PATHS
    column = schema.field(index.column)
    if has_millis(column.type):
        return _MISLABELLED
    if index.depends_on_zone(column.type):
        return _ZONED
    value = pa.field(VALUE, index.result_type(column.type))
    if index.kind == COLUMN_STATS and not has_ranges(value):
        return _NO_BOUNDS
    return _OTHER if index.sql is None else DerivedColumn(index.sql, value)
