"""Skip partitions and file slices that cannot hold rows of a query, by the metadata table.

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

Record index and secondary indexes (`KeyLookups`):

    id = 'a'       record_index                                                         file groups
    name = 'x'     secondary_index_<name>: keys with the value ── record_index ──>      file groups
    id = 'a'       bloom_filters                                                        base files

The first two describe the latest rows, so only queries of the latest rows use them. A bloom filter belongs
to one base file.

Expression indexes (`expression_conditions`):

    upper(name) = 'A'     expr_index_<name> of bounds     a file slice whose files all rule it out
                          expr_index_<name> of filters    a file slice none of whose files may have the value

The condition is translated once more, with the expression as a column, whose values the index describes. So
only conditions in SQL use these indexes. Functions whose values depend on the time zone of a session are
left out: an index does not record its time zone. `derived_column` decides which indexes are used, and says
why others are not.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import InvalidError, MetadataTableError, UnsupportedError
from drawstring.base.lazy import cached_property
from drawstring.base.text_format import log_level_of
from drawstring.config.table_config import MergeMode, TableConfig
from drawstring.expressions.predicate import DerivedColumn, with_derived_column
from drawstring.formats.bloom import may_have_any
from drawstring.formats.filter import where_leaves
from drawstring.formats.predicate_bounds import Axis, ConditionRegions, RegionSpan
from drawstring.merge.record_merger import merger_of, takes_partial_blocks
from drawstring.metadata.column_ranges import (
    COLUMN_STATS,
    PARTITION_STATS,
    ColumnRanges,
    column_ranges,
    has_partition_ranges,
    has_ranges,
)
from drawstring.metadata.definitions import definitions, reason_not_used
from drawstring.metadata.partitions.expression_index import (
    EXPRESSION_INDEX_PREFIX,
    ExpressionIndex,
    defined_indexes,
    is_indexable,
)
from drawstring.metadata.partitions.secondary_index import are_indexed
from drawstring.metadata.record_index_lookup import RecordIndex, candidate_groups
from drawstring.metadata.record_tables import contents, looked_up
from drawstring.metadata.table import (
    BLOOM,
    BLOOM_FILTERS,
    KEY,
    RECORD_INDEX,
    Lookup,
    MetadataTable,
    about_metadata,
    file_hash,
    partition_hash,
)
from drawstring.model.files import FileStatus
from drawstring.query.partition_pruning import Candidate, CandidateColumns, Partition, key_values
from drawstring.schema.fields import constants_of, leaf_type
from drawstring.schema.timestamp_units import has_millis
from drawstring.storage.protocol import Storage

VALUE: Final = "_drawstring_expression"
"""The column that stands for the expression."""

_UNKNOWN: Final = (
    "This release cannot compute the values, so the next write drops the index. Create one with another"
    " function."
)
_ZONED: Final = (
    "The values depend on the time zone of the session that computed them, which the table does not record."
    " Only Apache Hudi uses the index; drop it unless Hudi queries the table."
)
_MISLABELLED: Final = (
    "Apache Hudi before 1.1 may have taken the milliseconds of the column for microseconds when it computed"
    " the values. Drop the index."
)
_OF_PATHS: Final = (
    "Queries take the values of partition columns from the paths of files. Drop the index unless Hudi queries"
    " the table."
)
_NO_BOUNDS: Final = "Queries do not use bounds of this type. Drop the index unless Hudi queries the table."
_OTHER: Final = (
    "SQL conditions of drawstring cannot contain the expression. Only Apache Hudi uses the index; drop it"
    " unless Hudi queries the table."
)


@dataclass(frozen=True, slots=True)
class ExpressionCondition:
    """A condition on an expression that has an index.

    Attributes:
        index: the index.
        where: the condition, with the expression as a column.
        schema: the columns with that one.
    """

    index: ExpressionIndex
    where: pc.Expression
    schema: pa.Schema

    def regions(self) -> ConditionRegions | None:
        """Return the values of the expression that the condition can be true for; None for any."""
        return ConditionRegions.of(self.where, self.schema, [VALUE])

    def texts(self) -> Sequence[str] | None:
        """Return the texts of the only values that the condition can be true for; None for any."""
        values = key_values(self.where, self.schema, VALUE, with_dates=True)
        return None if values is None else [str(each) for each in values.cast(pa.string()).to_pylist()]

    def ranges(self, metadata: MetadataTable, paths: Sequence[str] | None) -> ColumnRanges:
        """Return the bounds of the values in files; see `column_ranges`."""
        kind = self.schema.field(VALUE).type
        found = column_ranges(metadata, self.index.name, [pa.field(self.index.column, kind)], paths)
        return found[self.index.column]


def expression_conditions(
    table: tuple[Storage, TableConfig], metadata: MetadataTable, sql: str | None, schema: pa.Schema
) -> Iterator[ExpressionCondition]:
    """Yield the conditions of a query on expressions that have an index, of which there are values to skip.

    Args:
        table: the table's files and settings.
        metadata: its metadata table.
        sql: the condition; None if it was not given in SQL.
        schema: the columns of the query.

    Raises:
        CorruptTableError: the definitions of the indexes are damaged.
    """
    storage, config = table
    ready = () if sql is None else metadata.ready
    names = [name for name in ready if name.startswith(EXPRESSION_INDEX_PREFIX)]
    for index in defined_indexes(storage, names) if names else ():
        derived = derived_column(index, schema, config)
        found = None if isinstance(derived, str) else with_derived_column(str(sql), schema, derived)
        if found is not None:
            yield ExpressionCondition(index, *found)


def derived_column(
    index: ExpressionIndex | None, schema: pa.Schema, config: TableConfig
) -> DerivedColumn | str:
    """Return what stands for the expression of an index in conditions.

    Args:
        index: the index; None if this release cannot keep it.
        schema: the columns of the table.
        config: its settings.

    Returns:
        The column; or why queries do without the index and what to do, in sentences.
    """
    if index is None or not is_indexable(index, schema, config):
        return _UNKNOWN
    if index.column in config.partition_fields:  # a path may have another value than the files
        return _OF_PATHS
    column = schema.field(index.column)
    if has_millis(column.type):
        return _MISLABELLED
    if index.depends_on_zone(column.type):
        return _ZONED
    value = pa.field(VALUE, index.result_type(column.type))
    if index.kind == COLUMN_STATS and not has_ranges(value):
        return _NO_BOUNDS
    return _OTHER if index.sql is None else DerivedColumn(index.sql, value)


_SECONDARY: Final = "secondary_index_"
_FILTERS_AT_ONCE: Final = 32
"""A filter has up to 430 KB."""


@dataclass(frozen=True, slots=True)
class KeyIndexes:
    """The indexes that know the keys or values of a condition.

    Attributes:
        values: what to look up, by index.
        unused: why indexes that know them are not used, in sentences, by index.
    """

    values: Mapping[str, Sequence[str]] = field(default_factory=dict)
    unused: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KeyLookups:
    """Finds file groups by the keys and values that a condition can be true for.

    Attributes:
        metadata: the metadata table.
        storage: the table's files.
        schema: the columns of the query.
        where: the condition.
        keys: the record keys that rows of the condition can have; None for any.
    """

    metadata: MetadataTable
    storage: Storage
    schema: pa.Schema
    where: pc.Expression
    keys: Sequence[str] | None

    def indexes(self) -> KeyIndexes:
        """Return the indexes that know the keys of the condition, with what to look up in each.

        Raises:
            MetadataTableError: the definitions of the indexes are damaged.
        """
        if RECORD_INDEX not in self.metadata.ready:
            return KeyIndexes()
        names = [name for name in self.metadata.ready if name.startswith(_SECONDARY)]
        with about_metadata(self.metadata.storage):
            defined = definitions(self.storage) if names or self.keys is not None else {}
        values = dict(self._values(names, defined))
        why = reason_not_used(defined)
        return KeyIndexes(values) if why is None else KeyIndexes(unused=dict.fromkeys(values, why))

    def _values(
        self, names: Sequence[str], defined: Mapping[str, Mapping[str, Any]]
    ) -> Iterator[tuple[str, Sequence[str]]]:
        if self.keys is not None:
            yield RECORD_INDEX, self.keys
        for name in names:
            fields = list(defined.get(name, {}).get("sourceFields") or ())
            column = fields[0] if len(fields) == 1 else ""
            values = key_values(self.where, self.schema, column) if column in self.schema.names else None
            if values is not None and pc.all(are_indexed(values), min_count=0).as_py():
                yield name, values.cast(pa.string()).to_pylist()

    def groups(
        self, index: str, values: Sequence[str], partitions: Sequence[str]
    ) -> frozenset[tuple[str, str]]:
        """Return the file groups that hold some keys, or rows with some values, as partition and file id.

        Args:
            index: one of `indexes`.
            values: what to look up in it.
            partitions: the partitions to look in.

        Raises:
            MetadataTableError: a file of an index is missing or damaged.
        """
        keys = values
        if index != RECORD_INDEX:
            keys = contents(self.metadata, index, "UTC", values).column("key").to_pylist()
        return candidate_groups(RecordIndex.of(self.metadata, self.storage.spec), keys, partitions)


def files_with_keys(
    metadata: MetadataTable, files: Sequence[FileStatus], keys: Sequence[str], index: str = BLOOM_FILTERS
) -> list[bool]:
    """Return for each of some files whether it may have any of a few keys, by their bloom filters.

    Args:
        metadata: the metadata table.
        files: the files; one without a filter may have any key.
        keys: the record keys, or texts of other values.
        index: the partition of the metadata table with the filters.

    Raises:
        MetadataTableError: a file of the index is missing or damaged.
    """
    found: list[bool] = []
    for start in range(0, len(files), _FILTERS_AT_ONCE):
        some = files[start : start + _FILTERS_AT_ONCE]
        names = [partition_hash(each.folder) + file_hash(each.name) for each in some]
        rows = looked_up(metadata, index, Lookup(keys=pa.array(names, pa.string())))
        filters = dict(zip(rows.column(KEY).to_pylist(), rows.column(BLOOM).to_pylist(), strict=True))
        found += [_may_have(filters.get(name), keys) for name in names]
    return found


def _may_have(stored: Mapping[str, Any] | None, keys: Sequence[str]) -> bool:
    if stored is None or stored["isDeleted"]:
        return True
    return may_have_any(bytes(stored["bloomFilter"]), stored["type"], keys)


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
        is_kept = PARTITION_STATS in self.metadata.ready
        if not is_kept or self.config.base_file_format != _WITH_STATISTICS:
            return list(partitions)
        columns = [column for column in self._columns if has_partition_ranges(column)]
        regions = self._regions(columns)
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
        is_kept = bool(candidates) and COLUMN_STATS in self.metadata.ready
        regions = self._regions(self._columns) if is_kept else None
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
        self, regions: ConditionRegions, spreads: Mapping[str, RegionSpan], files: CandidateColumns
    ) -> Array:
        """Return for each slice whether a row that merging leaves may match."""
        count, has_logs = len(files.has_logs), files.has_logs
        if self.config.merge_mode is MergeMode.CUSTOM:
            return _any(regions.may_match(spreads), files.groups, count) | has_logs
        if not has_logs.any() or not self._combines_versions:
            return _any(regions.may_match(spreads), files.groups, count)
        is_merged = has_logs[files.groups]
        with_null = {
            name: RegionSpan(each.first, each.last, each.has_null | is_merged)
            for name, each in spreads.items()
        }
        if len(with_null) == 1:
            return _any(regions.may_match(with_null), files.groups, count)
        return regions.may_match({name: each.over(files.groups, count) for name, each in with_null.items()})

    @property
    def _combines_versions(self) -> bool:
        """Whether a row may have values of several versions of it."""
        return not merger_of(self.config).chooses_whole_records or takes_partial_blocks(self.config)

    def _regions(self, columns: Sequence[pa.Field]) -> ConditionRegions | None:
        if not columns:
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
            level = log_level_of(self.metadata.storage.spec.uri, state, index, str(error))
            _log.log(level, "No data is skipped by %s of the metadata table: %s", index, error)
            return None


def _spread(files: CandidateColumns, ranges: ColumnRanges, axis: Axis, schema: pa.Schema) -> RegionSpan:
    """Return the regions of an axis that the values in each file may be in."""
    known = pc.binary_join_element_wise(ranges.partitions, ranges.names, "")
    hashes = pa.array([partition_hash(each.path) for each in files.partitions], pa.string())
    of_files = hashes.take(pa.array(files.places[files.groups]))
    keys = pc.binary_join_element_wise(of_files, files.names, "")
    spread = _placed(ranges, axis, pc.index_in(keys, value_set=known, skip_nulls=True))
    return _with_values(spread, axis, files.partitions, schema, files.places[files.groups])


def _placed(ranges: ColumnRanges, axis: Axis, places: pa.Array) -> RegionSpan:
    """Return the regions for the ranges at some places; any for null."""
    is_known = places.is_valid().to_numpy(zero_copy_only=False)
    rows = places.fill_null(0).to_numpy(zero_copy_only=False)
    anywhere = RegionSpan.anywhere(axis, len(places))
    if not is_known.any():
        return anywhere
    known = ranges.spread(axis).take(np.where(is_known, rows, 0))
    return RegionSpan(
        np.where(is_known, known.first, anywhere.first),
        np.where(is_known, known.last, anywhere.last),
        np.where(is_known, known.has_null, anywhere.has_null),
    )


def _with_values(
    spread: RegionSpan,
    axis: Axis,
    partitions: Sequence[Partition],
    schema: pa.Schema,
    places: Array,
) -> RegionSpan:
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
    return RegionSpan(
        np.where(has_own, facts[:, 0], spread.first),
        np.where(has_own, facts[:, 1], spread.last),
        np.where(has_own, facts[:, 2].astype(np.bool_), spread.has_null),
    )


def _value_of(axis: Axis, partition: Partition, schema: pa.Schema) -> tuple[int, int, bool] | None:
    """Return the region of a partition's value and whether it is null; None if the path has no value."""
    if axis.name not in partition.values or axis.name not in schema.names:
        return None
    (value,) = constants_of({axis.name: partition.values[axis.name]}, schema).values()
    if not value.is_valid:
        return 1, 0, True
    place = int(axis.places(pa.array([value]))[0])
    return place, place, False


def _any(matches: Array, groups: Array, count: int) -> Array:
    found = np.zeros(count, np.bool_)
    np.logical_or.at(found, groups, matches)
    return found
