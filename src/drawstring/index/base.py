"""What the indexes of one family have in common.

`Hashing`: the key names its file group, nothing is looked up. `Joining`: the keys of the table are, and the
route of a record is the id of its file group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from drawstring.base.clock import Ids
from drawstring.base.errors import ConflictError
from drawstring.engine.key_sets import KeySets
from drawstring.engine.protocol import Rows
from drawstring.filegroups.read.keys import ReadKeys
from drawstring.filegroups.write.settings import FileSettings
from drawstring.index.bloom import BloomPruning, ReadPruned
from drawstring.index.tagging import TableLook
from drawstring.model.files import FileSlice, file_id_of


class Hashing:
    """An index whose routes follow from key and partition."""

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

    def locate(self, rows: Rows, look: TableLook) -> Rows:
        """Return the rows as they are: every route is known already."""
        return rows


@dataclass(frozen=True, slots=True)
class Joining:
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

    def pruned(self, read: ReadKeys, keys: KeySets, look: TableLook) -> ReadKeys | ReadPruned:
        """Return what reads the keys of the slices that may have one of a change's."""
        return read if self.pruning is None else self.pruning.before(read, keys, look)

    def routes(self, keys: pa.Array, partitions: pa.Array) -> pa.Array | None:
        """Return None: only the table knows."""
        return None

    def find(self, route: str | None, slices: Sequence[FileSlice]) -> FileSlice | None:
        """Return the slice with that file id; None for a new key.

        Raises:
            ConflictError: there is no such slice.
        """
        if route is None:
            return None
        for file_slice in slices:
            if file_slice.file_id == route:
                return file_slice
        raise ConflictError(f"file group {route} went away while the write ran: write again")

    def new_file_id(self, route: str | None, ids: Ids) -> str:
        """Name a file group."""
        return file_id_of(ids.uuid())
