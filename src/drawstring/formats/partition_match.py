"""Which partitions may hold rows that a condition keeps, by the values that their paths tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import fs

from drawstring.base.errors import InvalidError


def partitions_that_match(
    where: pc.Expression, schema: pa.Schema, partitions: Sequence[Mapping[str, Any]]
) -> list[bool]:
    """Tell for each partition whether the condition can be true in it.

    Arrow simplifies the condition with what a fragment guarantees; nothing is read.

    Args:
        where: a condition on any columns.
        schema: the table's columns.
        partitions: value by column of each partition, for the columns whose value is known.

    Raises:
        InvalidError: the condition fails on the values of a partition.
    """
    guarantees = [guarantee(typed(values, schema)) for values in partitions]
    try:
        return ranges_that_match(where, schema, guarantees)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidError(f"The condition {where} fails on a partition: {error}; change it.") from error


def ranges_that_match(where: pc.Expression, schema: pa.Schema, ranges: Sequence[pc.Expression]) -> list[bool]:
    """Tell for each of several conditions whether another one can be true where it holds.

    Args:
        where: a condition on any columns.
        schema: the table's columns.
        ranges: what is known: comparisons of columns with values, and conjunctions of these.
    """
    files = ds.ParquetFileFormat()
    nowhere = fs.LocalFileSystem()
    fragments = [
        files.make_fragment(str(number), nowhere, partition_expression=known)
        for number, known in enumerate(ranges)
    ]
    dataset = ds.FileSystemDataset(fragments, schema, files, nowhere)
    kept = {fragment.path for fragment in dataset.get_fragments(filter=where)}
    return [str(number) in kept for number in range(len(ranges))]


def typed(values: Mapping[str, Any], schema: pa.Schema) -> dict[str, pa.Scalar]:
    """Return values as scalars of their columns' types; columns that the schema lacks are left out.

    Args:
        values: Python value by column.
        schema: the table's columns.
    """
    return {
        name: pa.scalar(value, schema.field(name).type)
        for name, value in values.items()
        if name in schema.names
    }


def guarantee(constants: Mapping[str, pa.Scalar]) -> pc.Expression:
    """Return what known values say about every row, as Arrow simplifies conditions with.

    Args:
        constants: value by column.
    """
    said = pc.scalar(True)
    for name, value in constants.items():
        column = pc.field(name)
        said = said & (column == value if value.is_valid else column.is_null())
    return said
