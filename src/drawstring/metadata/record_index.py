"""Look-ups of record keys in the record index of a metadata table.

    global        record-index-0000-0, ...                a key is in the file group that its hash tells
    partitioned   record-index-<partition>-0000-0, ...    the same among the file groups of its partition

A file group is read in a bounded memory: the records of its log blocks are held, the blocks of its base file
stream past them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import methodcaller
from typing import Final
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.bounds import LITTLE_BYTES
from drawstring.base.clock import Clock
from drawstring.config.table.config import TableConfig
from drawstring.filegroups.read.tasks import InstantRange
from drawstring.keygen.paths import escape
from drawstring.merge.order import number_keys
from drawstring.merge.versions import flat
from drawstring.metadata.locations import file_ids
from drawstring.metadata.lookups import Lookup, group_numbers
from drawstring.metadata.merging import is_true
from drawstring.metadata.metadata_table import (
    MetadataTable,
    about_metadata,
    lacking,
    missing_instants,
    open_metadata_table,
)
from drawstring.metadata.partitions import (
    IS_REMOVED,
    KEY,
    LOCATION,
    METADATA_FOLDER,
    RECORD_INDEX,
    Kind,
    record_schema,
)
from drawstring.metadata.stored.decoded import LITTLE_INDEXES, DecodedRecords
from drawstring.metadata.stored.rows import SliceRows, no_rows
from drawstring.model.files import FileSlice
from drawstring.storage import open_spec
from drawstring.storage.protocol import Storage, StorageSpec
from drawstring.storage.subfolder import Subfolder
from drawstring.timeline.timeline import Timeline

PARTITION: Final = "partition"
FILE_ID: Final = "file_id"

LOCATIONS: Final = pa.schema([(KEY, pa.string()), (PARTITION, pa.string()), (FILE_ID, pa.string())])
"""Columns of locations: record key, partition path, file id."""

_PREFIX: Final = "record-index-"
_BYTES: Final = methodcaller("as_py")
_GLOBAL_PARTS: Final = 4
"""Number of parts between the dashes of the id of a file group that has keys of all partitions."""


def group_id(number: int, partition: str | None = None) -> str:
    """Return the id of a file group.

    Args:
        number: of the file group, from 0.
        partition: the partition path of its keys; None for those of all partitions.
    """
    if partition is None:
        return f"{_PREFIX}{number:04}-0"
    return f"{_PREFIX}{escape(partition).replace('_', '%5F').replace('-', '%2D')}-{number:04}-0"


def partition_of_group(file_id: str) -> str | None:
    """Return the partition path of the keys of a file group; None for those of all partitions."""
    parts = file_id.split("-")
    return None if len(parts) <= _GLOBAL_PARTS else unquote("-".join(parts[2:-2]))


@dataclass(frozen=True, slots=True)
class Shard:
    """A file group of the index, with the keys to look up in it (string); None for all its keys."""

    file_slice: FileSlice
    keys: pa.Array | None = None

    @property
    def remembered(self) -> DecodedRecords | None:
        """What remembers the records of a small file group; None for a large one."""
        return LITTLE_INDEXES if self.file_slice.size_bytes <= LITTLE_BYTES else None


@dataclass(frozen=True, slots=True)
class RecordIndex:
    """The record index of a table at one time. Picklable.

    Attributes:
        spec: opens the table.
        config: settings of the metadata table.
        instants: the instants whose log blocks count.
        groups: its file groups by number, by the partition of their keys; under None of a global index.
    """

    spec: StorageSpec
    config: TableConfig
    instants: InstantRange
    groups: Mapping[str | None, tuple[FileSlice, ...]]

    @staticmethod
    def of(table: MetadataTable, spec: StorageSpec) -> RecordIndex:
        """Return the record index of a metadata table.

        Args:
            table: the metadata table.
            spec: opens the table that it belongs to.

        Raises:
            CorruptTableError: a file is missing.
            InvalidError: the metadata table has none.
        """
        groups: dict[str | None, list[FileSlice]] = defaultdict(list)
        for each in table.slices(RECORD_INDEX):
            groups[partition_of_group(each.file_id)].append(each)
        sorted_groups = {name: tuple(each) for name, each in groups.items()}
        return RecordIndex(spec, table.config, table.instants, sorted_groups)

    @property
    def storage(self) -> Storage:
        """The files of the metadata table."""
        return Subfolder(open_spec(self.spec), METADATA_FOLDER)

    @property
    def is_partitioned(self) -> bool:
        """Whether each partition has an index of its own, so that a key may be in several partitions."""
        return None not in self.groups

    def shards(self, keys: pa.Array | None, partition: str) -> list[Shard]:
        """Return the file groups that may have keys of a partition.

        Args:
            keys: the keys (string); None for all.
            partition: partition path; a global index has the keys of all partitions.
        """
        groups = self.groups.get(partition if self.is_partitioned else None, ())
        if keys is None:
            return [Shard(each) for each in groups]
        if not groups or not len(keys):
            return []
        numbers = group_numbers(keys, len(groups))
        return [Shard(groups[each], keys.filter(pa.array(numbers == each))) for each in np.unique(numbers)]

    def read(self, shard: Shard) -> Iterator[pa.RecordBatch]:
        """Yield the locations of the keys of a file group, in no order; see `LOCATIONS`.

        Raises:
            CorruptTableError: a file is missing or damaged.
        """
        with about_metadata(self.storage):
            yield from map(_located, self.records(shard))

    def logged(self, file_slice: FileSlice) -> pa.Table:
        """Return all locations of the keys in the log files of a file group, also superseded ones.

        Raises:
            CorruptTableError: a file is missing or damaged.
        """
        schema = record_schema(Kind.RECORD_INDEX)
        with about_metadata(self.storage):
            logs = SliceRows(self, file_slice, schema, None).of_logs()
            rows = [batch.filter(pc.invert(batch.column(IS_REMOVED))) for batch in logs]
            keys = pc.unique(pa.chunked_array([batch.column(KEY) for batch in rows], pa.string()))
            base = SliceRows(self, file_slice, schema, Lookup(keys=flat(keys))).of_base() if len(keys) else ()
            return pa.Table.from_batches(map(_located, (*rows, *base)), LOCATIONS)

    def records(self, shard: Shard) -> Iterator[pa.RecordBatch]:
        """Yield the merged records of a file group as they are stored."""
        lookup, known = (None, None) if shard.keys is None else (Lookup(keys=shard.keys), shard.remembered)
        rows = SliceRows(self, shard.file_slice, record_schema(Kind.RECORD_INDEX), lookup, known)
        logged = _last_versions(pa.Table.from_batches(rows.of_logs(), no_rows(Kind.RECORD_INDEX).schema))
        known = flat(logged.column(KEY)).cast(pa.binary())
        known = known.take(pc.sort_indices(known))
        for batch in rows.of_base():
            yield _without(batch, known)
        yield from logged.filter(pc.invert(logged.column(IS_REMOVED))).combine_chunks().to_batches()

    def locations(self, keys: pa.Array, partitions: Iterable[str] = ("",)) -> pa.Table:
        """Return the locations of keys.

        Args:
            keys: the record keys (string); those that the table lacks are left out.
            partitions: the partitions to look in; a global index always looks in all.

        Raises:
            CorruptTableError: a file is missing or damaged.
        """
        paths = partitions if self.is_partitioned else ("",)
        distinct = pc.unique(keys)
        found = (batch for path in paths for each in self.shards(distinct, path) for batch in self.read(each))
        return pa.Table.from_batches(found, LOCATIONS)


def open_record_index(
    storage: Storage, config: TableConfig, timeline: Timeline, clock: Clock
) -> RecordIndex | None:
    """Return the record index of a table; None if the table has none.

    Args:
        storage: the table's files.
        config: the table's settings.
        timeline: the table's timeline; every completed write of it has to be in the metadata table.
        clock: for the timeline of the metadata table.

    Raises:
        MetadataTableError: the metadata table is damaged, or lacks a completed write.
    """
    if RECORD_INDEX not in config.metadata_partitions:
        return None
    table = open_metadata_table(storage, config, timeline, clock)
    missing = next(missing_instants(table.own_timeline, timeline), None)
    if missing is not None:
        raise lacking(table.storage, missing)
    return RecordIndex.of(table, storage.spec)


def candidate_groups(
    index: RecordIndex, keys: Sequence[str], partitions: Iterable[str]
) -> frozenset[tuple[str, str]]:
    """Return the file groups that hold keys, as partition path and file id.

    Args:
        index: the record index.
        keys: record keys.
        partitions: the partitions to look in, if each has an index of its own.

    Raises:
        CorruptTableError: a file of the index is missing or damaged.
    """
    found = index.locations(pa.array(keys, pa.string()), partitions)
    pairs = zip(found.column(PARTITION).to_pylist(), found.column(FILE_ID).to_pylist(), strict=True)
    return frozenset(pairs)


def _located(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the locations in records."""
    locations = batch.column(LOCATION)
    partitions = locations.field("partitionName").fill_null("")
    columns = [batch.column(KEY), partitions, file_ids(locations)]
    return pa.RecordBatch.from_arrays(columns, schema=LOCATIONS)


def _without(batch: pa.RecordBatch, keys: pa.BinaryArray) -> pa.RecordBatch:
    """Return the rows of a batch, sorted by key, that have none of the sorted keys."""
    if not (batch.num_rows and len(keys)):
        return batch
    own = batch.column(KEY).cast(pa.binary())
    start = bisect_left(keys, own[0].as_py(), key=_BYTES)
    stop = bisect_right(keys, own[-1].as_py(), start, key=_BYTES)
    return batch.filter(pc.invert(pc.is_in(own, value_set=keys.slice(start, stop - start))))


def _last_versions(rows: pa.Table) -> pa.Table:
    """Return the last row of each key, also those that remove it."""
    codes, distinct = number_keys(rows.column(KEY))
    last = np.zeros(distinct, np.int64)
    last[codes] = np.arange(rows.num_rows)
    taken = rows.take(pa.array(last))
    flags = pa.array(is_true(taken.column(IS_REMOVED)))
    return taken.set_column(taken.schema.get_field_index(IS_REMOVED), IS_REMOVED, flags)
