"""What an index can do, and the columns that it works on.

A prepared batch has the table's columns and then

    _hoodie_record_key | _hoodie_partition_path | _drawstring_location

The location says which file group of the partition a row goes to (`index.location`). The column is missing
where nobody looked for one (plain inserts without an index that hashes).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

import pyarrow as pa

from drawstring.base.clock import Ids
from drawstring.config.keys.clustering import Clustering
from drawstring.engine.protocol import Rows
from drawstring.filegroups.write.settings import FileSettings
from drawstring.index.lifecycle import DualWrite, IndexLifecycle
from drawstring.index.location import LOCATION, Location
from drawstring.index.tagging import TagContext
from drawstring.index.written import WrittenTable
from drawstring.merge.order import Array
from drawstring.model.files import FileSlice
from drawstring.schema.meta import PARTITION_PATH, RECORD_KEY
from drawstring.storage.protocol import Storage
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline

IS_DELETED: Final = "_drawstring_is_deleted"

LOCATION_SCHEMA: Final = pa.schema(
    [
        (RECORD_KEY, pa.string()),
        (PARTITION_PATH, pa.string()),
        (LOCATION, pa.string()),
        (IS_DELETED, pa.bool_()),
    ]
)
"""The columns that a reader of keys yields; the location of a key is its file group.

A log file may have deleted the key; the file group remembers its ordering value, so a new version of the
record belongs there all the same.
"""


class Index(IndexLifecycle, Protocol):
    """One way to find the file group of a key. Picklable."""

    @property
    def is_hashed(self) -> bool:
        """Whether the hash of a key alone decides its location, for old keys and new ones."""
        ...

    @property
    def is_global(self) -> bool:
        """Whether a key is looked for in all partitions, whatever the row says."""
        ...

    @property
    def can_index_log_files(self) -> bool:
        """Whether new records may go to log files; else they come to base files only."""
        ...

    def locations(self, keys: pa.Array, partitions: pa.Array) -> pa.Array | None:
        """Return the locations that follow from keys and partition paths alone, or None when they do not.

        Args:
            keys: record keys, text.
            partitions: the partition path of each.

        Returns:
            The column of locations, text, one for each key.
        """
        ...

    def gather(self, rows: Rows, settings: FileSettings) -> Rows:
        """Bring rows of one record together, where they may be told apart by their partition paths."""
        ...

    def tag_location(self, rows: Rows, context: TagContext) -> Rows:
        """Fill in the locations that need a look at the table."""
        ...

    def slice_for(self, location: Location, slices: Sequence[FileSlice]) -> FileSlice | None:
        """Return the slice at a location, or None when a new file group is due.

        Args:
            location: of a record.
            slices: the latest of the file groups of its partition, by file id.

        Raises:
            InvalidError: the slices were not written with this index.
        """
        ...

    def new_file_id(self, location: Location, ids: Ids) -> str:
        """Name a new file group at a location."""
        ...

    def holds(self, file_slice: FileSlice, keys: pa.Array) -> Array:
        """Tell which keys the index looks for in the file group of a slice.

        Args:
            file_slice: of any file group.
            keys: record keys, text.

        Returns:
            One flag for each key; all true where keys do not say where they belong.
        """
        ...

    def check_table(self, table: WrittenTable) -> None:
        """Make sure that earlier writes had the same index.

        Args:
            table: has writes already.

        Raises:
            InvalidError: the table was written with another index or another number of buckets.
            UnsupportedError: another engine left the index in a state that no write can go on from.
        """
        ...

    def overwriting(self, instant: str) -> Index:
        """Return the index of a write that gives all partitions which it writes new file groups.

        Args:
            instant: requested time of the write.
        """
        ...

    def dual_write(self, store: TimelineStore, timeline: Timeline, asked: Clustering) -> DualWrite | None:
        """Return how a write repeats records while buckets are resized; None where none is written twice.

        Args:
            store: reads the plans of pending clusterings.
            timeline: as the write finds it.
            asked: what becomes of writes to file groups in a pending clustering.

        Raises:
            ConflictError: the write has to wait for a pending clustering.
        """
        ...

    def files_written(self, storage: Storage, partitions: Iterable[str]) -> None:
        """Put what readers and writers of the new file groups need to know beside them.

        Args:
            storage: the table's.
            partitions: of the files; some may come up again.
        """
        ...
