"""The files that a slice of `files` lists: those of its base file, changed by its log files.

    base file ── listed_files, once ──> files by partition ──┐
    log files ────────────────────────── partitions in them ─┴── listed_after ──> files by partition

Between two compactions each commit adds a log file that concerns few partitions. The files of the others are
taken over as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Final

import pyarrow as pa

from drawstring.metadata.merging import listed_after, listed_files
from drawstring.metadata.metadata_table import MetadataTable
from drawstring.metadata.partitions import Kind
from drawstring.metadata.stored.decoded import FILE_LISTS, FileKey
from drawstring.metadata.stored.rows import no_rows, read_rows
from drawstring.model.files import FileSlice, FileStatus
from drawstring.storage.protocol import Storage

_LISTED: Final = "#listed"


def listed_in(table: MetadataTable, file_slice: FileSlice) -> pa.Table:
    """Return the files that a slice of `files` lists, as `listed_files` does.

    Args:
        table: the metadata table.
        file_slice: one of its slices.

    Raises:
        CorruptTableError: a file is missing or damaged.
    """
    logged = read_rows(table, replace(file_slice, base=None), Kind.FILES)
    if file_slice.base is None:
        return listed_files(logged)

    def listed() -> Sequence[pa.RecordBatch]:
        rows = read_rows(table, replace(file_slice, logs=()), Kind.FILES)
        batches: list[pa.RecordBatch] = listed_files(rows).combine_chunks().to_batches()
        return batches

    found = FILE_LISTS.get(_key(table.storage, file_slice.base.status), listed)
    return listed_after(pa.Table.from_batches(found, _columns()), logged)


def remember_listed(storage: Storage, base: FileStatus, listed: pa.Table) -> None:
    """Remember the files that a base file of `files` lists, which this process has just put.

    Args:
        storage: files of the metadata table.
        base: the base file.
        listed: the result of `listed_in`.
    """
    FILE_LISTS.remember(_key(storage, base), listed.combine_chunks().to_batches())


def _key(storage: Storage, base: FileStatus) -> FileKey:
    return storage.spec.uri + _LISTED, base


@cache
def _columns() -> pa.Schema:
    return listed_files(no_rows(Kind.FILES)).schema
