"""Return the records of the metadata table as tables for people and programs, and the files that it lists.

    partition kind                     columns
    files                              partition, file, size_bytes
    column_stats, partition_stats      partition, file, column, type, min, max, values, nulls, ...
    bloom_filters                      partition, file, type, instant, filter_bytes
    record_index                       key, partition, file_id, instant, position
    secondary_index_<name>             value, key
    expr_index_<name>                  those of statistics or of bloom filters

Keys hold hashes of partitions and file names; `files` has the names (`KnownNames`). A hash of a deleted
file is shown as null.

The files that a slice of `files` lists (`all_files`) are those of its base file, changed by its log files:

    base file ── listed_files, once ──> files by partition ──┐
    log files ────────────────────────── partitions in them ─┴── listed_after ──> files by partition

Between two compactions each commit adds a log file that concerns few partitions. The files of the other
partitions stay as they are. A process that has merged the slice before merges only the log files that were
added since.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import InvalidError
from drawstring.base.lazy import cached_property
from drawstring.merge.record_version import combined_chunks
from drawstring.metadata.column_stats_record import MAX, MIN, bounds_as_text, combined, type_names
from drawstring.metadata.merging import listed_after, listed_files, newest
from drawstring.metadata.reader import FILE_LISTS, FileKey, Key, no_rows, read_rows
from drawstring.metadata.record_index_lookup import file_ids, instants
from drawstring.metadata.table import (
    ALL_PARTITIONS,
    BLOOM,
    FILES,
    KEY,
    LOCATION,
    NAME,
    NAME_HASH_CHARS,
    PARTITION_STATISTICS,
    ROOT_PARTITION,
    SECONDARY,
    SIZE,
    STATISTICS,
    TYPE,
    Kind,
    Lookup,
    MetadataTable,
    about_metadata,
    decode_secondary_key,
    file_hash,
    kind_of,
    partition_hash,
)
from drawstring.model.files import FileSlice, FileStatus, LogFile
from drawstring.storage.protocol import Storage

_LISTED: Final = "#listed"
_LOGS_AT_ONCE: Final = 4
"""Number of log files that may have come since the list was merged last: a write and its services."""


def all_files(table: MetadataTable) -> pa.Table:
    """Return the files that a metadata table lists, as `listed_files` does.

    Args:
        table: the metadata table.

    Raises:
        MetadataTableError: it is damaged.
        InvalidError: it has no list of files.
    """
    slices = table.slices(FILES)
    with about_metadata(table.storage):
        groups = [listed_in(table, each) for each in slices]
        return groups[0] if len(groups) == 1 else pa.concat_tables([_columns().empty_table(), *groups])


def listed_in(table: MetadataTable, file_slice: FileSlice) -> pa.Table:
    """Return the files that a slice of `files` lists, as `listed_files` does.

    Args:
        table: the metadata table.
        file_slice: one of its slices.

    Raises:
        CorruptTableError: a file is missing or damaged.
    """

    def listed() -> Sequence[pa.RecordBatch]:
        earlier = None if _has_shared_logs(table) else _after_known(table, file_slice)
        return _batches(_merged(table, file_slice) if earlier is None else earlier)

    return _table(FILE_LISTS.get(_slice_key(table, file_slice), listed))


def _merged(table: MetadataTable, file_slice: FileSlice) -> pa.Table:
    """Return the files that a slice lists, by its base file and all of its log files."""
    logged = read_rows(table, replace(file_slice, base=None), Kind.FILES)
    if file_slice.base is None:
        return listed_files(logged)

    def listed() -> Sequence[pa.RecordBatch]:
        return _batches(listed_files(read_rows(table, replace(file_slice, logs=()), Kind.FILES)))

    base = FILE_LISTS.get(_key(table.storage, file_slice.base.status), listed)
    return listed_after(_table(base), logged)


def _after_known(table: MetadataTable, file_slice: FileSlice) -> pa.Table | None:
    """Return the files that a slice lists by what it listed before its last log files; None if unknown."""
    logs = file_slice.logs
    for count in range(len(logs) - 1, max(-1, len(logs) - 1 - _LOGS_AT_ONCE), -1):
        known = FILE_LISTS.known(_slice_key(table, replace(file_slice, logs=logs[:count])))
        if known is not None:
            rows = read_rows(table, replace(file_slice, base=None, logs=logs[count:]), Kind.FILES)
            return listed_after(_table(known), rows) if _only_add(table, logs[count:]) else None
    return None


def _only_add(table: MetadataTable, logs: Sequence[LogFile]) -> bool:
    """Return whether log files that were just read do not change what others before them say."""
    for log in logs:
        blocks = FILE_LISTS.known((table.storage.spec.uri, log.status))
        if blocks is None or any(each.block.compacted_instants for each in blocks):
            return False
    return True


def _has_shared_logs(table: MetadataTable) -> bool:
    """Return whether log files have blocks of several instants, of which some may be rolled back."""
    return table.config.rules.names_logs_by_slice


def remember_listed(storage: Storage, base: FileStatus, listed: pa.Table) -> None:
    """Remember the files that a base file of `files` lists, which this process has just put.

    Args:
        storage: files of the metadata table.
        base: the base file.
        listed: the result of `listed_in`.
    """
    FILE_LISTS.remember(_key(storage, base), _batches(listed))


def _slice_key(table: MetadataTable, file_slice: FileSlice) -> Key:
    uri = table.storage.spec.uri + _LISTED
    return (uri, (file_slice,), table.instants) if _has_shared_logs(table) else (uri, file_slice)


def _batches(listed: pa.Table) -> list[pa.RecordBatch]:
    batches: list[pa.RecordBatch] = listed.combine_chunks().to_batches()
    return batches


def _table(batches: Sequence[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(batches, _columns())


def _key(storage: Storage, base: FileStatus) -> FileKey:
    return storage.spec.uri + _LISTED, base


@cache
def _columns() -> pa.Schema:
    return listed_files(no_rows(Kind.FILES)).schema


_MERGE: Final[Mapping[Kind, Callable[[pa.Table], pa.Table]]] = {
    Kind.FILES: listed_files,
    Kind.STATISTICS: combined,
    Kind.EXPRESSION_INDEX: combined,
}


def shown(
    table: MetadataTable, timezone: str, partition: str | None, names: Sequence[str] | None
) -> pa.Table:
    """Return the list of partitions, or the contents of one; see `summary` and `contents`.

    Raises:
        InvalidError: names are given without a partition.
    """
    if partition is not None:
        return contents(table, partition, timezone, names)
    if names is not None:
        raise InvalidError("Keys are looked up in one partition of the metadata table. Name it as well.")
    return summary(table)


def summary(table: MetadataTable) -> pa.Table:
    """Return the partitions of the metadata table with their file groups, files and sizes."""
    rows = []
    for partition in table.ready:
        slices = table.slices(partition)
        rows.append(
            {
                "partition": partition,
                "file_groups": len(slices),
                "base_files": sum(each.base is not None for each in slices),
                "log_files": sum(len(each.logs) for each in slices),
                "size_bytes": sum(each.size_bytes for each in slices),
            }
        )
    names = pa.schema(
        [
            ("partition", pa.string()),
            *((name, pa.int64()) for name in ("file_groups", "base_files", "log_files", "size_bytes")),
        ]
    )
    return pa.Table.from_pylist(rows, names)


def records(table: MetadataTable, partition: str, names: Sequence[str] | None = None) -> pa.Table:
    """Return the merged records of a partition as they are stored; of `files`, the files that they list.

    Args:
        table: the metadata table.
        partition: one of its partitions.
        names: see `contents`.

    Raises:
        CorruptTableError: a file is missing or damaged.
        InvalidError: the metadata table does not have the partition.
        UnsupportedError: this release does not know the partition.
    """
    table.check_has(partition)
    lookup = None if names is None else Lookup.of(kind_of(partition), names)
    with about_metadata(table.storage):
        return looked_up(table, partition, lookup)


def looked_up(table: MetadataTable, partition: str, lookup: Lookup | None) -> pa.Table:
    """Return the merged records of a partition with the keys of a look-up, None for all; see `records`."""
    slices, kind = table.slices(partition), kind_of(partition)
    merge = _MERGE.get(kind, newest)
    with about_metadata(table.storage):
        if lookup is None and kind is Kind.FILES:
            return all_files(table)
        chosen = ((each, None) for each in slices) if lookup is None else lookup.by_group(slices)
        groups = [merge(read_rows(table, each, kind, wanted)) for each, wanted in chosen]
        return pa.concat_tables([_nothing(kind), *groups])


@cache
def _nothing(kind: Kind) -> pa.Table:
    return _MERGE.get(kind, newest)(no_rows(kind))


def contents(
    table: MetadataTable, partition: str, timezone: str, names: Sequence[str] | None = None
) -> pa.Table:
    """Return the live records of a partition, decoded.

    Args:
        table: the metadata table.
        partition: one of its partitions.
        timezone: of the instant times of the table, `UTC` or `LOCAL`.
        names: the record keys of the record index, values of a secondary index, columns of statistics, or
            partition paths of `files` and bloom filters to look up; None for all records.

    Raises:
        CorruptTableError: a file is missing or damaged.
        InvalidError: the metadata table does not have the partition.
        UnsupportedError: this release does not know the partition.
    """
    rows = records(table, partition, names)
    with about_metadata(table.storage):
        decoded = _decoded(table, kind_of(partition), rows, timezone)
        return decoded.sort_by([(name, "ascending") for name in decoded.schema.names[:3]])


def _decoded(table: MetadataTable, kind: Kind, rows: pa.Table, timezone: str) -> pa.Table:
    match kind:
        case Kind.FILES:
            return _files(rows)
        case Kind.RECORD_INDEX:
            return _locations(rows, timezone)
        case Kind.SECONDARY_INDEX:
            return _secondary(rows)
        case Kind.BLOOM_FILTERS:
            return _bloom_filters(rows, KnownNames(table))
        case Kind.EXPRESSION_INDEX if _struct(rows, BLOOM).null_count < rows.num_rows:
            return _bloom_filters(rows, KnownNames(table))
        case _:
            return _statistics(rows, KnownNames(table))


@dataclass(frozen=True)
class KnownNames:
    """The partitions and files that `files` lists, by their hashes."""

    table: MetadataTable

    def partitions(self, hashes: pa.Array) -> pa.Array:
        """Return the partition paths with some hashes."""
        known = self._files.filter(pc.equal(self._files.column(KEY), ALL_PARTITIONS)).column(NAME)
        return _looked_up(
            hashes, {partition_hash(path_of(name)): path_of(name) for name in known.to_pylist()}
        )

    def files(self, hashes: pa.Array) -> pa.Array:
        """Return the file names with some hashes."""
        known = self._files.filter(pc.not_equal(self._files.column(KEY), ALL_PARTITIONS)).column(NAME)
        return _looked_up(hashes, {file_hash(name): name for name in known.to_pylist()})

    @cached_property
    def _files(self) -> pa.Table:
        return records(self.table, FILES)


def _looked_up(hashes: pa.Array, known: Mapping[str, str]) -> pa.Array:
    places = pc.index_in(hashes, pa.array(list(known), pa.string()))
    return pa.array(list(known.values()), pa.string()).take(places)


def path_of(partition: str) -> str:
    """Return the partition path for the name of a partition in `files`."""
    return "" if partition == ROOT_PARTITION else partition


def _struct(rows: pa.Table, name: str) -> pa.StructArray:
    return combined_chunks(rows.column(name))


def _live(rows: pa.Table, name: str) -> pa.Table:
    """Return the rows that have a content and are not tombstones."""
    content = _struct(rows, name)
    is_live = pc.and_(content.is_valid(), pc.invert(content.field("isDeleted").fill_null(False)))
    return rows.filter(is_live)


def _files(rows: pa.Table) -> pa.Table:
    files = rows.filter(pc.not_equal(rows.column(KEY), ALL_PARTITIONS))
    partitions = combined_chunks(files.column(KEY))
    is_root = pc.equal(partitions, ROOT_PARTITION)
    return pa.table(
        {
            "partition": pc.if_else(is_root, "", partitions),
            "file": files.column(NAME),
            "size_bytes": files.column(SIZE),
        }
    )


def _statistics(rows: pa.Table, known: KnownNames) -> pa.Table:
    rows = _live(rows, STATISTICS)
    statistics, keys = _struct(rows, STATISTICS), combined_chunks(rows.column(KEY))
    is_partition = pc.equal(combined_chunks(rows.column(TYPE)), PARTITION_STATISTICS)
    names = statistics.field("fileName")
    hashes = pc.utf8_slice_codeunits(keys, NAME_HASH_CHARS, 2 * NAME_HASH_CHARS)
    return pa.table(
        {
            "partition": pc.if_else(is_partition, names, known.partitions(hashes)),
            "file": pc.if_else(is_partition, pa.scalar(None, pa.string()), names),
            "column": statistics.field("columnName"),
            "type": type_names(statistics),
            "min": bounds_as_text(statistics, MIN),
            "max": bounds_as_text(statistics, MAX),
            "values": statistics.field("valueCount"),
            "nulls": statistics.field("nullCount"),
            "size_bytes": statistics.field("totalSize"),
            "plain_bytes": statistics.field("totalUncompressedSize"),
            "is_tight": statistics.field("isTightBound"),
        }
    )


def _bloom_filters(rows: pa.Table, known: KnownNames) -> pa.Table:
    rows = _live(rows, BLOOM)
    filters, keys = _struct(rows, BLOOM), combined_chunks(rows.column(KEY))
    return pa.table(
        {
            "partition": known.partitions(pc.utf8_slice_codeunits(keys, 0, NAME_HASH_CHARS)),
            "file": known.files(pc.utf8_slice_codeunits(keys, NAME_HASH_CHARS)),
            "type": filters.field("type"),
            "instant": filters.field("timestamp"),
            "filter_bytes": pc.binary_length(filters.field("bloomFilter")).cast(pa.int64()),
        }
    )


def _locations(rows: pa.Table, timezone: str) -> pa.Table:
    locations = _struct(rows, LOCATION)
    return pa.table(
        {
            "key": rows.column(KEY),
            "partition": locations.field("partitionName"),
            "file_id": file_ids(locations),
            "instant": instants(locations, timezone),
            "position": locations.field("position"),
        }
    )


def _secondary(rows: pa.Table) -> pa.Table:
    pairs = [decode_secondary_key(key) for key in _live(rows, SECONDARY).column(KEY).to_pylist()]
    columns = {"value": [value for value, _ in pairs], "key": [key for _, key in pairs]}
    return pa.table({name: pa.array(column, pa.string()) for name, column in columns.items()})
