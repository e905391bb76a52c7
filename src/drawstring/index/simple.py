"""Simple index: joins the incoming keys with the keys of their partitions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.engine.grouping import row_codes
from drawstring.engine.protocol import Rows
from drawstring.filegroups.base_file_writer import FileSettings
from drawstring.index.protocol import IS_DELETED, LOCATION, LOCATION_SCHEMA, LookupIndex, with_position
from drawstring.index.tag_context import TagContext
from drawstring.schema.fields import PARTITION_PATH, RECORD_KEY


@dataclass(frozen=True, slots=True)
class SimpleIndex(LookupIndex):
    """Looks keys up in the key column of the partitions of the rows."""

    @property
    def is_global(self) -> bool:
        """Return False: a key is looked up in its partition."""
        return False

    def merge_across_partitions(self, rows: Rows, settings: FileSettings) -> Rows:
        """Return the rows unchanged: rows of different partitions are different records."""
        return rows

    def tag_location(self, rows: Rows, context: TagContext) -> Rows:
        """Join with the keys of every slice in the partitions of the rows."""
        on = (RECORD_KEY, PARTITION_PATH)
        keys = rows.keys(on)
        sources = [each for (path,) in sorted(keys) for each in context.slices(path)]
        places = with_position(LOCATION_SCHEMA, context.settings)
        reader = self.pruned(context.key_reader(places), keys, context)
        joined = rows.join_keys(on, sources, reader, places, narrow=True)
        added = [each for each in places if each.name not in (*on, IS_DELETED)]
        return joined.map_batches(one_location_per_key, pa.schema([*rows.schema, *added]))


def one_location_per_key(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Choose among the file groups of each key: those with the live record, or else one that deleted it.

    Args:
        batches: rows with every location of their keys, and whether the key is deleted there.

    Yields:
        The rows without the deletion flag.
    """
    for batch in batches:
        is_deleted = batch.column(IS_DELETED)
        rows = batch.drop_columns([IS_DELETED])
        yield rows.filter(_chosen(rows, is_deleted)) if pc.any(is_deleted).as_py() else rows


def _chosen(rows: pa.RecordBatch, is_deleted: pa.Array) -> pa.Array:
    """Return which rows remain; rows of a key that is deleted everywhere get the same location."""
    is_live = ~is_deleted.fill_null(False).to_numpy(zero_copy_only=False)
    record = np.unique(row_codes(rows, (RECORD_KEY, PARTITION_PATH))[0], return_inverse=True)[1]
    has_live = np.zeros(rows.num_rows, dtype=bool)
    has_live[record[is_live]] = True
    place = pc.rank(rows.column(LOCATION), tiebreaker="min").to_numpy().astype(np.int64)
    first = np.full(rows.num_rows, np.iinfo(np.int64).max)
    np.minimum.at(first, record[~is_live], place[~is_live])
    return pa.array(is_live | (~has_live[record] & (place == first[record])))
