"""Content of a DELETE block (specification: Log Format, Delete Block). Numbers are big-endian.

     4  content version  3; in files of releases before 0.13 also 1 or 2
     4  length           of the rest
        version 3: Avro datum of HoodieDeleteRecordList: record key, partition path, ordering value
        versions 1 and 2: see `kryo`

The ordering value is a union of one-field records by type. Int 0 and null mean "no ordering value": such a
commit-time delete wins over everything written before it.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.base.errors import REPAIR, CorruptTableError, InvalidError, UnsupportedError
from drawstring.formats import schemas
from drawstring.formats.avro.container import DAMAGE, encode_long
from drawstring.formats.avro.encode import (
    Part,
    binary_parts,
    encode_booleans,
    encode_bytes,
    encode_decimals,
    encode_floats,
    encode_numbers,
    join,
)
from drawstring.formats.log_inline.delete_columns import read_delete_columns
from drawstring.formats.log_inline.kryo import read_kryo_deletes

_HEAD = struct.Struct(">ii")
CONTENT_VERSION = 3
_KRYO_VERSIONS = (1, 2)
_DECIMAL = pa.decimal128(30, 15)
_ARRAY_BRANCH = 12
_NO_ORDERING = b"\x04\x00"
"""IntWrapper 0."""


@dataclass(frozen=True, slots=True)
class DeleteRecords:
    """The records of a delete block.

    Attributes:
        keys: record keys.
        ordering: ordering values, null for commit-time deletes; a struct with the fields `0`, `1`, ...
            for several ordering fields; None if all are commit-time deletes.
        is_commit_time: whether a delete is a commit-time delete.
    """

    keys: pa.StringArray
    ordering: pa.Array | None
    is_commit_time: pa.BooleanArray


def encode_deletes(keys: pa.Array, partition: str, ordering: pa.Array | None = None) -> bytes:
    """Return the content of a delete block.

    Args:
        keys: record keys.
        partition: partition path of all records.
        ordering: ordering values, a struct for several ordering fields; null values and None result in
            commit-time deletes.

    Raises:
        InvalidError: a delete block cannot store the type of the ordering values.
    """
    path = partition.encode()
    values = _NO_ORDERING if ordering is None else _encode_ordering(ordering)
    records = join([b"\x02", *encode_bytes(keys), b"\x02" + encode_long(len(path)) + path, values])
    offsets, data = binary_parts(records)
    body = data[offsets[0] : offsets[-1]].tobytes()
    payload = (encode_long(len(keys)) + body if len(keys) else b"") + encode_long(0)
    return _HEAD.pack(CONTENT_VERSION, len(payload)) + payload


def _encode_ordering(ordering: pa.Array) -> pa.Array:
    if pt.is_struct(ordering.type):
        return _encode_several(ordering)
    return _or_else(_encode_values(ordering), ordering, _NO_ORDERING)


def _encode_several(ordering: pa.StructArray) -> pa.Array:
    """Wrap the values of several columns in an ArrayWrapper; rows with only nulls have no ordering value."""
    columns = [ordering.field(at) for at in range(ordering.type.num_fields)]
    parts = [_or_else(_encode_values(column), column, encode_long(0)) for column in columns]
    head = encode_long(_ARRAY_BRANCH) + encode_long(1) + encode_long(len(columns))
    wrapped = join([head, *parts, encode_long(0)])
    empty = columns[0].is_null()
    for column in columns[1:]:
        empty = pc.and_(empty, column.is_null())
    return pc.if_else(empty, pa.scalar(_NO_ORDERING, pa.binary()), wrapped)


def _or_else(encoded: pa.Array, values: pa.Array, absent: bytes) -> pa.Array:
    return pc.if_else(values.is_valid(), encoded, pa.scalar(absent, pa.binary()))


def _encode_values(values: pa.Array) -> pa.Array:
    """Return union branch and value of each element; nulls become arbitrary values."""
    kind = values.type
    for branch, (matches, encode) in _BRANCHES.items():
        if matches(kind):
            return join([encode_long(branch), *encode(values)])
    raise InvalidError(f"Deletes cannot store ordering values of type {kind}. Choose another ordering field.")


def _encode_decimal(values: pa.Array) -> list[Part]:
    return encode_decimals(values.cast(_DECIMAL))


# Dates and times are stored as plain numbers: Hudi on Spark compares the ordering value of a delete with the
# number in the row, and treats a delete whose value has another Java type as a commit-time delete.
_BRANCHES: dict[int, tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], list[Part]]]] = {
    1: (pt.is_boolean, encode_booleans),
    2: (lambda kind: pt.is_int32(kind) or pt.is_date32(kind), encode_numbers),
    3: (lambda kind: pt.is_int64(kind) or pt.is_timestamp(kind) or pt.is_time64(kind), encode_numbers),
    4: (pt.is_float32, encode_floats),
    5: (pt.is_float64, encode_floats),
    6: (pt.is_binary, encode_bytes),
    7: (pt.is_string, encode_bytes),
    9: (pt.is_decimal, _encode_decimal),
}

_KINDS: dict[str, pa.DataType] = {
    "BooleanWrapper": pa.bool_(),
    "IntWrapper": pa.int32(),
    "LongWrapper": pa.int64(),
    "FloatWrapper": pa.float64(),
    "DoubleWrapper": pa.float64(),
    "BytesWrapper": pa.binary(),
    "StringWrapper": pa.string(),
    "DateWrapper": pa.date32(),
    "LocalDateWrapper": pa.date32(),
    "DecimalWrapper": _DECIMAL,
    "TimeMicrosWrapper": pa.time64("us"),
    "TimestampMicrosWrapper": pa.timestamp("us", "UTC"),
}


def decode_deletes(data: bytes) -> DeleteRecords:
    """Return the records of a delete block.

    Dates and timestamps are mostly returned as int32 and int64, in the unit of the table's column, and
    floats as float64.

    Args:
        data: content of the block.

    Raises:
        CorruptTableError: the bytes are damaged.
        UnsupportedError: the content version is not supported.
    """
    try:
        version, length = _HEAD.unpack_from(data)
        if version not in (*_KRYO_VERSIONS, CONTENT_VERSION):
            raise UnsupportedError(
                f"Delete blocks of content version {version} are not supported. Compact the table "
                "with the engine that wrote it."
            )
        payload = data[_HEAD.size :]
        if length != len(payload):
            raise ValueError(f"it claims {length} bytes but has {len(payload)}")
        return _records_of_kryo(payload) if version in _KRYO_VERSIONS else _records_of_avro(payload)
    except (*DAMAGE, pa.ArrowException) as error:
        raise CorruptTableError(
            f"A delete block is damaged ({error}). To repair the table, {REPAIR}."
        ) from error


def _read_list(payload: bytes) -> list[dict[str, Any]]:
    stream = io.BytesIO(payload)
    content: Any = fastavro.schemaless_reader(stream, _schema(), None, return_record_name=True)
    if stream.tell() != len(payload):
        raise ValueError(f"{len(payload) - stream.tell()} bytes follow the last record")
    records: list[dict[str, Any]] = content["deleteRecordList"]
    return records


@cache
def _schema() -> Any:
    return fastavro.parse_schema(schemas.load("delete_list"))


def _records_of_avro(payload: bytes) -> DeleteRecords:
    columns = read_delete_columns(payload)
    if columns is not None:
        keys, values, is_absent = columns
        kind = _common({*values}) if values else None
        found = [each.cast(kind) for each in values.values()]
        ordering = pc.coalesce(*found) if len(found) > 1 else next(iter(found), None)
        return DeleteRecords(keys, ordering, pa.array(is_absent))
    records = _read_list(payload)
    return _records_of([each["recordKey"] for each in records], [each["orderingVal"] for each in records])


def _records_of_kryo(payload: bytes) -> DeleteRecords:
    deletes = read_kryo_deletes(payload)
    wrapped = [
        None if each.ordering is None else (f"{_WRAPPERS}{each.ordering[0]}", {"value": each.ordering[1]})
        for each in deletes
    ]
    return _records_of([each.key for each in deletes], wrapped)


def _records_of(record_keys: list[str | None], wrapped: list[Any]) -> DeleteRecords:
    keys = pa.array(record_keys, pa.string())
    if keys.null_count:
        raise ValueError(f"{keys.null_count} deletes have no record key")
    commit_time = [each is None or each == _NO_ORDERING_VALUE for each in wrapped]
    ordered = [None if is_default else each for is_default, each in zip(commit_time, wrapped, strict=True)]
    return DeleteRecords(keys, _ordering_of(ordered), pa.array(commit_time, pa.bool_()))


_WRAPPERS = "org.apache.hudi.avro.model."
_NO_ORDERING_VALUE = (f"{_WRAPPERS}IntWrapper", {"value": 0})


def _ordering_of(wrapped: list[Any]) -> pa.Array | None:
    """Return an array of the values, or a struct array if each wraps several."""
    present = [each for each in wrapped if each is not None]
    if not present:
        return None
    if "wrappedValues" not in present[0][1]:
        return _values_of(wrapped)
    rows = [None if each is None else each[1]["wrappedValues"] for each in wrapped]
    width = max(len(row) for row in rows if row is not None)
    columns = [_values_of([row[at] if row else None for row in rows]) for at in range(width)]
    return pa.StructArray.from_arrays(columns, names=[str(at) for at in range(width)])


def _values_of(wrapped: list[Any]) -> pa.Array:
    """Return the values of wrappers of one type, or of ints and longs."""
    kinds = {_KINDS[each[0].rpartition(".")[2]] for each in wrapped if each is not None}
    values = [None if each is None else each[1]["value"] for each in wrapped]
    return pa.array(values, _common(kinds) if kinds else pa.null())


def _common(kinds: set[pa.DataType]) -> pa.DataType:
    """Return the common type of all values; a column that was widened has both ints and longs."""
    if len(kinds) == 1:
        return next(iter(kinds))
    if kinds == {pa.int32(), pa.int64()}:
        return pa.int64()
    raise ValueError(f"its ordering values are of several types: {sorted(map(str, kinds))}")
