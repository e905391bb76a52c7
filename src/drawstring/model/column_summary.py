"""What the values of a column in a file are like: their bounds and counts, as the metadata table has them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt


@dataclass(frozen=True, slots=True)
class ColumnSummary:
    """Bounds and counts of a column in one file, or in several together.

    Attributes:
        column: name of the column; names of nested fields are joined by dots.
        bounds: the least and the greatest value, of the type of the column; both null if all values are
            null. NaN counts as infinity, since readers compare a bound of NaN in different ways.
        values: number of values, nulls included.
        nulls: number of nulls.
        size_bytes, plain_bytes: size in a base file, compressed and not; 0 for log files.
    """

    column: str
    bounds: pa.Array
    values: int
    nulls: int
    size_bytes: int = 0
    plain_bytes: int = 0

    @staticmethod
    def of(column: str, values: pa.Array | pa.ChunkedArray) -> ColumnSummary:
        """Return the summary of some values.

        Args:
            column: name of the column.
            values: of a type with an order.
        """
        return ColumnSummary(column, bounds_of(values), len(values), values.null_count)

    @property
    def lacks_bounds(self) -> bool:
        """Whether there are values, but their bounds are not known."""
        return self.values > self.nulls and self.bounds.null_count > 0


def bounds_of(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the least and the greatest of some values: null if there are none, and zeros of either sign.

    Args:
        values: of a type with an order; NaN counts as infinity.
    """
    if pt.is_dictionary(values.type):
        distinct = pc.unique(values)
        values = distinct.dictionary.take(distinct.indices)
    if pt.is_null(values.type):
        return pa.nulls(2)
    if not pt.is_floating(values.type):
        found = pc.min_max(values)
        return pa.array([found["min"], found["max"]], values.type)
    is_nan = pc.is_nan(values)
    found = pc.min_max(values.filter(pc.invert(is_nan)))
    least, greatest = found["min"].as_py(), found["max"].as_py()
    if pc.any(is_nan).as_py():
        least, greatest = (math.inf if least is None else least), math.inf
    return pa.array([-0.0 if least == 0 else least, 0.0 if greatest == 0 else greatest], values.type)


def merged(summaries: Sequence[ColumnSummary], kind: pa.DataType | None = None) -> ColumnSummary:
    """Return the summary of the values of several files together; it lacks bounds if one of them does.

    Args:
        summaries: of one column, at least one.
        kind: the type of the bounds; None for that of the first one that has some.
    """
    types = (each.bounds.type for each in summaries if not pt.is_null(each.bounds.type))
    kind = kind or next(types, pa.null())
    known = [each.bounds for each in summaries if each.bounds.null_count == 0]
    bounds = bounds_of(pa.chunked_array([each.cast(kind) for each in known], kind))
    nulls = sum(each.nulls for each in summaries)
    if any(each.lacks_bounds for each in summaries):
        bounds, nulls = pa.nulls(2, kind), 0
    return ColumnSummary(
        summaries[0].column,
        bounds,
        sum(each.values for each in summaries),
        nulls,
        sum(each.size_bytes for each in summaries),
        sum(each.plain_bytes for each in summaries),
    )
