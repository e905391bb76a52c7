"""Record indexes: take the locations of keys from the metadata table instead of from the table's own files.

    keys of the change ── by hash ──> file groups of the record index ── look-up ──> locations, for the join

A global record index has each key once. One of partitions has a key once in each partition. Rows that move to
another partition are merged with their old version, so of these, and only of these, the files are read.

A table without the index, or with a damaged one, is looked through as by the simple indexes; so Hudi does.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.clock import SystemClock
from drawstring.base.errors import InvalidError, MetadataTableError
from drawstring.engine.grouping import KeyRange, KeySet, KeySets
from drawstring.engine.protocol import Rows
from drawstring.filegroups.file_slice_reader import ReadKeys
from drawstring.index.global_index import FOUND_IN, GlobalIndex, PairTagger, PartitionUpdateMerger, old_name
from drawstring.index.protocol import IS_DELETED, LOCATION, LOCATION_SCHEMA
from drawstring.index.simple import SimpleIndex
from drawstring.index.tag_context import TagContext
from drawstring.metadata.definitions import definitions, reason_not_used
from drawstring.metadata.record_index_lookup import IndexFileGroup, RecordIndex, open_record_index
from drawstring.metadata.table import METADATA_FOLDER, about_metadata
from drawstring.model.files import FileSlice
from drawstring.schema.fields import PARTITION_PATH, RECORD_KEY
from drawstring.storage import open_spec
from drawstring.storage.protocol import Subfolder

GLOBAL_KINDS: Final = ("RECORD_INDEX", "GLOBAL_RECORD_LEVEL_INDEX")
PARTITIONED_KIND: Final = "RECORD_LEVEL_INDEX"

_PLACES: Final = pa.schema(
    [
        (RECORD_KEY, pa.string()),
        (FOUND_IN, pa.string()),
        (LOCATION, pa.string()),
        (IS_DELETED, pa.bool_()),
    ]
)
_MOVED_FROM: Final = "_drawstring_moved_from"
_IS_KNOWN: Final = "_drawstring_is_known"
_log = logging.getLogger("drawstring")


@dataclass(frozen=True, slots=True)
class PartitionedRecordIndex(SimpleIndex):
    """Looks keys up in the record index of their partition.

    Attributes:
        builds_partitioned: whether a new index has file groups for each partition; an unpartitioned table may
            have a global one.
    """

    builds_partitioned: bool = True

    def tag_location(self, rows: Rows, context: TagContext) -> Rows:
        """Join with the locations that the record index has."""
        index = _opened(context, is_partitioned=True)
        if index is None:
            return SimpleIndex.tag_location(self, rows, context)
        on = (RECORD_KEY, PARTITION_PATH)
        sets = rows.keys(on)
        shards = [each for (path,), keys in _by_group(sets) for each in index.shards(keys, path)]
        joined = rows.join_keys(
            on, shards, ReadLocations(index, LOCATION_SCHEMA), LOCATION_SCHEMA, narrow=True
        )
        return joined.map_batches(_untagged, pa.schema([*rows.schema, LOCATION_SCHEMA.field(LOCATION)]))


@dataclass(frozen=True, slots=True)
class GlobalRecordIndex(GlobalIndex):
    """Looks keys up in the record index of the whole table."""

    def tag_location(self, rows: Rows, context: TagContext) -> Rows:
        """Join with the locations that the record index has, and with old versions of records that move."""
        index = _opened(context, is_partitioned=False)
        if index is None:
            return GlobalIndex.tag_location(self, rows, context)
        on = (RECORD_KEY,)
        shards = [each for _, keys in _by_group(rows.keys(on)) for each in index.shards(keys, "")]
        located = rows.join_keys(on, shards, ReadLocations(index, _PLACES), _PLACES, narrow=True)
        moves = self.update_partition_path and not context.is_delete
        merger = PartitionUpdateMerger(context.settings) if moves else None
        if merger is not None:
            located = _with_old_versions(located, merger, context)
        tagger = PairTagger(rows.schema, merger)
        return located.map_batches(tagger, tagger.output_schema)


def _by_group(sets: KeySets) -> Iterator[tuple[tuple[str, ...], pa.Array | None]]:
    """Yield groups of keys with the keys, None for too many."""
    for group in sorted(sets):
        yield group, _told(sets[group])


def _told(keys: KeySet) -> pa.Array | None:
    return None if isinstance(keys.keys, KeyRange) else keys.keys


def _untagged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch.drop_columns([IS_DELETED])


@dataclass(frozen=True, slots=True)
class ReadLocations:
    """Yields the locations of keys of a file group of the record index. Picklable.

    Attributes:
        index: the record index.
        output: schema of key, partition path, file id and deletion flag; no location has the flag.
    """

    index: RecordIndex
    output: pa.Schema

    def __call__(self, shard: IndexFileGroup) -> Iterator[pa.RecordBatch]:
        """Read one file group."""
        for batch in self.index.read(shard):
            alive = pa.repeat(pa.scalar(False), batch.num_rows)
            yield pa.RecordBatch.from_arrays([*batch.columns, alive], schema=self.output)


def _with_old_versions(located: Rows, merger: PartitionUpdateMerger, context: TagContext) -> Rows:
    """Add the columns of the old versions of records that were found in another partition."""
    marked = located.map_batches(_mark_moved, pa.schema([*located.schema, (_MOVED_FROM, pa.string())]))
    sources = [
        each for (place,) in marked.count_by((_MOVED_FROM,)).rows if place for each in _at(place, context)
    ]
    if not sources:
        return located
    table = context.settings.schema
    old = [pa.field(old_name(name), table.field(name).type) for name in merger.old_columns]
    reader = ReadOldVersions(context.key_reader(pa.schema([*_PLACES, *old]), merger.old_columns), old)
    on = (RECORD_KEY, _MOVED_FROM)
    joined = marked.join_keys(on, sources, reader, reader.output, narrow=merger.is_narrow)
    return joined.map_batches(_delete_lost_records, pa.schema([*located.schema, *old]))


def _mark_moved(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add the file group of the record if that is in another partition than the row; otherwise nothing."""
    for batch in batches:
        found = batch.column(FOUND_IN)
        moved = pc.not_equal(found, batch.column(PARTITION_PATH).cast(pa.string())).fill_null(False)
        place = pc.binary_join_element_wise(found, batch.column(LOCATION), "\0")
        yield batch.append_column(_MOVED_FROM, pc.if_else(moved, place, ""))


def _at(place: str, context: TagContext) -> list[FileSlice]:
    partition, _, file_id = place.partition("\0")
    return [each for each in context.slices(partition) if each.file_id == file_id]


@dataclass(frozen=True, slots=True)
class ReadOldVersions:
    """Yields the key, the file group and the old columns of the records of a slice. Picklable.

    Attributes:
        keys: reads the keys of a slice with the columns.
        old: the columns under their new names.
    """

    keys: ReadKeys
    old: list[pa.Field]

    @property
    def output(self) -> pa.Schema:
        """The columns."""
        flag = pa.field(_IS_KNOWN, pa.bool_())
        return pa.schema([(RECORD_KEY, pa.string()), (_MOVED_FROM, pa.string()), flag, *self.old])

    def __call__(self, file_slice: FileSlice) -> Iterator[pa.RecordBatch]:
        """Read one slice; records that a log file deleted are left out."""
        place = f"{file_slice.partition}\0{file_slice.file_id}"
        for batch in self.keys(file_slice):
            alive = batch.filter(pc.invert(batch.column(IS_DELETED)))
            places, flags = (pa.repeat(pa.scalar(each), alive.num_rows) for each in (place, True))
            columns = [
                alive.column(RECORD_KEY),
                places,
                flags,
                *(alive.column(each.name) for each in self.old),
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=self.output)


def _delete_lost_records(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Mark records as deleted that the index has in another partition, but the files do not."""
    for batch in batches:
        is_moved = pc.not_equal(batch.column(_MOVED_FROM), "")
        is_lost = pc.and_(is_moved, batch.column(_IS_KNOWN).is_null())
        at = batch.schema.get_field_index(IS_DELETED)
        yield batch.set_column(at, IS_DELETED, pc.or_kleene(batch.column(at), is_lost)).drop_columns(
            [_MOVED_FROM, _IS_KNOWN]
        )


def _opened(context: TagContext, *, is_partitioned: bool) -> RecordIndex | None:
    """Return the record index of the table; None, with a warning, if the files have to be read instead."""
    settings = context.settings
    config, timeline = settings.config, context.lookup.timeline
    storage = open_spec(settings.storage)
    try:
        index = open_record_index(storage, config, timeline, SystemClock())
        with about_metadata(Subfolder(storage, METADATA_FOLDER)):
            defined = definitions(storage)
    except MetadataTableError as error:
        _log.warning("The files of the table are read instead of its record index: %s", error)
        return None
    if index is None:
        if timeline.writes():
            _log.warning("%s has no record index yet. Its files are read instead.", config.name)
        return None
    if (why := reason_not_used(defined)) is not None:
        _log.warning("The files of %s are read instead of its record index. %s", config.name, why)
        return None
    if config.partition_fields:
        check_kind(index, is_partitioned=is_partitioned)
    return index


def check_kind(index: RecordIndex, *, is_partitioned: bool) -> None:
    """Check that the record index of a table is of the kind that a write wants.

    Args:
        index: the record index of the table.
        is_partitioned: whether the write wants an index for each partition.

    Raises:
        InvalidError: it is of the other kind.
    """
    if not index.groups or index.is_partitioned == is_partitioned:
        return
    has, use = (
        ("for each partition", PARTITIONED_KIND) if index.is_partitioned else ("global", GLOBAL_KINDS[1])
    )
    raise InvalidError(f"The record index of the table is {has}. Use hoodie.index.type={use}.")
