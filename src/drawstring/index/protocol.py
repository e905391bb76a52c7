"""Index protocol, and the columns that an index works on.

A prepared batch has the columns of the table, followed by

    _hoodie_record_key | _hoodie_partition_path | _drawstring_location

The location is the file group that a row is written to (`index.location`). The column is missing if rows are
not tagged (plain inserts without a hashing index).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

import pyarrow as pa

from drawstring.base.clock import Ids
from drawstring.config.keys.clustering import Clustering
from drawstring.engine.protocol import Rows
from drawstring.filegroups.positions import POSITION
from drawstring.filegroups.write.settings import FileSettings
from drawstring.index.existing_writes import ExistingWrites
from drawstring.index.lifecycle import DualWrite, IndexLifecycle
from drawstring.index.location import LOCATION, Location
from drawstring.index.tag_context import TagContext
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
"""Schema of the key reader; the location of a key is its file group.

The key may be deleted in a log file; the file group has the ordering value of the delete, so a new version of
the record belongs there too.
"""


def with_position(schema: pa.Schema, settings: FileSettings) -> pa.Schema:
    """Return the columns of a key reader, with the position after them if the write records it."""
    return schema.append(pa.field(POSITION, pa.int64())) if settings.finds_positions else schema


class Index(IndexLifecycle, Protocol):
    """Finds the file group of a record key. Picklable."""

    @property
    def is_hashed(self) -> bool:
        """Whether the hash of a key determines its location, for existing and new keys."""
        ...

    @property
    def is_global(self) -> bool:
        """Whether keys are looked up in all partitions, whatever the partition path of the row is."""
        ...

    @property
    def moves_records(self) -> bool:
        """Whether a record whose partition value changes moves to the new partition."""
        ...

    @property
    def can_index_log_files(self) -> bool:
        """Whether new records may be written to log files; otherwise they go to base files only."""
        ...

    def locations(self, keys: pa.Array, partitions: pa.Array) -> pa.Array | None:
        """Return the locations that keys and partition paths determine; None if a lookup is needed.

        Args:
            keys: record keys (string).
            partitions: partition path of each key (string).

        Returns:
            The location column (string), one value per key.
        """
        ...

    def merge_across_partitions(self, rows: Rows, settings: FileSettings) -> Rows:
        """Merge rows of the same record that differ in their partition paths."""
        ...

    def tag_location(self, rows: Rows, context: TagContext) -> Rows:
        """Fill in the locations that are looked up in the table."""
        ...

    def slice_for(self, location: Location, slices: Sequence[FileSlice]) -> FileSlice | None:
        """Return the slice at a location; None if the write must create a new file group.

        Args:
            location: location of a record.
            slices: latest slices of the file groups of its partition, sorted by file id.

        Raises:
            InvalidError: another index wrote the slices.
        """
        ...

    def shared_file_id(self, location: Location) -> str | None:
        """Return the id that all writers give a new file group at a location; None if each makes its own.

        Under non-blocking concurrency control such a file group begins with a log file.
        """
        ...

    def new_file_id(self, location: Location, ids: Ids) -> str:
        """Return the file id of a new file group at a location."""
        ...

    def owns_keys(self, file_slice: FileSlice, keys: pa.Array) -> Array:
        """Return which keys the index looks up in the file group of a slice.

        Args:
            file_slice: slice of any file group.
            keys: record keys (string).

        Returns:
            One flag per key; all true if keys do not determine their file group.
        """
        ...

    def check_table(self, table: ExistingWrites) -> None:
        """Check that earlier writes had the same index.

        Args:
            table: a table with earlier writes.

        Raises:
            InvalidError: the table was written with another index or another number of buckets.
            UnsupportedError: another engine left the index in a state that writes cannot continue from.
        """
        ...

    def for_overwrite(self, instant: str) -> Index:
        """Return the index of a write that creates new file groups in all its partitions.

        Args:
            instant: requested time of the write.
        """
        ...

    def dual_write(
        self, store: TimelineStore, timeline: Timeline, clustering: Clustering
    ) -> DualWrite | None:
        """Return the dual write during a bucket resizing; None if no record is written twice.

        Args:
            store: reads the plans of pending clusterings.
            timeline: timeline at the start of the write.
            clustering: policy for writes to file groups in a pending clustering.

        Raises:
            ConflictError: the write must wait for a pending clustering.
        """
        ...

    def after_files_written(self, storage: Storage, partitions: Iterable[str]) -> None:
        """Write the index files that readers and writers of the new file groups need.

        Args:
            storage: storage of the table.
            partitions: partition paths of the files, maybe repeated.
        """
        ...
