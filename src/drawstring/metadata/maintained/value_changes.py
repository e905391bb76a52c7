"""The values of a column that an instant gives to records or takes from them, file group by file group.

    base file rewritten     the values before and after of records that are new, changed or gone are compared;
                            the others keep their commit time
    log files written       the same for the records that the log files write or delete
    other base files        the same for all records
    file group replaced     all its records lose their values

A record that several instants wrote has the value that merging leaves, so slices are merged before they are
compared. Where each partition of the table has its own record index, a key may be in several of them: its
value is left in the index as long as it has another place, since a look-up finds all places of a key.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.bounds import BATCH_ROWS
from drawstring.base.cached import cached_property
from drawstring.config.table.config import TableConfig
from drawstring.filegroups.read.open_logs import record_keys
from drawstring.filegroups.read.slice_merge import SliceMerge
from drawstring.filegroups.read.slice_reader import read_slice
from drawstring.filegroups.read.tasks import InstantRange, ReadTask
from drawstring.filegroups.view.file_groups import FileGroupView
from drawstring.merge.versions import flat
from drawstring.metadata.maintained.protocol import TableChange
from drawstring.metadata.partitions import IS_REMOVED, KEY
from drawstring.metadata.record_index import FILE_ID, PARTITION, RecordIndex
from drawstring.metadata.secondary_keys import secondary_keys
from drawstring.model.commit import CommitMetadata, WriteStat
from drawstring.model.files import FileSlice, FileStatus, LogFile
from drawstring.schema.meta import RECORD_KEY
from drawstring.storage.protocol import StorageSpec

HASHED: Final = "hashed"
CHANGED: Final = pa.schema([(KEY, pa.string()), (HASHED, pa.string()), (IS_REMOVED, pa.bool_())])
"""Columns of changes: key of a record of the index, the part with the value, and whether it is gone."""

_PAIRS: Final = pa.schema([(KEY, pa.string()), (HASHED, pa.string()), (RECORD_KEY, pa.string())])


@dataclass(frozen=True, slots=True)
class GroupValues:
    """A file group that an instant writes to or replaces.

    Attributes:
        before: its slice before the instant; None for none.
        after: its slice after the instant; None for none.
        logged: the log files of the instant alone; None if it wrote a base file, or replaced the group.
        written_at: the instant, if only records that it wrote have it as their commit time; else None.
        gone: with `written_at`, the keys that the group has no more; None if that is unknown.
    """

    before: FileSlice | None
    after: FileSlice | None
    logged: FileSlice | None = None
    written_at: str | None = None
    gone: pa.Array | None = None


@dataclass(frozen=True)
class TouchedGroups:
    """Finds the file groups that an instant writes to or replaces.

    Attributes:
        change: the instant.
        commit: its metadata.
    """

    change: TableChange
    commit: CommitMetadata

    def groups(self) -> Iterator[GroupValues]:
        """Yield the file groups."""
        logs: dict[tuple[str, str], list[LogFile] | None] = {}
        for stat in self.commit.stats:
            if stat.path:
                log = LogFile.parse(FileStatus(stat.path, stat.size_bytes))
                found = logs.setdefault((stat.partition, stat.file_id), [])
                if log is None or found is None:
                    logs[stat.partition, stat.file_id] = None
                else:
                    found.append(log)
        for place, files in logs.items():
            before, after = self._before.get(place), self._after.get(place)
            if files:
                logged = FileSlice(*place, self.change.instant.requested, None, tuple(files))
                yield GroupValues(before, after, logged)
            elif before is None or after is None or not self.change.config.populate_meta_fields:
                yield GroupValues(before, after)
            else:
                gone = self._gone(place)
                yield GroupValues(before, after, written_at=self.change.instant.requested, gone=gone)
        for place in sorted(self.commit.superseded - logs.keys()):
            yield GroupValues(self._before.get(place), None)

    def _gone(self, place: tuple[str, str]) -> pa.Array | None:
        """Return the keys that a rewritten base file has no more, if its writer knew them."""
        stats = self._stats[place]
        held = [each.held.changed_keys for each in stats if each.held is not None]
        known = [each for each in held if each is not None]
        if len(known) == len(stats):
            return pa.concat_arrays(
                [flat(each.column(KEY).filter(each.column(IS_REMOVED))) for each in known]
            )
        return None if any(each.num_deletes for each in stats) else pa.array([], pa.string())

    @cached_property
    def _stats(self) -> dict[tuple[str, str], list[WriteStat]]:
        found: dict[tuple[str, str], list[WriteStat]] = defaultdict(list)
        for each in self.commit.stats:
            found[each.partition, each.file_id].append(each)
        return found

    @cached_property
    def _before(self) -> dict[tuple[str, str], FileSlice]:
        return self._slices(self.change.view)

    @cached_property
    def _after(self) -> dict[tuple[str, str], FileSlice]:
        return self._slices(self.change.view_after)

    def _slices(self, view: FileGroupView) -> dict[tuple[str, str], FileSlice]:
        partitions = {stat.partition for stat in self.commit.stats if stat.path}
        partitions |= {partition for partition, _ in self.commit.superseded}
        return {(path, each.file_id): each for path in sorted(partitions) for each in view.slices(path)}


@dataclass(frozen=True, slots=True)
class ReadValueChanges:
    """Yields what changes in a file group; see `CHANGED`. Picklable.

    Attributes:
        storage: opens the table.
        config: the table.
        schema: its columns with meta columns.
        instants: the instants whose log blocks count once the instant is complete.
        column: the indexed column.
        index: the record index before the instant, if each partition has its own; else None.
    """

    storage: StorageSpec
    config: TableConfig
    schema: pa.Schema
    instants: InstantRange
    column: str
    index: RecordIndex | None = None

    def __call__(self, group: GroupValues) -> Iterator[pa.RecordBatch]:
        """Read one file group."""
        among = self._among(group)
        old, new = (self._pairs(each, among) for each in (group.before, group.after))
        gone = old.filter(pc.invert(pc.is_in(old.column(KEY), value_set=new.column(KEY))))
        come = new.filter(pc.invert(pc.is_in(new.column(KEY), value_set=old.column(KEY))))
        yield from _batches(self._without_others(gone, group.before), is_removed=True)
        yield from _batches(come, is_removed=False)

    def _among(self, group: GroupValues) -> pa.Array | None:
        """Return the keys of the records whose value may have changed; None for all."""
        if group.logged is not None:
            return SliceMerge(self._task(group.logged)).log_keys
        if group.written_at is None or group.before is None or group.after is None:
            return None
        written = self._keys(group.after, group.written_at)
        gone = group.gone
        if gone is None:
            old, new = self._keys(group.before), self._keys(group.after)
            gone = old.filter(pc.invert(pc.is_in(old, value_set=new)))
        return pa.concat_arrays([written, gone])

    def _keys(self, file_slice: FileSlice, written_at: str | None = None) -> pa.Array:
        """Return the record keys of a slice, or of its records with a commit time."""
        task = replace(self._task(file_slice), columns=(RECORD_KEY,))
        if written_at is not None:
            task = replace(task, commit_times=(written_at,))
        keys = [flat(batch.column(RECORD_KEY)) for batch in read_slice(task)]
        return pa.concat_arrays([pa.array([], pa.string()), *keys])

    def _pairs(self, file_slice: FileSlice | None, among: pa.Array | None) -> pa.Table:
        """Return the records of the index for the live rows of a slice, or for those with some keys."""
        if file_slice is None or (among is not None and not len(among)):
            return _PAIRS.empty_table()
        return pa.Table.from_batches(self._read(file_slice, among), _PAIRS)

    def _read(self, file_slice: FileSlice, among: pa.Array | None) -> Iterator[pa.RecordBatch]:
        for batch in read_slice(self._task(file_slice, among)):
            keys = flat(record_keys(batch, self.config))
            values = flat(batch.column(self.column))
            if among is not None:
                chosen = pc.is_in(keys, value_set=among)
                keys, values = keys.filter(chosen), values.filter(chosen)
            yield pa.RecordBatch.from_arrays([*secondary_keys(values, keys)], schema=_PAIRS)

    def _task(self, file_slice: FileSlice, among: pa.Array | None = None) -> ReadTask:
        config = self.config
        keys = (RECORD_KEY,) if config.populate_meta_fields else config.record_key_fields
        columns = tuple(dict.fromkeys((*keys, self.column)))
        only = None if among is None or not file_slice.logs else tuple(among.to_pylist())
        return ReadTask(
            self.storage, config, file_slice, self.schema, columns, instants=self.instants, keys=only
        )

    def _without_others(self, gone: pa.Table, before: FileSlice | None) -> pa.Table:
        """Leave out the records whose keys are in other file groups as well."""
        if self.index is None or before is None or not gone.num_rows:
            return gone
        names = (name for name in self.index.groups if name is not None)
        found = self.index.locations(flat(gone.column(RECORD_KEY)), names)
        is_here = pc.and_(
            pc.equal(found.column(PARTITION), before.partition),
            pc.equal(found.column(FILE_ID), before.file_id),
        )
        others = flat(found.filter(pc.invert(is_here)).column(KEY))
        return gone.filter(pc.invert(pc.is_in(gone.column(RECORD_KEY), value_set=others)))


def _batches(pairs: pa.Table, *, is_removed: bool) -> Iterator[pa.RecordBatch]:
    for batch in pairs.to_batches(BATCH_ROWS):
        flags = pa.repeat(pa.scalar(is_removed), batch.num_rows)
        yield pa.RecordBatch.from_arrays([batch.column(KEY), batch.column(HASHED), flags], schema=CHANGED)
