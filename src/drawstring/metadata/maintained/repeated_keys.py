"""Keys of which a table has several records, although its record index has one place for each.

    insert, bulk_insert     do not look keys up
    index not global        looks them up in the partition of the row, and the record index may be global

Look-ups would miss records then. So a write that brings such a key notes it in the definition of the index,
and queries do without the index from then on. Hudi passes over the note, and misses them.

A write could be refused instead, but Hudi runs pipelines that repeat keys. To delete the surplus records is
not enough, since a delete takes the key out of the index: `repair` builds the indexes anew once no key is
repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.config.table.config import TableConfig
from drawstring.metadata.maintained.protocol import TableChange, TableFacts
from drawstring.metadata.partitions import IS_REMOVED, KEY
from drawstring.metadata.record_index import FILE_ID, PARTITION, RecordIndex, Shard
from drawstring.model.commit import CommitMetadata, WriteOperation
from drawstring.model.files import FileSlice

_LOOKED_UP: Final = (WriteOperation.UPSERT, WriteOperation.DELETE)
_MOVED: Final = (WriteOperation.CLUSTER, WriteOperation.BUCKET_RESCALE)


def may_repeat_keys(change: TableChange, commit: CommitMetadata, index: RecordIndex) -> bool:
    """Return whether a write may bring keys that the table has elsewhere.

    One that looked its keys up in all partitions does not: it moved those that were in another one, and lost
    to writes that brought the same keys meanwhile.

    Args:
        change: what it changes.
        commit: its metadata.
        index: the record index of the table.
    """
    if commit.operation in _MOVED:
        return False
    if all(each.held is not None and each.held.is_looked_up for each in commit.stats):
        return False
    looks_everywhere = index.is_partitioned or not change.config.partition_fields  # whatever its options name
    return commit.operation not in _LOOKED_UP or not looks_everywhere


def place_columns(config: TableConfig) -> Sequence[str]:
    """Return the columns that tell one place of a key from another one.

    While buckets are resized, a record is in the old and in the new file group of its bucket.
    """
    return (PARTITION,) if config.index_type == "BUCKET" else (PARTITION, FILE_ID)


def repeats_keys(rows: pa.Table, index: RecordIndex, file_id: str, place: Sequence[str]) -> bool:
    """Return whether keys that come to file groups are in others, too.

    Args:
        rows: the changes of one file group of the index; see `CHANGED`.
        index: the index before.
        file_id: the file group.
        place: see `place_columns`.

    Raises:
        CorruptTableError: a file of the index is missing or damaged.
    """
    columns = [KEY, *place]
    flags = rows.column(IS_REMOVED)
    come = rows.filter(pc.invert(flags)).select(columns)
    if not come.num_rows:
        return False
    keys = pc.unique(come.column(KEY).combine_chunks())
    slices = (each for some in index.groups.values() for each in some if each.file_id == file_id)
    known = [batch.select(columns) for each in slices for batch in index.read(Shard(each, keys))]
    gone = rows.filter(flags).select(columns).group_by(columns).aggregate([])
    before = pa.Table.from_batches(known, come.schema).join(gone, columns, join_type="left anti")
    places = pa.concat_tables([before, come]).group_by(columns).aggregate([])
    return bool(places.num_rows > len(keys))


def repeated_since_begin(facts: TableFacts, index: RecordIndex) -> bool:
    """Return whether writes repeated keys while an index was built, when they could not look them up in it.

    Args:
        facts: the table, locked.
        index: its index, of which the base files are written; what writes added is in its log files.

    Raises:
        CorruptTableError: a file of the index is missing or damaged.
    """
    columns = [KEY, *place_columns(facts.config)]
    for file_slice in (each for some in index.groups.values() for each in some):
        places = _several(index.logged(file_slice), columns)
        if _several(places, [KEY, PARTITION]).num_rows:
            return True
        if places.num_rows:  # those in file groups that were clustered since are none any more
            known = {(each.partition, each.file_id) for each in _latest(facts, places)}
            at = zip(places.column(PARTITION).to_pylist(), places.column(FILE_ID).to_pylist(), strict=True)
            is_known = pa.array([each in known for each in at], pa.bool_())
            if _several(places.filter(is_known), columns).num_rows:
                return True
    return False


def _several(places: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return the places of the keys that have several."""
    distinct = places.group_by(columns).aggregate([]).group_by(KEY).aggregate([([], "count_all")])
    keys = distinct.filter(pc.greater(distinct.column("count_all"), 1)).column(KEY)
    return places.filter(pc.is_in(places.column(KEY), value_set=keys))


def _latest(facts: TableFacts, places: pa.Table) -> Iterator[FileSlice]:
    for path in pc.unique(places.column(PARTITION)).to_pylist():
        yield from facts.view.slices(path)
