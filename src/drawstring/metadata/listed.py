"""The files that a slice of `files` lists: those of its base file, changed by its log files.

    base file ── listed_files, once ──> files by partition ──┐
    log files ────────────────────────── partitions in them ─┴── listed_after ──> files by partition

Between two compactions each commit adds a log file that concerns few partitions. The files of the others are
taken over as they are. A process that has merged the slice before
merges only the log files that have come since.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Final

import pyarrow as pa

from drawstring.metadata.merging import listed_after, listed_files
from drawstring.metadata.metadata_table import MetadataTable, about_metadata
from drawstring.metadata.partitions import FILES, Kind
from drawstring.metadata.stored.decoded import FILE_LISTS, FileKey, Key
from drawstring.metadata.stored.rows import no_rows, read_rows
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
