"""Define the index protocol, record locations, lifecycle hooks and the base classes of the index families.

A prepared batch has the columns of the table, followed by

    _hoodie_record_key | _hoodie_partition_path | _drawstring_location

The location is the file group in its partition that a row is written to. The column is missing if rows are
not tagged (plain inserts without a hashing index).

    kind             text in the column            source
    BUCKET           <prefix of the file id>       hash of the key (hashing indexes)
    FILE_GROUP       <file id>                     keys of the table (joining indexes), or file sizing
    NEW_FILE_GROUP   +<number in the partition>    file sizing: the key and its file group are new
    UNKNOWN          null                          none yet: the key is new

Rows of the same file group have equal texts, so engines group them by one column. Only this module encodes
and decodes these texts.

Lifecycle hooks, around commits and rollbacks:

    for_overwrite         returns the index of a write that gives its partitions new file groups
    check_table           before a write: checks that earlier writes had the same index
    dual_write            before a write: returns which records to write to two file groups
    after_files_written   after the data files were written; the instant is still inflight
    before_commit         just before the completed file is written
    committed             after the instant completed
    rolled_back           after the data files of the instant were deleted

Hooks are called in the order of their effects on storage. A hook may be called again after a crash, so every
hook is idempotent.

Families: for a `HashingIndex` the hash of the key determines its bucket, without a lookup. A `LookupIndex`
joins keys with those of the table, and the location of a record is the file group that has its key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from typing import ClassVar, Final, Protocol, Self

import numpy as np
import pyarrow as pa

from drawstring.base.clock import Ids
from drawstring.base.errors import ConflictError
from drawstring.config.keys.services import Clustering
from drawstring.engine.grouping import KeySets
from drawstring.engine.protocol import Rows
from drawstring.filegroups.base_file_writer import FileSettings
from drawstring.filegroups.file_slice_reader import ReadKeys
from drawstring.filegroups.file_system_view import SliceLookup
from drawstring.filegroups.positions import POSITION
from drawstring.index.bloom_pruning import BloomPruning, ReadPruned
from drawstring.index.existing_writes import ExistingWrites, refuse_undeclared_bucket_index
from drawstring.index.tag_context import TagContext
from drawstring.merge.record_version import Array
from drawstring.model.commit import WriteStat
from drawstring.model.files import FileSlice, random_file_id
from drawstring.model.instant import Instant
from drawstring.schema.fields import PARTITION_PATH, RECORD_KEY
from drawstring.storage.protocol import Storage
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline

LOCATION: Final = "_drawstring_location"
"""Name of the location column, a text column of prepared rows."""

_NEW: Final = "+"
"""Prefix of the texts of new file groups; no file id begins with it."""


class LocationKind(Enum):
    """Kind of a location."""

    UNKNOWN = auto()
    BUCKET = auto()
    FILE_GROUP = auto()
    NEW_FILE_GROUP = auto()


@dataclass(frozen=True, slots=True)
class Location:
    """A file group within a partition.

    Attributes:
        kind: meaning of the value.
        value: prefix of the file id (BUCKET), the file id (FILE_GROUP), or a decimal number (NEW_FILE_GROUP);
            empty for UNKNOWN.
    """

    kind: LocationKind
    value: str = ""

    @staticmethod
    def file_group(file_id: str) -> Location:
        """Return the location of an existing file group."""
        return Location(LocationKind.FILE_GROUP, file_id)

    @staticmethod
    def bucket(prefix: str) -> Location:
        """Return the location of the file group whose id begins with the prefix of a bucket."""
        return Location(LocationKind.BUCKET, prefix)

    @staticmethod
    def new_file_group(number: int) -> Location:
        """Return the location of a new file group that a write creates in a partition."""
        return Location(LocationKind.NEW_FILE_GROUP, str(number))

    @property
    def is_new(self) -> bool:
        """Whether the file group does not exist yet."""
        return self.kind is LocationKind.NEW_FILE_GROUP

    def encode(self) -> str | None:
        """Return the text of the column."""
        if self.kind is LocationKind.UNKNOWN:
            return None
        return _NEW + self.value if self.is_new else self.value

    @staticmethod
    def decode(text: str | None, *, is_hashed: bool) -> Location:
        """Return the location of a text.

        Args:
            text: value of the location column.
            is_hashed: whether the index of the write is a hashing index.
        """
        if text is None:
            return UNKNOWN
        if is_hashed:
            return Location.bucket(text)
        if text.startswith(_NEW):
            return Location(LocationKind.NEW_FILE_GROUP, text.removeprefix(_NEW))
        return Location.file_group(text)


UNKNOWN: Final = Location(LocationKind.UNKNOWN)
"""The location of a record with a new key."""


def is_unknown(locations: pa.Array) -> pa.Array:
    """Return for each row whether its location is unknown."""
    return locations.is_null()


def file_group_locations(file_ids: pa.Array) -> pa.Array:
    """Return the locations of rows that were read from file groups.

    Args:
        file_ids: file id of each row; null for rows that come from no file group.
    """
    return file_ids


@dataclass(frozen=True, slots=True)
class IndexCommit:
    """An instant that is about to be completed.

    Attributes:
        storage: storage of the table.
        timeline: timeline at the start of the write.
        time: requested time of the instant.
        replaced: paths of the partitions in which the instant replaces or deletes all file groups.
    """

    storage: Storage
    timeline: Timeline
    time: str
    replaced: Sequence[str] = ()


class IndexLifecycle(Protocol):
    """Hooks with which an index maintains its own files."""

    def before_commit(self, commit: IndexCommit) -> Sequence[str]:
        """Write the index files that become valid when the instant completes.

        Returns:
            The partitions that have such files, for `committed`.
        """
        ...

    def committed(self, commit: IndexCommit, partitions: Sequence[str]) -> None:
        """Confirm the index files of a completed instant.

        Args:
            commit: the instant.
            partitions: the result of `before_commit`.
        """
        ...

    def rolled_back(self, storage: Storage, instant: Instant) -> None:
        """Delete the index files of an instant that is rolled back.

        Args:
            storage: storage of the table.
            instant: pending instant, or a completed one that a restore removes.
        """
        ...


class DualWrite(Protocol):
    """Batch function that repeats rows, to write them to a second file group too. Picklable."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield every batch, followed by copies of its rows with their second location."""
        ...

    def target(self, partition: str, location: Location, lookup: SliceLookup) -> FileSlice | None:
        """Return the slice at a second location with its log files; None for all other locations.

        New log files of the slice carry its base instant in their names.
        """
        ...

    def once(self, stats: Sequence[WriteStat]) -> list[WriteStat]:
        """Return the statistics for the result of a write, without the copies."""
        ...


class NoIndexFiles:
    """Lifecycle of an index without own files and without dual writes: its hooks do nothing."""

    __slots__ = ()

    def for_overwrite(self, instant: str) -> Self:
        """Return the index unchanged."""
        return self

    def dual_write(
        self, store: TimelineStore, timeline: Timeline, clustering: Clustering
    ) -> DualWrite | None:
        """Return None."""
        return None

    def after_files_written(self, storage: Storage, partitions: Iterable[str]) -> None:
        """Do nothing."""

    def before_commit(self, commit: IndexCommit) -> Sequence[str]:
        """Do nothing; return no partitions."""
        return ()

    def committed(self, commit: IndexCommit, partitions: Sequence[str]) -> None:
        """Do nothing."""

    def rolled_back(self, storage: Storage, instant: Instant) -> None:
        """Do nothing."""


@contextmanager
def completing_instant(index: IndexLifecycle, commit: IndexCommit) -> Iterator[None]:
    """Call the hooks of an index before and after the block, which completes an instant.

    Args:
        index: index of the write, or that of the stored index files (`index.factory`).
        commit: the instant.
    """
    partitions = index.before_commit(commit)
    yield
    index.committed(commit, partitions)


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
