"""Keeps the partition `files` of the metadata table (payload of Apache Hudi 1.2.0).

write, compaction, clustering, ...   its files with their sizes; `__all_partitions__` lists its partitions
clean                                a tombstone for each file that it deleted
                                     a partition that is gone: an entry of a delete block for its record, and
                                     a tombstone in `__all_partitions__`

Files that a write replaces stay listed until they are cleaned. Savepoints change no files. Rollbacks take
back the delta commit of the instant that they roll back (`metadata.writer`). That of a resizing also deletes
log files that other instants wrote into its new buckets: the list forgets them by a delta commit of the
rollback's time, as with version 6 in Hudi.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.config.table_config import TableConfig
from drawstring.filegroups.file_system_view import Listing
from drawstring.merge.record_version import combined_chunks
from drawstring.metadata.partitions.maintainer import GroupChange, InitialPartition, TableChange, TableFacts
from drawstring.metadata.record_tables import path_of, records
from drawstring.metadata.table import (
    ALL_PARTITIONS,
    FILE_INFOS,
    FILES,
    KEY,
    NAME,
    ROOT_PARTITION,
    SIZE,
    TYPE,
    MetadataTable,
)
from drawstring.model.commit import CommitMetadata
from drawstring.model.files import parse_data_file
from drawstring.model.plans import CleanMetadata, RollbackMetadata
from drawstring.storage.protocol import Storage
from drawstring.timeline.timeline import Timeline

FILES_GROUP: Final = "files-0000-0"
"""The one file group of the partition `files`."""

_PARTITIONS_TYPE, _FILES_TYPE = 1, 2
_INFO = pa.struct([pa.field("size", pa.int64(), False), pa.field("isDeleted", pa.bool_(), False)])

Sizes = Mapping[str, "int | None"]
"""Sizes in bytes by name; None for a name that is removed."""


@dataclass(frozen=True, slots=True)
class FileChanges:
    """Changes of the files of a table.

    Attributes:
        files: sizes by file name, by partition path.
        gone: partition paths that are removed.
    """

    files: Mapping[str, Sizes] = field(default_factory=dict)
    gone: tuple[str, ...] = ()

    def rows(self) -> pa.Table:
        """Return the records to write, in the columns key, type and file information."""
        partitions: dict[str, int | None] = {
            _name(each): 0 for each, sizes in self.files.items() if _adds(sizes)
        }
        partitions |= {_name(each): None for each in self.gone}
        records = {
            _name(each): sizes for each, sizes in self.files.items() if sizes and each not in self.gone
        }
        if partitions:
            records[ALL_PARTITIONS] = partitions
        types = [_PARTITIONS_TYPE if key == ALL_PARTITIONS else _FILES_TYPE for key in records]
        return pa.table(
            {
                KEY: pa.array(list(records), pa.string()),
                TYPE: pa.array(types, pa.int32()),
                FILE_INFOS: _maps(list(records.values())),
            }
        )

    def without_removing(self, kept: Collection[str]) -> FileChanges:
        """Return the same changes, but the records of some partitions that seemed to be gone are kept."""
        return replace(self, gone=tuple(each for each in self.gone if each not in kept))

    def joined(self, other: FileChanges) -> FileChanges:
        """Return these changes and others, of other files."""
        partitions = {*self.files, *other.files}
        files = {each: {**self.files.get(each, {}), **other.files.get(each, {})} for each in partitions}
        return FileChanges(files, (*self.gone, *other.gone))

    def in_group(self) -> GroupChange:
        """Return the change of the file group that lists the files."""
        return GroupChange(FILES, FILES_GROUP, self.rows(), self.removed())

    def removed(self) -> pa.Array:
        """Return the keys of the records to remove."""
        return pa.array([_name(each) for each in self.gone], pa.string())


def rows_of(listed: pa.Table) -> pa.Table:
    """Return the records that list files.

    Args:
        listed: columns `key`, `name` and `size_bytes`, sorted by key; a size that is null is a tombstone.
    """
    encoded = combined_chunks(listed.column(KEY)).dictionary_encode()
    counts = pc.value_counts(encoded.indices).field("counts").to_numpy()
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
    keys, sizes = encoded.dictionary, combined_chunks(listed.column(SIZE))
    return pa.table(
        {
            KEY: keys,
            TYPE: pc.if_else(pc.equal(keys, ALL_PARTITIONS), _PARTITIONS_TYPE, _FILES_TYPE).cast(pa.int32()),
            FILE_INFOS: pa.MapArray.from_arrays(
                offsets,
                combined_chunks(listed.column(NAME)),
                _infos(sizes.fill_null(0), sizes.is_null()),
            ),
        }
    )


class FilesMaintainer:
    """Keeps the names and sizes of all files."""

    def changes(self, change: TableChange) -> Iterator[GroupChange]:
        """Yield the files that an instant writes or deletes."""
        if change.commit is not None:
            yield written_files(change.commit).in_group()
        elif change.clean is not None:
            changes = cleaned_files(change.clean)
            kept = [each for each in changes.gone if change.may_have_files(each)]
            yield changes.without_removing(kept).in_group()

    def define(self, storage: Storage, config: TableConfig) -> None:
        """Do nothing: a list of files is no index."""

    def initial(self, facts: TableFacts) -> InitialPartition:
        """Return the files of the completed writes of a table."""
        for partition in facts.view.partitions():
            facts.view.slices(partition)  # a list without a file that is missing would hide that
        changes = committed_files(facts.view.listing, facts.timeline)
        groups = [changes.in_group()] if changes.files else []
        return InitialPartition((FILES_GROUP,), iter(groups))


def committed_files(listing: Listing, timeline: Timeline) -> FileChanges:
    """Return the files of the completed writes of a table.

    Args:
        listing: lists the storage.
        timeline: the table's timeline.
    """
    files: dict[str, dict[str, int | None]] = {}
    for partition in listing.partitions():
        sizes = files.setdefault(partition, {})
        for status in listing.files(partition):
            file = parse_data_file(status)
            if file is not None and timeline.completion_of(file.instant) is not None:
                sizes[status.name] = status.size_bytes
    return FileChanges(files)


def forgotten_files(table: MetadataTable, instant: str) -> FileChanges:
    """Return the changes by which the list forgets the files named after an instant.

    Args:
        table: the metadata table.
        instant: requested time of an instant that was rolled back.
    """
    listed = records(table, FILES)
    named = rf"_{instant}(\.|_\d+\.(log|deletes|cdc)\.)"  # native log files have a version there
    listed = listed.filter(pc.match_substring_regex(listed.column(NAME), named))
    files: dict[str, dict[str, int | None]] = {}
    for key, name in zip(listed.column(KEY).to_pylist(), listed.column(NAME).to_pylist(), strict=True):
        files.setdefault(path_of(key), {})[name] = None
    return FileChanges(files)


def command_files(undone: RollbackMetadata) -> FileChanges:
    """Return the log files by which a rollback of version 6 takes blocks back.

    The log files of the failed write, which stay, are not listed: no block in them counts, and if its process
    did not make them survive a power cut, the list must not name them.

    Args:
        undone: the rollback.
    """
    files: dict[str, dict[str, int | None]] = {}
    for stat in undone.stats:
        named = {path.rpartition("/")[2]: size for path, size in stat.command_files.items() if path}
        if named:
            files[stat.partition] = {**named}
    return FileChanges(files)


def written_files(commit: CommitMetadata) -> FileChanges:
    """Return the changes by which the list gets the files of a write."""
    files: dict[str, dict[str, int | None]] = {}
    for stat in commit.stats:
        sizes = files.setdefault(stat.partition, {})
        for path, size in ((stat.path, stat.size_bytes), *stat.cdc_files.items()):
            name = path.rpartition("/")[2]
            if name:
                sizes[name] = max(size, sizes.get(name) or 0)
    return FileChanges(files)


def cleaned_files(clean: CleanMetadata) -> FileChanges:
    """Return the changes by which the list loses the files and partitions that a clean deleted."""
    partitions = clean.partitions
    files = {path: dict.fromkeys((*each.deleted, *each.failed)) for path, each in partitions.items()}
    return FileChanges(files, tuple(path for path, each in partitions.items() if each.is_gone))


def _adds(sizes: Sizes) -> bool:
    return not sizes or any(size is not None for size in sizes.values())


def _maps(records: list[Sizes]) -> pa.MapArray:
    names = [name for sizes in records for name in sizes]
    sizes = [size for sizes in records for size in sizes.values()]
    infos = _infos(
        pa.array([size or 0 for size in sizes], pa.int64()),
        pa.array([size is None for size in sizes], pa.bool_()),
    )
    offsets = pa.array([0, *accumulate(map(len, records))], pa.int32())
    return pa.MapArray.from_arrays(offsets, pa.array(names, pa.string()), infos)


def _infos(sizes: pa.Array, is_deleted: pa.Array) -> pa.StructArray:
    return pa.StructArray.from_arrays([sizes, is_deleted], fields=list(_INFO))


def _name(partition: str) -> str:
    return partition or ROOT_PARTITION
