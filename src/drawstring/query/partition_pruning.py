"""Prune partitions, buckets and record keys by the condition of a query.

Partitions: where a path contains the value of a partition column (`keygen.partition_path`), this value also
replaces the column in the rows: under a global index the file may hold an older value.

Record keys: a condition such as `id = 'a'` or `id IN (...)`, with or without further terms, can be true for
a few keys only; of a compound key it has to name all columns. These keys select the buckets of a bucket
index, and rule out base files whose bloom filter has none of them. For tables of sorted files they give a
range of keys in the same way.

Arrow does not expose the structure of an expression, but it can decide whether an expression can be true in
a given range of a column. So the literals of the condition are the keys, provided that the condition cannot
be true between, below or above them.

A `Candidate` is a file slice that a query may have to read. `CandidateColumns` has many of them in columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, reduce
from operator import and_
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.base import limits
from drawstring.base.errors import UnsupportedError
from drawstring.base.lazy import LazySequence
from drawstring.config.keys.index import HASH_FIELDS
from drawstring.config.table_config import KeyGeneratorType, TableConfig
from drawstring.config.table_types import columns_of
from drawstring.filegroups.columnar_view import SliceColumns
from drawstring.filegroups.read_task import InstantRange
from drawstring.formats.filter import KeyRange
from drawstring.formats.predicate_bounds import (
    Axis,
    ConditionRegions,
    literals_in,
    partitions_that_match,
    ranges_that_match,
    values_that_may_match,
)
from drawstring.index.bucket import BucketCounts, bucket_numbers, stored_counts
from drawstring.keygen.key_generator import KeyGenerator
from drawstring.keygen.partition_path import path_parser
from drawstring.model.files import BaseFile, FileSlice, FileStatus, LogFile, bucket_of
from drawstring.schema.fields import PARTITION_PATH, RECORD_KEY
from drawstring.storage.protocol import Storage

Array: TypeAlias = "np.ndarray[Any, Any]"


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
) -> Sequence[Partition]:
    """Return the partitions that can hold rows of a query; without a condition values are parsed on use.

    Args:
        paths: all partition paths.
        config: table configuration.
        schema: the table's columns.
        where: the condition; None for all rows.
    """
    values_of = _values_of(config, schema)
    parsed = cache(lambda path: Partition(path, values_of(path)))
    if where is None and not config.drop_partition_columns and len(paths) > _PARSED_MAX:
        return LazySequence(len(paths), lambda number: parsed(paths[number]))
    partitions = [parsed(path) for path in paths]
    if config.drop_partition_columns:
        _check_values(partitions, config)
    if where is None:
        return partitions
    asked: Sequence[Partition] = partitions
    if PARTITION_PATH in schema.names and PARTITION_PATH in str(where):
        # No file has rows of another path, whichever key generator made it.
        asked = [replace(each, values={**each.values, PARTITION_PATH: each.path}) for each in partitions]
    if not any(each.values for each in asked):
        return partitions
    if len(asked) > limits.in_force.asked_partitions_max:
        asked = _in_regions(asked, (*config.partition_fields, PARTITION_PATH), schema, where)
    matches = partitions_that_match(where, schema, [each.values for each in asked])
    return [parsed(each.path) for each, is_match in zip(asked, matches, strict=True) if is_match]


def _in_regions(
    partitions: Sequence[Partition], names: Sequence[str], schema: pa.Schema, where: pc.Expression
) -> Sequence[Partition]:
    """Return those of many partitions whose values may match by the regions between literals.

    Arrow is asked about each partition that is left: a condition such as `LIKE` has no regions.
    """
    types = {name: schema.field(name).type for name in names if name in schema.names}
    known = {
        name: pa.array([each.values.get(name) for each in partitions], kind)
        for name, kind in types.items()
        if any(is_kind(kind) for is_kind in _SPLITTABLE_TYPES)
    }
    matches = values_that_may_match(where, schema, known)
    if matches is None:
        return partitions
    return [each for each, may_match in zip(partitions, matches, strict=True) if may_match]


def partition_values(path: str, config: TableConfig, schema: pa.Schema) -> dict[str, Any]:
    """Return the values of the partition columns that a partition path contains.

    Record key columns and ordering fields are left out: merging needs them as they are stored.

    Args:
        path: partition path.
        config: table configuration.
        schema: the table's columns.
    """
    return _values_of(config, schema)(path)


def _values_of(config: TableConfig, schema: pa.Schema) -> Callable[[str], dict[str, Any]]:
    """Return what gives `partition_values` for a path."""
    if not config.partition_fields:
        return lambda path: {}
    merge_columns = {*config.record_key_fields, *columns_of(config.ordering_fields)}
    parsed = path_parser(config, schema)
    # The default partition of a text column has rows with null and rows with an empty text.
    has_one_null = {each.name for each in schema if pt.is_primitive(each.type) or pt.is_decimal(each.type)}
    keeps_null = config.drop_partition_columns

    def values(path: str) -> dict[str, Any]:
        return {
            name: value
            for name, value in parsed(path).items()
            if name not in merge_columns and (value is not None or keeps_null or name in has_one_null)
        }

    return values


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


_PARSED_MAX: Final = 1000
"""Number of partition paths up to which values are parsed before they are needed."""

_SPLITTABLE_TYPES: Final = (pt.is_string, pt.is_integer, pt.is_date32)

KEYS_MAX: Final = 64
"""Largest number of literals in a condition whose keys are determined."""

FROM_KEY_COLUMNS: Final = frozenset(
    {KeyGeneratorType.SIMPLE, KeyGeneratorType.COMPLEX, KeyGeneratorType.NON_PARTITION}
)
"""Key generators whose record key consists of the value of the key column only."""

_GENERATOR_NAMES: Final = ("hoodie.table.keygenerator.type", "hoodie.table.keygenerator.class")


def stored_keys(
    where: pc.Expression | None, config: TableConfig, schema: pa.Schema
) -> tuple[str, ...] | None:
    """Return all record keys, as stored in base files, that a condition can be true for; None for any.

    Each value of a single key column yields two keys, with and without the column name as prefix, because the
    COMPLEX key generators of Hudi releases differ in this. A table that does not name its key generator may
    have any keys.

    Args:
        where: the condition; None for all rows.
        config: table configuration.
        schema: the table's columns.
    """
    if where is None or not config.populate_meta_fields:
        return None
    if RECORD_KEY in schema.names and (keys := key_values(where, schema, RECORD_KEY)) is not None:
        return tuple(keys.to_pylist())
    if not any(config.properties.get(name) for name in _GENERATOR_NAMES):
        return None
    rows = _key_rows(where, config, schema)
    if rows is None:
        return None
    if rows.num_columns > 1:
        return tuple(KeyGenerator(config).record_keys(rows).to_pylist())
    texts = rows.column(0).cast(pa.string()).to_pylist()
    return tuple(f"{prefix}{text}" for text in texts for prefix in ("", f"{rows.schema.names[0]}:"))


def _key_rows(where: pc.Expression, config: TableConfig, schema: pa.Schema) -> pa.RecordBatch | None:
    """Return the values of the key columns that a condition can be true for, combined; None if unknown."""
    fields = config.record_key_fields
    if not fields or config.key_generator not in FROM_KEY_COLUMNS or not {*fields} <= {*schema.names}:
        return None
    columns: list[pa.Array] = []
    for name in fields:
        values = key_values(where, schema, name)
        if values is None or math.prod(map(len, columns), start=len(values)) > KEYS_MAX:
            return None
        columns.append(values)
    places = np.indices([len(values) for values in columns]).reshape(len(columns), -1)
    combined = [values.take(pa.array(place)) for values, place in zip(columns, places, strict=True)]
    return pa.RecordBatch.from_arrays(combined, names=list(fields))


def key_values(
    where: pc.Expression, schema: pa.Schema, name: str, *, with_dates: bool = False
) -> pa.Array | None:
    """Return all values of a column that a condition can be true for, None when they are unknown.

    Args:
        where: the condition.
        schema: the columns.
        name: the column, of type string or integer.
        with_dates: whether the column may be of dates as well.
    """
    kind = schema.field(name).type
    is_known = (
        pa.types.is_string(kind) or pa.types.is_integer(kind) or (with_dates and pa.types.is_date32(kind))
    )
    if name not in str(where) or not is_known:
        return None
    literals = literals_in(str(where), kind)
    keys = literals.filter(pc.not_equal(literals, "")) if pa.types.is_string(kind) else literals
    if not 0 < len(keys) <= KEYS_MAX:
        return None
    axis = Axis(name, keys)
    try:
        matches = ranges_that_match(where, schema, axis.regions())
    except pa.ArrowException:
        return None  # the condition fails on a key; evaluating it on rows reports the error
    points, others = matches[1 : axis.null : 2], [*matches[0 : axis.null : 2], *matches[axis.null :]]
    return None if any(others) else keys.filter(pa.array(points))


def key_range(where: pc.Expression | None, config: TableConfig, schema: pa.Schema) -> KeyRange | None:
    """Return the range of keys that a condition can be true for, in a table of sorted files; None for any.

    Rows beyond it may be left out of each file before versions are merged, since all versions of a record
    agree about its key. A condition on another column would let an older version of a record appear.

    Args:
        where: the condition; None for all rows.
        config: the table.
        schema: its columns.
    """
    if where is None or not config.has_sorted_files:
        return None
    printed = str(where)
    for name in _key_columns(config, schema):
        if name in printed and (found := _range(where, schema, name)) is not None:
            return KeyRange(name, found)
    return None


def _key_columns(config: TableConfig, schema: pa.Schema) -> Sequence[str]:
    """Return the columns that are the same in all versions of a record because they make its key."""
    fields = config.record_key_fields if config.key_generator in FROM_KEY_COLUMNS else ()
    names = (RECORD_KEY, *(fields if len(fields) == 1 else ()))
    return [name for name in names if name in schema.names and _has_order(schema.field(name).type)]


def _has_order(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_integer(kind))


def _range(where: pc.Expression, schema: pa.Schema, name: str) -> pc.Expression | None:
    regions = ConditionRegions.of(where, schema, [name])
    if regions is None:
        return None
    (axis,) = regions.axes
    matching = np.flatnonzero(regions.can_match[: axis.null])
    if not len(matching):
        return None
    first, last = int(matching[0]), int(matching[-1])
    column, bounds = pc.field(name), []
    if first > 0:
        bounds.append(column >= axis.cuts[(first - 1) // 2])
    if last // 2 < len(axis.cuts):
        bounds.append(column <= axis.cuts[last // 2])
    return reduce(and_, bounds) if bounds else None


@dataclass(frozen=True, slots=True)
class BucketFacts:
    """The parts of a table that determine its buckets.

    Attributes:
        storage: storage of the table.
        config: table configuration.
        instants: instants that the query may see.
    """

    storage: Storage
    config: TableConfig
    instants: InstantRange


class BucketPruning:
    """The buckets that can hold the record keys of a query.

    Args:
        keys: record keys that the query can match.
        counts: number of buckets by partition.
        fields: record key columns that are hashed.
    """

    def __init__(self, keys: pa.Array, counts: BucketCounts, fields: tuple[str, ...]) -> None:
        self._keys = keys
        self._counts = counts
        self._fields = fields
        self._buckets: dict[int, frozenset[int]] = {}

    def may_hold(self, partition: str, file_id: str) -> bool:
        """Return whether a file group can hold one of the keys.

        A file group whose id names no bucket of the index always can.

        Args:
            partition: partition path.
            file_id: of the file group.
        """
        count, bucket = self._counts.of(partition), bucket_of(file_id)
        return bucket is None or bucket >= count or bucket in self.among(count)

    def may_hold_each(self, partitions: pa.Array, file_ids: pa.Array) -> Array:
        """Return `may_hold` for each of several file groups.

        Args:
            partitions: their partition paths.
            file_ids: their ids.
        """
        distinct = pc.dictionary_encode(file_ids)
        buckets = [bucket_of(file_id) for file_id in distinct.dictionary.to_pylist()]
        known = np.array([-1 if bucket is None else bucket for bucket in buckets], np.int64)
        numbers = known[distinct.indices.to_numpy(zero_copy_only=False)]
        counts = np.broadcast_to(self._counts.of_each(partitions), numbers.shape)
        matches = (numbers < 0) | (numbers >= counts)
        for count in np.unique(counts).tolist():
            matches |= (counts == count) & np.isin(numbers, list(self.among(count)))
        return np.asarray(matches)

    def among(self, count: int) -> frozenset[int]:
        """Return the buckets of the keys in a partition with `count` buckets."""
        if count not in self._buckets:
            self._buckets[count] = frozenset(bucket_numbers(self._keys, count, self._fields).tolist())
        return self._buckets[count]


def bucket_pruning(
    where: pc.Expression | None, schema: pa.Schema, table: BucketFacts
) -> BucketPruning | None:
    """Return the buckets that can hold rows of a query, None when no bucket can be ruled out.

    The table either names its index in its properties or stores bucket counts by partition.

    Args:
        where: the condition; None for all rows.
        schema: the columns.
        table: the table.
    """
    config = table.config
    keys = None if where is None else _record_keys(where, config, schema)
    if keys is None:
        return None
    count = config.bucket_count if config.index_type == "BUCKET" else None
    fixed = BucketCounts(count) if count else None
    counts = stored_counts(table.storage, table.instants.admits, fixed)
    return None if counts is None else BucketPruning(keys, counts, config.bucket_hash_fields)


def _record_keys(where: pc.Expression, config: TableConfig, schema: pa.Schema) -> pa.Array | None:
    """Return all record keys that a condition can be true for, None when they are unknown.

    Of a compound key some columns alone may be hashed, so the table has to say which.
    """
    fields, hashed = config.record_key_fields, config.bucket_hash_fields
    if config.index_type not in (None, "BUCKET") or config.bucket_engine != "SIMPLE":
        return None
    if hashed != fields if len(fields) == 1 else not config.properties.get(HASH_FIELDS):
        return None
    rows = _key_rows(where, config, schema)
    return None if rows is None else KeyGenerator(config).record_keys(rows)


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A file slice that a query may have to read.

    Attributes:
        partition: its partition.
        file_slice: the slice.
        also: the files of another slice that it takes values from; None for none.
    """

    partition: Partition
    file_slice: FileSlice
    also: FileSlice | None = None

    @property
    def logs(self) -> Sequence[LogFile]:
        """All log files."""
        return (*self.file_slice.logs, *(self.also.logs if self.also else ()))

    @property
    def statuses(self) -> list[FileStatus]:
        """All files, base files first."""
        return [*(each.status for each in self.bases), *(each.status for each in self.logs)]

    @property
    def bases(self) -> Iterator[BaseFile]:
        """All base files."""
        for each in (self.file_slice, self.also):
            if each is not None and each.base is not None:
                yield each.base


class LazyCandidates(LazySequence[Candidate]):
    """Candidates that are known in columns, each made when it is asked for.

    Args:
        slices: their slices.
        partitions: the partitions with the paths of `slices.files`, in the same order.
    """

    def __init__(self, slices: SliceColumns, partitions: Sequence[Partition]) -> None:
        super().__init__(len(slices), self._candidate, self._candidates)
        self.slices = slices
        self.partitions = partitions

    @property
    def has_logs(self) -> bool:
        """Whether any slice has log files."""
        return len(self.slices.logs) > 0

    @property
    def size_bytes(self) -> int:
        """The size of the slices."""
        return self.slices.size_bytes

    def _candidate(self, number: int) -> Candidate:
        partition = self.partitions[self.slices.partitions[number]]
        return Candidate(partition, self.slices.slice_at(number))

    def _candidates(self) -> Iterator[Candidate]:
        places = self.slices.partitions.tolist()
        for place, each in zip(places, self.slices.each(), strict=True):
            yield Candidate(self.partitions[place], each)


def select_candidates(matches: Array, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
    """Return those of some candidates that may match.

    Args:
        matches: for each candidate whether it may.
        candidates: the candidates.
    """
    if isinstance(candidates, LazyCandidates):
        return LazyCandidates(candidates.slices.take(np.flatnonzero(matches)), candidates.partitions)
    return [each for each, is_match in zip(candidates, matches, strict=True) if is_match]


@dataclass(frozen=True, slots=True)
class CandidateColumns:
    """Candidates and their files.

    Attributes:
        partitions: partitions, among them those of the candidates.
        places: the number of the partition of each candidate.
        file_ids: the file group of each candidate.
        has_logs: which candidates have log files.
        names: the name of each file; null if statistics do not describe it.
        groups: the number of the candidate of each file.
    """

    partitions: Sequence[Partition]
    places: Array
    file_ids: pa.StringArray
    has_logs: Array
    names: pa.StringArray
    groups: Array

    @staticmethod
    def of(candidates: Sequence[Candidate]) -> CandidateColumns:
        """Return candidates in columns."""
        if isinstance(candidates, LazyCandidates):
            return _of_slices(candidates.slices, candidates.partitions)
        return _of_each(candidates)

    @property
    def paths(self) -> pa.StringArray:
        """The partition path of each candidate."""
        return pa.array([each.path for each in self.partitions], pa.string()).take(pa.array(self.places))

    @property
    def own_partitions(self) -> list[Partition]:
        """The partitions of the candidates."""
        return [self.partitions[place] for place in np.unique(self.places)]


def _of_slices(slices: SliceColumns, partitions: Sequence[Partition]) -> CandidateColumns:
    has_base = np.flatnonzero(slices.has_base)
    rows = np.concatenate([slices.bases[has_base], slices.logs])
    return CandidateColumns(
        partitions,
        slices.partitions,
        slices.file_ids,
        slices.has_logs,
        slices.files.names.take(pa.array(rows)),
        np.concatenate([has_base, slices.log_slices]),
    )


def _of_each(candidates: Sequence[Candidate]) -> CandidateColumns:
    numbers: dict[str, int] = {}
    partitions: list[Partition] = []
    places: list[int] = []
    names: list[str | None] = []
    groups: list[int] = []
    for number, each in enumerate(candidates):
        places.append(numbers.setdefault(each.partition.path, len(numbers)))
        if places[-1] == len(partitions):
            partitions.append(each.partition)
        # The statistics of a bootstrapped file are those of its meta columns.
        of_bases = [base.status.name if base.source is None else None for base in each.bases]
        own = [*of_bases, *(log.status.name for log in each.logs)]
        names += own
        groups += [number] * len(own)
    return CandidateColumns(
        partitions,
        np.array(places, np.int64),
        pa.array([each.file_slice.file_id for each in candidates], pa.string()),
        np.array([bool(each.logs) for each in candidates], np.bool_),
        pa.array(names, pa.string()),
        np.array(groups, np.int64),
    )
