"""Decide in which files and partitions a predicate can be true, by regions between its literals.

Arrow does not expose the structure of an expression, but it can decide whether one can be true in a given
range of a column (`ranges_that_match`). So each column is cut at the literals of the condition, and Arrow
decides once for each region, however many files there are:

    x >= 5 AND x < 9      below 5 | 5 | between | 9 | above 9 | null       can be true in: 5, between
    file with 1 <= x <= 7 ^^^^^^^^^^^^^^^^^^^^^^^^                         may match
    file with 9 <= x                                ^^^^^^^^^^^            cannot

With several columns the regions are the cells of a grid (`ConditionRegions`). A missing literal does no harm:
a larger region can only match more. Statistics leave out NaN, so every column of floats may be NaN as well.

`partitions_that_match` prunes partitions by the values of their partition columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise, product
from math import prod
from operator import and_
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import fs
from pyarrow import types as pt

from drawstring.base.errors import InvalidError
from drawstring.schema.fields import constants_of, field_path, leaf_type


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
    guarantees = [guarantee(constants_of(values, schema)) for values in partitions]
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


Array: TypeAlias = "np.ndarray[Any, Any]"

_CUTS_MAX: Final = 64
_CELLS_MAX: Final = 1024
"""Number of cells of a grid; columns with the most literals are left out until it is small enough."""

_TEXT: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')
_NUMBER: Final = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.])")
_INTEGER: Final = re.compile(r"(?<![\w.])-?\d+(?![\w.])")
_TIME: Final = re.compile(r"\d{4,}-\d\d-\d\d(?: \d\d:\d\d:\d\d(?:\.\d+)?)?")
_ESCAPE: Final = re.compile(r"\\(.)")
_NAN: Final = pa.scalar(float("nan"))


def literals_in(text: str, kind: pa.DataType) -> pa.Array:
    """Return the distinct literals of a type in the text of an expression, sorted; some may be missing.

    Args:
        text: the expression as Arrow prints it.
        kind: a type of single values.
    """
    if pt.is_string(kind):
        found: Iterable[Any] = (_ESCAPE.sub(r"\1", match[1]) for match in _TEXT.finditer(text))
    elif pt.is_boolean(kind):
        found = (False, True)
    elif pt.is_integer(kind):
        found = (int(digits) for digits in _INTEGER.findall(text))
    elif pt.is_floating(kind) or pt.is_decimal(kind):
        found = _NUMBER.findall(text)
    elif pt.is_date32(kind) or pt.is_timestamp(kind):
        found = _TIME.findall(text)
    else:
        found = ()
    values = {value for each in found if (value := _typed(each, kind)) is not None}
    return pa.array(sorted(values), kind)


def _typed(literal: Any, kind: pa.DataType) -> Any:
    """Return a literal as a Python value that fits a type; None if it does not."""
    try:
        if not isinstance(literal, str) or pt.is_string(kind):
            return pa.scalar(literal, kind).as_py()
        if pt.is_timestamp(kind):
            # Arrow prints times with a zone in UTC.
            return pa.scalar(literal).cast(pa.timestamp(kind.unit)).cast(kind).as_py()
        return pa.scalar(literal).cast(kind).as_py()
    except (pa.ArrowException, ValueError, OverflowError):
        return None


@dataclass(frozen=True, slots=True)
class Axis:
    """A column, cut at some values into regions, which are numbered: below the first, the first, ..., null.

    Attributes:
        name: the column; a field of structs by its names with dots.
        cuts: distinct values, sorted.
        path: the names that lead to a field of structs; empty for a column.
    """

    name: str
    cuts: pa.Array
    path: tuple[str, ...] = ()

    @staticmethod
    def of(where: pc.Expression, schema: pa.Schema, column: str) -> Axis:
        """Return the axis of a column, cut at the literals of a condition, or at some if there are many."""
        cuts = literals_in(str(where), leaf_type(schema, column) or pa.null())
        if len(cuts) > _CUTS_MAX:
            cuts = cuts.take(pa.array(np.linspace(0, len(cuts) - 1, _CUTS_MAX).astype(np.int64)))
        return Axis(column, cuts, tuple(field_path(schema, column)))

    @property
    def is_floating(self) -> bool:
        """Whether the column may be NaN."""
        return bool(pt.is_floating(self.cuts.type))

    @property
    def null(self) -> int:
        """The number of the region of null; that of NaN follows."""
        return 2 * len(self.cuts) + 1

    @property
    def size(self) -> int:
        """The number of regions."""
        return self.null + (2 if self.is_floating else 1)

    def regions(self) -> list[pc.Expression]:
        """Return the regions as guarantees, by number."""
        column = pc.field(*self.path) if self.path else pc.field(self.name)
        if not len(self.cuts):
            known = [column.is_valid()]
        else:
            points = [_point(column, cut) for cut in self.cuts]
            between = [(column > low) & (column < high) for low, high in pairwise(self.cuts)]
            gaps = [column < self.cuts[0], *between, column > self.cuts[-1]]
            known = [gaps[0], *(each for pair in zip(points, gaps[1:], strict=True) for each in pair)]
        nan = [column == _NAN.cast(self.cuts.type)] if self.is_floating else []
        return [*known, column.is_null(), *nan]

    def places(self, values: pa.Array) -> Array:
        """Return the numbers of the regions of some values of the column's type; any for null."""
        below = np.zeros(len(values), np.int64)
        for cut in self.cuts:
            below += _is_true(pc.greater(values, cut))
            below += _is_true(pc.greater_equal(values, cut))
        return below


def _point(column: pc.Expression, cut: pa.Scalar) -> pc.Expression:
    """Return the guarantee that a column equals a value; -0.0 equals 0.0, but is another value."""
    is_zero = pt.is_floating(cut.type) and cut.as_py() == 0
    return (column >= cut) & (column <= cut) if is_zero else column == cut


def _is_true(values: pa.Array) -> Array:
    return np.asarray(values.fill_null(False).to_numpy(zero_copy_only=False))


@dataclass(frozen=True, slots=True)
class RegionSpan:
    """The regions of an axis that the values in each of several files may be in.

    Attributes:
        first, last: the regions of the least and the greatest value; `first` is greater if there is none.
        has_null: whether there may be nulls.
    """

    first: Array
    last: Array
    has_null: Array

    @staticmethod
    def anywhere(axis: Axis, count: int) -> RegionSpan:
        """Return the spread of files of which nothing is known."""
        return RegionSpan(
            np.zeros(count, np.int64), np.full(count, axis.null - 1, np.int64), np.ones(count, np.bool_)
        )

    @staticmethod
    def between(
        axis: Axis, least: pa.Array, greatest: pa.Array, is_null: Array, has_null: Array
    ) -> RegionSpan:
        """Return the spread of files by the bounds of their values.

        Args:
            axis: the column.
            least, greatest: bounds, of the column's type; null if unknown.
            is_null: whether all values are null.
            has_null: whether there may be nulls.
        """
        first, last = axis.places(least), axis.places(greatest)
        first[_is_true(least.is_null())] = 0
        last[_is_true(greatest.is_null())] = axis.null - 1
        first[is_null], last[is_null] = 1, 0
        return RegionSpan(first, last, has_null)

    def take(self, rows: Array) -> RegionSpan:
        """Return the spreads of some files."""
        return RegionSpan(self.first[rows], self.last[rows], self.has_null[rows])

    def over(self, groups: Array, count: int) -> RegionSpan:
        """Return the spreads of groups of files together; a group has a number below `count`."""
        top = np.iinfo(np.int64).max
        first, last, has_null = np.full(count, top), np.full(count, -1, np.int64), np.zeros(count, np.bool_)
        is_empty = self.first > self.last
        np.minimum.at(first, groups, np.where(is_empty, top, self.first))
        np.maximum.at(last, groups, np.where(is_empty, -1, self.last))
        np.logical_or.at(has_null, groups, self.has_null)
        return RegionSpan(np.where(first == top, last + 1, first), last, has_null)


@dataclass(frozen=True, slots=True)
class ConditionRegions:
    """The cells of a grid in which a condition can be true.

    Attributes:
        axes: the columns.
        can_match: for each cell, whether the condition can be true in it.
    """

    axes: tuple[Axis, ...]
    can_match: Array

    @staticmethod
    def of(where: pc.Expression, schema: pa.Schema, columns: Sequence[str]) -> ConditionRegions | None:
        """Return the regions of a condition; None if no column of the given ones can rule anything out.

        Args:
            where: the condition.
            schema: the table's columns.
            columns: those to distinguish, of types of single values; fields of structs with dots.
        """
        axes = [Axis.of(where, schema, name) for name in columns]
        while prod(axis.size for axis in axes) > _CELLS_MAX:
            axes.remove(max(axes, key=lambda axis: axis.size))
        if not axes:
            return None
        cells = [reduce(and_, cell) for cell in product(*(axis.regions() for axis in axes))]
        try:
            matches = ranges_that_match(where, schema, cells)
        except pa.ArrowException:
            return None  # the condition fails on a value; evaluating it on rows reports the error
        if all(matches):
            return None
        return ConditionRegions(tuple(axes), np.reshape(matches, [axis.size for axis in axes]))

    def may_match(self, spreads: Mapping[str, RegionSpan]) -> Array:
        """Return for each of several files whether a row of it may match.

        Args:
            spreads: those of each axis, by column.
        """
        parts = [spreads[axis.name] for axis in self.axes]
        facts = [array for part in parts for array in (part.first, part.last, part.has_null)]
        boxes, codes = np.unique(np.stack(facts).astype(np.int64), axis=1, return_inverse=True)
        verdicts = np.array([self._may_match(box.tolist()) for box in boxes.T], np.bool_)
        return np.asarray(verdicts[codes.ravel()])

    def _may_match(self, box: Sequence[int]) -> bool:
        """Return whether a cell of a box can match; a box has first, last and null of each axis."""
        parts = (box[at : at + 3] for at in range(0, len(box), 3))
        within = [_numbers(axis, *part) for axis, part in zip(self.axes, parts, strict=True)]
        return bool(self.can_match[np.ix_(*within)].any())


def values_that_may_match(
    where: pc.Expression, schema: pa.Schema, columns: Mapping[str, pa.Array]
) -> Array | None:
    """Return for each row of values whether a condition may be true; None if nothing can be ruled out.

    Args:
        where: the condition, on any columns.
        schema: the table's columns.
        columns: the values of some columns with types of single values, in the columns' types; null is any.
    """
    regions = ConditionRegions.of(where, schema, list(columns))
    if regions is None:
        return None
    spreads = {}
    for axis in regions.axes:
        values = columns[axis.name]
        places, is_any = axis.places(values), _is_true(values.is_null())
        spreads[axis.name] = RegionSpan(
            np.where(is_any, 0, places), np.where(is_any, axis.null - 1, places), is_any
        )
    return regions.may_match(spreads)


def _numbers(axis: Axis, first: int, last: int, has_null: int) -> Array:
    regions = [*range(first, last + 1), *([axis.null] if has_null else [])]
    # A file whose values are all null has no NaN.
    nan = [axis.null + 1] if axis.is_floating and first <= last else []
    return np.array([*regions, *nan], np.int64)
