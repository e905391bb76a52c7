r"""Copy-on-write merge for mergers that combine columns, or that are the user's own code.

base rows ---- key not among the changes --------------> kept
           \-- the change is late and fills no column -> kept, the change is dropped
            \- else: merged with the change -----------> deleted, or a new record, written at the end
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.filegroups.read.tasks import nullable
from drawstring.filegroups.write.changes import Changes
from drawstring.filegroups.write.settings import FileSettings
from drawstring.merge.versions import Merger, Versions, flat, ordering_of, stored_ordering_fields
from drawstring.schema.evolve import conform_table
from drawstring.schema.fields import columns_with
from drawstring.schema.meta import PARTITION_PATH, RECORD_KEY

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
        return Versions(rows, flat(rows.column(RECORD_KEY)), order, is_delete, always_wins)


def matches(batch: pa.RecordBatch, keys: pa.Array) -> tuple[Numbers, Numbers]:
    """Return the numbers of the rows whose key is among `keys`, and the position of each key there."""
    if len(keys) == 0:
        nothing = np.zeros(0, dtype=np.int64)
        return nothing, nothing
    positions = pc.index_in(batch.column(RECORD_KEY), value_set=keys)
    rows = np.flatnonzero(positions.is_valid().to_numpy(zero_copy_only=False))
    return rows, positions.drop_null().to_numpy(zero_copy_only=False).astype(np.int64)
