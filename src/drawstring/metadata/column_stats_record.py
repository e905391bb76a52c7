"""Encode, decode and combine the column statistics of the metadata table, as Apache Hudi 1.2.0 stores them.

    values of a type ── wrapper of the version ──> minValue, maxValue, valueType

A bound is a union of wrapper records, one for each physical type; one member is not null. Indexes of
version V1 have a wrapper for each logical type too. Those of V2 have the physical wrapper, and the logical
type in `valueType`:

    V1   minValue {member8: {value: 12.50}}         valueType null
    V2   minValue {member5: {value: 0x04E2}}        valueType {typeOrdinal: 10, additionalInfo: "10,2"}

Version V1 belongs to table versions 6 and 8, V2 to version 9. A deleted record has counts of -1.

Bounds are marked as tight, which Hudi does not do for those of files. So readers know that no value was
left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.formats.avro.encoder import big_endian, decimals_of_bytes
from drawstring.merge.record_version import Array, combined_chunks, number_keys
from drawstring.metadata.merging import is_true, newest
from drawstring.metadata.table import (
    IS_REMOVED,
    KEY,
    PARTITION_STATISTICS,
    STATISTICS,
    TYPE,
    Kind,
    file_hash,
    name_hash,
    partition_hash,
    record_schema,
)
from drawstring.model.commit import ColumnSummary
from drawstring.schema.evolution import widened

MIN, MAX = "minValue", "maxValue"
_COUNTS: Final = ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")
_DECIMAL: Final = 10
_NAMES: Final = (
    *("V1", "NULL", "BOOLEAN", "INT", "LONG", "FLOAT", "DOUBLE", "STRING", "BYTES", "FIXED", "DECIMAL"),
    *("UUID", "DATE", "TIME_MILLIS", "TIME_MICROS", "TIMESTAMP_MILLIS", "TIMESTAMP_MICROS"),
    *("TIMESTAMP_NANOS", "LOCAL_TIMESTAMP_MILLIS", "LOCAL_TIMESTAMP_MICROS", "LOCAL_TIMESTAMP_NANOS"),
)
"""Names of the logical types of V2 by their ordinals."""

_LOGICAL: Final[Mapping[int, pa.DataType]] = {
    12: pa.date32(),
    13: pa.time32("ms"),
    14: pa.time64("us"),
    15: pa.timestamp("ms", "UTC"),
    16: pa.timestamp("us", "UTC"),
    17: pa.timestamp("ns", "UTC"),
    18: pa.timestamp("ms"),
    19: pa.timestamp("us"),
    20: pa.timestamp("ns"),
}
_ORDINALS_OF_V1: Final = (2, 3, 4, 5, 6, 8, 7, 12, _DECIMAL, 14, 16, 12)
"""The logical type of each wrapper in V1, in the order of the union's members."""

_ITEMS: Final = "wrappedValues"
"""The one field of the last wrapper, that of arrays; all others have a field `value`."""


def combined(rows: pa.Table) -> pa.Table:
    """Return the statistics of each key that is not removed, sorted by key.

    A version that is deleted, or follows a deleted one, replaces it. So do tight bounds of a partition, which
    a writer computes from all its files. Otherwise the later version describes further rows of the same
    file (appended to a log file).

    Args:
        rows: versions of records, oldest first, with the column `is_removed`.
    """
    codes, _ = number_keys(rows.column(KEY))
    chosen = np.isin(codes, _continued(rows, codes))
    if not chosen.any():
        return newest(rows)
    several = pa.Table.from_pylist(list(_combined_by_key(rows.filter(pa.array(chosen)))), rows.schema)
    return newest(pa.concat_tables([rows.filter(pa.array(~chosen)), several]))


def with_cuts(rows: pa.Table) -> pa.Table:
    """Return versions of statistics in which those that are deleted remove what is before them, too.

    A live version after a deleted one replaces what is before both. Without a removal nothing would tell
    that once versions are merged among themselves.

    Args:
        rows: versions of records, oldest first, with the column `is_removed`.
    """
    statistics = combined_chunks(rows.column(STATISTICS))
    is_cut = is_true(statistics.is_valid()) & is_true(statistics.field("isDeleted"))
    if not is_cut.any():
        return rows
    at = np.sort(np.concatenate([np.arange(len(is_cut)), np.flatnonzero(is_cut)]))
    is_removed = is_true(rows.column(IS_REMOVED))[at]
    is_removed[np.flatnonzero(np.diff(at) == 0)] = True
    doubled = rows.take(pa.array(at))
    place = doubled.column_names.index(IS_REMOVED)
    return doubled.set_column(place, IS_REMOVED, pa.array(is_removed))


def _continued(rows: pa.Table, codes: Array) -> Array:
    """Return the codes of keys with a version that is to be combined with the one before it."""
    statistics = combined_chunks(rows.column(STATISTICS))
    is_live = is_true(statistics.is_valid()) & ~is_true(statistics.field("isDeleted"))
    is_live &= ~is_true(rows.column(IS_REMOVED))
    replaces = is_true(statistics.field("isTightBound")) & is_true(
        pc.equal(rows.column(TYPE), PARTITION_STATISTICS)
    )
    order = np.argsort(codes, kind="stable")
    before, after = order[:-1], order[1:]
    follows = (codes[before] == codes[after]) & is_live[before] & is_live[after] & ~replaces[after]
    continued: Array = codes[after[follows]]
    return continued


def _combined_by_key(rows: pa.Table) -> Iterator[dict[str, Any]]:
    versions: dict[str, dict[str, Any]] = {}
    for row in rows.to_pylist():
        earlier = versions.get(row[KEY])
        versions[row[KEY]] = row if earlier is None or _replaces(row, earlier) else _both(earlier, row)
    return iter(versions.values())


def _replaces(later: Mapping[str, Any], earlier: Mapping[str, Any]) -> bool:
    if later[IS_REMOVED] or earlier[IS_REMOVED]:
        return True
    old, new = earlier[STATISTICS], later[STATISTICS]
    is_whole = later[TYPE] == PARTITION_STATISTICS and new["isTightBound"]
    return bool(old is None or old["isDeleted"] or new["isDeleted"] or is_whole)


def _both(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    old, new = earlier[STATISTICS], later[STATISTICS]
    counts = {name: (old[name] or 0) + (new[name] or 0) for name in _COUNTS}
    bounds = {MIN: _bound(min, old, new, MIN), MAX: _bound(max, old, new, MAX)}
    return {**later, STATISTICS: {**new, **counts, **bounds}}


def _bound(choose: Callable[..., Any], old: Mapping[str, Any], new: Mapping[str, Any], name: str) -> Any:
    given = [each for each in (old, new) if each[name] is not None]
    is_decimal = bool(new["valueType"]) and new["valueType"]["typeOrdinal"] == _DECIMAL
    return choose(given, key=lambda each: _comparable(each[name], is_decimal))[name] if given else None


def _comparable(wrapped: Mapping[str, Any], is_decimal: bool) -> Any:
    """Return a wrapped value as one that Python orders as Hudi does."""
    wrapper = _wrapper(wrapped)
    if _ITEMS in wrapper:
        return [_comparable(item, is_decimal) for item in wrapper[_ITEMS] or () if item is not None]
    value = wrapper["value"]
    if isinstance(value, bytes) and is_decimal:
        return int.from_bytes(value, "big", signed=True)
    return value.encode() if isinstance(value, str) else value


def type_names(statistics: pa.StructArray) -> pa.StringArray:
    """Return the names of the columns' types; null where neither a type nor a bound is stored."""
    ordinals = _ordinals(statistics)
    return pa.array(_NAMES).take(pa.array(ordinals, mask=ordinals == 0))


def bounds_as_text(statistics: pa.StructArray, name: str) -> pa.StringArray:
    """Return the smallest or the greatest values as text: bytes in hexadecimal, arrays as lists.

    Args:
        statistics: statistics of any columns.
        name: `MIN` or `MAX`.

    Raises:
        ValueError or pa.ArrowException: a value does not fit its type.
    """
    texts = [
        (rows, _text(values, ordinal, info)) for rows, values, ordinal, info in _by_type(statistics, name)
    ]
    return _assembled(texts, len(statistics), pa.string())


def bounds_as(statistics: pa.StructArray, name: str, kind: pa.DataType) -> pa.Array:
    """Return the smallest or the greatest values as a type; null where they have no place in its order.

    Numbers may have become wider since, which keeps their order. Version V1 does not say in which unit
    times are.

    Args:
        statistics: statistics of one column.
        name: `MIN` or `MAX`.
        kind: the type that the column has now.
    """
    pieces = [
        (rows, _converted(values, ordinal, info, kind))
        for rows, values, ordinal, info in _by_type(statistics, name)
    ]
    return _assembled(pieces, len(statistics), kind)


def _by_type(statistics: pa.StructArray, name: str) -> Iterator[tuple[Array, pa.Array, int, str]]:
    """Yield the bounds of each type: their rows, values as stored, logical type and its information."""
    bounds, groups = statistics.field(name), _Groups.of(statistics)
    for member in range(bounds.type.num_fields):
        wrapper = bounds.field(member)
        is_held = is_true(bounds.is_valid()) & is_true(wrapper.is_valid())
        for group in np.unique(groups.codes[is_held]):
            rows = np.flatnonzero(is_held & (groups.codes == group))
            yield rows, wrapper.take(pa.array(rows)).field(0), *groups.type_of(group)


def _assembled(pieces: Sequence[tuple[Array, pa.Array]], count: int, kind: pa.DataType) -> pa.Array:
    """Return arrays, each with the rows where its values belong, as one array; null elsewhere."""
    places, arrays = np.zeros(count, np.int64), [pa.nulls(1, kind)]
    for rows, values in pieces:
        places[rows] = sum(map(len, arrays)) + np.arange(len(rows))
        arrays.append(values)
    return pa.concat_arrays(arrays).take(pa.array(places))


def _converted(values: pa.Array, ordinal: int, info: str, kind: pa.DataType) -> pa.Array:
    try:
        values = _logical(values, ordinal, info)
        if keeps_order(values.type, kind):
            return widened(values, kind, safe=not pt.is_floating(kind))
    except (ValueError, pa.ArrowException):
        pass  # such as a decimal that the type has no room for
    return pa.nulls(len(values), kind)


def bounds_cast_to(statistics: pa.StructArray, name: str, kind: pa.DataType) -> pa.Array:
    """Return bounds as values of a type that this release stores in an index of the same version.

    Unlike in `bounds_as`, times of version V1 have the unit of the type, and NaN stays.

    Args:
        statistics: statistics of one column.
        name: `MIN` or `MAX`.
        kind: the type that the column has now.
    """
    pieces = [
        (rows, _cast_bounds(values, ordinal, info, kind))
        for rows, values, ordinal, info in _by_type(statistics, name)
    ]
    return _assembled(pieces, len(statistics), kind)


def _cast_bounds(values: pa.Array, ordinal: int, info: str, kind: pa.DataType) -> pa.Array:
    try:
        if pt.is_temporal(kind) and ordinal not in _LOGICAL and pt.is_integer(values.type):
            return values.cast(pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)
        values = _logical(values, ordinal, info)
        if values.type == kind or keeps_order(values.type, kind) or _is_bytes(values.type, kind):
            return widened(values, kind)
    except (ValueError, pa.ArrowException):
        pass  # the files are read instead
    return pa.nulls(len(values), kind)


def _is_bytes(*types: pa.DataType) -> bool:
    return all(pt.is_binary(each) or pt.is_fixed_size_binary(each) for each in types)


def keeps_order(stored: pa.DataType, kind: pa.DataType) -> bool:
    """Return whether values of a type are in the same order as another."""
    if pt.is_timestamp(kind):
        return bool(pt.is_timestamp(stored)) and stored.unit == kind.unit and (not stored.tz) == (not kind.tz)
    if pt.is_floating(kind):
        return bool(pt.is_integer(stored) or pt.is_floating(stored))
    families = (pt.is_integer, pt.is_decimal, pt.is_string, pt.is_boolean, pt.is_date32)
    return any(is_of(kind) and is_of(stored) for is_of in families)


@dataclass(frozen=True, slots=True)
class _Groups:
    """Rows by the logical type of their column.

    Attributes:
        codes: a number for each row, equal for equal types.
        infos: what types say besides, such as precision and scale.
    """

    codes: Array
    infos: Sequence[str]

    @staticmethod
    def of(statistics: pa.StructArray) -> _Groups:
        infos = statistics.field("valueType").field("additionalInfo").fill_null("").dictionary_encode()
        numbers = infos.indices.to_numpy(zero_copy_only=False)
        codes = _ordinals(statistics) * max(1, len(infos.dictionary)) + numbers
        return _Groups(codes, infos.dictionary.to_pylist())

    def type_of(self, code: int) -> tuple[int, str]:
        """Return the ordinal and the information of a type."""
        ordinal, info = divmod(int(code), len(self.infos))
        return ordinal, self.infos[info]


def _ordinals(statistics: pa.StructArray) -> Array:
    """Return the logical type of each row as its ordinal, 0 if unknown."""
    types = statistics.field("valueType").field("typeOrdinal")
    stored = types.fill_null(0).to_numpy(zero_copy_only=False)
    of_wrapper = np.zeros(len(statistics), np.int64)
    bounds = statistics.field(MIN)
    for member, ordinal in enumerate(_ORDINALS_OF_V1):
        of_wrapper[is_true(bounds.is_valid()) & is_true(bounds.field(member).is_valid())] = ordinal
    return np.where((stored > 0) & (stored < len(_NAMES)), stored, of_wrapper)


def _text(values: pa.Array, ordinal: int, info: str) -> pa.StringArray:
    if pt.is_list(values.type):
        return pa.array([str(_plain(each)) for each in values.to_pylist()], pa.string())
    values = _logical(values, ordinal, info)
    if pt.is_binary(values.type):
        return pa.array([f"0x{value.hex()}" for value in values.to_pylist()], pa.string())
    return values.cast(pa.string())


def _logical(values: pa.Array, ordinal: int, info: str) -> pa.Array:
    """Return stored values as values of their logical type."""
    if ordinal == _DECIMAL and pt.is_binary(values.type):
        precision, scale = map(int, info.split(","))
        return decimals_of_bytes(values, pa.decimal128(precision, scale))
    return values.cast(_LOGICAL.get(ordinal, values.type))


def _plain(items: Sequence[Mapping[str, Any] | None] | None) -> list[Any]:
    return [None if item is None else _wrapper(item)["value"] for item in items or ()]


def _wrapper(wrapped: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the one member of a union that is not null."""
    (wrapper,) = (member for member in wrapped.values() if member is not None)
    return dict(wrapper)


_FILE_STATISTICS: Final = 3
_BOOLEAN, _INT, _LONG, _FLOAT, _DOUBLE, _BYTES, _STRING, _DATE, _DECIMAL_WRAPPER = range(9)
"""Members of the union of wrappers."""

_V1_DECIMAL: Final = pa.decimal128(30, 15)
_V1_SCALE_MAX: Final = 15
_UNITS: Final = ("ms", "us", "ns")
_DELETED: Final = -1


@dataclass(frozen=True, slots=True)
class Stored:
    """How an index stores values of a type.

    Attributes:
        member: number of the wrapper.
        ordinal: number of the logical type; 0 in version V1.
        info: precision and scale of a decimal.
    """

    member: int
    ordinal: int = 0
    info: str | None = None

    @staticmethod
    def of(kind: pa.DataType, *, is_v2: bool) -> Stored | None:
        """Return how values of a type are stored; None if the index cannot hold them."""
        if pt.is_dictionary(kind):
            kind = kind.value_type
        if pt.is_null(kind):
            return Stored(_BOOLEAN, 1 if is_v2 else 0)  # all bounds are null
        return _stored_v2(kind) if is_v2 else _stored_v1(kind)


def _stored_v2(kind: pa.DataType) -> Stored | None:
    for is_of, member, ordinal in _PLAIN:
        if is_of(kind):
            return Stored(member, ordinal)
    if pt.is_decimal128(kind):
        return Stored(_BYTES, 10, f"{kind.precision},{kind.scale}")
    if pt.is_date32(kind):
        return Stored(_INT, 12)
    if pt.is_time32(kind):
        return Stored(_INT, 13)
    if pt.is_time64(kind):
        return Stored(_LONG, 14)
    if pt.is_timestamp(kind) and kind.unit in _UNITS:
        return Stored(_LONG, (15 if kind.tz else 18) + _UNITS.index(kind.unit))
    return None


def _stored_v1(kind: pa.DataType) -> Stored | None:
    for is_of, member, _ in _PLAIN:
        if is_of(kind):
            return Stored(member)
    if pt.is_decimal128(kind):
        fits = kind.scale <= _V1_SCALE_MAX and kind.precision + _V1_SCALE_MAX - kind.scale <= 30
        return Stored(_DECIMAL_WRAPPER) if fits else None
    if pt.is_date32(kind):
        return Stored(_DATE)
    if pt.is_time32(kind):
        return Stored(_INT)
    return Stored(_LONG) if pt.is_time64(kind) or pt.is_timestamp(kind) else None


_PLAIN: Final = (
    (pt.is_boolean, _BOOLEAN, 2),
    (lambda kind: pt.is_signed_integer(kind) and kind.bit_width < 64, _INT, 3),
    (pt.is_int64, _LONG, 4),
    (pt.is_float32, _FLOAT, 5),
    (pt.is_float64, _DOUBLE, 6),
    (pt.is_string, _STRING, 7),
    (pt.is_binary, _BYTES, 8),
    (pt.is_fixed_size_binary, _BYTES, 9),
)
"""Types that are stored as they are: wrapper and logical type."""


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """Statistics of a column in a file or a partition.

    Attributes:
        partition: partition path.
        file: name of the file; None for all files of the partition.
        summary: of the values.
    """

    partition: str
    file: str | None
    summary: ColumnSummary

    @property
    def name(self) -> str:
        """Name of the file or of the partition, as the record has it."""
        return self.partition if self.file is None else self.file


def column_key(column: str, partition: str, file: str | None = None) -> str:
    """Return the key of the statistics of a column in a file, or in all files of a partition."""
    return name_hash(column) + partition_hash(partition) + (file_hash(file) if file else "")


def encode_statistics(described: Iterable[ColumnStatistics], *, is_v2: bool) -> pa.Table:
    """Return the records of statistics, without those of types that the index cannot hold.

    Args:
        described: statistics with distinct keys.
        is_v2: whether the index has version V2.
    """
    by_type: dict[pa.DataType, list[ColumnStatistics]] = defaultdict(list)
    for each in described:
        by_type[each.summary.bounds.type].append(each)
    tables = [_no_records()]
    for kind, group in by_type.items():
        stored = Stored.of(kind, is_v2=is_v2)
        if stored is not None:
            tables.append(_records(group, stored))
    return pa.concat_tables(tables)


def encode_deleted(deleted: Sequence[tuple[str, str, str | None]]) -> pa.Table:
    """Return the records that delete statistics.

    Args:
        deleted: column, partition path, and file name or None, of each.
    """
    count = len(deleted)
    no_count = pa.repeat(pa.scalar(_DELETED, pa.int64()), count)
    names = [partition if file is None else file for _, partition, file in deleted]
    columns = {
        "fileName": pa.array(names, pa.string()),
        "columnName": pa.array([column for column, _, _ in deleted], pa.string()),
        **dict.fromkeys(("valueCount", "nullCount", "totalSize", "totalUncompressedSize"), no_count),
        "isDeleted": pa.repeat(pa.scalar(True), count),
        "isTightBound": pa.array([file is None for _, _, file in deleted], pa.bool_()),
    }
    return _table([column_key(*each) for each in deleted], columns)


def _records(group: Sequence[ColumnStatistics], stored: Stored) -> pa.Table:
    summaries = [each.summary for each in group]
    bounds = _physical(pa.concat_arrays([each.bounds for each in summaries]), stored)
    numbers = np.arange(len(bounds))
    columns = {
        "fileName": pa.array([each.name for each in group], pa.string()),
        "columnName": pa.array([each.column for each in summaries], pa.string()),
        "minValue": _wrapped(bounds.take(pa.array(numbers[::2])), stored),
        "maxValue": _wrapped(bounds.take(pa.array(numbers[1::2])), stored),
        "valueCount": pa.array([each.values for each in summaries], pa.int64()),
        "nullCount": pa.array([each.nulls for each in summaries], pa.int64()),
        "totalSize": pa.array([each.size_bytes for each in summaries], pa.int64()),
        "totalUncompressedSize": pa.array([each.plain_bytes for each in summaries], pa.int64()),
        "isDeleted": pa.repeat(pa.scalar(False), len(group)),
        "isTightBound": pa.array([_is_tight(each, stored) for each in group], pa.bool_()),
        "valueType": _value_types(stored, len(group)),
    }
    keys = [column_key(each.summary.column, each.partition, each.file) for each in group]
    return _table(keys, columns)


def _is_tight(described: ColumnStatistics, stored: Stored) -> bool:
    """Return whether bounds and counts are those of all values: in version 6 a log file may yet get more."""
    is_log = described.file is not None and described.file.startswith(".")
    return not is_log or stored.ordinal > 0


def _table(keys: list[str], columns: dict[str, pa.Array]) -> pa.Table:
    """Return records, with null for the fields that are not given."""
    schema, count = _no_records().schema, len(keys)
    fields = list(schema.field(STATISTICS).type)
    values = [columns.get(field.name, pa.nulls(count, field.type)) for field in fields]
    tight = columns["isTightBound"].to_numpy(zero_copy_only=False)
    of_partition = np.array([len(key) for key in keys]) < len(column_key("", "", "-"))
    kinds = np.where(of_partition & tight, PARTITION_STATISTICS, _FILE_STATISTICS)
    statistics = pa.StructArray.from_arrays(values, fields=fields)
    return pa.table([pa.array(keys, pa.string()), pa.array(kinds, pa.int32()), statistics], schema=schema)


def _no_records() -> pa.Table:
    return record_schema(Kind.STATISTICS).empty_table()


def _physical(values: pa.Array, stored: Stored) -> pa.Array:
    """Return values as their wrapper holds them."""
    if pt.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if stored.member == _DECIMAL_WRAPPER:
        return values.cast(_V1_DECIMAL)
    if pt.is_decimal128(values.type):
        return _unscaled(values)
    kind = _wrapper_types()[stored.member].field("value").type
    if pt.is_integer(kind) and not pt.is_integer(values.type):
        width = pa.int32() if values.type.bit_width == 32 else pa.int64()
        return values.cast(width).cast(kind)
    return values.cast(kind)


def _unscaled(decimals: pa.Array) -> pa.BinaryArray:
    """Return the unscaled values of decimals in the fewest bytes, as Java writes integers."""
    rows = big_endian(decimals)
    sign = np.where(rows[:, :1] > 127, 255, 0).astype(np.uint8)
    is_redundant = (rows[:, :-1] == sign) & ((rows[:, 1:] > 127) == (sign > 127))
    first = np.cumprod(is_redundant, axis=1).sum(axis=1)
    kept = np.arange(rows.shape[1]) >= first[:, None]
    offsets = np.concatenate([[0], np.cumsum(rows.shape[1] - first)]).astype(np.int32)
    valid = decimals.is_valid().buffers()[1] if decimals.null_count else None
    buffers = [valid, pa.py_buffer(offsets), pa.py_buffer(rows[kept])]
    return pa.Array.from_buffers(pa.binary(), len(decimals), buffers)


def _wrapped(values: pa.Array, stored: Stored) -> pa.StructArray:
    """Return values in the union of wrappers."""
    union = record_schema(Kind.STATISTICS).field(STATISTICS).type.field("minValue").type
    is_null = pc.is_null(values)
    members = [
        pa.StructArray.from_arrays([values], fields=list(kind), mask=is_null)
        if number == stored.member
        else pa.nulls(len(values), kind)
        for number, kind in enumerate(_wrapper_types())
    ]
    return pa.StructArray.from_arrays(members, fields=list(union), mask=is_null)


def _wrapper_types() -> list[pa.DataType]:
    union = record_schema(Kind.STATISTICS).field(STATISTICS).type.field("minValue").type
    return [field.type for field in union]


def _value_types(stored: Stored, count: int) -> pa.StructArray:
    kind = record_schema(Kind.STATISTICS).field(STATISTICS).type.field("valueType").type
    if not stored.ordinal:
        return pa.nulls(count, kind)
    values = [
        pa.repeat(pa.scalar(stored.ordinal, pa.int32()), count),
        pa.array([stored.info] * count, pa.string()),
    ]
    return pa.StructArray.from_arrays(values, fields=list(kind))
