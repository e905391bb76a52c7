"""What an insert does with keys that the table has: keep both rows, drop the new one, or fail."""

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
from drawstring.index.tagging import TagContext
from drawstring.model.files import FileSlice
from drawstring.schema.meta import PARTITION_PATH, RECORD_KEY

_KNOWN: Final = "_drawstring_known"
_ELSEWHERE: Final = "_drawstring_known_in"


def without_known(rows: Rows, index: Index, context: TagContext, *, fails: bool) -> Rows:
    """Return the rows whose keys are new: to their partitions or, with a global index, to the table.

    Args:
        rows: prepared, and kept, for they are used twice.
        index: of the write.
        context: the table's slices.
        fails: whether a key that is there is an error.
    """
    on = (RECORD_KEY,) if index.is_global else (RECORD_KEY, PARTITION_PATH)
    partitions = context.partitions() if index.is_global else sorted(path for (path,) in rows.keys(on))
    slices = [each for path in partitions for each in context.slices(path)]
    texts = (RECORD_KEY, _ELSEWHERE if index.is_global else PARTITION_PATH, _KNOWN)
    schema = pa.schema([*(pa.field(name, pa.string()) for name in texts), (IS_DELETED, pa.bool_())])
    reader = ReadLiveKeys(context.key_reader(schema))
    joined = rows.join_keys(on, slices, reader, schema, narrow=True)
    return joined.map_batches(DropKnown(rows.schema, fails), rows.schema)


@dataclass(frozen=True, slots=True)
class ReadLiveKeys:
    """Yields the keys of the records of a slice that are not deleted.

    Attributes:
        keys: reads all of them.
    """

    keys: ReadKeys

    def __call__(self, file_slice: FileSlice) -> Iterator[pa.RecordBatch]:
        for batch in self.keys(file_slice):
            yield batch.filter(pc.invert(batch.column(IS_DELETED)))


@dataclass(frozen=True, slots=True)
class DropKnown:
    """A batch function that drops rows whose key was found.

    Attributes:
        schema: columns of the rows.
        fails: whether one is an error.
    """

    schema: pa.Schema
    fails: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            is_known = batch.column(_KNOWN).is_valid()
            if self.fails and pc.any(is_known).as_py():
                key = batch.filter(is_known).column(RECORD_KEY)[0].as_py()
                raise InvalidError(
                    f"rows to insert have keys that the table has already, {key!r} for one, and"
                    " hoodie.datasource.insert.dup.policy is fail: upsert them, or drop them (policy drop)"
                )
            yield batch.filter(pc.invert(is_known)).select(self.schema.names)
