"""Duplicate policy of inserts: keep both rows, drop the new one, or fail."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import InvalidError
from drawstring.engine.protocol import Rows
from drawstring.filegroups.read.keys import ReadKeys
from drawstring.index.protocol import IS_DELETED, Index
from drawstring.index.tag_context import TagContext
from drawstring.model.files import FileSlice
from drawstring.schema.meta import PARTITION_PATH, RECORD_KEY

_KNOWN: Final = "_drawstring_known"
_ELSEWHERE: Final = "_drawstring_known_in"


def without_known(rows: Rows, index: Index, context: TagContext, *, fails: bool) -> Rows:
    """Return the rows whose keys are new in their partitions or, with a global index, in the table.

    Args:
        rows: prepared rows, persisted because they are read twice.
        index: index of the write.
        context: slices of the table.
        fails: whether an existing key is an error.
    """
    on = (RECORD_KEY,) if index.is_global else (RECORD_KEY, PARTITION_PATH)
    partitions = context.partitions() if index.is_global else sorted(path for (path,) in rows.keys(on))
    slices = [file_slice for path in partitions for file_slice in context.slices(path)]
    texts = (RECORD_KEY, _ELSEWHERE if index.is_global else PARTITION_PATH, _KNOWN)
    schema = pa.schema([*(pa.field(name, pa.string()) for name in texts), (IS_DELETED, pa.bool_())])
    reader = ReadLiveKeys(context.key_reader(schema))
    joined = rows.join_keys(on, slices, reader, schema, narrow=True)
    return joined.map_batches(DropKnown(rows.schema, fails), rows.schema)


@dataclass(frozen=True, slots=True)
class ReadLiveKeys:
    """Yields the keys of the live records of a slice.

    Attributes:
        keys: reads all keys.
    """

    keys: ReadKeys

    def __call__(self, file_slice: FileSlice) -> Iterator[pa.RecordBatch]:
        for batch in self.keys(file_slice):
            yield batch.filter(pc.invert(batch.column(IS_DELETED)))


@dataclass(frozen=True, slots=True)
class DropKnown:
    """Batch function that drops rows whose key exists.

    Attributes:
        schema: columns of the rows.
        fails: whether an existing key is an error.
    """

    schema: pa.Schema
    fails: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            is_known = batch.column(_KNOWN).is_valid()
            if self.fails and pc.any(is_known).as_py():
                key = batch.filter(is_known).column(RECORD_KEY)[0].as_py()
                raise InvalidError(
                    f"The rows to insert have keys that the table already has, for example {key!r}, and"
                    " hoodie.datasource.insert.dup.policy is fail. Upsert them, or set the policy to drop."
                )
            yield batch.filter(pc.invert(is_known)).select(self.schema.names)
