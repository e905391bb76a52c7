"""Pruning of Parquet row groups by a predicate and their min/max statistics.

Writers ignore NaN in statistics, but a predicate may be true for NaN. So a row group that its statistics
exclude is read nevertheless if the predicate can be true with NaN:

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
"""Number of float columns up to which each combination of NaNs is tested; with more, all groups are read."""

_NAN: Final = float("nan")


def groups_that_may_match(
    fragment: ds.ParquetFileFragment, where: pc.Expression, bound: pa.Schema, present: pa.Schema
) -> list[int]:
    """Return the row groups whose statistics do not exclude a match.

    Args:
        fragment: the file, with a guarantee that holds for all of its rows.
        where: the predicate.
        bound: the predicate's columns, with their types in its evaluation.
        present: the columns of the file and those with a known value. Statistics have the file's types: a
            column with another type in the predicate excludes nothing.
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
        groups = _matching(fragment, where, present)
        for other in _with_nan(fragment, floats):
            groups |= _matching(other, where, present)
    except pa.ArrowException:
        # A constant part of the predicate fails; evaluating it on rows, if there are any, reports the error.
        return everything
    return sorted(groups)


def _matching(fragment: ds.ParquetFileFragment, where: pc.Expression, present: pa.Schema) -> set[int]:
    return {group.id for group in fragment.subset(filter=where, schema=present).row_groups}


def _with_nan(fragment: ds.ParquetFileFragment, floats: list[str]) -> Iterator[ds.ParquetFileFragment]:
    """Yield fragments that assume NaN in one or several columns; nothing is read again."""
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
