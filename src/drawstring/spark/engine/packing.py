r"""Packing of rows for a shuffle: a few thousand rows per Spark row.

Converting wide rows to Spark's row format and back costs more than processing them. So a task packs its
batches into one Arrow message per group, and Spark shuffles, sorts and spills these messages:

    bucket  string that Spark partitions and sorts by: the group, or the hash bucket of the join key
    side    0 for the build side of a join, 1 for all other rows
    part    partition that the rows come from  \ keep the order of the rows
    number  number of the message in its part  / within every group
    data    the rows: an Arrow IPC record batch message without its schema
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.bounds import BATCH_ROWS
from drawstring.engine.grouping import coalesced, split_by
from drawstring.engine.matching import left_pairs, with_null_left
from drawstring.engine.protocol import BatchFunction
from drawstring.spark.engine.batches import join_key, text_hash, with_types

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
class Together:
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
