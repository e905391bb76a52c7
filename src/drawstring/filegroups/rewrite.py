r"""Copy on write: stream a base file into its successor, laying the changes of a write over it.

    base rows ---- key not among the changes ----------> kept
               \-- a change wins over it --------------> dropped (the change follows at the end)
                \- its ordering value is the greater --> kept, the change is dropped

The base file passes through batch by batch; only the changes are held in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from drawstring.base.errors import CorruptTableError
from drawstring.engine.protocol import TaskContext
from drawstring.filegroups.base_writer import BaseFileWriter
from drawstring.filegroups.change_log import ChangeLog, taken
from drawstring.filegroups.changes import Changes, ordering_columns
from drawstring.filegroups.patch import Numbers, PatchingOverlay, matches
from drawstring.filegroups.settings import FileSettings
from drawstring.filegroups.stamp import Stamp
from drawstring.filegroups.stitched import base_rows_of
from drawstring.filegroups.virtual_keys import as_stored, keyed
from drawstring.formats.base_files import Selection
from drawstring.formats.parquet import REPEATING, physical, read_parquet_rows
from drawstring.merge.choose import WholeMerger, merger_of
from drawstring.merge.order import wins_over
from drawstring.merge.versions import comparable, ordering_of
from drawstring.model.commit import WriteStat
from drawstring.model.files import FileSlice
from drawstring.schema.evolve import conform
from drawstring.schema.meta import FILE_NAME, RECORD_KEY
from drawstring.storage.protocol import Storage

Flags: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.bool_]]"


def rewrite_slice(
    settings: FileSettings,
    storage: Storage,
    target: FileSlice,
    changes: Changes,
    stamp: Stamp,
    context: TaskContext,
) -> WriteStat:
    """Write the next base file of a file group.

    Args:
        settings: of the write.
        storage: the table's.
        target: the slice to build on; it has a base file and no log files.
        changes: one record or delete per key.
        stamp: puts the meta columns on.
        context: the task's attempt.

    Raises:
        CorruptTableError: the base file is missing or damaged.
    """
    writer = _successor(settings, storage, target, context)
    try:
        overlay = _overlay(changes, settings)
        log = overlay.change_log if isinstance(overlay, Overlay) else None
        for batch in overlay.lay_over(_base_rows(storage, target, settings)):
            writer.write(as_stored(batch, writer.name, settings.config), is_known=True)
        written = 0
        for records, is_known in overlay.surviving_records():
            written += records.num_rows
            for batch in records.to_batches():
                writer.write(stamp.apply(batch, writer.name), is_known=is_known)
                if log and not is_known:
                    log.inserted(batch)
    except BaseException:
        writer.abort()
        raise
    cdc_files = log.write(storage, target, context) if log else {}
    stat = writer.close(inserts=written - overlay.updates, updates=overlay.updates, deletes=overlay.deletes)
    return replace(stat, cdc_files=cdc_files)


def extend_slice(
    settings: FileSettings,
    storage: Storage,
    target: FileSlice,
    added: Iterator[pa.RecordBatch],
    stamp: Stamp,
    context: TaskContext,
) -> WriteStat:
    """Write the next base file of a file group, with more records and all that it has.

    Args:
        settings: of the write.
        storage: the table's.
        target: the slice to build on; it has a base file and no log files.
        added: prepared rows; their keys are not compared with any.
        stamp: puts the meta columns on.
        context: the task's attempt.

    Raises:
        CorruptTableError: the base file is missing or damaged.
    """
    writer = _successor(settings, storage, target, context)
    log = ChangeLog(settings) if settings.config.cdc_enabled else None
    try:
        for batch in _base_rows(storage, target, settings):
            writer.write(as_stored(batch, writer.name, settings.config), is_known=True)
        kept = writer.rows
        for batch in added:
            writer.write(stamp.apply(batch, writer.name))
            if log:
                log.inserted(batch)
    except BaseException:
        writer.abort()
        raise
    cdc_files = log.write(storage, target, context) if log else {}
    return replace(writer.close(inserts=writer.rows - kept), cdc_files=cdc_files)


def _successor(
    settings: FileSettings, storage: Storage, target: FileSlice, context: TaskContext
) -> BaseFileWriter:
    return BaseFileWriter(
        settings,
        storage,
        target.partition,
        target.file_id,
        context.write_token,
        target,
        inherits_keys=True,
    )


def _base_rows(storage: Storage, target: FileSlice, settings: FileSettings) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a slice's base file, its own name left out, what repeats as dictionaries."""
    if target.base is None:
        raise CorruptTableError(
            "a copy-on-write file group has no base file: restore it from a backup", path=target.partition
        )
    schema = physical(settings.full_schema)
    columns = [name for name in schema.names if name != FILE_NAME]
    if target.base.source is None:
        batches = read_parquet_rows(storage, target.base.status.path, columns, tuple(REPEATING))
    else:
        full = settings.full_schema
        batches = base_rows_of(storage, target.base, Selection(columns), full, settings.config)
    for batch in batches:
        yield keyed(conform(batch, schema), settings.config)


def _overlay(changes: Changes, settings: FileSettings) -> Overlay | PatchingOverlay:
    merger = merger_of(settings.config, schema_json=settings.avro_schema)
    if isinstance(merger, WholeMerger):
        return Overlay(changes, settings)
    return PatchingOverlay(changes, settings, merger)


class Overlay:
    """The changes of one file group, laid over its base rows as they stream by; the winner stays whole.

    Args:
        changes: one record or delete per key.
        settings: merge mode and ordering of the table.
    """

    def __init__(self, changes: Changes, settings: FileSettings) -> None:
        self._changes = changes
        self._config = settings.config
        self._record_keys = changes.records.column(RECORD_KEY).combine_chunks()
        self._lost = np.zeros(changes.records.num_rows, dtype=bool)
        self._met = np.zeros(changes.records.num_rows, dtype=bool)
        config = settings.config
        self._ordering = comparable(ordering_columns(changes.records, config) or (), config)
        self._delete_ordering = comparable(changes.delete_ordering or (), config)
        self._always_delete = changes.always_delete
        self.change_log = ChangeLog(settings) if config.cdc_enabled else None
        self.updates = 0
        self.deletes = 0

    def lay_over(self, base: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the base rows that no change takes the place of."""
        for batch in base:
            keep = ~(self._updated(batch) | self._deleted(batch))
            yield batch if keep.all() else batch.filter(pa.array(keep))

    def surviving_records(self) -> Iterator[tuple[pa.Table, bool]]:
        """Yield the records that no base row won over, and whether the base has their keys.

        Ask once the base is through.
        """
        for is_known, chosen in ((True, self._met & ~self._lost), (False, ~self._met)):
            if chosen.any():
                records = self._changes.records
                yield records if chosen.all() else records.filter(pa.array(chosen)), is_known

    def _updated(self, batch: pa.RecordBatch) -> Flags:
        rows, positions = matches(batch, self._record_keys)
        won = self._wins(batch, rows, self._ordering, positions)
        self._met[positions] = True
        self._lost[positions[~won]] = True
        self.updates += int(won.sum())
        if self.change_log and won.any():
            after = taken(self._changes.records, positions[won])
            self.change_log.updated(taken(batch, rows[won]), after)
        return _flags(batch.num_rows, rows[won])

    def _deleted(self, batch: pa.RecordBatch) -> Flags:
        rows, positions = matches(batch, self._changes.delete_keys)
        won = self._wins(batch, rows, self._delete_ordering, positions)
        won = won | self._always_delete[positions]
        self.deletes += int(won.sum())
        if self.change_log and won.any():
            self.change_log.deleted(taken(batch, rows[won]))
        return _flags(batch.num_rows, rows[won])

    def _wins(
        self,
        batch: pa.RecordBatch,
        rows: Numbers,
        ordering: tuple[pa.Array, ...],
        positions: Numbers,
    ) -> Flags:
        """Tell for each match whether the change wins over the base row."""
        if not ordering or len(rows) == 0:
            return np.ones(len(rows), dtype=bool)
        newer = [column.take(pa.array(positions)) for column in ordering]
        older = ordering_of(batch, self._config, rows)
        return np.asarray(wins_over(newer, older))


def _flags(count: int, rows: Numbers) -> Flags:
    flags = np.zeros(count, dtype=bool)
    flags[rows] = True
    return flags
