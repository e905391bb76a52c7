"""Look keys up in all partitions, so that a key is unique in the table: the global indexes.

    rows ── one per key ──> join on the key with the keys of all slices ──> pairs: row, location

    location in the row's partition   the row is written there
    location in another partition     hoodie.*.index.update.partition.path=true: the record moves. A delete is
                                      written to the old location, and the row, merged with the old version,
                                      to its own partition. A late row (by ordering value) is written to the
                                      old location, where it loses. =false: the row is written to the old
                                      location
    several locations                 the row is written to its own partition, deletes to all others
    a delete                          is written to every location

The value of the partition column is not changed; the location alone determines the folder.

A record moves if the incoming row is the newer version by ordering value. If records are merged column by
column, `PartitionUpdateMerger` merges the row with column values of the old version.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.java_compat import string_hash
from drawstring.engine.grouping import contiguous_groups, grouped_ahead, row_codes
from drawstring.engine.protocol import Rows
from drawstring.filegroups.base_file_writer import FileSettings
from drawstring.filegroups.log_scanner import row_deletes
from drawstring.filegroups.positions import POSITION
from drawstring.filegroups.read_task import nullable
from drawstring.filegroups.write.changes import MOVED_AWAY, resolved
from drawstring.index.protocol import IS_DELETED, LOCATION, LookupIndex, with_position
from drawstring.index.tag_context import TagContext
from drawstring.merge.record_merger import merger_of
from drawstring.merge.record_version import Array, Merger, Versions, ordering_columns, ordering_of, wins_over
from drawstring.schema.evolution import conform_table
from drawstring.schema.fields import PARTITION_PATH, RECORD_KEY

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


FOUND_IN: Final = "_drawstring_found_in"
_SHARE: Final = "_drawstring_share"
_SHARES: Final = 32


@dataclass(frozen=True, slots=True)
class GlobalIndex(LookupIndex):
    """Looks keys up in the key column of the whole table.

    Attributes:
        update_partition_path: whether a record whose partition value changed moves to the new partition.
    """

    update_partition_path: bool = True

    @property
    def is_global(self) -> bool:
        """Return True: keys are looked up in all partitions."""
        return True

    @property
    def moves_records(self) -> bool:
        """Whether a record whose partition value changed moves to the new partition."""
        return self.update_partition_path

    def merge_across_partitions(self, rows: Rows, settings: FileSettings) -> Rows:
        """Merge rows of one key with the merger of the table, across partitions."""
        shared = pa.schema([*rows.schema, pa.field(_SHARE, pa.string())])
        return (
            rows.map_batches(_shares, shared)
            .exchange((_SHARE,))
            .map_batches(OneRowPerKey(settings), rows.schema)
        )

    def tag_location(self, rows: Rows, context: TagContext) -> Rows:
        """Join with the keys of the whole table; return where to write and where to delete each record."""
        sources = [each for path in context.partitions() for each in context.slices(path)]
        moves = self.update_partition_path and not context.is_delete
        merger = PartitionUpdateMerger(context.settings) if moves else None
        more = () if merger is None else merger.old_columns
        names = (RECORD_KEY, FOUND_IN, LOCATION)
        found = pa.schema([*(pa.field(name, pa.string()) for name in names), (IS_DELETED, pa.bool_())])
        table = context.settings.schema
        old = [pa.field(old_name(name), table.field(name).type) for name in more]
        places = pa.schema([*with_position(found, context.settings), *old])
        keys = rows.keys((RECORD_KEY,))
        reader = self.pruned(context.key_reader(places, more), keys, context)
        narrow = merger is None or merger.is_narrow
        joined = rows.join_keys((RECORD_KEY,), sources, reader, places, narrow=narrow)
        tagger = PairTagger(rows.schema, merger, POSITION in places.names)
        return joined.map_batches(tagger, tagger.output_schema)


def _shares(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add a column with few values that is equal for equal keys, for the shuffle."""
    names = pa.array([str(number) for number in range(_SHARES)])
    for batch in batches:
        numbers = string_hash(batch.column(RECORD_KEY)).view(np.uint32) % _SHARES
        shares = pa.DictionaryArray.from_arrays(pa.array(numbers.astype(np.int32)), names)
        yield batch.append_column(_SHARE, shares.cast(pa.string()))


@dataclass(frozen=True, slots=True)
class OneRowPerKey:
    """Batch function that keeps one row per key; all rows of a key are in one share."""

    settings: FileSettings

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Resolve share by share, small ones together."""
        for shares in grouped_ahead(contiguous_groups(batches, (_SHARE,))):
            together = chain.from_iterable(share for _, share in shares)
            rows = pa.Table.from_batches(list(together)).drop_columns([_SHARE])
            yield from resolved(rows, self.settings)[0].combine_chunks().to_batches()


@dataclass(frozen=True, slots=True)
class PairTagger:
    """Batch function that converts pairs of row and location into tagged rows.

    Attributes:
        schema: columns of the rows.
        merger: merges records that move to another partition; None if records do not move.
        has_positions: whether the locations have the positions of the records.
    """

    schema: pa.Schema
    merger: PartitionUpdateMerger | None
    has_positions: bool = False

    @property
    def output_schema(self) -> pa.Schema:
        """The columns, the location and position, and whether the row deletes the key of a moved record."""
        found, moved = self._found, pa.field(MOVED_AWAY, pa.bool_())
        return pa.schema([*self.schema, *found, *([] if self.merger is None else [moved])])

    @property
    def _found(self) -> list[pa.Field]:
        position = pa.field(POSITION, pa.int64())
        return [pa.field(LOCATION, pa.string()), *([position] if self.has_positions else [])]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Tag batch by batch: all pairs of a row are in one batch."""
        for batch in batches:
            pairs = _Pairs(batch)
            if self.merger is None:
                rows = batch.select(self.schema.names)
                yield self._placed(rows, batch, np.flatnonzero(pairs.keeps_location), pairs)
            else:
                yield self._moved(batch, pairs, self.merger)

    def _moved(self, batch: pa.RecordBatch, pairs: _Pairs, merger: PartitionUpdateMerger) -> pa.RecordBatch:
        rows = batch.select(self.schema.names)
        mobile = ~merger.deletes(rows)
        elsewhere = mobile & pairs.is_live & ~pairs.is_own
        wins = np.zeros(len(elsewhere), dtype=bool)
        numbers = np.flatnonzero(elsewhere)
        if len(numbers):
            wins[numbers], rows = merger.merged(batch, rows, numbers, pairs.record)
        stays = pairs.keeps_location & ~(elsewhere & wins) & ~(mobile & ~pairs.is_live & ~pairs.is_own)
        is_settled = np.zeros(len(elsewhere), dtype=bool)
        is_settled[pairs.record[stays & pairs.is_found]] = True
        fresh = pairs.is_first & mobile & ~is_settled[pairs.record]
        staying = np.flatnonzero(stays & pairs.is_found)
        leaving = np.flatnonzero(elsewhere & wins)
        new = np.flatnonzero(fresh | (stays & ~pairs.is_found & ~mobile))
        return pa.concat_batches(
            [
                self._placed(rows, batch, staying, pairs),
                self._placed(rows, batch, leaving, pairs, has_left=True),
                self._placed(rows, batch, new, None),
            ]
        )

    def _placed(
        self,
        rows: pa.RecordBatch,
        batch: pa.RecordBatch,
        numbers: Array,
        pairs: _Pairs | None,
        *,
        has_left: bool = False,
    ) -> pa.RecordBatch:
        """Return the given rows at the locations of their pairs, or as new records if `pairs` is None."""
        taken = pa.array(numbers)
        chosen = rows.take(taken)
        found = [pa.nulls(len(numbers), each.type) for each in self._found]
        if pairs is not None:
            partitions = batch.column(FOUND_IN).take(taken)
            places = pc.coalesce(partitions, chosen.column(PARTITION_PATH).cast(pa.string()))
            chosen = chosen.set_column(
                self.schema.get_field_index(PARTITION_PATH), self.schema.field(PARTITION_PATH), places
            )
            found = [batch.column(each.name).take(taken) for each in self._found]
        flags = [] if self.merger is None else [pa.array(np.full(len(numbers), has_left))]
        return pa.RecordBatch.from_arrays([*chosen.columns, *found, *flags], schema=self.output_schema)


class _Pairs:
    """Pairs of a row and a location of its key, or of a row and no location.

    Attributes:
        record: number of the pair's key.
        is_first: whether a pair is the first of its key.
        is_found: whether the pair has a location.
        is_live: whether the key is live at the location, not deleted by a log file.
        is_own: whether the location is in the row's own partition.
        keeps_location: pairs to use if records do not move: those with live locations, or else the first
            location that deleted the key, or else the pair without location.
    """

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.record = np.unique(row_codes(batch, (RECORD_KEY,))[0], return_inverse=True)[1]
        count = batch.num_rows
        found = batch.column(FOUND_IN)
        self.is_found = found.is_valid().to_numpy(zero_copy_only=False)
        is_deleted = batch.column(IS_DELETED).fill_null(False).to_numpy(zero_copy_only=False)
        self.is_live = self.is_found & ~is_deleted
        same = pc.equal(found, batch.column(PARTITION_PATH).cast(pa.string())).fill_null(False)
        self.is_own = same.to_numpy(zero_copy_only=False)
        self.is_first = _first(self.record, np.ones(count, dtype=bool))
        has_live = np.zeros(count, dtype=bool)
        has_live[self.record[self.is_live]] = True
        has_own = np.zeros(count, dtype=bool)
        has_own[self.record[is_deleted & self.is_own]] = True
        dead = is_deleted & ~has_live[self.record] & (self.is_own | ~has_own[self.record])
        self.keeps_location = self.is_live | _first(self.record, dead) | ~self.is_found


def _first(record: Array, among: Array) -> Array:
    """Return which pairs are the first of their key among the selected pairs."""
    numbers = np.flatnonzero(among)
    flags = np.zeros(len(record), dtype=bool)
    flags[numbers[np.unique(record[numbers], return_index=True)[1]]] = True
    return flags
