"""Partition pruning: the partitions that can hold rows of a query, by their partition paths.

Where a path contains the value of a partition column (`keygen.path_values`), this value also replaces the
column in the rows: under a global index the file may hold an older value.
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
        values: value by column, for the columns whose value the path contains.
    """

    path: str
    values: dict[str, Any] = field(default_factory=dict)


def partitions_to_read(
    paths: Sequence[str], config: TableConfig, schema: pa.Schema, where: pc.Expression | None
) -> list[Partition]:
    """Return the partitions that can hold rows of a query.

    Args:
        paths: all partition paths.
        config: table configuration.
        schema: the table's columns.
        where: the condition; None for all rows.
    """
    partitions = [Partition(path, partition_values(path, config, schema)) for path in paths]
    if config.drop_partition_columns:
        _check_values(partitions, config)
    if where is None or not any(partition.values for partition in partitions):
        return partitions
    matches = partitions_that_match(where, schema, [partition.values for partition in partitions])
    return [partition for partition, is_match in zip(partitions, matches, strict=True) if is_match]


def partition_values(path: str, config: TableConfig, schema: pa.Schema) -> dict[str, Any]:
    """Return the values of the partition columns that a partition path contains.

    Record key columns and ordering fields are left out: merging needs them as they are stored.

    Args:
        path: partition path.
        config: table configuration.
        schema: the table's columns.
    """
    merge_columns = {*config.record_key_fields, *config.ordering_fields}
    values = path_values(path, config, schema)
    return {
        name: value
        for name, value in values.items()
        if name not in merge_columns and (value is not None or config.drop_partition_columns)
    }


def _check_values(partitions: Sequence[Partition], config: TableConfig) -> None:
    """Check that the paths contain the values of the partition columns, which the files lack.

    Raises:
        UnsupportedError: a path lacks a value.
    """
    for partition in partitions:
        for name in config.partition_fields:
            if name not in partition.values:
                raise UnsupportedError(
                    f"The files lack partition column {name}, and the partition path {partition.path!r} does"
                    " not contain its value. This release cannot read such a table."
                )
