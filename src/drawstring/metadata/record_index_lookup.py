"""Look up record keys in the record index of a metadata table.

    global        record-index-0000-0, ...                the hash of a key gives its file group
    partitioned   record-index-<partition>-0000-0, ...    the same among the file groups of its partition

A look-up reads a file group in bounded memory. It holds the records of the log blocks, and streams the
blocks of the base file past them.

The location of a record is partition path, file id, and the time when the key got there:

    encoding 0   file id = UUID "-" number     fileIdHighBits, fileIdLowBits   the halves of the UUID
                 or a UUID                     fileIndex                       the number, -1 for none
    encoding 1   any other file id             fileId; the numbers are -1

The instant is in epoch milliseconds of its requested time, in the time zone of the table.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import methodcaller
from typing import Any, Final
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.clock import Clock
from drawstring.base.resources import ONE_THREAD_BYTES_MAX
from drawstring.config.table_config import TableConfig
from drawstring.filegroups.read_task import InstantRange
from drawstring.keygen.partition_path import escape
from drawstring.merge.record_version import combined_chunks, number_keys
from drawstring.metadata.merging import is_true
from drawstring.metadata.reader import SMALL_INDEX_CACHE, DecodedRecordCache, SliceRows, no_rows
from drawstring.metadata.table import (
    IS_REMOVED,
    KEY,
    LOCATION,
    METADATA_FOLDER,
    RECORD_INDEX,
    TYPE,
    Kind,
    Lookup,
    MetadataTable,
    about_metadata,
    group_numbers,
    missing_instant_error,
    missing_instants,
    open_metadata_table,
    record_schema,
)
from drawstring.model.files import FileSlice
from drawstring.storage import open_spec
from drawstring.storage.protocol import Storage, StorageSpec, Subfolder
from drawstring.timeline.timeline import Timeline, instant_time

_RECORD_TYPE: Final = 5
_HEX: Final = "[0-9a-f]"
_UUID: Final = re.compile(rf"({_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}})(?:-(\d{{1,9}}))?")
_HALF: Final = 1 << 64
_LONG_MAX: Final = 1 << 63
_CUTS: Final = (0, 8, 12, 16, 20, 32)


def location_rows(
    keys: pa.Array, partitions: pa.Array, file_ids: pa.Array, instants_ms: pa.Array
) -> pa.Table:
    """Return the records that tell where keys are.

    Args:
        keys: record keys (string).
        partitions: partition path of each (string).
        file_ids: file id of each (string).
        instants_ms: when each got there, milliseconds since the epoch.
    """
    stored = record_schema(Kind.RECORD_INDEX).field(LOCATION).type
    encoded = file_ids.dictionary_encode()
    parts = [_parts(each) for each in encoded.dictionary.to_pylist()]
    names = ("fileIdHighBits", "fileIdLowBits", "fileIndex", "fileId", "fileIdEncoding")
    by_id = {
        name: pa.array([part[at] for part in parts], stored.field(name).type).take(encoded.indices)
        for at, name in enumerate(names)
    }
    columns = {
        **by_id,
        "partitionName": partitions,
        "instantTime": instants_ms,
        "position": pa.nulls(len(keys), pa.int64()),
    }
    locations = pa.StructArray.from_arrays([columns[field.name] for field in stored], fields=list(stored))
    kinds = pa.repeat(pa.scalar(_RECORD_TYPE, pa.int32()), len(keys))
    return pa.table({KEY: keys, TYPE: kinds, LOCATION: locations})


def _parts(file_id: str) -> tuple[int, int, int, str, int]:
    match = _UUID.fullmatch(file_id)
    if match is None:
        return -1, -1, -1, file_id, 1
    digits = match[1].replace("-", "")
    high, low = _signed(int(digits[:16], 16)), _signed(int(digits[16:], 16))
    return high, low, -1 if match[2] is None else int(match[2]), "", 0


def _signed(bits: int) -> int:
    return bits - _HALF if bits >= _LONG_MAX else bits


def file_ids(locations: pa.StructArray) -> pa.Array:
    """Return the file id of each location."""
    parts = ("fileIdHighBits", "fileIdLowBits", "fileIndex")
    numbers = [locations.field(name).fill_null(-1).to_numpy(zero_copy_only=False) for name in parts]
    ids, codes = np.unique(np.stack(numbers, axis=1), axis=0, return_inverse=True)
    texts = pa.array([_file_id(*each) for each in ids.tolist()], pa.string())
    is_text = pc.equal(locations.field("fileIdEncoding"), 1)
    return pc.if_else(is_text, locations.field("fileId"), texts.take(pa.array(codes.ravel())))


def _file_id(high: int, low: int, number: int) -> str:
    digits = f"{high % _HALF:016x}{low % _HALF:016x}"
    uuid = "-".join(digits[start:stop] for start, stop in pairwise(_CUTS))
    return uuid if number < 0 else f"{uuid}-{number}"


def instants(locations: pa.StructArray, timezone: str) -> pa.Array:
    """Return the instant of each location.

    Args:
        locations: the locations.
        timezone: of the instant times of the table, `UTC` or `LOCAL`.
    """
    encoded = locations.field("instantTime").dictionary_encode()
    texts: Sequence[Any] = [instant_time(each, timezone) for each in encoded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(encoded.indices)


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
class IndexFileGroup:
    """A file group of the index, with the keys to look up in it (string); None for all its keys."""

    file_slice: FileSlice
    keys: pa.Array | None = None

    @property
    def remembered(self) -> DecodedRecordCache | None:
        """What remembers the records of a small file group; None for a large one."""
        return SMALL_INDEX_CACHE if self.file_slice.size_bytes <= ONE_THREAD_BYTES_MAX else None


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

    def shards(self, keys: pa.Array | None, partition: str) -> list[IndexFileGroup]:
        """Return the file groups that may have keys of a partition.

        Args:
            keys: the keys (string); None for all.
            partition: partition path; a global index has the keys of all partitions.
        """
        groups = self.groups.get(partition if self.is_partitioned else None, ())
        if keys is None:
            return [IndexFileGroup(each) for each in groups]
        if not groups or not len(keys):
            return []
        numbers = group_numbers(keys, len(groups))
        return [
            IndexFileGroup(groups[each], keys.filter(pa.array(numbers == each)))
            for each in np.unique(numbers)
        ]

    def read(self, shard: IndexFileGroup) -> Iterator[pa.RecordBatch]:
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
            base = (
                SliceRows(self, file_slice, schema, Lookup(keys=combined_chunks(keys))).of_base()
                if len(keys)
                else ()
            )
            return pa.Table.from_batches(map(_located, (*rows, *base)), LOCATIONS)

    def records(self, shard: IndexFileGroup) -> Iterator[pa.RecordBatch]:
        """Yield the merged records of a file group as they are stored."""
        lookup, known = (None, None) if shard.keys is None else (Lookup(keys=shard.keys), shard.remembered)
        rows = SliceRows(self, shard.file_slice, record_schema(Kind.RECORD_INDEX), lookup, known)
        logged = _last_versions(pa.Table.from_batches(rows.of_logs(), no_rows(Kind.RECORD_INDEX).schema))
        known = combined_chunks(logged.column(KEY)).cast(pa.binary())
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
        raise missing_instant_error(table.storage, missing)
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
