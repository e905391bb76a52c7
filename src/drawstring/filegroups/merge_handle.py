r"""Apply the changes of one write to the base rows of one file group as they are streamed.

`MergeHandle` chooses one version of a record as a whole (steps in `merge_handle`). `FieldMergeHandle` is for
record mergers that combine columns and for users' own:

    base rows ---- key not among the changes --------------> kept
               \-- the change is late and fills no column -> kept, the change is dropped
                \- else: merged with the change -----------> deleted, or a new record, written at the end
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.config.table_config import TableConfig
from drawstring.filegroups.base_file_writer import FileSettings
from drawstring.filegroups.read_task import nullable
from drawstring.filegroups.write.change_log import ChangeLog, taken
from drawstring.filegroups.write.changes import Changes, ordering_values
from drawstring.merge.record_version import (
    Merger,
    Versions,
    combined_chunks,
    comparable,
    ordering_of,
    stored_ordering_fields,
    wins_over,
)
from drawstring.schema.evolution import conform_table
from drawstring.schema.fields import PARTITION_PATH, RECORD_KEY, columns_with

Numbers: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.int64]]"


class FieldMergeHandle:
    """Changes of one file group, merged with its base rows as they are streamed.

    Args:
        changes: one record or delete per key.
        settings: settings of the write.
        merger: merger of the table.
    """

    def __init__(self, changes: Changes, settings: FileSettings, merger: Merger) -> None:
        self._config = settings.config
        self._merger = merger
        self._schema = nullable(settings.full_schema, (*settings.schema.names, RECORD_KEY, PARTITION_PATH))
        self._changes = self._versions(changes)
        self._is_new = ~self._changes.is_delete
        self._merged: list[pa.Table] = []
        self.updates = 0
        self.deletes = 0

    @property
    def has_changed(self) -> bool:
        """Whether a change took effect on a base row."""
        return self.updates + self.deletes > 0

    @property
    def has_new(self) -> bool:
        """Whether the changes have records that the base file lacks; valid after all base rows passed."""
        return bool(self._is_new.any())

    def merge_base(self, base: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the base rows that no change modifies."""
        for batch in base:
            rows, numbers = matches(batch, self._changes.keys)
            if not len(rows):
                yield batch
                continue
            keep = np.ones(batch.num_rows, dtype=bool)
            keep[rows] = self._merge(batch.take(pa.array(rows)), numbers)
            yield batch.filter(pa.array(keep))

    def surviving_records(self) -> Iterator[tuple[pa.Table, bool]]:
        """Yield the records to write and whether the base file has their keys; call it after `merge_base`."""
        yield from ((merged, True) for merged in self._merged if merged.num_rows)
        if self._is_new.any():
            yield self._changes.rows.filter(pa.array(self._is_new)), False

    def _merge(self, base: pa.RecordBatch, numbers: Numbers) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Merge base rows with their changes; return which base rows stay unchanged."""
        count = base.num_rows
        rows = conform_table(pa.Table.from_batches([base]), self._schema)
        nothing = np.zeros(count, dtype=bool)
        newer = self._changes.take(numbers)
        older = Versions(rows, newer.keys, ordering_of(rows, self._config), nothing, nothing)
        codes = np.tile(np.arange(count, dtype=np.int64), 2)
        merged = self._merger.merge(older.followed_by(newer), codes, count)
        stays = np.zeros(count, dtype=bool)
        if merged.origin is not None:
            stays = (merged.origin >= 0) & (merged.origin < count)
        is_update = ~stays & ~merged.is_delete
        self._merged.append(merged.rows.filter(pa.array(is_update)))
        self._is_new[numbers] = False
        self.updates += int(is_update.sum())
        self.deletes += int(merged.is_delete.sum())
        return stays

    def _versions(self, changes: Changes) -> Versions:
        """Return records and deletes as versions."""
        records = self._schema.empty_table()
        if changes.records.num_rows:
            records = conform_table(changes.records, self._schema)
        count, deletes = records.num_rows, len(changes.delete_keys)
        given = {RECORD_KEY: changes.delete_keys}
        fields = stored_ordering_fields(self._config, self._schema)
        ordering = dict(zip(fields, changes.delete_ordering or (), strict=False))
        given |= columns_with(ordering, self._schema)
        columns = [given.get(field.name, pa.nulls(deletes, field.type)) for field in self._schema]
        rows = pa.concat_tables([records, pa.table(columns, schema=self._schema)])
        is_delete = np.arange(count + deletes) >= count
        always_wins = np.concatenate([np.zeros(count, dtype=bool), changes.always_delete])
        order = ordering_of(rows, self._config)
        return Versions(rows, combined_chunks(rows.column(RECORD_KEY)), order, is_delete, always_wins)


def matches(batch: pa.RecordBatch, keys: pa.Array) -> tuple[Numbers, Numbers]:
    """Return the numbers of the rows whose key is among `keys`, and the position of each key there."""
    if len(keys) == 0:
        nothing = np.zeros(0, dtype=np.int64)
        return nothing, nothing
    positions = pc.index_in(batch.column(RECORD_KEY), value_set=keys)
    rows = np.flatnonzero(positions.is_valid().to_numpy(zero_copy_only=False))
    return rows, positions.drop_null().to_numpy(zero_copy_only=False).astype(np.int64)


Flags: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.bool_]]"


@dataclass(frozen=True, slots=True)
class Applied:
    """What changes did to base rows.

    Attributes:
        rows: numbers of the rows that records replace.
        positions: for each the number of the record.
        deleted: numbers of the rows that are deleted.
    """

    rows: Numbers
    positions: Numbers
    deleted: Numbers


class MergeHandle:
    """Changes of one file group, applied to its base rows as they are streamed; the winner stays whole.

    Args:
        changes: one record or delete per key.
        config: merge mode and ordering of the table.
        change_log: collects the changes for CDC; None if the table has no CDC.
    """

    def __init__(self, changes: Changes, config: TableConfig, change_log: ChangeLog | None) -> None:
        self._changes = changes
        self._config = config
        self._record_keys = changes.records.column(RECORD_KEY).combine_chunks()
        self._lost = np.zeros(changes.records.num_rows, dtype=bool)
        self._met = np.zeros(changes.records.num_rows, dtype=bool)
        self._ordering = comparable(ordering_values(changes.records, config) or (), config)
        self._delete_ordering = comparable(changes.delete_ordering or (), config)
        self._always_delete = changes.always_delete
        self.change_log = change_log
        self.updates = 0
        self.deletes = 0
        self.deleted_keys: list[pa.Array] = []

    @property
    def has_changed(self) -> bool:
        """Whether a change replaced or deleted a base row."""
        return self.updates + self.deletes > 0

    @property
    def has_new(self) -> bool:
        """Whether the changes have records that the base file lacks; valid after all base rows passed."""
        return not self._met.all()

    def merge_base(self, base: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the base rows that no change replaces or deletes."""
        for batch in base:
            applied = self.applied(batch)
            keep = np.ones(batch.num_rows, dtype=bool)
            keep[applied.rows] = False
            keep[applied.deleted] = False
            yield batch if keep.all() else batch.filter(pa.array(keep))

    def applied(self, batch: pa.RecordBatch) -> Applied:
        """Apply the changes to the next base rows, and return what they change.

        Args:
            batch: rows with record keys and ordering columns; with a change log, all columns.
        """
        return Applied(*self._updated(batch), self._deleted(batch))

    @property
    def keys(self) -> pa.Array:
        """The keys of all changes."""
        return pa.concat_arrays([self._record_keys, self._changes.delete_keys])

    @property
    def lost(self) -> Flags:
        """Which records lost to a base row; valid after all base rows passed."""
        return self._lost

    def records(self, positions: Numbers) -> pa.Table:
        """Return some records, by their numbers."""
        return self._changes.records.take(pa.array(positions))

    def surviving_records(self) -> Iterator[tuple[pa.Table, bool]]:
        """Yield the records that won over the base rows, and whether the base file has their keys.

        Call it after the iterator of `merge_base` is exhausted.
        """
        for is_known, chosen in ((True, self._met & ~self._lost), (False, ~self._met)):
            if chosen.any():
                records = self._changes.records
                yield records if chosen.all() else records.filter(pa.array(chosen)), is_known

    def _updated(self, batch: pa.RecordBatch) -> tuple[Numbers, Numbers]:
        rows, positions = matches(batch, self._record_keys)
        won = self._wins(batch, rows, self._ordering, positions)
        self._met[positions] = True
        self._lost[positions[~won]] = True
        self.updates += int(won.sum())
        if self.change_log and won.any():
            after = taken(self._changes.records, positions[won])
            self.change_log.updated(taken(batch, rows[won]), after)
        return rows[won], positions[won]

    def _deleted(self, batch: pa.RecordBatch) -> Numbers:
        rows, positions = matches(batch, self._changes.delete_keys)
        won = self._wins(batch, rows, self._delete_ordering, positions)
        won = won | self._always_delete[positions]
        self.deletes += int(won.sum())
        if won.any():
            self.deleted_keys.append(self._changes.delete_keys.take(pa.array(positions[won])))
        if self.change_log and won.any():
            self.change_log.deleted(taken(batch, rows[won]))
        return rows[won]

    def _wins(
        self,
        batch: pa.RecordBatch,
        rows: Numbers,
        ordering: tuple[pa.Array, ...],
        positions: Numbers,
    ) -> Flags:
        """Return for each match whether the change wins over the base row."""
        if not ordering or len(rows) == 0:
            return np.ones(len(rows), dtype=bool)
        newer = [column.take(pa.array(positions)) for column in ordering]
        older = ordering_of(batch, self._config, rows)
        return np.asarray(wins_over(newer, older))
