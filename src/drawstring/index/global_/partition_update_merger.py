"""Records that move to another partition: selection and merge with their old versions.

A record moves if the incoming row is the newer version by ordering value; if records are merged column by
column, it takes along column values of the old version.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from drawstring.filegroups.read.log_blocks import row_deletes
from drawstring.filegroups.read.tasks import nullable
from drawstring.filegroups.write.settings import FileSettings
from drawstring.merge.order import Array, wins_over
from drawstring.merge.record_mergers import merger_of
from drawstring.merge.versions import Merger, Versions, ordering_columns, ordering_of
from drawstring.schema.evolve import conform_table
from drawstring.schema.meta import PARTITION_PATH, RECORD_KEY

_OLD: Final = "_drawstring_old_"


def old_name(column: str) -> str:
    """Return the column name of the old version of a column."""
    return _OLD + column


@dataclass(frozen=True, slots=True)
class PartitionUpdateMerger:
    """Merges the versions of a record when it moves. Picklable.

    Attributes:
        settings: settings of the write.
    """

    settings: FileSettings

    @property
    def old_columns(self) -> tuple[str, ...]:
        """Columns of old versions to read."""
        schema = self.settings.schema
        return tuple(ordering_columns(self.settings.config, schema) if self.is_narrow else schema.names)

    @property
    def is_narrow(self) -> bool:
        """Whether only ordering values of old versions are read."""
        return self._merger().chooses_whole_records

    def deletes(self, rows: pa.RecordBatch) -> Array:
        """Return which rows delete their key."""
        return row_deletes(pa.Table.from_batches([rows]), self.settings.config)[0]

    def merged(
        self, batch: pa.RecordBatch, rows: pa.RecordBatch, numbers: Array, record: Array
    ) -> tuple[Array, pa.RecordBatch]:
        """Merge rows with the old versions of their records.

        Args:
            batch: the rows with the columns of their old versions.
            rows: the rows.
            numbers: numbers of the rows that have an old version.
            record: key number of every row.

        Returns:
            For each of `numbers`, whether the record moves; and all rows, those of moved records merged.
        """
        config, merger = self.settings.config, self._merger()
        newer = rows.take(pa.array(numbers))
        older = _old_versions(batch.take(pa.array(numbers)), self.old_columns)
        new_order, old_order = ordering_of(newer, config), ordering_of(older, config)
        wins = wins_over(new_order, old_order) if new_order else np.ones(len(numbers), dtype=bool)
        if merger.chooses_whole_records:
            return wins, rows
        result = self._merged_versions(merger, older, newer)
        stays = result.is_delete
        if result.origin is not None:
            stays = stays | ((result.origin >= 0) & (result.origin < len(numbers)))
        wins = wins & ~stays
        return wins, _replaced(rows, result.rows.filter(pa.array(wins)), record, record[numbers[wins]])

    def _merged_versions(self, merger: Merger, older: pa.RecordBatch, newer: pa.RecordBatch) -> Versions:
        config, schema = self.settings.config, self._schema()
        keys, count = newer.column(RECORD_KEY).cast(pa.string()), newer.num_rows
        nothing = np.zeros(count, dtype=bool)
        places = {name: pa.nulls(count, pa.string()) for name in (RECORD_KEY, PARTITION_PATH)}
        places[RECORD_KEY] = keys
        old = pa.table(
            [places[name] if name in places else older.column(name) for name in schema.names], schema=schema
        )
        new = conform_table(pa.Table.from_batches([newer]), schema)
        versions = [Versions(rows, keys, ordering_of(rows, config), nothing, nothing) for rows in (old, new)]
        codes = np.tile(np.arange(count, dtype=np.int64), 2)
        return merger.merge(versions[0].followed_by(versions[1]), codes, count)

    def _schema(self) -> pa.Schema:
        settings = self.settings
        return nullable(settings.full_schema, (*settings.schema.names, RECORD_KEY, PARTITION_PATH))

    def _merger(self) -> Merger:
        return merger_of(self.settings.config, schema_json=self.settings.avro_schema)


def _old_versions(batch: pa.RecordBatch, columns: tuple[str, ...]) -> pa.RecordBatch:
    old_columns = [batch.column(old_name(name)) for name in columns]
    return pa.RecordBatch.from_arrays(old_columns, list(columns))


def _replaced(rows: pa.RecordBatch, merged: pa.Table, record: Array, numbers: Array) -> pa.RecordBatch:
    """Return the rows, with the merged rows instead of all rows that have their keys."""
    if not merged.num_rows:
        return rows
    of_record = np.full(len(record), -1, dtype=np.int64)
    of_record[numbers] = np.arange(len(numbers)) + rows.num_rows
    chosen = of_record[record]
    taken = np.where(chosen >= 0, chosen, np.arange(rows.num_rows))
    new = conform_table(merged, rows.schema).combine_chunks().to_batches()[0]
    return pa.concat_batches([rows, new]).take(pa.array(taken))
