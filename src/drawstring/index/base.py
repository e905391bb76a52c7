"""Base classes of the index families: hashing indexes and lookup indexes.

`HashingIndex`: the hash of the key determines its bucket, without a lookup. `LookupIndex`: keys are joined
with those of the table, and the location of a record is the file group that has its key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
import pyarrow as pa

from drawstring.base.clock import Ids
from drawstring.base.errors import ConflictError
from drawstring.engine.key_sets import KeySets
from drawstring.engine.protocol import Rows
from drawstring.filegroups.read.keys import ReadKeys
from drawstring.filegroups.write.settings import FileSettings
from drawstring.index.bloom_pruning import BloomPruning, ReadPruned
from drawstring.index.existing_writes import ExistingWrites, refuse_undeclared_bucket_index
from drawstring.index.lifecycle import NoIndexFiles
from drawstring.index.location import Location, LocationKind
from drawstring.index.tag_context import TagContext
from drawstring.merge.order import Array
from drawstring.model.files import FileSlice, random_file_id

_SET_BUCKETS: Final = (
    "Set hoodie.index.type=BUCKET and the hoodie.bucket.index.num.buckets that it was written with"
)


class HashingIndex(NoIndexFiles):
    """An index that derives locations from key and partition path."""

    __slots__ = ()

    is_hashed: ClassVar = True
    is_global: ClassVar = False
    """Every partition has its own buckets."""
    moves_records: ClassVar = False
    can_index_log_files: ClassVar = True
    """A bucket takes new records in log files too."""

    def shared_file_id(self, location: Location) -> str | None:
        """Return None: each writer makes an id of its own."""
        return None

    def merge_across_partitions(self, rows: Rows, settings: FileSettings) -> Rows:
        """Return the rows unchanged."""
        return rows

    def tag_location(self, rows: Rows, context: TagContext) -> Rows:
        """Return the rows unchanged: all locations are already known."""
        return rows


@dataclass(frozen=True, slots=True)
class LookupIndex(NoIndexFiles):
    """An index that joins keys with those of the table.

    Attributes:
        pruning: skips slices that cannot have any of the keys; None to read all slices (the bloom indexes
            are the simple indexes with pruning).
    """

    pruning: BloomPruning | None = None

    @property
    def is_hashed(self) -> bool:
        """Return False."""
        return False

    @property
    def moves_records(self) -> bool:
        """Return False: keys are looked up in the partition of the row."""
        return False

    @property
    def can_index_log_files(self) -> bool:
        """Whether log files carry an index of their keys, and so take new records."""
        return self.pruning is not None and self.pruning.by_log_index

    def check_table(self, table: ExistingWrites) -> None:
        """Check that the table has no other index, named or not.

        Raises:
            InvalidError: the table has another index.
        """
        table.refuse_rings()
        if not table.names_index:
            refuse_undeclared_bucket_index(table.store, table.timeline, _SET_BUCKETS)

    def pruned(self, read: ReadKeys, keys: KeySets, context: TagContext) -> ReadKeys | ReadPruned:
        """Return the reader of the keys of those slices that may have keys of the batch."""
        return read if self.pruning is None else self.pruning.before(read, keys, context)

    def locations(self, keys: pa.Array, partitions: pa.Array) -> pa.Array | None:
        """Return None: the keys must be looked up in the table."""
        return None

    def owns_keys(self, file_slice: FileSlice, keys: pa.Array) -> Array:
        """Return True for all keys: any key may be in any file group."""
        return np.ones(len(keys), dtype=bool)

    def slice_for(self, location: Location, slices: Sequence[FileSlice]) -> FileSlice | None:
        """Return the slice with the file id; None for a new key.

        Raises:
            ConflictError: no slice has the file id.
        """
        if location.kind is not LocationKind.FILE_GROUP:
            return None
        for file_slice in slices:
            if file_slice.file_id == location.value:
                return file_slice
        raise ConflictError(f"File group {location.value} was removed during the write. Retry the write.")

    def shared_file_id(self, location: Location) -> str | None:
        """Return None: each writer makes an id of its own."""
        return None

    def new_file_id(self, location: Location, ids: Ids) -> str:
        """Return a new file id."""
        return random_file_id(ids.uuid())
