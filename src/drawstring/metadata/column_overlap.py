"""Measure how far the files of a partition overlap in a column: how many of them a query for one value reads.

files      1 to 5, 3 to 7, 7 to 8
values     1  3  5  7  8      the bounds of the files
overlap    1  2  2  2  1      files whose bounds hold the value
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import InvalidError
from drawstring.metadata.column_ranges import COLUMN_STATS, ColumnRanges, column_ranges, has_ranges
from drawstring.metadata.table import MetadataTable
from drawstring.model.files import FileSlice

Array: TypeAlias = "np.ndarray[Any, Any]"
_PERCENTILES: Final = (50, 75, 95, 99)


@dataclass(frozen=True, slots=True)
class ColumnOverlap:
    """The overlap of the files of a partition in a column.

    Attributes:
        partition: partition path.
        column: the column.
        average: files that hold a value, on average over the bounds of the files.
        greatest: files that hold a value, at most.
        files: file slices in the partition.
        percentiles: files that hold a value, for 50, 75, 95 and 99 percent of the bounds at most.
        values: distinct bounds.
    """

    partition: str
    column: str
    average: float
    greatest: int
    files: int
    percentiles: tuple[int, ...]
    values: int


def column_overlaps(
    table: MetadataTable, slices: Sequence[FileSlice], columns: Sequence[pa.Field]
) -> list[ColumnOverlap]:
    """Return the overlaps, by column and average.

    Args:
        table: the metadata table.
        slices: the newest file slices.
        columns: the columns; those whose bounds have no order are left out.

    Raises:
        InvalidError: the metadata table has no statistics of columns.
    """
    if COLUMN_STATS not in (*table.ready, *table.building):
        raise InvalidError(
            "The table has no statistics of columns, from which overlaps are counted. Build them with"
            " table.indexes.create('column_stats'), `drawstring indexes create PATH column_stats`, or a write"
            " with hoodie.metadata.index.column.stats.enable=true."
        )
    table.check_has(COLUMN_STATS)
    partitions = {
        each.base.status.path.rpartition("/")[2]: each.partition for each in slices if each.base is not None
    }
    by_name = column_ranges(table, COLUMN_STATS, [each for each in columns if has_ranges(each)])
    counts = Counter(each.partition for each in slices)
    found = []
    for name, ranges in by_name.items():
        of_file = pa.array([partitions.get(file) for file in ranges.names.to_pylist()], pa.string())
        for path, files in _by_partition(ranges, of_file):
            found.append(_described(path, name, _overlap(ranges, files), counts[path]))
    return sorted(found, key=lambda each: (each.column, each.average))


def _by_partition(ranges: ColumnRanges, of_file: pa.StringArray) -> Iterator[tuple[str, pa.Array]]:
    """Yield the partitions, with the numbers of their files that have bounds."""
    is_known = pc.and_(ranges.least.is_valid(), ranges.greatest.is_valid())
    numbers = pc.indices_nonzero(pc.and_(is_known, of_file.is_valid()))
    coded = of_file.dictionary_encode()
    codes = coded.indices.take(numbers)
    ordered = numbers.take(pc.sort_indices(codes))
    ends = np.cumsum(np.bincount(codes.to_numpy(), minlength=len(coded.dictionary)))
    for path, start, end in zip(coded.dictionary.to_pylist(), [0, *ends], ends, strict=False):
        if end > start:
            yield path, ordered[start:end]


def _overlap(ranges: ColumnRanges, files: pa.Array) -> Array:
    """Return how many of some files hold each of their bounds, in the order of these."""
    values = pa.concat_arrays([ranges.least.take(files), ranges.greatest.take(files)])
    ranks = pc.rank(values, tiebreaker="dense").to_numpy()
    least, greatest = np.split(ranks, 2)
    every = np.unique(ranks)
    begun = np.searchsorted(np.sort(least), every, side="right")
    ended = np.searchsorted(np.sort(greatest), every, side="left")
    return np.asarray(begun - ended)


def _described(partition: str, column: str, overlap: Array, files: int) -> ColumnOverlap:
    ordered = np.sort(overlap)
    places = [int(share / 100 * (len(ordered) - 1)) for share in _PERCENTILES]
    return ColumnOverlap(
        partition,
        column,
        float(overlap.mean()),
        int(ordered[-1]),
        files,
        tuple(int(ordered[place]) for place in places),
        len(ordered),
    )
