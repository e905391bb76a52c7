r"""Convert, hash and pack rows between Spark and the core.

Conversion of types:

Text, numbers, booleans, dates, decimals, binary, arrays, maps and structs have the same type and
nullability in Arrow. A timestamp with a time zone is Spark's TIMESTAMP, one without is TIMESTAMP_NTZ. A
time of day, which Spark lacks before 4.1, is a LONG with the stored value. A fixed-size binary is BINARY.

Hudi's own types (`logical_types`) have their name in the metadata of their column (`hudi_type`). A VECTOR
is an array whose items are not null, a BLOB a struct all of whose fields may be null, as Hudi shows it.
VARIANT is Spark's own type. The grammar of statements lacks VECTOR and BLOB, so a struct stands for them:
its one field has the name of the type (`stand_in`).

Packing for a shuffle: a few thousand rows become one Spark row. Converting wide rows to Spark's row format
and back costs more than processing them. So a task packs its batches into one Arrow message per group, and
Spark shuffles, sorts and spills these messages:

    bucket  string that Spark partitions and sorts by: the group, or the hash bucket of the join key
    side    0 for the build side of a join, 1 for all other rows
    part    partition that the rows come from  \ keep the order of the rows
    number  number of the message in its part  / within every group
    data    the rows: an Arrow IPC record batch message without its schema
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T

from drawstring.base.errors import InternalError, UnsupportedError
from drawstring.base.resources import BATCH_ROWS
from drawstring.engine.grouping import coalesced, split_by
from drawstring.engine.joins import left_pairs, with_null_left
from drawstring.engine.protocol import BatchFunction
from drawstring.schema.avro import fields_in
from drawstring.schema.evolution import null_mask
from drawstring.schema.logical_types import (
    HUDI_TYPE,
    described_type,
    descriptor,
    is_blob,
    is_variant,
    is_vector,
    lists_of_vectors,
    nested_vector,
)

_MULTIPLIER = 0x9E3779B97F4A7C15


def with_types(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Cast a batch to exactly the types of a schema with the same columns.

    Raises:
        InternalError: the columns differ, or one cannot be cast.
    """
    if batch.schema.names != schema.names:
        raise InternalError(
            f"Spark passed the columns {batch.schema.names} instead of {schema.names}. Report this defect."
        )
    columns = [_cast(column, field) for column, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(column: pa.Array, field: pa.Field) -> pa.Array:
    if column.type.equals(field.type):
        return column
    if is_vector(column.type):
        return lists_of_vectors(column, field.type)
    if is_variant(column.type):
        parts = [column.field(each.name) for each in field.type]
        return pa.StructArray.from_arrays(parts, fields=list(field.type), mask=null_mask(column))
    if pa.types.is_time(column.type) and pa.types.is_int64(field.type):
        return column.cast(pa.time64("us")).cast(pa.int64())
    try:
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InternalError(
            f"Spark passed column {field.name} as {column.type} instead of {field.type} ({error})."
            " Report this defect."
        ) from error


def join_key(batch: pa.RecordBatch, on: Sequence[str]) -> pa.Array:
    """Return one string per row that encodes its values in `on`; null if one of them is null.

    Every value but the last is prefixed with its length, so that different keys have different strings.
    """
    columns = [batch.column(name).cast(pa.string()) for name in on]
    if len(columns) == 1:
        return columns[0]
    sized = [part for column in columns[:-1] for part in (pc.binary_length(column).cast(pa.string()), column)]
    return pc.binary_join_element_wise(*sized, columns[-1], ":")


def text_hash(texts: pa.Array) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Hash every string to 64 bits, the same in every process; null hashes like the empty string."""
    raw = pc.fill_null(texts, "").cast(pa.large_binary())
    offsets = np.frombuffer(raw.buffers()[1], np.int64, len(raw) + 1, raw.offset * 8)
    start, end = int(offsets[0]), int(offsets[-1])
    hashes = np.full(len(raw), _MULTIPLIER, np.uint64)
    if end > start:
        data = np.frombuffer(raw.buffers()[2], np.uint8, end - start, start)
        lengths = np.diff(offsets)
        filled = lengths > 0
        begins = (offsets[:-1] - start)[filled]
        positions = np.arange(end - start) - np.repeat(begins, lengths[filled])
        weighted = (data.astype(np.uint64) + np.uint64(1)) * _weights(int(lengths.max()))[positions]
        hashes[filled] += np.add.reduceat(weighted, begins)
    return _mixed(hashes)


def _weights(count: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Return the weights of the positions in a string: powers of an odd constant modulo 2^64."""
    return np.cumprod(np.full(count, _MULTIPLIER, np.uint64), dtype=np.uint64)


def _mixed(hashes: np.ndarray[Any, np.dtype[np.uint64]]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Mix the high bits into the low bits, which select the bucket."""
    hashes ^= hashes >> np.uint64(32)
    hashes *= np.uint64(0xD6E8FEB86659FD93)
    hashes ^= hashes >> np.uint64(32)
    return hashes


PACKED_SCHEMA: Final = pa.schema(
    [
        ("bucket", pa.string()),
        ("side", pa.int32()),
        ("part", pa.int32()),
        ("number", pa.int64()),
        ("data", pa.binary()),
    ]
)
MESSAGE_BYTES_MAX: Final = 8 << 20
"""Approximate maximum size of the rows in one message, in bytes."""

LOOKED_UP, MAIN = 0, 1

Splitter = Callable[[pa.RecordBatch], Sequence[tuple[str | None, pa.RecordBatch]]]
Bucketed = tuple[str | None, int, pa.Buffer]


@dataclass(frozen=True, slots=True)
class NoSplit:
    """A splitter that does not split."""

    def __call__(self, batch: pa.RecordBatch) -> Sequence[tuple[str | None, pa.RecordBatch]]:
        return [(None, batch)]


@dataclass(frozen=True, slots=True)
class ByGroup:
    """A splitter by the values of group columns."""

    by: tuple[str, ...]

    def __call__(self, batch: pa.RecordBatch) -> Sequence[tuple[str | None, pa.RecordBatch]]:
        return [(json.dumps(key, default=str), rows) for key, rows in split_by(batch, self.by)]


@dataclass(frozen=True, slots=True)
class ByHash:
    """A splitter by the hash of key columns."""

    on: tuple[str, ...]
    buckets: int

    def __call__(self, batch: pa.RecordBatch) -> Sequence[tuple[str | None, pa.RecordBatch]]:
        bucket = text_hash(join_key(batch, self.on)) % np.uint64(self.buckets)
        keyed = batch.append_column("", pa.array(bucket))
        return [
            (str(key), pa.RecordBatch.from_arrays(rows.columns[:-1], schema=batch.schema))
            for (key,), rows in split_by(keyed, ("",))
        ]


def packed(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema, split: Splitter, side: int, part: int
) -> Iterator[pa.RecordBatch]:
    """Pack a stream of batches.

    Args:
        batches: the rows.
        schema: their columns; the receiver needs it to decode the messages.
        split: splits a batch into buckets.
        side: `LOOKED_UP` or `MAIN`.
        part: number of the partition that the rows come from.
    """
    number = 0
    for batch in coalesced(batches, 2 * BATCH_ROWS):
        pieces = [
            (bucket, piece) for bucket, rows in split(with_types(batch, schema)) for piece in _pieces(rows)
        ]
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([bucket for bucket, _ in pieces], pa.string()),
                pa.array(np.full(len(pieces), side, np.int32)),
                pa.array(np.full(len(pieces), part, np.int32)),
                pa.array(np.arange(number, number + len(pieces))),
                binary([piece.serialize() for _, piece in pieces]),
            ],
            schema=PACKED_SCHEMA,
        )
        number += len(pieces)


def binary(buffers: Sequence[pa.Buffer]) -> pa.Array:
    """Concatenate buffers into a binary array, with one copy."""
    ends = np.cumsum([0, *(buffer.size for buffer in buffers)], dtype=np.int32)
    data = pa.py_buffer(b"".join(buffers))
    return pa.Array.from_buffers(pa.binary(), len(buffers), [None, pa.py_buffer(ends), data])


def _pieces(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    count = -(-rows.nbytes // MESSAGE_BYTES_MAX) or 1
    size = max(1, -(-rows.num_rows // count))
    for start in range(0, rows.num_rows, size):
        yield rows.slice(start, size)


def messages(batches: Iterator[pa.RecordBatch]) -> Iterator[Bucketed]:
    """Yield bucket, side and message of every packed row."""
    for batch in batches:
        buckets, sides = batch.column("bucket").to_pylist(), batch.column("side").to_pylist()
        data = batch.column("data")
        for row, (bucket, side) in enumerate(zip(buckets, sides, strict=True)):
            yield bucket, side, data[row].as_buffer()


@dataclass(frozen=True, slots=True)
class Unpack:
    """A batch function that unpacks rows and coalesces small batches."""

    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return coalesced(pa.ipc.read_record_batch(data, self.schema) for _, _, data in messages(batches))


@dataclass(frozen=True, slots=True)
class JoinBuckets:
    """A batch function that left-joins packed rows, bucket by bucket.

    Within a bucket the rows of the build side come first. They are held in memory, and the rows of the main
    side are streamed.

    Attributes:
        left: columns of the main side.
        right: columns of the build side.
        on: key columns.
        keep_right: whether the result contains rows of the build side without a match.
    """

    left: pa.Schema
    right: pa.Schema
    on: tuple[str, ...]
    keep_right: bool = False

    @property
    def schema(self) -> pa.Schema:
        """Columns of the result."""
        return pa.schema([*self.left, *(field for field in self.right if field.name not in self.on)])

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _, bucket in groupby(messages(batches), key=lambda message: message[0]):
            yield from self._join(bucket)

    def _join(self, bucket: Iterator[Bucketed]) -> Iterator[pa.RecordBatch]:
        sides = groupby(bucket, key=lambda message: message[1])
        side, rows = next(sides)
        build_side: list[pa.RecordBatch] = []
        if side == LOOKED_UP:
            build_side = list(self._decoded(rows, self.right))
            _, rows = next(sides, (MAIN, iter(())))
        right = pa.concat_batches(build_side or [empty(self.right)])
        yield from self.matched(coalesced(self._decoded(rows, self.left)), right)

    def _decoded(self, rows: Iterator[Bucketed], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        return (pa.ipc.read_record_batch(data, schema) for _, _, data in rows)

    def matched(self, batches: Iterator[pa.RecordBatch], right: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Join batches of the main side with the rows of the build side."""
        keys = pc.dictionary_encode(join_key(right, self.on), null_encoding="encode")
        added = right.select([field.name for field in right.schema if field.name not in self.on])
        numbers = keys.indices.to_numpy(zero_copy_only=False)
        is_matched = np.zeros(len(keys.dictionary), dtype=bool)
        for batch in batches:
            indices = pc.index_in(join_key(batch, self.on), value_set=keys.dictionary, skip_nulls=True)
            is_matched[indices.drop_null().to_numpy(zero_copy_only=False)] = True
            codes = indices.fill_null(-1).to_numpy(zero_copy_only=False)
            rows, partners = left_pairs(codes, numbers, len(keys.dictionary))
            left_rows = batch if len(rows) == len(batch) else batch.take(pa.array(rows))
            right_columns = added.take(pa.array(partners, mask=partners < 0)).columns
            yield pa.RecordBatch.from_arrays([*left_rows.columns, *right_columns], schema=self.schema)
        if self.keep_right:
            yield with_null_left(added.filter(pa.array(~is_matched[numbers])), self.left)


def empty(schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch without rows."""
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


@dataclass(frozen=True, slots=True)
class Chain:
    """A batch function that runs several in sequence in one Python worker."""

    steps: tuple[BatchFunction, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for step in self.steps:
            batches = step(batches)
        return batches


def plain(schema: pa.Schema) -> pa.Schema:
    """Return the schema with dictionary types replaced by their value types."""
    return pa.schema([_plain_field(field) for field in schema])


def _plain_field(field: pa.Field) -> Any:
    return field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field


_COMMENT: Final = "comment"
_LENGTHS: Final = re.compile(r'''(^|"(?:type|elementType|keyType|valueType)"\s*:\s*)"(?:var)?char\(\d+\)"''')
_ELEMENT: Final = "element"
_VALUE: Final = "value"
_STAND_IN: Final = "hudi "
_VARIANT: Final = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata={"variant": "true"}),
    ]
)
"""VARIANT as Spark passes it to Python."""

_PLAIN: list[tuple[type[T.DataType], pa.DataType]] = [
    (T.BooleanType, pa.bool_()),
    (T.ByteType, pa.int8()),
    (T.ShortType, pa.int16()),
    (T.IntegerType, pa.int32()),
    (T.LongType, pa.int64()),
    (T.FloatType, pa.float32()),
    (T.DoubleType, pa.float64()),
    (T.StringType, pa.string()),
    (T.BinaryType, pa.binary()),
    (T.DateType, pa.date32()),
    (T.TimestampType, pa.timestamp("us", "UTC")),
    (T.TimestampNTZType, pa.timestamp("us")),
]
_FROM_ARROW: dict[pa.DataType, T.DataType] = {
    **{arrow: spark() for spark, arrow in _PLAIN},
    pa.large_string(): T.StringType(),
    pa.large_binary(): T.BinaryType(),
}


def without_lengths(schema: str) -> str:
    """Return Spark's JSON of columns or of a type with strings for `varchar(n)` and `char(n)`, as in Hudi."""
    return _LENGTHS.sub(r'\1"string"', schema)


def spark_schema(schema: pa.Schema) -> T.StructType:
    """Return the Spark columns for Arrow columns.

    Raises:
        UnsupportedError: Spark has no type for a column; the error names it.
    """
    return T.StructType([_spark_field(field, field.name) for field in schema])


def with_comments(schema: T.StructType, comments: Mapping[str, str]) -> T.StructType:
    """Return Spark columns with comments.

    Args:
        schema: the columns.
        comments: comments by the names of columns, with dots for what is inside of them.
    """
    told = schema.jsonValue()
    for path, field in fields_in(told):
        if (name := ".".join(path)) in comments:
            field["metadata"] = {**field["metadata"], _COMMENT: comments[name]}
    return T.StructType.fromJson(told)


def commented_schema(schema: T.StructType) -> pa.Schema:
    """Return the Arrow columns for Spark columns, with their comments and Hudi's types in their metadata.

    Raises:
        InvalidError: a VECTOR is inside of another column.
        UnsupportedError: tables cannot store the type of a column; the error names it.
    """
    told = {path: field["metadata"] for path, field in fields_in(schema.jsonValue())}
    return pa.schema([_with_metadata(field, (field.name,), told) for field in arrow_schema(schema)])


def _with_metadata(field: pa.Field, path: tuple[str, ...], told: Mapping[tuple[str, ...], Any]) -> pa.Field:
    kind = field.type
    if pa.types.is_struct(kind):
        inner = [_with_metadata(each, (*path, each.name), told) for each in kind]
        field = field.with_type(pa.struct(inner))
    elif pa.types.is_list(kind):
        item = _with_metadata(kind.value_field, (*path, _ELEMENT), told)
        field = field.with_type(pa.list_(item))
    elif pa.types.is_map(kind):
        field = field.with_type(
            pa.map_(kind.key_field, _with_metadata(kind.item_field, (*path, _VALUE), told))
        )
    found = told.get(path, {})
    metadata = {key: found[key] for key in (_COMMENT, HUDI_TYPE) if found.get(key)}
    return field.with_metadata(metadata) if metadata else field


def stand_in(name: str) -> str:
    """Return the type that stands for one of Hudi's types in a statement.

    Args:
        name: the type, such as `VECTOR(3, DOUBLE)`.
    """
    return f"STRUCT<`{_STAND_IN}{name}`: BINARY>"


def arrow_schema(schema: T.StructType) -> pa.Schema:
    """Return the Arrow columns for Spark columns; timestamps with a zone are in UTC.

    Raises:
        UnsupportedError: tables cannot store the type of a column; the error names it.
    """
    return pa.schema([_arrow_field(field, field.name) for field in schema.fields])


def _spark_field(field: pa.Field, path: str) -> T.StructField:
    told = descriptor(field.type)
    metadata = {HUDI_TYPE: told} if told and not is_variant(field.type) else None
    return T.StructField(field.name, _spark_type(field.type, path), field.nullable, metadata)


def _spark_type(arrow: pa.DataType, path: str) -> T.DataType:
    if arrow in _FROM_ARROW:
        return _FROM_ARROW[arrow]
    if pa.types.is_timestamp(arrow):
        return T.TimestampNTZType() if arrow.tz is None else T.TimestampType()
    if pa.types.is_decimal(arrow):
        return T.DecimalType(arrow.precision, arrow.scale)
    if pa.types.is_time(arrow):
        return T.LongType()
    if pa.types.is_fixed_size_binary(arrow):
        return T.BinaryType()
    if pa.types.is_dictionary(arrow):
        return _spark_type(arrow.value_type, path)
    return _spark_nested(arrow, path)


def _spark_nested(arrow: pa.DataType, path: str) -> T.DataType:
    if is_blob(arrow):
        return _nullable(arrow)
    if is_variant(arrow):
        return T.VariantType()
    if is_vector(arrow):
        return T.ArrayType(_spark_type(arrow.value_type, path), containsNull=False)
    if pa.types.is_struct(arrow):
        return T.StructType([_spark_field(field, f"{path}.{field.name}") for field in arrow])
    if pa.types.is_map(arrow):
        keys, items = _spark_type(arrow.key_type, path), _spark_type(arrow.item_type, path)
        return T.MapType(keys, items, arrow.item_field.nullable)
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
        return T.ArrayType(_spark_type(arrow.value_type, path), arrow.value_field.nullable)
    raise UnsupportedError(
        f"Spark has no type for column {path} of type {arrow}. Select other columns with `columns`."
    )


def _nullable(arrow: pa.DataType) -> T.DataType:
    if not pa.types.is_struct(arrow):
        return _FROM_ARROW[arrow]
    return T.StructType([T.StructField(each.name, _nullable(each.type)) for each in arrow])


def _arrow_field(field: T.StructField, path: str) -> pa.Field:
    return pa.field(field.name, _arrow_type(field.dataType, path), field.nullable)


def _represented_type(spark: T.StructType, path: str) -> pa.DataType | None:
    """Return the type of Hudi that a struct stands for in a statement, if it does."""
    name = spark.fieldNames()[0] if len(spark) == 1 else ""
    if not name.startswith(_STAND_IN):
        return None
    kind = described_type(name.removeprefix(_STAND_IN), path)
    if is_vector(kind) and "." in path:
        raise nested_vector(path)
    return kind


def _arrow_type(spark: T.DataType, path: str) -> pa.DataType:
    for kind, arrow in _PLAIN:
        if isinstance(spark, kind):
            return arrow
    if isinstance(spark, T.DecimalType):
        return pa.decimal128(spark.precision, spark.scale)
    if isinstance(spark, T.StructType) and (stands := _represented_type(spark, path)) is not None:
        return stands
    if isinstance(spark, T.VariantType):
        return _VARIANT
    if isinstance(spark, T.StructType):
        return pa.struct([_arrow_field(field, f"{path}.{field.name}") for field in spark.fields])
    if isinstance(spark, T.ArrayType):
        return pa.list_(
            pa.field("element", _arrow_type(spark.elementType, f"{path}.{_ELEMENT}"), spark.containsNull)
        )
    if isinstance(spark, T.MapType):
        value = pa.field("value", _arrow_type(spark.valueType, f"{path}.{_VALUE}"), spark.valueContainsNull)
        return pa.map_(pa.field("key", _arrow_type(spark.keyType, path), nullable=False), value)
    raise UnsupportedError(
        f"Column {path} has the Spark type {spark.simpleString()}, which a table cannot store. Cast it first."
    )
