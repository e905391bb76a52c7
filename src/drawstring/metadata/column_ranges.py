"""The ranges of columns in files and partitions, from the statistics of the metadata table.

A range is used only if it certainly holds, whoever wrote it:

no bounds       nothing is known: Hudi counts all values as null where a footer of parquet-mr says nothing,
                as of texts over 4 KiB. Nulls are counted by drawstring, in log files, of expressions
texts           if nulls are counted in a base file, a row group without bounds may be among them
milliseconds    Hudi before 1.1 called them microseconds in files (`schema.timestamp_units`)
other types     bounds of a type that is not ordered as the table's column is (a number that became text)
floats          Hudi writes bounds of 0 for a row group with NaN: base files with 0 in the range are read
texts           Java compares UTF-16 units, Arrow UTF-8 bytes: they differ beyond U+D7FF
partitions      bounds are combined from those of files, of which some may have had none: only types whose
                bounds writers never leave out, unlike those of old timestamps of 96 bits and old decimals

Statistics by drawstring say that their bounds are tight, which Hudi says of partitions alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.formats.predicate_bounds import Axis, RegionSpan
from drawstring.merge.record_version import combined_chunks
from drawstring.metadata.column_stats_record import MAX, MIN, bounds_as
from drawstring.metadata.merging import is_true
from drawstring.metadata.record_tables import looked_up
from drawstring.metadata.table import (
    KEY,
    NAME_HASH_CHARS,
    STATISTICS,
    Lookup,
    MetadataTable,
    name_hash,
    partition_hash,
)
from drawstring.schema.fields import META_COLUMNS
from drawstring.schema.timestamp_units import has_millis

Array: TypeAlias = "np.ndarray[Any, Any]"

COLUMN_STATS: Final = "column_stats"
PARTITION_STATS: Final = "partition_stats"

_HIGH_UNITS: Final = "[\ue000-\uffff]"
_SUPPLEMENTARY: Final = "[\U00010000-\U0010ffff]"


def has_ranges(column: pa.Field) -> bool:
    """Return whether statistics of a column can be used."""
    kind = column.type
    return bool(
        pt.is_string(kind)
        or pt.is_boolean(kind)
        or pt.is_signed_integer(kind)
        or pt.is_floating(kind)
        or pt.is_decimal128(kind)
        or pt.is_date32(kind)
        or pt.is_timestamp(kind)
    )


def has_partition_ranges(column: pa.Field) -> bool:
    """Return whether statistics of partitions of a column can be used."""
    kind = column.type
    return bool(pt.is_boolean(kind) or pt.is_signed_integer(kind) or pt.is_date32(kind))


@dataclass(frozen=True, slots=True)
class ColumnRanges:
    """The ranges of one column.

    Attributes:
        partitions: hashes of partition paths, as keys have them.
        names: names of files, or of partitions in statistics of partitions.
        least, greatest: bounds as values of the column's type; null if unknown.
        is_null: whether all values are null.
        has_null: whether there may be nulls.
    """

    partitions: pa.Array
    names: pa.Array
    least: pa.Array
    greatest: pa.Array
    is_null: Array
    has_null: Array

    def spread(self, axis: Axis) -> RegionSpan:
        """Return the regions of the column's axis that the values may be in."""
        return RegionSpan.between(axis, self.least, self.greatest, self.is_null, self.has_null)


def column_ranges(
    table: MetadataTable, partition: str, columns: Sequence[pa.Field], paths: Sequence[str] | None = None
) -> dict[str, ColumnRanges]:
    """Return the ranges of some columns.

    Args:
        table: the metadata table.
        partition: `column_stats`, `partition_stats` or an expression index of ranges.
        columns: the columns, with the types of the table.
        paths: partition paths of the table to look up; None for all.

    Raises:
        MetadataTableError: a file is missing or damaged.
        UnsupportedError: this release does not know the statistics.
    """
    hashes = [""] if paths is None else [partition_hash(path) for path in paths]
    prefixes = (f"{name_hash(column.name)}{end}" for column in columns for end in hashes)
    rows = looked_up(table, partition, Lookup(prefixes=tuple(prefixes)))
    statistics = combined_chunks(rows.column(STATISTICS))
    is_live = is_true(statistics.is_valid()) & ~is_true(statistics.field("isDeleted"))
    ranges = {}
    for column in columns:
        of_column = is_true(pc.equal(statistics.field("columnName"), column.name))
        chosen = pa.array(is_live & of_column)
        keys = combined_chunks(rows.column(KEY)).filter(chosen)
        described = statistics.filter(chosen)
        if partition not in (COLUMN_STATS, PARTITION_STATS):
            described = _with_nulls_counted(described)
        ranges[column.name] = ranges_of(keys, described, column, partition)
    return ranges


def ranges_of(keys: pa.Array, statistics: pa.StructArray, column: pa.Field, partition: str) -> ColumnRanges:
    """Return the ranges that certainly hold by statistics of one column.

    Args:
        keys: keys of the records.
        statistics: their contents.
        column: the column, with the type of the table.
        partition: as of `column_ranges`.
    """
    is_of_partition, is_exact = partition == PARTITION_STATS, _are_exact(statistics, partition)
    least, greatest = (_usable(bounds_as(statistics, name, column.type), name) for name in (MIN, MAX))
    if pt.is_floating(column.type):
        holds = ~may_hide_values(statistics.field("fileName"), least, greatest)
        least, greatest = (
            pc.if_else(pa.array(holds), each, pa.scalar(None, column.type)) for each in (least, greatest)
        )
    values, nulls = (_counts(statistics.field(name)) for name in ("valueCount", "nullCount"))
    if pt.is_string(column.type) or has_millis(column.type):
        holds = _are_own(statistics) if has_millis(column.type) else is_exact | (nulls == 0)
        least, greatest = (
            pc.if_else(pa.array(holds), each, pa.scalar(None, column.type)) for each in (least, greatest)
        )
    is_bare = ~is_true(statistics.field(MIN).is_valid()) & ~is_true(statistics.field(MAX).is_valid())
    is_null = is_bare & (nulls == values) & (values > 0) & is_exact
    if is_of_partition or column.name in META_COLUMNS:
        is_null[:] = False
    has_null = (nulls != 0) | (values <= 0)
    if is_of_partition:
        has_null[:] = True  # files that lack the column have no statistics of it
    start = NAME_HASH_CHARS
    return ColumnRanges(
        pc.utf8_slice_codeunits(keys, start, start + NAME_HASH_CHARS),
        statistics.field("fileName"),
        least,
        greatest,
        is_null,
        has_null,
    )


def _are_exact(statistics: pa.StructArray, partition: str) -> Array:
    """Return which statistics were made of values, and not of what a footer leaves out."""
    if partition not in (COLUMN_STATS, PARTITION_STATS):
        return np.ones(len(statistics), np.bool_)
    is_log = pc.starts_with(statistics.field("fileName"), ".")
    return _are_own(statistics) | is_true(is_log)


def _are_own(statistics: pa.StructArray) -> Array:
    return is_true(statistics.field("isTightBound"))


def may_hide_values(names: pa.Array, least: pa.Array, greatest: pa.Array) -> Array:
    """Return which files may have floats beyond their bounds.

    The bounds of a row group with NaN in a footer of parquet-mr are 0 in Hudi 1.2.0, whatever its values.

    Args:
        names: names of the files; those of log files begin with a dot.
        least, greatest: the bounds, maybe null.
    """
    has_zero = pc.and_(pc.less_equal(least, 0), pc.greater_equal(greatest, 0)).fill_null(False)
    return is_true(has_zero) & ~is_true(pc.starts_with(names, "."))


def _usable(bounds: pa.Array, name: str) -> pa.Array:
    """Return bounds, with null instead of those that may not hold in Arrow's order of values."""
    if pt.is_string(bounds.type):
        other = pc.match_substring_regex(bounds, _SUPPLEMENTARY if name == MIN else _HIGH_UNITS)
    elif pt.is_floating(bounds.type):
        other = pc.is_nan(bounds)
    else:
        return bounds
    return pc.if_else(other, pa.scalar(None, bounds.type), bounds)


def _with_nulls_counted(statistics: pa.StructArray) -> pa.StructArray:
    """Return statistics of an expression, whose values are counted without nulls, as those of a column."""
    columns = dict(zip(statistics.type.names, statistics.flatten(), strict=True))
    columns["valueCount"] = pc.add(columns["valueCount"], columns["nullCount"])
    return pa.StructArray.from_arrays(list(columns.values()), fields=list(statistics.type))


def _counts(counts: pa.Array) -> Array:
    """Return counts, -1 where they are unknown."""
    return np.asarray(counts.fill_null(-1).to_numpy(zero_copy_only=False))
