"""Rows without a record key, which no table can take."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.keygen.key_generator import column_texts
from drawstring.model.files import TaskContext


def divided_by_key(
    batch: pa.RecordBatch, fields: Sequence[str]
) -> tuple[pa.RecordBatch, pa.RecordBatch | None]:
    """Return the rows with a record key, and those whose key is null or empty; None without any of these.

    Args:
        batch: the rows.
        fields: the columns of the record key.
    """
    if not fields:
        return batch, None
    missing = pa.scalar(True)
    for each in fields:
        missing = pc.and_(missing, pc.equal(column_texts(batch, each), "").fill_null(True))
    if not pc.any(missing).as_py():
        return batch, None
    return batch.filter(pc.invert(missing)), batch.filter(missing)


def contents_of(batch: pa.RecordBatch) -> list[bytes]:
    """Return rows as JSON."""
    return [json.dumps(row, default=str).encode() for row in batch.to_pylist()]


@dataclass(frozen=True, slots=True)
class WithKey:
    """A batch function that leaves rows without a record key out."""

    fields: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield divided_by_key(batch, self.fields)[0]


@dataclass(frozen=True, slots=True)
class FindKeyless:
    """A task that returns rows without a record key as JSON."""

    fields: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch], context: TaskContext) -> Iterable[list[bytes]]:
        for batch in batches:
            bad = divided_by_key(batch, self.fields)[1]
            if bad is not None:
                yield contents_of(bad)
