"""Global indexes: a key is looked for in all partitions, so the table has one record of a key.

    rows ── one of each key ──> join on the key with the keys of all slices ──> pairs: row, place

    place in the row's partition   the row goes there
    place in another one           hoodie.*.index.update.partition.path=true: the record moves. Its old
                                   place is told to delete it, the row goes to its own partition, merged
                                   with the old version. A row that is late by the table's ordering stays
                                   at the old place, where it loses. =false: the row goes to the old place
    several places                 the row goes to its own partition, all others delete the key
    a delete                       goes to every place

What stands in a partition column is the row's own affair; the place alone decides the folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.javahash import string_hash
from drawstring.engine.grouping import contiguous_groups, row_codes
from drawstring.engine.protocol import Rows
from drawstring.filegroups.write.changes import MOVED_AWAY, resolved
from drawstring.filegroups.write.settings import FileSettings
from drawstring.index.base import Joining
from drawstring.index.global_.partition_moves import Moves, old_name
from drawstring.index.location import LOCATION
from drawstring.index.protocol import IS_DELETED
from drawstring.index.tagging import TagContext
from drawstring.merge.order import Array
from drawstring.schema.meta import PARTITION_PATH, RECORD_KEY

FOUND_IN: Final = "_drawstring_found_in"
_SHARE: Final = "_drawstring_share"
_SHARES: Final = 32


@dataclass(frozen=True, slots=True)
class GlobalIndex(Joining):
    """Looks keys up in the key column of the whole table.

    Attributes:
        moves: whether a record that arrives with another partition value goes to that partition.
    """

    moves: bool = True

    @property
    def is_global(self) -> bool:
        """A key is looked for everywhere."""
        return True

    def gather(self, rows: Rows, settings: FileSettings) -> Rows:
        """Keep one row of each key, as the table merges: those of other partitions are the same record."""
        shared = pa.schema([*rows.schema, pa.field(_SHARE, pa.string())])
        return (
            rows.map_batches(_shares, shared)
            .exchange((_SHARE,))
            .map_batches(OneOfEach(settings), rows.schema)
        )

    def tag_location(self, rows: Rows, context: TagContext) -> Rows:
        """Join with the keys of the whole table, and say where each record goes and leaves."""
        sources = [each for path in context.partitions() for each in context.slices(path)]
        moves = Moves(context.settings) if self.moves and not context.is_delete else None
        more = () if moves is None else moves.old_columns
        places = pa.schema(
            [
                pa.field(RECORD_KEY, pa.string()),
                *(pa.field(name, pa.string()) for name in (FOUND_IN, LOCATION)),
                pa.field(IS_DELETED, pa.bool_()),
                *(pa.field(old_name(name), context.settings.schema.field(name).type) for name in more),
            ]
        )
        keys = rows.keys((RECORD_KEY,))
        reader = self.pruned(context.key_reader(places, more), keys, context)
        narrow = moves is None or moves.is_narrow
        joined = rows.join_keys((RECORD_KEY,), sources, reader, places, narrow=narrow)
        settle = Settle(rows.schema, moves)
        return joined.map_batches(settle, settle.output_schema)


def _shares(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add a column that is the same for equal keys, and has few values."""
    names = pa.array([str(number) for number in range(_SHARES)])
    for batch in batches:
        numbers = string_hash(batch.column(RECORD_KEY)).view(np.uint32) % _SHARES
        shares = pa.DictionaryArray.from_arrays(pa.array(numbers.astype(np.int32)), names)
        yield batch.append_column(_SHARE, shares.cast(pa.string()))


@dataclass(frozen=True, slots=True)
class OneOfEach:
    """A batch function that keeps one row of each key of a share."""

    settings: FileSettings

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Resolve share by share."""
        for _, share in contiguous_groups(batches, (_SHARE,)):
            rows = pa.Table.from_batches(list(share)).drop_columns([_SHARE])
            yield from resolved(rows, self.settings)[0].combine_chunks().to_batches()


@dataclass(frozen=True, slots=True)
class Settle:
    """A batch function that turns pairs of row and place into rows that know where they go.

    Attributes:
        schema: columns of the rows.
        moves: how records move to another partition; None where they stay.
    """

    schema: pa.Schema
    moves: Moves | None

    @property
    def output_schema(self) -> pa.Schema:
        """The columns, the location, and whether the row says that its key left the place."""
        location, moved = pa.field(LOCATION, pa.string()), pa.field(MOVED_AWAY, pa.bool_())
        return pa.schema([*self.schema, location, *([] if self.moves is None else [moved])])

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Settle batch by batch: all pairs of a row are in one."""
        for batch in batches:
            pairs = _Pairs(batch)
            if self.moves is None:
                rows = batch.select(self.schema.names)
                yield self._placed(rows, batch, np.flatnonzero(pairs.at_home), pairs)
            else:
                yield self._moved(batch, pairs, self.moves)

    def _moved(self, batch: pa.RecordBatch, pairs: _Pairs, moves: Moves) -> pa.RecordBatch:
        rows = batch.select(self.schema.names)
        mobile = ~moves.deletes(rows)
        elsewhere = mobile & pairs.is_live & ~pairs.is_own
        wins = np.zeros(len(elsewhere), dtype=bool)
        numbers = np.flatnonzero(elsewhere)
        if len(numbers):
            wins[numbers], rows = moves.merged(batch, rows, numbers, pairs.record)
        stays = pairs.at_home & ~(elsewhere & wins) & ~(mobile & ~pairs.is_live & ~pairs.is_own)
        is_settled = np.zeros(len(elsewhere), dtype=bool)
        is_settled[pairs.record[stays & pairs.is_found]] = True
        fresh = pairs.is_first & mobile & ~is_settled[pairs.record]
        kept = np.flatnonzero(stays & pairs.is_found)
        gone = np.flatnonzero(elsewhere & wins)
        new = np.flatnonzero(fresh | (stays & ~pairs.is_found & ~mobile))
        return pa.concat_batches(
            [
                self._placed(rows, batch, kept, pairs),
                self._placed(rows, batch, gone, pairs, has_left=True),
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
        """Return some rows at the places that they were found in, or as new ones (`pairs` is None)."""
        taken = pa.array(numbers)
        chosen = rows.take(taken)
        locations = pa.nulls(len(numbers), pa.string())
        if pairs is not None:
            found = batch.column(FOUND_IN).take(taken)
            places = pc.coalesce(found, chosen.column(PARTITION_PATH).cast(pa.string()))
            chosen = chosen.set_column(
                self.schema.get_field_index(PARTITION_PATH), self.schema.field(PARTITION_PATH), places
            )
            locations = batch.column(LOCATION).take(taken)
        flags = [] if self.moves is None else [pa.array(np.full(len(numbers), has_left))]
        return pa.RecordBatch.from_arrays([*chosen.columns, locations, *flags], schema=self.output_schema)


class _Pairs:
    """Pairs of a row and a place that knows its key, or of a row and nothing.

    Attributes:
        record: number of the pair's key.
        is_first: whether a pair is the first of its key.
        is_found: whether there is a place.
        is_live: whether the key is there, rather than deleted by a log file.
        is_own: whether the place is in the row's own partition.
        at_home: pairs to go by where nothing moves: live places, else the first that deleted the key,
            else nothing.
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
        self.at_home = self.is_live | _first(self.record, dead) | ~self.is_found


def _first(record: Array, among: Array) -> Array:
    """Tell which pairs are the first of their key among some."""
    numbers = np.flatnonzero(among)
    flags = np.zeros(len(record), dtype=bool)
    flags[numbers[np.unique(record[numbers], return_index=True)[1]]] = True
    return flags
