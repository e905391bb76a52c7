"""Records of statistics of columns for the metadata table, as Apache Hudi 1.2.0 writes them.

    values of a type ── wrapper of the version ──> minValue, maxValue, valueType     (`metadata.statistics`)

Version V1 belongs to table versions 6 and 8, V2 to version 9. A record that is deleted has counts of -1.
Bounds are tight, which Hudi does not say of those of files: so readers know that nothing was left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.formats.avro.encode import big_endian
from drawstring.metadata.keys import file_hash, name_hash, partition_hash
from drawstring.metadata.partitions import PARTITION_STATISTICS, STATISTICS, Kind, record_schema
from drawstring.model.column_summary import ColumnSummary

_FILE_STATISTICS: Final = 3
_BOOLEAN, _INT, _LONG, _FLOAT, _DOUBLE, _BYTES, _STRING, _DATE, _DECIMAL = range(9)
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
        return Stored(_DECIMAL) if fits else None
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
class Described:
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


def encode_statistics(described: Iterable[Described], *, is_v2: bool) -> pa.Table:
    """Return the records of statistics, without those of types that the index cannot hold.

    Args:
        described: statistics with distinct keys.
        is_v2: whether the index has version V2.
    """
    by_type: dict[pa.DataType, list[Described]] = defaultdict(list)
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


def _records(group: Sequence[Described], stored: Stored) -> pa.Table:
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


def _is_tight(described: Described, stored: Stored) -> bool:
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
    if stored.member == _DECIMAL:
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
