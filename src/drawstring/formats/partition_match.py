"""Partition pruning by a predicate and the values of partition columns."""

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
    """Return, for each partition, whether a predicate can be true in it.

    Arrow simplifies the predicate with the guarantee of a fragment; nothing is read.

    Args:
        where: a predicate on any columns.
        schema: the table's columns.
        partitions: for each partition, the values of the columns with a known value.

    Raises:
        InvalidError: the predicate fails on the values of a partition.
    """
    guarantees = [guarantee(typed(values, schema)) for values in partitions]
    try:
        return ranges_that_match(where, schema, guarantees)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidError(f"The condition {where} fails on a partition ({error}). Change it.") from error


def ranges_that_match(where: pc.Expression, schema: pa.Schema, ranges: Sequence[pc.Expression]) -> list[bool]:
    """Return, for each of several guarantees, whether a predicate can be true where it holds.

    Args:
        where: a predicate on any columns.
        schema: the table's columns.
        ranges: guarantees: comparisons of columns with values, and conjunctions of these.
    """
    files = ds.ParquetFileFormat()
    nowhere = fs.LocalFileSystem()
    fragments = [
        files.make_fragment(str(number), nowhere, partition_expression=known)
        for number, known in enumerate(ranges)
    ]
    dataset = ds.FileSystemDataset(fragments, schema, files, nowhere)
    matching = {fragment.path for fragment in dataset.get_fragments(filter=where)}
    return [str(number) in matching for number in range(len(ranges))]


def typed(values: Mapping[str, Any], schema: pa.Schema) -> dict[str, pa.Scalar]:
    """Return values as scalars of their columns' types; columns that the schema lacks are omitted.

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
    """Return known values as an expression that holds for every row, for Arrow's simplification.

    Args:
        constants: value by column.
    """
    expression = pc.scalar(True)
    for name, value in constants.items():
        column = pc.field(name)
        expression = expression & (column == value if value.is_valid else column.is_null())
    return expression
