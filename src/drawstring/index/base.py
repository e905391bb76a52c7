"""What the indexes of one family have in common.

`Hashing`: the hash of the key names its bucket, nothing is looked up. `Joining`: keys are joined with those
of the table, and the location of a record is the file group that has its key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from drawstring.base.clock import Ids
from drawstring.base.errors import ConflictError
from drawstring.engine.key_sets import KeySets
from drawstring.engine.protocol import Rows
from drawstring.filegroups.read.keys import ReadKeys
from drawstring.filegroups.write.settings import FileSettings
from drawstring.index.bloom import BloomPruning, ReadPruned
from drawstring.index.lifecycle import NoIndexFiles
from drawstring.index.location import Location, LocationKind
from drawstring.index.tagging import TagContext
from drawstring.index.written import WrittenTable, refuse_untold_buckets
from drawstring.merge.order import Array
from drawstring.model.files import FileSlice, file_id_of

_SET_BUCKETS: Final = (
    "set hoodie.index.type=BUCKET and the hoodie.bucket.index.num.buckets that it was written with"
)


class Hashing(NoIndexFiles):
    """An index whose locations follow from key and partition."""

    __slots__ = ()

    @property
    def is_hashed(self) -> bool:
        """Key and partition decide."""
        return True

    @property
    def is_global(self) -> bool:
        """Every partition has buckets of its own."""
        return False

    @property
    def can_index_log_files(self) -> bool:
        """The bucket takes all records, in whatever files."""
        return True

    def gather(self, rows: Rows, settings: FileSettings) -> Rows:
        """Return the rows as they are."""
        return rows

    def tag_location(self, rows: Rows, context: TagContext) -> Rows:
        """Return the rows as they are: every location is known already."""
        return rows


@dataclass(frozen=True, slots=True)
class Joining(NoIndexFiles):
    """An index that joins keys with those of the table.

    Attributes:
        pruning: leaves out slices that cannot have any of the keys; None to read all (the bloom indexes
            are the simple ones with it).
    """

    pruning: BloomPruning | None = None

    @property
    def is_hashed(self) -> bool:
        """The key alone decides nothing."""
        return False

    @property
    def can_index_log_files(self) -> bool:
        """Log files that tell of their keys take new records."""
        return self.pruning is not None and self.pruning.by_log_index

    def check_table(self, table: WrittenTable) -> None:
        """Refuse a table that has another index, named or not.

        Raises:
            InvalidError: it has.
        """
        table.refuse_rings()
        if not table.names_index:
            refuse_untold_buckets(table.store, table.timeline, _SET_BUCKETS)

    def pruned(self, read: ReadKeys, keys: KeySets, context: TagContext) -> ReadKeys | ReadPruned:
        """Return what reads the keys of the slices that may have one of a change's."""
        return read if self.pruning is None else self.pruning.before(read, keys, context)

    def locations(self, keys: pa.Array, partitions: pa.Array) -> pa.Array | None:
        """Return None: only the table knows."""
        return None

    def holds(self, file_slice: FileSlice, keys: pa.Array) -> Array:
        """Return that any key may be in any file group."""
        return np.ones(len(keys), dtype=bool)

    def slice_for(self, location: Location, slices: Sequence[FileSlice]) -> FileSlice | None:
        """Return the slice with that file id; None for a new key.

        Raises:
            ConflictError: there is no such slice.
        """
        if location.kind is not LocationKind.FILE_GROUP:
            return None
        for file_slice in slices:
            if file_slice.file_id == location.value:
                return file_slice
        raise ConflictError(f"file group {location.value} went away while the write ran: write again")

    def new_file_id(self, location: Location, ids: Ids) -> str:
        """Name a file group."""
        return file_id_of(ids.uuid())
