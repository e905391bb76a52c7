"""Partition pruning: which partitions a condition rules out, by their paths.

A path tells the value of a partition column where the text in it can only mean one value: text,
whole numbers, booleans and dates under the SIMPLE and COMPLEX key generators. Where it does, the
value also stands for the column in the rows (a global index may leave an older one in the file).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.base.errors import UnsupportedError
from drawstring.config.table import KeyGeneratorType, TableConfig
from drawstring.formats.partition_match import partitions_that_match
from drawstring.keygen.paths import split_path

_TELLING: Final = (KeyGeneratorType.SIMPLE, KeyGeneratorType.COMPLEX)
_SLASHED_DATES: Final = "hoodie.datasource.write.slash.separated.date.partitioning"


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
    """Return the values of the partition columns that a path tells.

    Args:
        path: partition path.
        config: the table.
        schema: its columns.
    """
    fields = config.partition_fields
    is_slashed = config.properties.get(_SLASHED_DATES, "").lower() == "true"
    if not fields or config.path_generator not in _TELLING or is_slashed:
        return {}
    texts = split_path(path, fields, hive_style=config.hive_style, url_encode=config.url_encode)
    if texts is None:
        return {}
    merged_by = {*config.record_key_fields, *config.ordering_fields}
    values = {}
    for name, text in zip(fields, texts, strict=True):
        if name not in schema.names or name in merged_by:
            continue
        value = None if text is None else _parse(text, schema.field(name).type)
        if value is not None or (text is None and config.drop_partition_columns):
            values[name] = value
    return values


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


def _parse(text: str, kind: pa.DataType) -> Any:
    """Return the value of a text, None where it is not how a value of the type is written."""
    for matches, parse in _PARSERS:
        if matches(kind):
            try:
                return parse(text)
            except (ValueError, KeyError):
                return None
    return None


def _whole_number(text: str) -> int:
    number = int(text)
    if str(number) != text:
        raise ValueError(text)
    return number


_PARSERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[str], Any]], ...] = (
    (pt.is_string, str),
    (pt.is_integer, _whole_number),
    (pt.is_boolean, lambda text: {"true": True, "false": False}[text]),
    (pt.is_date32, date.fromisoformat),
)
