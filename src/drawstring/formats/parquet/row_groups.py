"""Which row groups of a Parquet file may hold rows that a condition keeps, by their statistics.

Writers leave NaN out of least and greatest values, while conditions may hold for it. So a row group
that its statistics rule out is kept all the same when the condition can be true with NaN:

    groups = groups(statistics) + groups(statistics, column is NaN), for each column of floats
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import types as pt

_FLOAT_COLUMNS_MAX: Final = 2
"""Columns of floats up to which each combination of NaNs is tried; beyond it all groups are read."""

_NAN: Final = float("nan")


def groups_that_may_match(
    fragment: ds.ParquetFileFragment, where: pc.Expression, bound: pa.Schema, present: pa.Schema
) -> list[int]:
    """Return the row groups whose statistics do not rule out a match.

    Args:
        fragment: the file, with what is known about all of its rows.
        where: the condition.
        bound: the condition's columns, with the types that it sees.
        present: the columns that the file has and those with a known value. Statistics have the
            file's types: a column that the condition sees otherwise rules nothing out.
    """
    everything = [group.id for group in fragment.row_groups]
    floats = [field.name for field in bound if pt.is_floating(field.type)]
    if (
        not all(
            field.name in present.names and present.field(field.name).type == field.type for field in bound
        )
        or any(_has_floats_inside(field.type) for field in bound)
        or len(floats) > _FLOAT_COLUMNS_MAX
    ):
        return everything
    try:
        found = _matching(fragment, where, present)
        for other in _with_nan(fragment, floats):
            found |= _matching(other, where, present)
    except pa.ArrowException:
        # A constant part of the condition cannot be worked out; the rows, if any, will tell.
        return everything
    return sorted(found)


def _matching(fragment: ds.ParquetFileFragment, where: pc.Expression, present: pa.Schema) -> set[int]:
    return {group.id for group in fragment.subset(filter=where, schema=present).row_groups}


def _with_nan(fragment: ds.ParquetFileFragment, floats: list[str]) -> Iterator[ds.ParquetFileFragment]:
    """Yield the file as it were with NaN in one or several columns; nothing is read again."""
    if not floats:
        return
    footer = pa.BufferOutputStream()
    fragment.metadata.write_metadata_file(footer)
    for count in range(1, len(floats) + 1):
        for names in itertools.combinations(floats, count):
            known = fragment.partition_expression
            for name in names:
                known = known & (pc.field(name) == pc.scalar(_NAN))
            yield ds.ParquetFileFormat().make_fragment(
                pa.BufferReader(footer.getvalue()), partition_expression=known
            )


def _has_floats_inside(kind: pa.DataType) -> bool:
    if not pt.is_nested(kind):
        return False
    inner = (kind.field(place).type for place in range(kind.num_fields))
    return any(pt.is_floating(each) or _has_floats_inside(each) for each in inner)
