"""Statistics of columns in the metadata table: combining two versions of them, and their bounds as text.

A bound is a union of wrapper records, one for each physical type, of which one member is not null. Indexes of
version V1 have a wrapper for each logical type too; those of V2 have the physical wrapper, and the logical
type in `valueType`:

    V1   minValue {member8: {value: 12.50}}         valueType null
    V2   minValue {member5: {value: 0x04E2}}        valueType {typeOrdinal: 10, additionalInfo: "10,2"}
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.formats.avro.decimals import decimals_of_bytes
from drawstring.merge.order import Array, number_keys
from drawstring.merge.versions import flat
from drawstring.metadata.merging import is_true, newest
from drawstring.metadata.partitions import IS_REMOVED, KEY, PARTITION_STATISTICS, STATISTICS, TYPE
from drawstring.schema.evolve import widened

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
    several = pa.Table.from_pylist(list(_folded(rows.filter(pa.array(chosen)))), rows.schema)
    return newest(pa.concat_tables([rows.filter(pa.array(~chosen)), several]))


def with_cuts(rows: pa.Table) -> pa.Table:
    """Return versions of statistics in which those that are deleted remove what is before them, too.

    A live version after a deleted one replaces what is before both. Without a removal nothing would tell
    that once versions are merged among themselves.

    Args:
        rows: versions of records, oldest first, with the column `is_removed`.
    """
    statistics = flat(rows.column(STATISTICS))
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
    statistics = flat(rows.column(STATISTICS))
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


def _folded(rows: pa.Table) -> Iterator[dict[str, Any]]:
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


def bounds_kept_as(statistics: pa.StructArray, name: str, kind: pa.DataType) -> pa.Array:
    """Return bounds as values of a type that this release stores in an index of the same version.

    Unlike in `bounds_as`, times of version V1 have the unit of the type, and NaN stays.

    Args:
        statistics: statistics of one column.
        name: `MIN` or `MAX`.
        kind: the type that the column has now.
    """
    pieces = [
        (rows, _kept(values, ordinal, info, kind))
        for rows, values, ordinal, info in _by_type(statistics, name)
    ]
    return _assembled(pieces, len(statistics), kind)


def _kept(values: pa.Array, ordinal: int, info: str, kind: pa.DataType) -> pa.Array:
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
