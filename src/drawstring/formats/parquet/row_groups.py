"""Pruning of Parquet row groups by a predicate and their min/max statistics.

Most writers ignore NaN in statistics, but a predicate may be true for NaN. So a row group that its statistics
exclude is read nevertheless if it may have NaN and the predicate can be true with it:

    groups = groups(statistics) + groups(statistics, column is NaN), for each column of floats

parquet-mr, from 1.10 to 1.16, compares by `Double.compare`, to which NaN is the greatest value: without it
among the bounds of a row group, the row group has none. Before it was left out, and later it may be again.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import types as pt

_FLOAT_COLUMNS_MAX: Final = 2
"""Number of float columns up to which each combination of NaNs is tested; with more, all groups are read."""

_NAN: Final = float("nan")

_BOUNDS_WITH_NAN: Final = re.compile(r"parquet-mr version 1\.1[0-6]\.\d")
"""Beginning of the name of the writers whose bounds of floats tell of NaN."""


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
    floats = _with_groups(fragment, (field.name for field in bound if pt.is_floating(field.type)))
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
        for other, among in _with_nan(fragment, floats):
            groups |= _matching(other, where, present) & among
    except pa.ArrowException:
        # A constant part of the predicate fails; evaluating it on rows, if there are any, reports the error.
        return everything
    return sorted(groups)


def _matching(fragment: ds.ParquetFileFragment, where: pc.Expression, present: pa.Schema) -> set[int]:
    return {group.id for group in fragment.subset(filter=where, schema=present).row_groups}


def _with_groups(fragment: ds.ParquetFileFragment, names: Iterable[str]) -> dict[str, set[int]]:
    """Return the row groups in which columns of floats may be NaN; columns without one are omitted."""
    metadata = fragment.metadata
    groups = range(metadata.num_row_groups)
    if _BOUNDS_WITH_NAN.match(metadata.created_by or "") is None:
        return {name: set(groups) for name in names}
    found = {
        name: {group for group in groups if _may_have_nan(metadata.row_group(group), name)} for name in names
    }
    return {name: among for name, among in found.items() if among}


def _may_have_nan(group: pq.RowGroupMetaData, name: str) -> bool:
    """Return whether the bounds of a column, if NaN counts in them, do not exclude NaN."""
    for at in range(group.num_columns):
        chunk = group.column(at)
        if chunk.path_in_schema == name:
            stored = chunk.statistics
            if stored is None or not stored.has_min_max:
                return True
            return bool(stored.min != stored.min or stored.max != stored.max)
    return True


def _with_nan(
    fragment: ds.ParquetFileFragment, floats: Mapping[str, set[int]]
) -> Iterator[tuple[ds.ParquetFileFragment, set[int]]]:
    """Yield fragments that assume NaN in one or several columns, and their row groups that may have it.

    Nothing is read again.
    """
    if not floats:
        return
    footer = pa.BufferOutputStream()
    fragment.metadata.write_metadata_file(footer)
    for count in range(1, len(floats) + 1):
        for names in itertools.combinations(floats, count):
            known = fragment.partition_expression
            for name in names:
                known = known & (pc.field(name) == pc.scalar(_NAN))
            other = ds.ParquetFileFormat().make_fragment(
                pa.BufferReader(footer.getvalue()), partition_expression=known
            )
            yield other, set.intersection(*(floats[name] for name in names))


def _has_floats_inside(kind: pa.DataType) -> bool:
    if not pt.is_nested(kind):
        return False
    inner = (kind.field(place).type for place in range(kind.num_fields))
    return any(pt.is_floating(each) or _has_floats_inside(each) for each in inner)
