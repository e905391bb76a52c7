"""Changes of one write to one file group, applied to its base rows as they are streamed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from drawstring.config.table.config import TableConfig
from drawstring.filegroups.write.change_log import ChangeLog, taken
from drawstring.filegroups.write.changes import Changes, ordering_values
from drawstring.filegroups.write.field_merge_handle import Numbers, matches
from drawstring.merge.order import wins_over
from drawstring.merge.versions import comparable, ordering_of
from drawstring.schema.meta import RECORD_KEY

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
