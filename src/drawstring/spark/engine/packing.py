r"""Rows on their way through a shuffle: packed, a few thousand to a Spark row.

Turning wide rows into Spark's row format and back costs more than the work on them. So a task
packs its batches, one Arrow message for each group, and Spark moves, sorts and spills those:

    bucket  text, what Spark partitions and sorts by: the group, or the hash bucket of the join key
    side    0 the looked-up side of a join, 1 everything else
    part    partition that the rows come from  \ so that every group keeps
    number  how many messages came before      / the order of the rows
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
from drawstring.engine.coalesce import coalesced
from drawstring.engine.grouping import split_by
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
"""Bytes of rows, about, in one message."""

LOOKED_UP, MAIN = 0, 1

Splitter = Callable[[pa.RecordBatch], Sequence[tuple[str | None, pa.RecordBatch]]]
Bucketed = tuple[str | None, int, pa.Buffer]


@dataclass(frozen=True, slots=True)
class Together:
    """A splitter that leaves a batch whole."""

    def __call__(self, batch: pa.RecordBatch) -> Sequence[tuple[str | None, pa.RecordBatch]]:
        return [(None, batch)]


@dataclass(frozen=True, slots=True)
class ByGroup:
    """A splitter by the values of columns."""

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
        schema: their columns; what the other end reads by.
        split: cuts a batch into buckets.
        side: `LOOKED_UP` or `MAIN`.
        part: number of the partition that they come from.
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
    """Put buffers one after the other into a binary array, with one copy."""
    ends = np.cumsum([0, *(buffer.size for buffer in buffers)], dtype=np.int32)
    data = pa.py_buffer(b"".join(buffers))
    return pa.Array.from_buffers(pa.binary(), len(buffers), [None, pa.py_buffer(ends), data])


def _pieces(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    count = -(-rows.nbytes // MESSAGE_BYTES_MAX) or 1
    size = max(1, -(-rows.num_rows // count))
    for start in range(0, rows.num_rows, size):
        yield rows.slice(start, size)


def messages(batches: Iterator[pa.RecordBatch]) -> Iterator[Bucketed]:
    """Walk the packed rows: bucket, side, message."""
    for batch in batches:
        buckets, sides = batch.column("bucket").to_pylist(), batch.column("side").to_pylist()
        data = batch.column("data")
        for row, (bucket, side) in enumerate(zip(buckets, sides, strict=True)):
            yield bucket, side, data[row].as_buffer()


@dataclass(frozen=True, slots=True)
class Unpack:
    """The batch function that undoes packing; small batches come out joined."""

    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return coalesced(pa.ipc.read_record_batch(data, self.schema) for _, _, data in messages(batches))


@dataclass(frozen=True, slots=True)
class JoinBuckets:
    """The batch function that left-joins packed rows, bucket by bucket.

    Both sides of a bucket come one after the other, the looked-up side first. That side of one
    bucket is held in memory, the main side streams.

    Attributes:
        left: columns of the main side.
        right: columns of the looked-up side.
        on: key columns.
        keep_right: whether rows of the looked-up side that match nothing come too.
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
        looked_up: list[pa.RecordBatch] = []
        if side == LOOKED_UP:
            looked_up = list(self._decoded(rows, self.right))
            _, rows = next(sides, (MAIN, iter(())))
        right = pa.concat_batches(looked_up or [empty(self.right)])
        yield from self.matched(coalesced(self._decoded(rows, self.left)), right)

    def _decoded(self, rows: Iterator[Bucketed], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        return (pa.ipc.read_record_batch(data, schema) for _, _, data in rows)

    def matched(self, batches: Iterator[pa.RecordBatch], right: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Join batches of the main side with what is held of the other one."""
        keys = pc.dictionary_encode(join_key(right, self.on), null_encoding="encode")
        added = right.select([field.name for field in right.schema if field.name not in self.on])
        numbers = keys.indices.to_numpy(zero_copy_only=False)
        is_met = np.zeros(len(keys.dictionary), dtype=bool)
        for batch in batches:
            found = pc.index_in(join_key(batch, self.on), value_set=keys.dictionary, skip_nulls=True)
            is_met[found.drop_null().to_numpy(zero_copy_only=False)] = True
            codes = found.fill_null(-1).to_numpy(zero_copy_only=False)
            rows, partners = left_pairs(codes, numbers, len(keys.dictionary))
            repeated = batch if len(rows) == len(batch) else batch.take(pa.array(rows))
            joined = added.take(pa.array(partners, mask=partners < 0)).columns
            yield pa.RecordBatch.from_arrays([*repeated.columns, *joined], schema=self.schema)
        if self.keep_right:
            yield with_null_left(added.filter(pa.array(~is_met[numbers])), self.left)


def empty(schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch without rows."""
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


@dataclass(frozen=True, slots=True)
class Chain:
    """Batch functions one after the other in one Python worker, with no way through Spark between."""

    steps: tuple[BatchFunction, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for step in self.steps:
            batches = step(batches)
        return batches


def plain(schema: pa.Schema) -> pa.Schema:
    """Return the schema with dictionary-encoded columns as their values."""
    return pa.schema([_plain_field(field) for field in schema])


def _plain_field(field: pa.Field) -> Any:
    return field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
