"""Skipping of partitions and file slices that cannot hold rows of a query, by the metadata table.

    partition_stats   ranges of columns in a partition   a partition whose ranges rule the condition out
    record_index and secondary indexes                   the file slices without the keys of the condition
    column_stats      ranges of columns in a file        a file slice whose files all rule it out
    bloom_filters     record keys in a base file         a file slice without log files and without the keys
    expr_index_*      values of an expression in a file  a file slice whose files all rule it out

A row of a slice is a row of its base file or of a log file, as merging left it:

    whole versions win      each file alone has to rule the condition out
    versions are combined   a value is that of any file, or null: all files together have to
    a user's merger         may return anything: slices with log files are read

A log record may change a row so that it matches, so a slice is skipped only if statistics of all its files
are known. Deletes and superseded rows make a slice match less than its files do.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.cached import cached_property
from drawstring.base.errors import InvalidError, MetadataTableError, UnsupportedError
from drawstring.base.told import level_of
from drawstring.config.table.config import MergeMode, TableConfig
from drawstring.formats.condition_regions import Axis, ConditionRegions, Spread
from drawstring.formats.conditions import where_leaves
from drawstring.formats.partition_match import typed
from drawstring.merge.record_mergers import merger_of, takes_partial_blocks
from drawstring.metadata.column_ranges import (
    COLUMN_STATS,
    PARTITION_STATS,
    ColumnRanges,
    column_ranges,
    has_partition_ranges,
    has_ranges,
)
from drawstring.metadata.keys import partition_hash
from drawstring.metadata.metadata_table import MetadataTable
from drawstring.metadata.partitions import BLOOM_FILTERS
from drawstring.query.candidates import Candidate, CandidateColumns
from drawstring.query.expression_skipping import ExpressionCondition, expression_conditions
from drawstring.query.key_lookups import KeyIndexes, KeyLookups, files_with_keys
from drawstring.query.pruning import Partition
from drawstring.schema.fields import leaf_type
from drawstring.storage.protocol import Storage

Array: TypeAlias = "np.ndarray[Any, Any]"
T = TypeVar("T")

_WITH_STATISTICS: Final = "PARQUET"
_PARTITIONS_LOOKED_UP_MAX: Final = 100
"""Number of partitions up to which statistics of each are looked up, instead of those of all."""

_log = logging.getLogger("drawstring")


@dataclass(frozen=True)
class DataSkipping:
    """Rules out partitions and file slices for one condition.

    Attributes:
        metadata: the metadata table.
        storage: the table's files.
        config: the table.
        schema: the columns of the query.
        where: the condition.
        keys: the only record keys that rows of the condition can have; None for any.
        is_current: whether the metadata table describes the rows of the query, and no later ones.
        sql: the condition in SQL; None if it was given as an expression.
    """

    metadata: MetadataTable
    storage: Storage
    config: TableConfig
    schema: pa.Schema
    where: pc.Expression
    keys: Sequence[str] | None
    is_current: bool
    sql: str | None = None

    def rules(self) -> dict[str, Callable[[Sequence[Candidate]], Array]]:
        """Return what rules out file slices, by the name of the index, the cheapest first."""
        rules: dict[str, Callable[[Sequence[Candidate]], Array]] = {}
        for name, values in self._indexes.values.items():
            rules[name] = partial(self._of_keys, name, values)
        rules[COLUMN_STATS] = self.slices
        if self.keys is not None and BLOOM_FILTERS in self.metadata.ready:
            rules[BLOOM_FILTERS] = partial(self._by_filters, self.keys)
        for condition in self._read("expression indexes", self._expressions) or ():
            by = self._by_bounds if condition.index.kind == COLUMN_STATS else self._by_values
            rules[condition.index.name] = partial(by, condition)
        return rules

    @property
    def unused(self) -> Mapping[str, str]:
        """Why indexes that know the keys or values of the condition are not used, in sentences, by index."""
        return self._indexes.unused

    @cached_property
    def _indexes(self) -> KeyIndexes:
        found = self._read("indexes", self._lookups.indexes) if self.is_current else None
        return found or KeyIndexes()

    @property
    def _lookups(self) -> KeyLookups:
        return KeyLookups(self.metadata, self.storage, self.schema, self.where, self.keys)

    def _expressions(self) -> list[ExpressionCondition]:
        table = self.storage, self.config
        return list(expression_conditions(table, self.metadata, self.sql, self.schema))

    def _by_bounds(self, condition: ExpressionCondition, candidates: Sequence[Candidate]) -> Array:
        """Return for each of some file slices whether a row of it may match, by bounds of an expression."""
        everything = np.ones(len(candidates), np.bool_)
        regions = condition.regions() if candidates else None
        if regions is None:
            return everything
        files = CandidateColumns.of(candidates)
        paths = sorted(each.path for each in files.own_partitions)
        few = paths if len(paths) <= _PARTITIONS_LOOKED_UP_MAX else None
        ranges = self._read(condition.index.name, lambda: condition.ranges(self.metadata, few))
        if ranges is None:
            return everything
        spreads = {axis.name: _spread(files, ranges, axis, condition.schema) for axis in regions.axes}
        return self._merged(regions, spreads, files)

    def _by_values(self, condition: ExpressionCondition, candidates: Sequence[Candidate]) -> Array:
        """Return for each of some file slices whether a file of it may have the values of an expression.

        A row has the values of one or several files; a merger of the user may make others of them.
        """
        everything = np.ones(len(candidates), np.bool_)
        texts, index = condition.texts(), condition.index.name
        if texts is None or not candidates:
            return everything
        made = list(candidates)
        files = CandidateColumns.of(made)
        statuses = [status for each in made for status in each.statuses]
        found = self._read(index, lambda: files_with_keys(self.metadata, statuses, texts, index))
        if found is None:
            return everything
        unknown = np.asarray(files.names.is_null())
        any_value = files.has_logs if self.config.merge_mode is MergeMode.CUSTOM else ~everything
        return _any(np.array(found, np.bool_) | unknown, files.groups, len(candidates)) | any_value

    def _by_filters(self, keys: Sequence[str], candidates: Sequence[Candidate]) -> Array:
        """Return for each of some file slices whether it may have keys; log files may have any."""
        matches = np.ones(len(candidates), np.bool_)
        alone = [at for at, each in enumerate(candidates) if not each.logs]
        files = [base.status for at in alone for base in candidates[at].bases]
        if len(files) == len(alone):
            found = self._read(BLOOM_FILTERS, lambda: files_with_keys(self.metadata, files, keys))
            matches[alone] = True if found is None else found
        return matches

    def _of_keys(self, index: str, values: Sequence[str], candidates: Sequence[Candidate]) -> Array:
        """Return for each of some file slices whether it has rows with some keys or values."""
        columns = CandidateColumns.of(candidates)
        partitions = sorted(each.path for each in columns.own_partitions)
        groups = self._read(index, lambda: self._lookups.groups(index, values, partitions))
        if groups is None:
            return np.ones(len(candidates), np.bool_)
        ids = pa.array(sorted({file_id for _, file_id in groups}), pa.string())
        matches = pc.is_in(columns.file_ids, value_set=ids).to_numpy(zero_copy_only=False)
        for at in np.flatnonzero(matches):
            path = columns.partitions[columns.places[at]].path
            matches[at] = (path, columns.file_ids[at].as_py()) in groups
        return np.asarray(matches)

    @cached_property
    def _columns(self) -> list[pa.Field]:
        """The columns of the condition that statistics can be used of, fields of structs with dots."""
        fields = (self._field(name) for name in where_leaves(self.where, self.schema))
        return [field for field in fields if has_ranges(field)]

    def _field(self, column: str) -> pa.Field:
        return pa.field(column, leaf_type(self.schema, column) or pa.null())

    def partitions(self, partitions: Sequence[Partition]) -> list[Partition]:
        """Return the partitions whose latest rows may match; statistics are of the latest rows.

        Those of other formats than Parquet are not asked: Hudi keeps no statistics of such files, so
        those of a partition may lack the files that it added.
        """
        if self.config.base_file_format != _WITH_STATISTICS:
            return list(partitions)
        columns = [column for column in self._columns if has_partition_ranges(column)]
        regions = self._regions(PARTITION_STATS, columns)
        if regions is None:
            return list(partitions)
        ranges = self._read(PARTITION_STATS, lambda: self._ranges(PARTITION_STATS, regions, partitions))
        if ranges is None:
            return list(partitions)
        names = pa.array([each.path for each in partitions], pa.string())
        places = {name: pc.index_in(names, value_set=each.names) for name, each in ranges.items()}
        spreads = {
            axis.name: _with_values(
                _placed(ranges[axis.name], axis, places[axis.name]),
                axis,
                partitions,
                self.schema,
                np.arange(len(partitions)),
            )
            for axis in regions.axes
        }
        matches = regions.may_match(spreads)
        return [each for each, may_match in zip(partitions, matches, strict=True) if may_match]

    def slices(self, candidates: Sequence[Candidate]) -> Array:
        """Return for each of some file slices whether a row of it may match, by `column_stats`."""
        everything = np.ones(len(candidates), np.bool_)
        regions = self._regions(COLUMN_STATS, self._columns) if candidates else None
        if regions is None:
            return everything
        files = CandidateColumns.of(candidates)
        partitions = files.own_partitions
        ranges = self._read(COLUMN_STATS, lambda: self._ranges(COLUMN_STATS, regions, partitions))
        if ranges is None:
            return everything
        spreads = {axis.name: _spread(files, ranges[axis.name], axis, self.schema) for axis in regions.axes}
        return self._merged(regions, spreads, files)

    def _merged(
        self, regions: ConditionRegions, spreads: Mapping[str, Spread], files: CandidateColumns
    ) -> Array:
        """Return for each slice whether a row that merging leaves may match."""
        count, has_logs = len(files.has_logs), files.has_logs
        if self.config.merge_mode is MergeMode.CUSTOM:
            return _any(regions.may_match(spreads), files.groups, count) | has_logs
        if not has_logs.any() or not self._combines_versions:
            return _any(regions.may_match(spreads), files.groups, count)
        is_merged = has_logs[files.groups]
        with_null = {
            name: Spread(each.first, each.last, each.has_null | is_merged) for name, each in spreads.items()
        }
        if len(with_null) == 1:
            return _any(regions.may_match(with_null), files.groups, count)
        return regions.may_match({name: each.over(files.groups, count) for name, each in with_null.items()})

    @property
    def _combines_versions(self) -> bool:
        """Whether a row may have values of several versions of it."""
        return not merger_of(self.config).chooses_whole_records or takes_partial_blocks(self.config)

    def _regions(self, index: str, columns: Sequence[pa.Field]) -> ConditionRegions | None:
        if index not in self.metadata.ready or not columns:
            return None
        return ConditionRegions.of(self.where, self.schema, [column.name for column in columns])

    def _ranges(
        self, index: str, regions: ConditionRegions, partitions: Sequence[Partition]
    ) -> dict[str, ColumnRanges]:
        columns = [self._field(axis.name) for axis in regions.axes]
        few = [each.path for each in partitions] if len(partitions) <= _PARTITIONS_LOOKED_UP_MAX else None
        return column_ranges(self.metadata, index, columns, few)

    def _read(self, index: str, read: Callable[[], T]) -> T | None:
        """Return what is read of an index; None, with a warning, if it is damaged."""
        try:
            return read()
        except (MetadataTableError, UnsupportedError, InvalidError) as error:
            state = str(self.metadata.own_timeline.latest_time())
            level = level_of(self.metadata.storage.spec.uri, state, index, str(error))
            _log.log(level, "No data is skipped by %s of the metadata table: %s", index, error)
            return None


def _spread(files: CandidateColumns, ranges: ColumnRanges, axis: Axis, schema: pa.Schema) -> Spread:
    """Return the regions of an axis that the values in each file may be in."""
    known = pc.binary_join_element_wise(ranges.partitions, ranges.names, "")
    hashes = pa.array([partition_hash(each.path) for each in files.partitions], pa.string())
    of_files = hashes.take(pa.array(files.places[files.groups]))
    keys = pc.binary_join_element_wise(of_files, files.names, "")
    spread = _placed(ranges, axis, pc.index_in(keys, value_set=known, skip_nulls=True))
    return _with_values(spread, axis, files.partitions, schema, files.places[files.groups])


def _placed(ranges: ColumnRanges, axis: Axis, places: pa.Array) -> Spread:
    """Return the regions for the ranges at some places; any for null."""
    is_known = places.is_valid().to_numpy(zero_copy_only=False)
    rows = places.fill_null(0).to_numpy(zero_copy_only=False)
    anywhere = Spread.anywhere(axis, len(places))
    if not is_known.any():
        return anywhere
    known = ranges.spread(axis).take(np.where(is_known, rows, 0))
    return Spread(
        np.where(is_known, known.first, anywhere.first),
        np.where(is_known, known.last, anywhere.last),
        np.where(is_known, known.has_null, anywhere.has_null),
    )


def _with_values(
    spread: Spread,
    axis: Axis,
    partitions: Sequence[Partition],
    schema: pa.Schema,
    places: Array,
) -> Spread:
    """Return spreads where the values that partition paths contain replace those of the files.

    Args:
        spread: of the files.
        axis: the column.
        partitions: partitions, among them those of the files.
        schema: the columns of the query.
        places: the number of the partition of each file.
    """
    if not any(axis.name in each.values for each in partitions):
        return spread
    own = [_value_of(axis, each, schema) for each in partitions]
    has_own = np.array([each is not None for each in own], np.bool_)[places]
    facts = np.array([each or (0, 0, False) for each in own], np.int64).reshape(-1, 3)[places]
    return Spread(
        np.where(has_own, facts[:, 0], spread.first),
        np.where(has_own, facts[:, 1], spread.last),
        np.where(has_own, facts[:, 2].astype(np.bool_), spread.has_null),
    )


def _value_of(axis: Axis, partition: Partition, schema: pa.Schema) -> tuple[int, int, bool] | None:
    """Return the region of a partition's value and whether it is null; None if the path has no value."""
    if axis.name not in partition.values or axis.name not in schema.names:
        return None
    (value,) = typed({axis.name: partition.values[axis.name]}, schema).values()
    if not value.is_valid:
        return 1, 0, True
    place = int(axis.places(pa.array([value]))[0])
    return place, place, False


def _any(matches: Array, groups: Array, count: int) -> Array:
    found = np.zeros(count, np.bool_)
    np.logical_or.at(found, groups, matches)
    return found
