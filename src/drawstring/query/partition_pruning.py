"""Partition pruning: which partitions a condition rules out, by their paths.

Where a path tells the value of a partition column (`keygen.path_values`), it also stands for the column
in the rows: a global index may leave an older one in the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import UnsupportedError
from drawstring.config.table.config import TableConfig
from drawstring.formats.partition_match import partitions_that_match
from drawstring.keygen.path_values import path_values


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition to read.

    Attributes:
        path: partition path.
        values: value by column, for the columns whose value the path tells.
    """

    path: str
    values: dict[str, Any] = field(default_factory=dict)


def partitions_to_read(
    paths: Sequence[str], config: TableConfig, schema: pa.Schema, where: pc.Expression | None
) -> list[Partition]:
    """Return the partitions that may hold rows of a query.

    Args:
        paths: all partition paths.
        config: the table.
        schema: its columns.
        where: the condition; None for all rows.
    """
    partitions = [Partition(path, partition_values(path, config, schema)) for path in paths]
    if config.drop_partition_columns:
        _check_told(partitions, config)
    if where is None or not any(partition.values for partition in partitions):
        return partitions
    kept = partitions_that_match(where, schema, [partition.values for partition in partitions])
    return [partition for partition, keep in zip(partitions, kept, strict=True) if keep]


def partition_values(path: str, config: TableConfig, schema: pa.Schema) -> dict[str, Any]:
    """Return the values of the partition columns that a path tells; what merging looks at stays as stored.

    Args:
        path: partition path.
        config: the table.
        schema: its columns.
    """
    merged_by = {*config.record_key_fields, *config.ordering_fields}
    values = path_values(path, config, schema)
    return {
        name: value
        for name, value in values.items()
        if name not in merged_by and (value is not None or config.drop_partition_columns)
    }


def _check_told(partitions: Sequence[Partition], config: TableConfig) -> None:
    """Check that paths tell the partition columns, which the files lack.

    Raises:
        UnsupportedError: one does not.
    """
    for partition in partitions:
        for name in config.partition_fields:
            if name not in partition.values:
                raise UnsupportedError(
                    f"the files lack partition column {name}, and its value cannot be told from"
                    f" the path {partition.path!r}: reading the table is not available yet"
                )
