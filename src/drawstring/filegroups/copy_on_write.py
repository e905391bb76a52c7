r"""Copy-on-write merge: streams a base file into its successor and applies the changes of a write.

    base rows ---- key not among the changes ----------> kept
               \-- a change wins over it --------------> dropped (the change follows at the end)
                \- its ordering value is the greater --> kept, the change is dropped

A large base file of which all columns are as they will be stored is patched instead (`patch`).

The base file is streamed batch by batch; only the changes are held in memory. For a table with sorted files
all rows are sorted before they are written, beyond a bound on disk. If every change is dropped
(late records, or deletes of keys that the file lacks), no new file is written:

    first batches ── a change takes effect ──> start the successor
                 \-- none so far: scan keys and ordering values ── no change takes effect ──> no file
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base import limits
from drawstring.base.errors import CorruptTableError
from drawstring.config.table_config import TableConfig
from drawstring.filegroups.base_file_writer import (
    BaseFileWriter,
    FileSettings,
    MetaColumnWriter,
    as_stored,
    with_record_keys,
)
from drawstring.filegroups.merge_handle import FieldMergeHandle, MergeHandle
from drawstring.filegroups.read.bootstrap_reader import base_rows_of
from drawstring.filegroups.row_group_patch import Patch, patch_source_of
from drawstring.filegroups.sorted_merge import sorted_by_key
from drawstring.filegroups.write.change_log import ChangeLog
from drawstring.filegroups.write.changes import Changes
from drawstring.formats.data_file import Selection, base_footer, read_base
from drawstring.formats.file_format import BaseFooter
from drawstring.formats.parquet import REPEATING, read_parquet_rows, with_dictionary_types
from drawstring.merge.record_merger import merger_of
from drawstring.merge.record_version import ordering_columns, ordering_fields
from drawstring.model.commit import WriteStat
from drawstring.model.files import BaseFile, FileSlice, TaskContext
from drawstring.schema.evolution import conform
from drawstring.schema.fields import FILE_NAME, RECORD_KEY
from drawstring.schema.internal_schema import stored_columns, with_query_names
from drawstring.storage.protocol import Storage

_Rows: TypeAlias = tuple[pa.RecordBatch, bool]
"""Rows of a new file, and whether the previous file has their keys."""

_BATCHES_HELD: Final = 2
"""Base batches to buffer while no change takes effect; in most rewrites the first one suffices."""

_KEYS_ASKED: Final = 1024
"""Keys of changes to look up in the bloom filter: a key that it lacks is a new record."""


def rewrite_slice(
    settings: FileSettings,
    storage: Storage,
    target: FileSlice,
    changes: Changes,
    meta_columns: MetaColumnWriter,
    context: TaskContext,
) -> WriteStat | None:
    """Write the next base file of a file group; None, and no file, if no change takes effect.

    Args:
        settings: settings of the write.
        storage: storage of the table.
        target: the slice to rewrite; it has a base file and no log files.
        changes: one record or delete per key.
        meta_columns: writes the meta columns.
        context: the task attempt.

    Raises:
        CorruptTableError: the base file is missing or damaged.
    """
    footer = _footer(settings, storage, target)
    handle = _merge_handle(changes, settings)
    patch = _patch(settings, storage, target, footer, handle, meta_columns)
    if patch is not None:
        return patch.write(context)
    log = handle.change_log if isinstance(handle, MergeHandle) else None
    kept = handle.merge_base(_base_rows(storage, target, settings, footer))
    looks_late = isinstance(handle, MergeHandle) and _looks_late(footer, changes, settings.config)
    changes_nothing = partial(_changes_nothing, settings, storage, target, changes, footer)
    if looks_late and changes_nothing():
        return None
    held = _until_a_change(kept, handle)
    if not (handle.has_changed or looks_late):
        is_through = len(held) < _BATCHES_HELD
        if not handle.has_new if is_through else changes_nothing():
            return None
    writer = _successor(settings, storage, target, context, footer)
    old = ((as_stored(each, writer.name, settings.config), True) for each in chain(held, kept))
    survivors = _Survivors(handle, meta_columns, writer.name)
    try:
        _write_rows(writer, settings.config, chain(old, survivors.rows()))
    except BaseException:
        writer.abort()
        raise
    cdc_files = log.write(storage, target, context) if log else {}
    return replace(_closed(writer, handle, survivors), cdc_files=cdc_files)


def _patch(
    settings: FileSettings,
    storage: Storage,
    target: FileSlice,
    footer: BaseFooter,
    handle: MergeHandle | FieldMergeHandle,
    meta_columns: MetaColumnWriter,
) -> Patch | None:
    """Return the merge as a patch of the base file; None if it has to be written as a whole."""
    if not isinstance(handle, MergeHandle) or _is_small(footer):
        return None
    source = patch_source_of(settings, storage, target)
    return Patch(settings, storage, target, source, footer, handle, meta_columns) if source else None


def _is_small(footer: BaseFooter) -> bool:
    return footer.rows * footer.columns < limits.in_force.patched_values_min


def _closed(
    writer: BaseFileWriter, handle: MergeHandle | FieldMergeHandle, survivors: _Survivors
) -> WriteStat:
    return writer.close(
        inserts=survivors.count - handle.updates,
        updates=handle.updates,
        deletes=handle.deletes,
        deleted_keys=handle.deleted_keys if isinstance(handle, MergeHandle) else None,
    )


class _Survivors:
    """The changes that won over the base rows, as rows of the new file.

    Args:
        handle: has seen all base rows when `rows` is read.
        meta_columns: writes the meta columns.
        file_name: name of the new file.
    """

    def __init__(
        self, handle: MergeHandle | FieldMergeHandle, meta_columns: MetaColumnWriter, file_name: str
    ) -> None:
        self._handle = handle
        self._meta_columns = meta_columns
        self._file_name = file_name
        self.count = 0

    def rows(self) -> Iterator[_Rows]:
        """Yield the rows, and log new records as changes."""
        handle = self._handle
        log = handle.change_log if isinstance(handle, MergeHandle) else None
        for records, is_known in handle.surviving_records():
            self.count += records.num_rows
            for batch in records.to_batches():
                if log and not is_known:
                    log.inserted(batch)
                yield self._meta_columns.apply(batch, self._file_name), is_known


def _write_rows(writer: BaseFileWriter, config: TableConfig, rows: Iterator[_Rows]) -> None:
    """Write rows with their meta columns, sorted by record key if the table's files are."""
    if config.has_sorted_files:
        for batch in sorted_by_key(batch for batch, _ in rows):
            writer.write(batch)
    else:
        for batch, is_known in rows:
            writer.write(batch, is_known=is_known)


def extend_slice(
    settings: FileSettings,
    storage: Storage,
    target: FileSlice,
    added: Iterator[pa.RecordBatch],
    meta_columns: MetaColumnWriter,
    context: TaskContext,
) -> WriteStat:
    """Write the next base file of a file group: its records and additional ones.

    Args:
        settings: settings of the write.
        storage: storage of the table.
        target: the slice to rewrite; it has a base file and no log files.
        added: prepared rows; their keys are not compared with those of the file.
        meta_columns: writes the meta columns.
        context: the task attempt.

    Raises:
        CorruptTableError: the base file is missing or damaged.
    """
    former = _footer(settings, storage, target)
    writer = _successor(settings, storage, target, context, former)
    log = ChangeLog(settings) if settings.config.cdc_enabled else None
    try:
        for batch in _base_rows(storage, target, settings, former):
            writer.write(as_stored(batch, writer.name, settings.config), is_known=True)
        kept = writer.rows
        for batch in added:
            writer.write(meta_columns.apply(batch, writer.name))
            if log:
                log.inserted(batch)
    except BaseException:
        writer.abort()
        raise
    cdc_files = log.write(storage, target, context) if log else {}
    return replace(writer.close(inserts=writer.rows - kept), cdc_files=cdc_files)


def _footer(settings: FileSettings, storage: Storage, target: FileSlice) -> BaseFooter:
    if target.base is None:
        raise CorruptTableError(
            "A copy-on-write file group has no base file. Restore it from a backup.", path=target.partition
        )
    return base_footer(storage, target.base.status.path, _stored(settings, target.base, settings.full_schema))


def _stored(settings: FileSettings, base: BaseFile, columns: pa.Schema) -> pa.Schema:
    """Return columns of the table by their names in a base file."""
    renames = settings.config.renames(base.instant)
    return columns if renames is None else stored_columns(columns, renames)


def _successor(
    settings: FileSettings, storage: Storage, target: FileSlice, context: TaskContext, former: BaseFooter
) -> BaseFileWriter:
    return BaseFileWriter(
        settings,
        storage,
        target.partition,
        target.file_id,
        context.write_token,
        target,
        former=None if settings.config.has_sorted_files else former,
    )


def _base_rows(
    storage: Storage,
    target: FileSlice,
    settings: FileSettings,
    footer: BaseFooter,
    schema: pa.Schema | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a slice's base file without file name; repetitive columns are dictionaries.

    With a schema, the rows have only its columns.
    """
    assert target.base is not None
    schema = schema or with_dictionary_types(settings.full_schema)
    renames = settings.config.renames(target.base.instant)
    needed = pa.schema([each for each in settings.full_schema if each.name in schema.names])
    columns = [name for name in _stored(settings, target.base, needed).names if name != FILE_NAME]
    path, full = target.base.status.path, settings.full_schema
    known = _stored(settings, target.base, full)
    if target.base.source is not None:
        batches = base_rows_of(storage, target.base, Selection(columns, types=known), full, settings.config)
    elif footer.parquet is not None:
        batches = read_parquet_rows(storage, path, columns, tuple(REPEATING), footer.parquet)
    else:
        batches = read_base(storage, path, Selection(columns))
    for batch in batches:
        rows = batch if renames is None else with_query_names(batch, renames)
        yield with_record_keys(conform(rows, schema), settings.config)


def _merge_handle(
    changes: Changes, settings: FileSettings, *, logs_changes: bool = True
) -> MergeHandle | FieldMergeHandle:
    merger = merger_of(settings.config, schema_json=settings.avro_schema)
    if merger.chooses_whole_records:
        logs_changes = logs_changes and settings.config.cdc_enabled
        return MergeHandle(changes, settings.config, ChangeLog(settings) if logs_changes else None)
    return FieldMergeHandle(changes, settings, merger)


def _looks_late(footer: BaseFooter, changes: Changes, config: TableConfig) -> bool:
    """Tell by the ends of ordering values whether it is likely that a file's rows win over all changes.

    In that case it is cheaper to scan keys and ordering values first than to read whole rows. The rows of a
    small file are read at once: they are held before the successor is started.
    """
    name = next((each for each in ordering_fields(config) if each in changes.records.column_names), None)
    if name is None or _is_small(footer):
        return False
    kind = changes.records.schema.field(name).type
    if not (pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_timestamp(kind)):
        return False
    newest, greatest = pc.max(changes.records.column(name)), footer.greatest(name)
    return greatest is not None and bool(pc.less(newest, pa.scalar(greatest, kind)).as_py())


def _until_a_change(
    kept: Iterator[pa.RecordBatch], handle: MergeHandle | FieldMergeHandle
) -> list[pa.RecordBatch]:
    """Return the first batches, up to the one in which a change takes effect, or the limit."""
    held = []
    for batch in islice(kept, _BATCHES_HELD):
        held.append(batch)
        if handle.has_changed:
            break
    return held


def _changes_nothing(
    settings: FileSettings, storage: Storage, target: FileSlice, changes: Changes, footer: BaseFooter
) -> bool:
    """Return whether no change takes effect; scans only the columns that decide it."""
    if _has_new_for_sure(footer, target, changes):
        return False
    handle = _merge_handle(changes, settings, logs_changes=False)
    winner_columns = _winner_columns(settings) if isinstance(handle, MergeHandle) else None
    for _ in handle.merge_base(_base_rows(storage, target, settings, footer, winner_columns)):
        if handle.has_changed:
            return False
    return not handle.has_new


def _winner_columns(settings: FileSettings) -> pa.Schema:
    """Return the columns that decide whether a base row wins, if records are not merged by column."""
    config, full = settings.config, settings.full_schema
    keys = () if config.populate_meta_fields else config.record_key_fields
    names = dict.fromkeys((RECORD_KEY, *keys, *ordering_columns(config, full)))
    return pa.schema([full.field(name) for name in names if name in full.names])


def _has_new_for_sure(footer: BaseFooter, target: FileSlice, changes: Changes) -> bool:
    """Return whether the bloom filter shows that the base file lacks one of the first keys."""
    keys = changes.records.column(RECORD_KEY).slice(0, _KEYS_ASKED).combine_chunks()
    if target.base is None or target.base.source is not None or not len(keys):
        return False
    bloom = footer.bloom_filter()
    return bloom is not None and not bloom.contains(keys).all()
